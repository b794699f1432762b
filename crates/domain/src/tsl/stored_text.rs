//! The text of a JSON value as PostgreSQL gives it for `jsonb`: what searches compare with a value in a spec.

use std::borrow::Cow;

use bigdecimal::BigDecimal;
use serde_json::{Map, Number, Value};

/// The text of a value in a spec; `None` for null, which counts as missing.
///
/// A string is its own text. A number has no exponent. Arrays and objects have their members in the order of `jsonb`:
/// shorter names first, and names of one length in that of their bytes.
pub(super) fn of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(true) => Some(Cow::Borrowed("true")),
        Value::Bool(false) => Some(Cow::Borrowed("false")),
        Value::Number(number) => Some(Cow::Owned(number_text(number))),
        Value::Array(_) | Value::Object(_) => {
            let mut text = String::new();
            push(&mut text, value);
            Some(Cow::Owned(text))
        }
    }
}

fn number_text(number: &Number) -> String {
    let text = number.to_string();
    let value = text.parse::<BigDecimal>();
    value.map_or(text, |value| value.to_plain_string())
}

fn push(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(holds) => text.push_str(if *holds { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number_text(number)),
        Value::String(string) => push_quoted(text, string),
        Value::Array(elements) => {
            text.push('[');
            for (index, element) in elements.iter().enumerate() {
                text.push_str(if index == 0 { "" } else { ", " });
                push(text, element);
            }
            text.push(']');
        }
        Value::Object(members) => push_object(text, members),
    }
}

fn push_object(text: &mut String, members: &Map<String, Value>) {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(name, _)| (name.len(), name.as_bytes()));
    text.push('{');
    for (index, (name, value)) in members.into_iter().enumerate() {
        text.push_str(if index == 0 { "" } else { ", " });
        push_quoted(text, name);
        text.push_str(": ");
        push(text, value);
    }
    text.push('}');
}

/// Both write the same escapes: the short ones, and `\u00…` for other control characters.
fn push_quoted(text: &mut String, string: &str) {
    text.push_str(&Value::from(string).to_string());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_the_text_of_jsonb() {
        for (value, text) in [
            (json!(null), None),
            (json!("a\n\"ä"), Some("a\n\"ä")),
            (json!(true), Some("true")),
            (json!(-5), Some("-5")),
            (
                json!(18_446_744_073_709_551_615_u64),
                Some("18446744073709551615"),
            ),
            (json!(2.5), Some("2.5")),
            (json!(1.0), Some("1.0")),
            (json!(-0.0), Some("0.0")),
            (json!(-1.25e-3), Some("-0.00125")),
            (json!(1.5e21), Some("1500000000000000000000")),
            (json!(1e16), Some("10000000000000000")),
            (json!(1e-7), Some("0.0000001")),
            (json!([]), Some("[]")),
            (json!({}), Some("{}")),
            (
                json!([1, null, "a", [false]]),
                Some(r#"[1, null, "a", [false]]"#),
            ),
            (
                json!({"bb": 1, "c": {"z": 2.50}, "é": 0, "a": "x\u{1}\u{7f}\\\t/😀\u{8}\u{c}"}),
                Some(r#"{"a": "x\u0001DEL\\\t/😀\b\f", "c": {"z": 2.5}, "bb": 1, "é": 0}"#),
            ),
        ] {
            let text = text.map(|text| text.replace("DEL", "\u{7f}"));
            assert_eq!(of(&value).as_deref(), text.as_deref(), "{value}");
        }
    }
}
