//! Times as clients see them: RFC 3339 in UTC, with the shortest exact fraction.

use chrono::{DateTime, Datelike as _, SecondsFormat, SubsecRound as _, Timelike as _, Utc};
use serde::Serializer;

/// `2026-01-01T10:00:00Z`, `2026-01-01T10:00:00.5Z`; to the microsecond, as all stored times are.
pub fn rfc3339(at: DateTime<Utc>) -> String {
    let mut text = String::with_capacity(27);
    match u32::try_from(at.year()) {
        // By hand: answers have many, and `chrono` takes several times as long.
        Ok(year) if year <= 9999 => {
            push_digits(&mut text, year, 4);
            for (mark, number) in [
                ('-', at.month()),
                ('-', at.day()),
                ('T', at.hour()),
                (':', at.minute()),
                (':', at.second()),
            ] {
                text.push(mark);
                push_digits(&mut text, number, 2);
            }
        }
        _ => {
            let seconds = at.to_rfc3339_opts(SecondsFormat::Secs, true);
            text.push_str(seconds.trim_end_matches('Z'));
        }
    }
    let micros = at.nanosecond() / 1000 % 1_000_000;
    if micros > 0 {
        text.push('.');
        push_digits(&mut text, micros, 6);
        text.truncate(text.trim_end_matches('0').len());
    }
    text.push('Z');
    text
}

fn push_digits(text: &mut String, number: u32, digits: u32) {
    for place in (0..digits).rev() {
        let digit = number / 10_u32.pow(place) % 10;
        text.push(char::from(b"0123456789"[digit as usize]));
    }
}

/// The same without a fraction.
pub fn rfc3339_seconds(at: DateTime<Utc>) -> String {
    rfc3339(at.trunc_subsecs(0))
}

/// Reads a time with its zone, cut to whole microseconds.
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
            (-62_135_596_800_000_000, "0001-01-01T00:00:00Z"),
            (253_402_300_799_999_990, "9999-12-31T23:59:59.99999Z"),
        ] {
            let at = DateTime::from_timestamp_micros(micros).unwrap();
            assert_eq!(rfc3339(at), expected);
            let seconds = expected.split(['.', 'Z']).next().unwrap();
            assert_eq!(rfc3339_seconds(at), format!("{seconds}Z"));
            assert_eq!(expected.parse::<DateTime<Utc>>().unwrap(), at);
            assert_eq!(parse(expected), Some(at));
        }
        let later = DateTime::from_timestamp_micros(253_402_300_800_000_010).unwrap();
        assert_eq!(rfc3339(later), "+10000-01-01T00:00:00.00001Z");
    }
}
