//! Labels: short key-value pairs in Kubernetes syntax.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Constraint, Violation, excerpt};

/// A checked set of labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// Longest key, prefix and slash included, in bytes.
    pub const KEY_BYTES_MAX: usize = 255;
    /// Longest part of a key before the slash, in bytes.
    pub const PREFIX_BYTES_MAX: usize = 253;
    /// Longest name part of a key, and longest value, in bytes.
    pub const VALUE_BYTES_MAX: usize = 63;

    /// Labels of one resource at most.
    pub const COUNT_MAX: usize = 256;

    /// Checks every pair and names each bad one, in the order of the keys.
    pub fn parse(pairs: BTreeMap<String, String>) -> Result<Self, Vec<Violation>> {
        let mut violations: Vec<_> = pairs.iter().filter_map(violation).collect();
        if pairs.len() > Self::COUNT_MAX {
            let message = format!("labels must have at most {} entries", Self::COUNT_MAX);
            violations.push(Violation::new("labels", Constraint::Max, message));
        }
        if violations.is_empty() {
            Ok(Self(pairs))
        } else {
            Err(violations)
        }
    }

    /// The violation of a label whose value is `null`.
    pub fn null(key: &str) -> Violation {
        let field = format!("labels[{}]", excerpt(key));
        Violation::new(
            field,
            Constraint::Format,
            "label value must be a string, not null",
        )
    }

    /// The value of a label, if there is one of that key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// Every label, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter()
    }
}

fn violation((key, value): (&String, &String)) -> Option<Violation> {
    if !is_key(key) {
        let message = "label key must match Kubernetes label format (optional DNS prefix/name, alphanumeric with ._-)";
        Some(Violation::new("labels", Constraint::Pattern, message).with_value(excerpt(key)))
    } else if !is_value(value) {
        let message = "label value must be at most 63 chars (alphanumeric with ._-)";
        let field = format!("labels[{key}]");
        Some(Violation::new(field, Constraint::Pattern, message).with_value(excerpt(value)))
    } else {
        None
    }
}

fn is_key(key: &str) -> bool {
    let name = match key.split_once('/') {
        Some((prefix, name)) if is_prefix(prefix) => name,
        Some(_) => return false,
        None => key,
    };
    key.len() <= Labels::KEY_BYTES_MAX && !name.is_empty() && is_value(name)
}

fn is_prefix(prefix: &str) -> bool {
    prefix.len() <= Labels::PREFIX_BYTES_MAX
        && prefix.split('.').all(|segment| {
            (1..=63).contains(&segment.len())
                && framed(
                    segment,
                    |b| b.is_ascii_lowercase() || b.is_ascii_digit(),
                    b"-",
                )
        })
}

/// Empty, or alphanumeric at both ends with `._-` between.
fn is_value(value: &str) -> bool {
    value.len() <= Labels::VALUE_BYTES_MAX && framed(value, |b| b.is_ascii_alphanumeric(), b"._-")
}

/// Every byte is an `outer` one, or one of `inner` except at the ends.
fn framed(text: &str, outer: impl Fn(u8) -> bool, inner: &[u8]) -> bool {
    let bytes = text.as_bytes();
    bytes.iter().enumerate().all(|(at, &byte)| {
        outer(byte) || (inner.contains(&byte) && at != 0 && at + 1 != bytes.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_follow_kubernetes_syntax() {
        let long_name = "n".repeat(63);
        let long_segment = "s".repeat(63);
        let prefix_253 = format!("{0}.{0}.{0}.{1}", long_segment, "p".repeat(61));
        assert_eq!(prefix_253.len(), 253);
        for (key, good) in [
            ("environment", true),
            ("a", true),
            ("Team_1.x-y", true),
            ("hyperfleet.io/shard", true),
            (&long_name, true),
            (&format!("{long_name}n"), false),
            (&format!("{prefix_253}/a"), true),
            (&format!("{prefix_253}/ab"), false), // 256 bytes in all
            (&format!("{prefix_253}p/a"), false),
            (&format!("{long_segment}s/a"), false),
            ("", false),
            ("/a", false),
            ("a/", false),
            ("a/b/c", false),
            ("-a", false),
            ("a-", false),
            (".a", false),
            ("a b", false),
            ("ä", false),
            ("A.b/c", false), // prefixes are lower case
            ("a..b/c", false),
            ("a-.b/c", false),
        ] {
            assert_eq!(is_key(key), good, "{key:?}");
        }
    }

    #[test]
    fn values_may_be_empty_and_have_a_limit() {
        let long = "v".repeat(63);
        for (value, good) in [
            ("", true),
            ("production", true),
            ("1.2_3-X", true),
            (&long, true),
            (&format!("{long}v"), false),
            ("-", false),
            ("a_", false),
            ("a/b", false),
        ] {
            assert_eq!(is_value(value), good, "{value:?}");
        }
    }

    #[test]
    fn there_is_a_limit_to_their_number() {
        let many = |count| {
            (0..count)
                .map(|n| (format!("l{n}"), String::new()))
                .collect()
        };
        assert!(Labels::parse(many(Labels::COUNT_MAX)).is_ok());
        let violations = Labels::parse(many(Labels::COUNT_MAX + 1)).unwrap_err();
        assert_eq!(
            violations[0].message,
            "labels must have at most 256 entries"
        );
    }

    #[test]
    fn every_bad_pair_is_named() {
        let pairs = [("ok", "ok"), ("bad key", "x"), ("k", "bad value")];
        let pairs = pairs.map(|(k, v)| (k.to_owned(), v.to_owned()));
        let violations = Labels::parse(pairs.into()).unwrap_err();
        let fields: Vec<_> = violations
            .iter()
            .map(|f| (&*f.field, f.value.clone()))
            .collect();
        assert_eq!(
            fields,
            [
                ("labels", Some("bad key".into())),
                ("labels[k]", Some("bad value".into())),
            ]
        );
    }
}
