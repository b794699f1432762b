//! The keys of the registry. Their values are in [`record`](super::record), and both are described in
//! `docs/internals/keys.md`.

use std::fmt;

use crate::keys::Range;

/// Longest part of a key, in bytes.
pub const PART_BYTES_MAX: usize = 256;
/// Separates a unit's name from the machine's id in the key of a state. It sorts before every character of a
/// name and `/`, so states are in the order of their units' names.
pub(super) const BEFORE_MACHINE: char = ',';

/// What follows the folder in the name of a key.
pub(super) trait KeyPart: fmt::Display + Sized {
    /// Parses it; `None` for what is no key of ours.
    fn parse(text: &str) -> Option<Self>;
}

impl KeyPart for String {
    fn parse(text: &str) -> Option<Self> {
        is_part(text).then(|| text.to_owned())
    }
}

/// Two parts with a separator between them.
fn parse_two(text: &str, separator: char) -> Option<[String; 2]> {
    let (first, second) = text.split_once(separator)?;
    Some([KeyPart::parse(first)?, KeyPart::parse(second)?])
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunKey {
    pub machine: String,
    pub unit: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelKey {
    pub machine: String,
    /// Name of the metadata.
    pub key: String,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateKey {
    pub unit: String,
    pub machine: String,
}

impl KeyPart for RunKey {
    fn parse(text: &str) -> Option<Self> {
        let [machine, unit] = parse_two(text, '/')?;
        Some(Self { machine, unit })
    }
}

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.machine, self.unit)
    }
}

impl KeyPart for LabelKey {
    fn parse(text: &str) -> Option<Self> {
        let [machine, key] = parse_two(text, '/')?;
        Some(Self { machine, key })
    }
}

impl fmt::Display for LabelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.machine, self.key)
    }
}

impl KeyPart for StateKey {
    fn parse(text: &str) -> Option<Self> {
        let [unit, machine] = parse_two(text, BEFORE_MACHINE)?;
        Some(Self { unit, machine })
    }
}

impl fmt::Display for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{BEFORE_MACHINE}{}", self.unit, self.machine)
    }
}

/// The prefix of all keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix(String);

impl Default for Prefix {
    fn default() -> Self {
        Self("/fleet/v3/".to_owned())
    }
}

/// A text that cannot be part of a key, or is too large to store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unusable {what}: {rule}")]
pub struct UnusablePart {
    pub what: &'static str,
    /// The rule that it breaks.
    pub rule: String,
}

impl Prefix {
    pub const BYTES_MAX: usize = 256;

    /// Parses a prefix, and adds a slash at its end if it has none.
    ///
    /// # Errors
    /// [`UnusablePart`] if it is empty, too long, or not plain ASCII.
    pub fn new(text: &str) -> Result<Self, UnusablePart> {
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        let text = text.trim_end_matches('/');
        if text.is_empty() || text.len() >= Self::BYTES_MAX || !plain {
            return Err(UnusablePart {
                what: "key prefix",
                rule: format!(
                    "expect printable ASCII, less than {} bytes",
                    Self::BYTES_MAX
                ),
            });
        }
        Ok(Self(format!("{text}/")))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of a key.
    pub(super) fn below(&self, key: &str) -> String {
        format!("{}{key}", self.0)
    }

    /// The keys below `order/`.
    pub(super) fn orders(&self) -> Range {
        Range::below(&self.below("order/"))
    }

    /// All keys below the prefix.
    pub(super) fn everything(&self) -> Range {
        Range::below(&self.0)
    }

    /// Keys of earlier versions, which stored below `why/` why units were on no machine.
    pub(super) fn reasons(&self) -> Range {
        Range::below(&self.below("why/"))
    }
}

/// Whether a text can be part of a key. The domain has stricter rules. No character sorts below a dash, the
/// lowest character of names, so names sort the same with what follows them in a key.
pub fn is_part(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_graphic() && byte >= b'-' && byte != b'/';
    !text.is_empty() && text.len() <= PART_BYTES_MAX && text.bytes().all(allowed)
}

/// Refuses a text that would make a different key.
pub(super) fn check_part(what: &'static str, text: &str) -> Result<(), UnusablePart> {
    if is_part(text) {
        Ok(())
    } else {
        let allowed = r"A-Z a-z 0-9 and - . : ; < = > ? @ [ \ ] ^ _ ` { | } ~";
        let rule = format!("expect 1 to {PART_BYTES_MAX} characters of {allowed}");
        Err(UnusablePart { what, rule })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn what_is_refused_says_what_may_stand_there() {
        let text = check_part("machine id", "m 1").unwrap_err().to_string();
        let (_, allowed) = text.split_once("characters of A-Z a-z 0-9 and ").unwrap();
        let named: BTreeSet<char> = allowed.chars().filter(|c| *c != ' ').collect();
        let taken = (0..=255).map(char::from);
        let taken = taken.filter(|c| is_part(&c.to_string()) && !c.is_ascii_alphanumeric());
        assert_eq!(named, taken.collect(), "{text}");
        assert!(
            text.starts_with("unusable machine id: expect 1 to 256 "),
            "{text}"
        );
    }

    #[test]
    fn a_prefix_is_plain_and_ends_in_one_slash() {
        assert_eq!(Prefix::new("/a//").unwrap(), Prefix::new("/a").unwrap());
        for text in ["", "/", "/a b", "/ä", &"a".repeat(256)] {
            assert!(Prefix::new(text).is_err(), "{text}");
        }
    }
}
