//! The canonical text of a unit's options, and its digest. Units are the same if their texts are, as in the
//! older fleet.

use std::collections::HashMap;
use std::fmt::{self, Write as _};

use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use super::option::UnitOption;

/// The canonical text of options: sections in the order of their first option, each with all of its options in
/// their order, and an empty line between sections.
pub fn canonical(options: &[UnitOption]) -> String {
    let mut sections: Vec<(&str, Vec<&UnitOption>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for option in options {
        let place = *places.entry(&option.section).or_insert(sections.len());
        match sections.get_mut(place) {
            Some((_, options)) => options.push(option),
            None => sections.push((&option.section, vec![option])),
        }
    }
    let mut text = String::new();
    for (section, options) in sections {
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "[{section}]");
        for option in options {
            let _ = writeln!(text, "{}={}", option.name, option.value);
        }
    }
    text
}

/// The SHA-1 of a unit's canonical text. It identifies a file and is no protection: clients compute the same
/// algorithm to compare.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitHash([u8; Self::BYTES]);

impl UnitHash {
    const BYTES: usize = 20;
    /// How many digits users see.
    pub const SHORT: usize = 7;

    pub fn of(canonical: &str) -> Self {
        let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, canonical.as_bytes());
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }

    /// Parses 40 lower-case digits, as written by [`fmt::Display`].
    pub fn parse(text: &str) -> Option<Self> {
        let digits: Option<Vec<u8>> = text.bytes().map(digit).collect();
        let digits = digits.filter(|digits| digits.len() == 2 * Self::BYTES)?;
        let mut bytes = [0; Self::BYTES];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair[0] << 4 | pair[1];
        }
        Some(Self(bytes))
    }

    /// The first seven digits, for people.
    pub fn short(&self) -> String {
        let mut text = self.to_string();
        text.truncate(Self::SHORT);
        text
    }
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for UnitHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(formatter, "{b:02x}"))
    }
}

impl fmt::Debug for UnitHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "UnitHash({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_read_as_they_are_written() {
        let none = UnitHash::of("");
        let text = "da39a3ee5e6b4b0d3255bfef95601890afd80709";
        assert_eq!(none.to_string(), text);
        assert_eq!(none.short(), "da39a3e");
        assert_eq!(format!("{none:?}"), format!("UnitHash({text})"));
        assert_eq!(UnitHash::parse(text), Some(none));
        for wrong in ["", "da39a3e", &text.to_uppercase(), &text[1..]] {
            assert_eq!(UnitHash::parse(wrong), None, "{wrong}");
        }
        assert_eq!(UnitHash::parse(&format!("{text}00")), None);
        assert_eq!(UnitHash::parse(&text.replace('d', "g")), None);
    }

    #[test]
    fn scattered_sections_are_written_together() {
        let options = [
            UnitOption::new("A", "x", "1"),
            UnitOption::new("B", "y", "2"),
            UnitOption::new("A", "z", "3"),
        ];
        assert_eq!(canonical(&options), "[A]\nx=1\nz=3\n\n[B]\ny=2\n");
        assert_eq!(canonical(&[]), "");
    }
}
