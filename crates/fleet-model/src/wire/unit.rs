//! The body of `PUT …/units/{name}`.

use serde::Deserialize;
use utoipa::ToSchema;

use super::OptionView;
use super::decode::{Undecodable, body};
use super::views::State;
use crate::unit::{DesiredState, UnitOption};

/// The desired state and file of a unit. Unknown members are ignored, and `null` counts as absent.
#[derive(Deserialize, ToSchema)]
#[serde(expecting = "an object")]
#[schema(as = UnitRequest)]
pub(super) struct UnitBody {
    /// Desired state. Default for a new unit: `inactive`.
    #[serde(rename = "desiredState")]
    #[schema(value_type = Option<State>, nullable = true)]
    desired: Option<DesiredState>,
    /// The unit's name; if present, the same as in the path.
    #[schema(nullable = true, max_length = 256, example = "web.service")]
    name: Option<String>,
    /// The unit's file. Absent or empty: it stays unchanged.
    #[schema(nullable = true, max_items = 1000)]
    options: Option<Vec<OptionView>>,
}

/// What a unit is to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SetUnit {
    /// The unit's name, if the request repeats it.
    pub name: Option<String>,
    /// The unit's file; `None`: it stays unchanged.
    pub options: Option<Vec<UnitOption>>,
    /// `None`: it stays unchanged; `Inactive` for a new unit.
    pub desired: Option<DesiredState>,
}

/// Reads such a body.
///
/// # Errors
/// Invalid JSON, or a wrong type.
pub fn set_unit(bytes: &[u8]) -> Result<SetUnit, Undecodable> {
    let body: UnitBody = body(bytes)?;
    let options = body.options.filter(|options| !options.is_empty());
    let options = options.map(|options| options.into_iter().map(UnitOption::from).collect());
    Ok(SetUnit {
        name: body.name,
        options,
        desired: body.desired,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SetUnit, String> {
        set_unit(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_body_has_a_name_a_file_and_a_state() {
        let unit = read(
            r#"{"name":"b.service","desiredState":"launched","x":{"name":5},"machineID":"",
                "options":[{"section":"Service","name":"ExecStart","value":"/bin/true","more":1},{}]}"#,
        );
        let expected = SetUnit {
            name: Some("b.service".to_owned()),
            options: Some(vec![
                UnitOption::new("Service", "ExecStart", "/bin/true"),
                UnitOption::new("", "", ""),
            ]),
            desired: Some(DesiredState::Launched),
        };
        assert_eq!(unit, Ok(expected));
    }

    #[test]
    fn no_options_are_no_file() {
        for text in [
            "{}",
            r#"{"options":null}"#,
            r#"{"options":[]}"#,
            r#"{"name":null,"desiredState":null}"#,
        ] {
            assert_eq!(read(text), Ok(SetUnit::default()), "{text}");
        }
    }

    #[test]
    fn other_types_are_refused_with_their_path() {
        for (text, start) in [
            ("null", "invalid type: null, expected an object"),
            (r#"{"options":[null]}"#, "options[0]: invalid type: null"),
            (r#"{"options":{}}"#, "options: invalid type: map"),
            (
                r#"{"options":[{"value":1}]}"#,
                "options[0].value: invalid type: integer `1`",
            ),
            (
                r#"{"desiredState":"running"}"#,
                r#"desiredState: invalid desired state "running": expect inactive, loaded, or launched"#,
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(start), "{text}: {error}");
        }
    }
}
