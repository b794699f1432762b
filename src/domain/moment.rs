//! Moments as clients see them: RFC 3339 in UTC, with no more of a fraction than there is.

use chrono::{DateTime, SecondsFormat, Timelike as _, Utc};
use serde::Serializer;

/// `2026-01-01T10:00:00Z`, `2026-01-01T10:00:00.5Z`; to the microsecond, as all stored moments are.
pub fn rfc3339(at: DateTime<Utc>) -> String {
    let whole = at.to_rfc3339_opts(SecondsFormat::Secs, true);
    match at.nanosecond() / 1000 {
        0 => whole,
        micros => {
            let seconds = whole.trim_end_matches('Z');
            let fraction = format!("{micros:06}");
            format!("{seconds}.{}Z", fraction.trim_end_matches('0'))
        }
    }
}

/// Reads a moment with its zone, cut to whole microseconds.
pub fn parse(text: &str) -> Option<DateTime<Utc>> {
    let at = DateTime::parse_from_rfc3339(text).ok()?;
    DateTime::from_timestamp_micros(at.timestamp_micros())
}

/// For `#[serde(serialize_with)]`.
pub fn serialize<S: Serializer>(at: &DateTime<Utc>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&rfc3339(*at))
}

/// The same, for members that may be absent.
pub fn serialize_some<S: Serializer>(
    at: &Option<DateTime<Utc>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match at {
        Some(at) => serialize(at, serializer),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_as_long_as_it_must_be() {
        for (micros, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (100_000, "1970-01-01T00:00:00.1Z"),
            (123_400, "1970-01-01T00:00:00.1234Z"),
            (1, "1970-01-01T00:00:00.000001Z"),
            (59_000_000, "1970-01-01T00:00:59Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
        ] {
            let at = DateTime::from_timestamp_micros(micros).unwrap();
            assert_eq!(rfc3339(at), expected);
            assert_eq!(expected.parse::<DateTime<Utc>>().unwrap(), at);
            assert_eq!(parse(expected), Some(at));
        }
    }
}
