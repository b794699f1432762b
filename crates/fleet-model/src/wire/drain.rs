//! The body of `PUT …/machines/{id}/drain`: how long the machine is drained.

use super::decode::{Undecodable, body};

/// Thirty days.
pub const DEADLINE_SECONDS_MAX: u32 = 30 * 24 * 60 * 60;

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
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let mut deadline = None;
    for (_, part) in body(bytes)?.members(&["deadlineSeconds"])? {
        let given = match part.number() {
            _ if part.is_null() => None,
            Some(seconds @ 1..=DEADLINE_SECONDS_MAX) => Some(seconds),
            _ => return Err(InvalidDrain::Deadline),
        };
        deadline = given.or(deadline);
    }
    Ok(deadline)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_a_whole_number_of_seconds_or_left_out() {
        for (text, deadline) in [
            ("", Ok(None)),
            (" ", Ok(None)),
            ("{}", Ok(None)),
            ("null", Ok(None)),
            (r#"{"deadlineSeconds":null}"#, Ok(None)),
            (r#"{"DEADLINESECONDS":600,"x":1}"#, Ok(Some(600))),
            (r#"{"deadlineSeconds":2592000}"#, Ok(Some(2_592_000))),
        ] {
            assert_eq!(drain_deadline(text.as_bytes()), deadline, "{text}");
        }
        for value in [
            "0",
            "-1",
            "1.5",
            "2592001",
            r#""600""#,
            "true",
            "1e3",
            "99999999999",
        ] {
            let text = format!(r#"{{"deadlineSeconds":{value}}}"#);
            let fault = drain_deadline(text.as_bytes());
            assert_eq!(fault, Err(InvalidDrain::Deadline), "{text}");
        }
        for text in ["[]", "7", "{"] {
            let fault = drain_deadline(text.as_bytes());
            assert!(matches!(fault, Err(InvalidDrain::Undecodable(_))), "{text}");
        }
    }
}
