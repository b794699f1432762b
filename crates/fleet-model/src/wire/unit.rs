//! The body of `PUT …/units/{name}`.

use serde::Deserialize;
use utoipa::ToSchema;

use super::decode::{Undecodable, body};
use crate::shown;
use crate::unit::{DesiredState, UnitOption};

/// The desired state and file of a unit. Unknown members are ignored, and `null` counts as absent.
#[derive(Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(expecting = "an object")]
pub struct UnitRequest {
    /// Desired state. Default for a new unit: `inactive`.
    #[serde(rename = "desiredState")]
    #[schema(nullable = true)]
    pub desired: Option<DesiredState>,
    /// The unit's name; if present, the same as in the path.
    #[schema(nullable = true, max_length = 256, example = "web.service")]
    pub name: Option<String>,
    /// The unit's file. Absent or empty: it stays unchanged.
    #[schema(nullable = true, max_items = 1000)]
    pub options: Option<Vec<UnitOption>>,
}

/// The body names another unit than the path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("name in URL {:?} differs from unit name in request body {:?}", shown(.path), shown(.body))]
pub struct OtherName {
    path: String,
    body: String,
}

impl UnitRequest {
    /// # Errors
    /// The body names another unit than the path.
    pub fn check_name(&self, path: &str) -> Result<(), OtherName> {
        match self.name.as_deref() {
            Some(body) if !body.is_empty() && body != path => Err(OtherName {
                path: path.to_owned(),
                body: body.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

/// Reads such a body.
///
/// # Errors
/// Invalid JSON, or a wrong type.
pub fn unit_request(bytes: &[u8]) -> Result<UnitRequest, Undecodable> {
    body(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<UnitRequest, String> {
        unit_request(text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_body_has_a_name_a_file_and_a_state() {
        let unit = read(
            r#"{"name":"b.service","desiredState":"launched","x":{"name":5},"machineID":"",
                "options":[{"section":"Service","name":"ExecStart","value":"/bin/true","more":1},{}]}"#,
        );
        let expected = UnitRequest {
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
    fn absent_members_and_null_are_the_same() {
        for text in ["{}", r#"{"options":null,"name":null,"desiredState":null}"#] {
            assert_eq!(read(text), Ok(UnitRequest::default()), "{text}");
        }
    }

    #[test]
    fn a_name_in_the_body_is_that_of_the_path() {
        let check = |text: &str| read(text).unwrap().check_name("a.service");
        for text in ["{}", r#"{"name":""}"#, r#"{"name":"a.service"}"#] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        let error = check(r#"{"name":"b.service"}"#).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"name in URL "a.service" differs from unit name in request body "b.service""#
        );
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
