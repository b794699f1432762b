//! The effective settings for people: each value with its source, without secrets.

use serde_json::json;

use super::load::Loaded;
use super::secret::REDACTED;
use super::setting::{Setting, SettingKind};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    pub key: &'static str,
    /// As people write it; hidden for a secret.
    pub value: String,
    /// For people.
    pub origin: String,
    /// Whether it equals the default.
    pub is_default: bool,
}

impl<S> Loaded<S> {
    /// Every effective setting, in the order of the table.
    pub fn effective(&self) -> Vec<Effective> {
        let used = self
            .table
            .settings
            .iter()
            .filter(|setting| setting.is_used());
        used.map(|setting| self.effective_of(setting)).collect()
    }

    fn effective_of(&self, setting: &Setting) -> Effective {
        let configured = self.values.get(setting.key);
        let text = configured.map_or(setting.default, |value| &value.text);
        let origin = configured.map_or("default", |value| &value.origin);
        let value = match setting.kind {
            SettingKind::Secret if !text.is_empty() => REDACTED.to_owned(),
            _ => without_users(text),
        };
        Effective {
            key: setting.key,
            value,
            origin: origin.to_owned(),
            // The text of entries is a summary of them.
            is_default: text == setting.default
                && (configured.is_none() || !matches!(setting.kind, SettingKind::Objects)),
        }
    }

    /// The settings that are not defaults, on one line, for the log.
    pub fn summary(&self) -> String {
        let effective = self.effective().into_iter();
        let configured = effective.filter(|setting| self.values.contains_key(setting.key));
        let said: Vec<_> = configured
            .map(|s| format!("{}={}", s.key, s.value))
            .collect();
        said.join(" ")
    }
}

/// Every setting as a JSON array of objects with `key`, `value` and `source`.
pub fn as_json(effective: &[Effective]) -> serde_json::Value {
    let entry = |e: &Effective| json!({"key": e.key, "value": e.value, "source": e.origin});
    effective.iter().map(entry).collect()
}

pub fn as_table(effective: &[Effective]) -> String {
    let keys = effective.iter().map(|e| e.key.len()).max().unwrap_or(0);
    let values = effective.iter().map(|e| e.value.len()).max().unwrap_or(0);
    let values = values.min(40);
    let head = format!("{:keys$}  {:values$}  SOURCE\n", "SETTING", "VALUE");
    let row = |e: &Effective| format!("{:keys$}  {:values$}  {}\n", e.key, e.value, e.origin);
    std::iter::once(head)
        .chain(effective.iter().map(row))
        .collect()
}

/// A value without the user in its URL, and the password that may be there by mistake.
fn without_users(value: &str) -> String {
    const SCHEME_END: &str = "://";
    let mut parts = value.split(SCHEME_END);
    let mut redacted = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        redacted += SCHEME_END;
        match part.rfind('@') {
            None => redacted += part,
            Some(at) => redacted.extend([REDACTED, &part[at..]]),
        }
    }
    redacted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_in_urls_are_redacted() {
        for (value, expected) in [
            ("http://a:1,http://b:2", "http://a:1,http://b:2"),
            (
                "http://u:pw@a:1,http://b:2",
                "http://***REDACTED***@a:1,http://b:2",
            ),
            (
                "[\"https://u:p/w,x@a\", \"https://v@b\"]",
                "[\"https://***REDACTED***@a\", \"https://***REDACTED***@b\"]",
            ),
            ("a@b", "a@b"),
            ("", ""),
        ] {
            assert_eq!(without_users(value), expected);
        }
    }
}
