//! The body of `PUT …/machines/{id}/drain`: how long the machine is drained.

use serde::Deserialize;
use utoipa::ToSchema;

use super::decode::{Undecodable, body};

/// Thirty days.
pub const DEADLINE_SECONDS_MAX: u32 = 30 * 24 * 60 * 60;

/// How long to drain a machine.
#[derive(Deserialize, ToSchema)]
#[serde(expecting = "an object")]
#[schema(as = DrainRequest)]
pub(super) struct DrainBody {
    /// After this many seconds the remaining units stay. Absent: no deadline.
    #[serde(rename = "deadlineSeconds")]
    #[schema(nullable = true, minimum = 1, maximum = 2_592_000, example = 600)]
    deadline_seconds: Option<u32>,
}

const _: () = assert!(DEADLINE_SECONDS_MAX == 2_592_000, "the schema says so");

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDrain {
    #[error("unable to decode body: {0}")]
    Undecodable(#[from] Undecodable),
    /// The deadline is out of range.
    #[error("invalid deadlineSeconds: expect a whole number from 1 to {DEADLINE_SECONDS_MAX}")]
    Deadline,
}

/// The deadline in a body such as `{"deadlineSeconds": 600}`, in seconds. Without a body or member there is
/// none.
///
/// # Errors
/// The body is no JSON object, or the deadline is out of range.
pub fn drain_deadline(bytes: &[u8]) -> Result<Option<u32>, InvalidDrain> {
    if bytes.trim_ascii().is_empty() {
        return Ok(None);
    }
    let body: DrainBody = body(bytes)?;
    let is_valid = |seconds| (1..=DEADLINE_SECONDS_MAX).contains(seconds);
    if !body.deadline_seconds.iter().all(is_valid) {
        return Err(InvalidDrain::Deadline);
    }
    Ok(body.deadline_seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_a_whole_number_of_seconds_or_absent() {
        for (text, deadline) in [
            ("", None),
            (" ", None),
            ("{}", None),
            (r#"{"deadlineSeconds":null}"#, None),
            (r#"{"deadlineSeconds":600,"x":1}"#, Some(600)),
            (r#"{"deadlineSeconds":2592000}"#, Some(2_592_000)),
        ] {
            assert_eq!(drain_deadline(text.as_bytes()), Ok(deadline), "{text}");
        }
        for value in ["0", "2592001"] {
            let text = format!(r#"{{"deadlineSeconds":{value}}}"#);
            let error = drain_deadline(text.as_bytes());
            assert_eq!(error, Err(InvalidDrain::Deadline), "{text}");
        }
        for value in ["-1", "1.5", r#""600""#, "true", "1e3", "99999999999"] {
            let text = format!(r#"{{"deadlineSeconds":{value}}}"#);
            let error = drain_deadline(text.as_bytes());
            assert!(matches!(error, Err(InvalidDrain::Undecodable(_))), "{text}");
        }
        for text in ["7", "{"] {
            let error = drain_deadline(text.as_bytes());
            assert!(matches!(error, Err(InvalidDrain::Undecodable(_))), "{text}");
        }
    }
}
