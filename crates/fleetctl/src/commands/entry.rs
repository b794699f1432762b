//! Entries of a journal as `journalctl` prints them.

use std::fmt::Write as _;

use chrono::{DateTime, TimeZone};
use serde_json::Value;

use crate::cli::JournalFormat;

/// In place of a message that the server leaves out.
const TOO_LONG: &[u8] = b"[the message is too long: add --ssh]";

/// The text of an entry, with times in this zone.
pub(super) fn text<Z: TimeZone<Offset: std::fmt::Display>>(
    entry: &Value,
    format: JournalFormat,
    zone: &Z,
) -> Vec<u8> {
    if format == JournalFormat::Json {
        return format!("{entry}\n").into_bytes();
    }
    let Some(message) = message(entry) else {
        return Vec::new();
    };
    let message = message.strip_suffix(b"\n").unwrap_or(&message);
    let head = match format {
        JournalFormat::Short => head(entry, zone),
        JournalFormat::Cat | JournalFormat::Json => String::new(),
    };
    let indent = " ".repeat(head.chars().count());
    let mut text = Vec::new();
    for (index, line) in message.split(|byte| *byte == b'\n').enumerate() {
        let begin = if index == 0 { &head } else { &indent };
        text.extend([begin.as_bytes(), line, b"\n"].concat());
    }
    text
}

/// The message of an entry, if it has one.
fn message(entry: &Value) -> Option<Vec<u8>> {
    match entry.get("MESSAGE")? {
        Value::Null => Some(TOO_LONG.to_vec()),
        message => bytes(message),
    }
}

/// `Nov 22 19:34:35 m1 sh[34]: `
fn head<Z: TimeZone<Offset: std::fmt::Display>>(entry: &Value, zone: &Z) -> String {
    let field = |name: &str| {
        let value = bytes(entry.get(name)?)?;
        Some(String::from_utf8_lossy(&value).into_owned())
    };
    let first = |names: [&str; 2]| field(names[0]).or_else(|| field(names[1]));
    let micros = first(["_SOURCE_REALTIME_TIMESTAMP", "__REALTIME_TIMESTAMP"]);
    let time = micros.and_then(|micros| DateTime::from_timestamp_micros(micros.parse().ok()?));
    let time = time.map(|time| {
        time.with_timezone(zone)
            .format("%b %d %H:%M:%S ")
            .to_string()
    });
    let mut head = time.unwrap_or_default();
    if let Some(host) = field("_HOSTNAME") {
        let _ = write!(head, "{host} ");
    }
    head += &first(["SYSLOG_IDENTIFIER", "_COMM"]).unwrap_or_else(|| "unknown".to_owned());
    if let Some(pid) = first(["_PID", "SYSLOG_PID"]) {
        let _ = write!(head, "[{pid}]");
    }
    head + ": "
}

/// A field as `journalctl` writes it: a text, an array of bytes that are not UTF-8, or an array of several values.
fn bytes(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.clone().into_bytes()),
        Value::Array(values) if values.iter().all(Value::is_number) => {
            serde_json::from_value(value.clone()).ok()
        }
        Value::Array(values) => bytes(values.first()?),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_are_printed_as_by_journalctl() {
        let entry = |message: Value| {
            json!({
                "__CURSOR": "s=1", "__REALTIME_TIMESTAMP": "1763840075000000", "_HOSTNAME": "m1",
                "_PID": "34", "SYSLOG_IDENTIFIER": "sh", "_COMM": "dash", "MESSAGE": message,
            })
        };
        for (message, short, cat) in [
            (
                json!("line 7"),
                "Nov 22 19:34:35 m1 sh[34]: line 7\n",
                &b"line 7\n"[..],
            ),
            (
                json!("a\n\nb\n"),
                "Nov 22 19:34:35 m1 sh[34]: a\n                           \n                           b\n",
                b"a\n\nb\n",
            ),
            (json!([97, 10, 255]), "", b"a\n\xff\n"),
            (
                json!(["one", "two"]),
                "Nov 22 19:34:35 m1 sh[34]: one\n",
                b"one\n",
            ),
            (
                Value::Null,
                "Nov 22 19:34:35 m1 sh[34]: [the message is too long: add --ssh]\n",
                b"[the message is too long: add --ssh]\n",
            ),
        ] {
            let text = |format| text(&entry(message.clone()), format, &Utc);
            if !short.is_empty() {
                assert_eq!(
                    String::from_utf8(text(JournalFormat::Short)).unwrap(),
                    short
                );
            }
            assert_eq!(text(JournalFormat::Cat), cat, "{message}");
        }
    }

    #[test]
    fn missing_fields_are_left_out() {
        let short = |entry: Value| text(&entry, JournalFormat::Short, &Utc);
        assert_eq!(short(json!({"MESSAGE": "a"})), b"unknown: a\n");
        assert_eq!(
            short(json!({"MESSAGE": "a", "_COMM": "sh", "SYSLOG_PID": "7"})),
            b"sh[7]: a\n"
        );
        let times = json!({
            "MESSAGE": "a", "_SOURCE_REALTIME_TIMESTAMP": "1000000", "__REALTIME_TIMESTAMP": "2000000",
        });
        assert_eq!(short(times), b"Jan 01 00:00:01 unknown: a\n");
        assert_eq!(short(json!({"_PID": "1"})), b"");
        let json = text(&json!({"b": 1, "a": "\n"}), JournalFormat::Json, &Utc);
        assert_eq!(json, b"{\"a\":\"\\n\",\"b\":1}\n");
    }
}
