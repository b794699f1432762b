//! Parsers of values in the older fleetd's notations.

use std::time::Duration;

use figment::value::Value;
use humantime_serde::re::humantime::format_duration;

use super::Address;

/// A duration: seconds, or Go's notation (`1.5s`, `300ms`, `1h30m`).
pub(super) fn seconds(text: &str) -> Result<Value, String> {
    let time = plain_seconds(text).or_else(|| go_duration(text));
    let time = time.ok_or_else(|| {
        format!("{text:?} is neither a number of seconds nor a time such as 1.5s, 300ms or 1h30m")
    })?;
    Ok(Value::from(format_duration(time).to_string()))
}

fn plain_seconds(text: &str) -> Option<Duration> {
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

/// Texts separated by commas. Brackets and quotes around them, as in JSON, are removed. Empty ones are dropped.
pub(super) fn list(text: &str) -> Vec<String> {
    let item = |item: &str| {
        let item = item.trim_start_matches([' ', '[', '"']);
        item.trim_end_matches([' ', '"', ']']).to_owned()
    };
    let items = text.split(',').map(item);
    items.filter(|item| !item.is_empty()).collect()
}

pub(super) fn endpoints(text: &str) -> Result<Value, String> {
    let endpoints = list(text);
    if endpoints.is_empty() {
        return Err("names no server of etcd".to_owned());
    }
    Ok(endpoints.into())
}

pub(super) fn addresses(text: &str) -> Result<Value, String> {
    let texts = list(text);
    let read: Result<Vec<_>, _> = texts.iter().map(|one| Address::parse(one)).collect();
    let addresses = read?;
    for (index, address) in addresses.iter().enumerate() {
        let is_free = matches!(address, Address::Tcp { port: 0, .. });
        if !is_free && addresses.iter().take(index).any(|other| other == address) {
            return Err(format!("{address} is repeated"));
        }
    }
    if addresses.is_empty() {
        return Err("says nowhere: name a listener, such as unix:/var/run/fleet.sock".to_owned());
    }
    Ok(texts.into())
}

/// File permissions in octal.
pub(super) fn mode(text: &str) -> Result<Value, String> {
    let mode = u32::from_str_radix(text, 8).ok();
    let mode = mode.filter(|mode| *mode <= 0o777);
    mode.map(Value::from)
        .ok_or_else(|| format!("{text:?} is no mode of a file: give it in octal, such as 0660"))
}

/// Metadata of the agent. The older fleetd silently dropped malformed pairs, and kept values that no unit can ask for.
pub(super) fn metadata(text: &str) -> Result<Value, String> {
    let pairs = text.split(',').map(str::trim).filter(|p| !p.is_empty());
    for pair in pairs {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| format!("{pair:?} is no pair key=value"))?;
        let has_blank = key.trim_end().contains(char::is_whitespace);
        if has_blank || value.contains('=') || pair.contains('"') {
            return Err(format!(
                "{pair:?} is more than one pair key=value: separate pairs by commas, without quotes"
            ));
        }
    }
    Ok(text.into())
}

/// `host:port` of a server; empty for none.
pub(super) fn host_and_port_or_none(text: &str) -> Result<Value, String> {
    let is_one = |(host, port): (&str, &str)| {
        let is_host = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        let is_bare_ipv6 = host.contains(':') && !host.starts_with('[');
        let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
        !host.is_empty() && host.chars().all(is_host) && !is_bare_ipv6 && is_port
    };
    if text.is_empty() || text.rsplit_once(':').is_some_and(is_one) {
        return Ok(text.into());
    }
    Err(format!(
        "{text:?} is no address: expect host:port, such as 10.0.0.2:8001"
    ))
}

/// The id of a machine; empty for none.
pub(super) fn machine_id_or_none(text: &str) -> Result<Value, String> {
    match text {
        "" => Ok(text.into()),
        _ => machine_id(text).map(Value::from),
    }
}

/// Checks a machine id, which must fit into keys of the registry and paths of the API.
///
/// # Errors
/// What it must be, as the rest of a sentence.
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
            let time = format_duration(Duration::from_millis(milliseconds));
            assert_eq!(seconds(text), Ok(time.to_string().into()), "{text}");
        }
        for text in [
            "", "s", "1x", "-1", "-1s", "1 s", "1s 2", "s1", "NaN", "inf", "1..5s", "1d", "1e400",
        ] {
            assert!(seconds(text).is_err(), "{text}");
        }
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
        assert_eq!(mode("0660"), Ok(0o660_u32.into()));
        assert_eq!(mode("600"), Ok(0o600_u32.into()));
        for text in ["", "rw", "0888", "1777", "-1"] {
            assert!(mode(text).is_err(), "{text}");
        }
    }

    #[test]
    fn metadata_is_what_units_can_ask_for() {
        for text in [
            "",
            "a=b",
            "a=b,,c=d",
            " a=b, c=d ,",
            "a = b,zone=east wing",
            "a=b,a=c",
            "a=b\n",
        ] {
            assert_eq!(metadata(text), Ok(text.into()), "{text}");
        }
        for text in [
            "a",
            "a=b,c",
            "role=render role=ceph-osd",
            "a=b;c=d",
            "a=b\nc=d",
            "a b=c",
            "\"a=b\",\"c=d\"",
            "a=\"b\"",
        ] {
            assert!(metadata(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_to_advertise_have_a_host_and_a_port() {
        for text in ["", "10.0.0.2:8001", "m1.example:1", "[2001:db8::1]:8001"] {
            assert!(host_and_port_or_none(text).is_ok(), "{text}");
        }
        for text in [
            "m1",
            ":8001",
            "m1:",
            "m1:0",
            "m1:65536",
            "http://m1:8001",
            "2001:db8::1:8001",
            "m 1:8001",
        ] {
            assert!(host_and_port_or_none(text).is_err(), "{text}");
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
