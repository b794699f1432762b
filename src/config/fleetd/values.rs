//! What stands behind a key, as the older fleetd took it and as people write it.

use std::ops::RangeInclusive;
use std::time::Duration;

use humantime_serde::re::humantime::format_duration;

use crate::config::{Format, Level};

/// A whole number.
pub(super) fn number(text: &str, allowed: &RangeInclusive<usize>) -> Result<usize, String> {
    let number: usize = text
        .parse()
        .map_err(|_| format!("{text:?} is not a whole number"))?;
    if allowed.contains(&number) {
        return Ok(number);
    }
    let (least, most) = (allowed.start(), allowed.end());
    Err(format!("{number} is not between {least} and {most}"))
}

/// A truth value, as Go's `strconv.ParseBool` has it.
pub(super) fn truth(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err(format!("{text:?} is not true or false")),
    }
}

/// A time: a number of seconds, or Go's form (`1.5s`, `300ms`, `1h30m`).
pub(super) fn time(text: &str, allowed: &RangeInclusive<Duration>) -> Result<Duration, String> {
    let time = seconds(text).or_else(|| go_duration(text)).ok_or_else(|| {
        format!("{text:?} is neither a number of seconds nor a time such as 1.5s, 300ms or 1h30m")
    })?;
    if allowed.contains(&time) {
        return Ok(time);
    }
    let [time, least, most] = [time, *allowed.start(), *allowed.end()].map(format_duration);
    Err(format!("{time} is not between {least} and {most}"))
}

fn seconds(text: &str) -> Option<Duration> {
    let seconds: f64 = text.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Numbers, each with a unit.
fn go_duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 8] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("\u{b5}s", 1e-6),
        ("\u{3bc}s", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(end);
        let end = behind.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, behind) = behind.split_at(end.unwrap_or(behind.len()));
        let (_, each) = UNITS.iter().find(|(name, _)| *name == unit)?;
        seconds += number.parse::<f64>().ok()? * each;
        rest = behind;
    }
    let is_given = !text.is_empty();
    is_given.then(|| Duration::try_from_secs_f64(seconds).ok())?
}

/// Texts with commas between them; brackets and quotes around them, as in JSON, are dropped. Empty ones do not count.
pub(super) fn list(text: &str) -> Vec<String> {
    let item = |item: &str| {
        let item = item.trim_start_matches([' ', '[', '"']);
        item.trim_end_matches([' ', '"', ']']).to_owned()
    };
    let items = text.split(',').map(item);
    items.filter(|item| !item.is_empty()).collect()
}

/// The permissions of a file, in octal.
pub(super) fn mode(text: &str) -> Result<u32, String> {
    let mode = u32::from_str_radix(text, 8).ok();
    mode.filter(|mode| *mode <= 0o777)
        .ok_or_else(|| format!("{text:?} is no mode of a file: give it in octal, such as 0660"))
}

pub(super) fn level(text: &str) -> Result<Level, String> {
    match text {
        "debug" => Ok(Level::Debug),
        "info" => Ok(Level::Info),
        "warn" => Ok(Level::Warn),
        "error" => Ok(Level::Error),
        _ => Err(format!("{text:?} is not one of: debug, info, warn, error")),
    }
}

pub(super) fn format(text: &str) -> Result<Format, String> {
    match text {
        "json" => Ok(Format::Json),
        "text" => Ok(Format::Text),
        _ => Err(format!("{text:?} is not one of: json, text")),
    }
}

/// What names a machine: what may stand in a key of the registry, and in a path of the API.
///
/// # Errors
///
/// What it must be, to follow its name.
pub fn machine_id(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    if (1..=256).contains(&text.len()) && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err("must be 1 to 256 letters, digits, or - _ . :".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_have_units() {
        let any = Duration::ZERO..=Duration::MAX;
        for (text, milliseconds) in [
            ("2", 2000),
            ("1.5", 1500),
            ("0", 0),
            ("1e1", 10_000),
            ("30s", 30_000),
            ("1.5s", 1500),
            ("300ms", 300),
            ("1h30m", 5_400_000),
            ("2m0.5s", 120_500),
        ] {
            let time = time(text, &any);
            assert_eq!(time, Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for text in [
            "", "s", "1x", "-1", "-1s", "1 s", "1s 2", "s1", "NaN", "inf", "1..5s", "1d", "1e400",
        ] {
            assert!(time(text, &any).is_err(), "{text}");
        }
        let fault = time("5m", &(Duration::from_secs(1)..=Duration::from_mins(1)));
        assert_eq!(fault, Err("5m is not between 1s and 1m".to_owned()));
    }

    #[test]
    fn lists_are_json_or_have_commas() {
        for text in [
            "http://a:1,http://b:2",
            "[\"http://a:1\",\"http://b:2\"]",
            " [ \"http://a:1\" , \"http://b:2\", ] ",
        ] {
            assert_eq!(list(text), ["http://a:1", "http://b:2"], "{text}");
        }
        assert!(list("").is_empty() && list("[]").is_empty());
    }

    #[test]
    fn modes_are_octal() {
        assert_eq!(mode("0660"), Ok(0o660));
        assert_eq!(mode("600"), Ok(0o600));
        for text in ["", "rw", "0888", "1777", "-1"] {
            assert!(mode(text).is_err(), "{text}");
        }
    }

    #[test]
    fn ids_of_machines_are_what_keys_can_hold() {
        assert!(machine_id("2ac1ba7e0b1b4d5ea2a8a9b0a5bbdd0c").is_ok());
        let long = "a".repeat(257);
        for text in ["", "a/b", "a b", "caf\u{e9}", "a\n", long.as_str()] {
            assert!(machine_id(text).is_err(), "{text}");
        }
    }
}
