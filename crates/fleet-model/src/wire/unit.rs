//! The body of `PUT …/units/{name}`.

use super::decode::{Part, Undecodable, body};
use crate::unit::UnitOption;
use crate::unit::file::OPTIONS_MAX;

/// The body of `PUT …/units/{name}`. Only its types are checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetUnit {
    /// The unit's name, if the body repeats it.
    pub name: Option<String>,
    /// The unit's file. Absent and empty are the same, as in the older server.
    pub options: Option<Vec<UnitOption>>,
    pub desired: Option<String>,
}

/// Reads such a body. Members that only the server sets are read and ignored.
///
/// # Errors
/// Invalid JSON, or a wrong type.
pub fn set_unit(bytes: &[u8]) -> Result<SetUnit, Undecodable> {
    let mut unit = SetUnit::default();
    let known = [
        "name",
        "options",
        "desiredState",
        "currentState",
        "machineID",
    ];
    for (name, part) in body(bytes)?.members(&known)? {
        match name {
            "options" => unit.options = options(&part)?,
            "name" => unit.name = part.text()?.or(unit.name),
            "desiredState" => unit.desired = part.text()?.or(unit.desired),
            _ => drop(part.text()?),
        }
    }
    Ok(unit)
}

/// One more than the limit, so that the check of the limit fails.
fn options(part: &Part<'_>) -> Result<Option<Vec<UnitOption>>, Undecodable> {
    let options = part.elements(OPTIONS_MAX)?;
    let options: Vec<_> = options.iter().map(option).collect::<Result<_, _>>()?;
    Ok(Some(options).filter(|options| !options.is_empty()))
}

fn option(part: &Part<'_>) -> Result<UnitOption, Undecodable> {
    if part.is_null() {
        // The older server closed the connection here.
        return Err(part.must_be("an object"));
    }
    let mut option = UnitOption::new("", "", "");
    for (name, part) in part.members(&["section", "name", "value"])? {
        let Some(text) = part.text()? else { continue };
        match name {
            "section" => option.section = text,
            "name" => option.name = text,
            _ => option.value = text,
        }
    }
    Ok(option)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SetUnit, String> {
        set_unit(text.as_bytes()).map_err(|fault| fault.to_string())
    }

    #[test]
    fn names_of_members_have_no_case_and_the_last_value_counts() {
        let unit = read(
            r#"{"NAME":"a","name":"b.service","Name":null,"DESIREDSTATE":"launched","x":{"name":5},
                "Options":[{"SECTION":"Service","Name":"ExecStart","value":"/bin/true","more":1},{}],"machineID":""}"#,
        );
        let expected = SetUnit {
            name: Some("b.service".to_owned()),
            options: Some(vec![
                UnitOption::new("Service", "ExecStart", "/bin/true"),
                UnitOption::new("", "", ""),
            ]),
            desired: Some("launched".to_owned()),
        };
        assert_eq!(unit, Ok(expected));
    }

    #[test]
    fn nothing_is_as_good_as_no_options() {
        for text in [
            "null",
            "{}",
            r#"{"options":null}"#,
            r#"{"options":[]}"#,
            r#"{"name":null}"#,
        ] {
            assert_eq!(read(text), Ok(SetUnit::default()), "{text}");
        }
    }

    #[test]
    fn other_types_are_refused() {
        for (text, fault) in [
            ("[]", "the body must be an object"),
            ("5", "the body must be an object"),
            (r#"{"options":[null]}"#, "options[0] must be an object"),
            (r#"{"options":{}}"#, "options must be an array"),
            (
                r#"{"options":[{"value":1}]}"#,
                "options[0].value must be a string",
            ),
            (r#"{"desiredState":true}"#, "desiredState must be a string"),
            (r#"{"currentState":1}"#, "currentState must be a string"),
            (r#"{"machineid":{}}"#, "machineID must be a string"),
        ] {
            assert_eq!(read(text), Err(fault.to_owned()), "{text}");
        }
    }

    #[test]
    fn too_many_options_are_seen_to_be_too_many_and_no_more_are_kept() {
        let text = format!(r#"{{"options":[{}]}}"#, vec!["{}"; 300_000].join(","));
        let unit = read(&text).unwrap();
        assert_eq!(unit.options.unwrap().len(), OPTIONS_MAX + 1);
    }
}
