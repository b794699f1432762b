//! Names of units and what they are made of.
//!
//! ```text
//! name     := stem "." type
//! stem     := prefix [ "@" instance ]        the first "@" of it
//! template := prefix "@." type               a stem whose instance is empty
//! ```

use std::sync::Arc;

use crate::identity::identity;

identity!(
    /// The name of a unit. One that may be created has 256 bytes at most, one of [`UNIT_TYPES`]
    /// behind its last dot, and before it one or more of `A-Z a-z 0-9 : _ . \ @ -`, not first an
    /// `@`.
    UnitName
);

/// What names of units end in, without the dot: the kinds of units, in systemd's words.
///
/// The one list of types. It is the one that users were promised (seed 001) and that the older
/// server took. That server's agents and client had a shorter one: an agent never saw a `target`,
/// `swap` or `slice` of its own again, and the client made `foo.target` a `foo.target.service`.
/// All code that needs the type of a unit asks this list, so every type the API takes can be held.
pub const UNIT_TYPES: [&str; 13] = [
    "automount",
    "busname",
    "device",
    "mount",
    "path",
    "scope",
    "service",
    "slice",
    "snapshot",
    "socket",
    "swap",
    "target",
    "timer",
];
/// Those of them whose names may have an `@`.
const TEMPLATE_TYPES: [&str; 5] = ["path", "service", "socket", "target", "timer"];

/// Why a text is not the name of a unit: the first rule that it breaks. The words are those of the
/// older server (facts: reference fleet §2.3), where it has the rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// Nothing is there.
    #[error("unit name cannot be empty")]
    Empty,
    /// It is too long.
    #[error("unit name exceeds maximum length ({})", UnitName::BYTES_MAX)]
    TooLong,
    /// It has no type.
    #[error(r#"unit name must contain ".""#)]
    NoDot,
    /// Its type is empty.
    #[error(r#"unit name cannot end in ".""#)]
    EndsInDot,
    /// What stands behind its last dot is no type.
    #[error("invalid unit type: {0:?}")]
    Type(String),
    /// It has an `@`, and units of its type are no templates.
    #[error("invalid unit type for template: {0:?}")]
    TemplateType(String),
    /// It has a character that names do not have.
    #[error("invalid character {0:?} in unit name")]
    Character(char),
    /// A template without a prefix.
    #[error(r#"unit name cannot start in "@""#)]
    StartsInAt,
    /// Nothing stands before its only dot. The older server let it pass against its own manual.
    #[error("unit name must have something before its type")]
    EmptyStem,
}

impl UnitName {
    /// Longest name, in bytes.
    pub const BYTES_MAX: usize = 256;

    /// Checks a name.
    ///
    /// # Errors
    ///
    /// The first rule that it breaks, in the order of [`InvalidName`].
    pub fn parse(text: impl Into<Arc<str>>) -> Result<Self, InvalidName> {
        let text = text.into();
        if text.is_empty() {
            return Err(InvalidName::Empty);
        }
        if text.len() > Self::BYTES_MAX {
            return Err(InvalidName::TooLong);
        }
        let parts = NameParts::of(&text).ok_or(InvalidName::NoDot)?;
        if parts.suffix.is_empty() {
            return Err(InvalidName::EndsInDot);
        }
        if !UNIT_TYPES.contains(&parts.suffix) {
            return Err(InvalidName::Type(parts.suffix.to_owned()));
        }
        if parts.has_instance() && !TEMPLATE_TYPES.contains(&parts.suffix) {
            return Err(InvalidName::TemplateType(parts.suffix.to_owned()));
        }
        if let Some(c) = parts.stem.chars().find(|&c| !is_allowed(c)) {
            return Err(InvalidName::Character(c));
        }
        if parts.stem.starts_with('@') {
            return Err(InvalidName::StartsInAt);
        }
        if parts.stem.is_empty() {
            return Err(InvalidName::EmptyStem);
        }
        Ok(Self::unchecked(text))
    }

    /// The name of a unit that is stored. It was checked before; if the rules have changed since,
    /// it stays.
    pub fn stored(text: impl Into<Arc<str>>) -> Self {
        Self::unchecked(text)
    }

    /// The parts of the name; none if a stored name has no dot.
    pub fn parts(&self) -> Option<NameParts<'_>> {
        NameParts::of(self.as_str())
    }

    /// Whether it names a template: a unit that others are made from, and that never runs itself.
    pub fn is_template(&self) -> bool {
        self.parts().is_some_and(|parts| parts.is_template())
    }
}

/// A backslash is one of them: systemd escapes with it what names cannot hold.
fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '.' | '\\' | '@' | '-')
}

/// A name taken apart. Says nothing of whether a unit may be called so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameParts<'a> {
    /// All of it, `%n`.
    pub full: &'a str,
    /// What stands before the last dot, `%N`.
    pub stem: &'a str,
    /// What stands before the first `@` of the stem, or all of the stem; `%p`.
    pub prefix: &'a str,
    /// What stands behind the first `@` of the stem, or nothing; `%i`.
    pub instance: &'a str,
    /// What stands behind the last dot.
    pub suffix: &'a str,
}

impl<'a> NameParts<'a> {
    /// The parts of a text, if it has a dot.
    pub fn of(full: &'a str) -> Option<Self> {
        let (stem, suffix) = full.rsplit_once('.')?;
        let (prefix, instance) = stem.split_once('@').unwrap_or((stem, ""));
        Some(Self {
            full,
            stem,
            prefix,
            instance,
            suffix,
        })
    }

    /// Whether it is a template, or made from one.
    fn has_instance(&self) -> bool {
        self.prefix.len() < self.stem.len()
    }

    /// Whether it names a template.
    pub fn is_template(&self) -> bool {
        self.has_instance() && self.instance.is_empty()
    }

    /// The template that it is made from, or is.
    pub fn template(&self) -> Option<String> {
        self.has_instance()
            .then(|| format!("{}@.{}", self.prefix, self.suffix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_refused_for_the_first_rule_that_they_break() {
        let long = format!("{}.service", "a".repeat(249));
        for (name, message) in [
            ("", "unit name cannot be empty"),
            (&long, "unit name exceeds maximum length (256)"),
            ("noext", r#"unit name must contain ".""#),
            ("foo@bar", r#"unit name must contain ".""#),
            ("foo.", r#"unit name cannot end in ".""#),
            (".", r#"unit name cannot end in ".""#),
            ("foo.xyz", r#"invalid unit type: "xyz""#),
            ("foo.Service", r#"invalid unit type: "Service""#),
            ("foo.b@r", r#"invalid unit type: "b@r""#),
            ("a@.mount", r#"invalid unit type for template: "mount""#),
            ("a@b.slice", r#"invalid unit type for template: "slice""#),
            ("%@x.mount", r#"invalid unit type for template: "mount""#),
            ("a%b.service", "invalid character '%' in unit name"),
            ("a b.service", "invalid character ' ' in unit name"),
            ("a/b.service", "invalid character '/' in unit name"),
            ("☃.service", "invalid character '☃' in unit name"),
            ("@%.service", "invalid character '%' in unit name"),
            ("@.service", r#"unit name cannot start in "@""#),
            ("@x.service", r#"unit name cannot start in "@""#),
            (".service", "unit name must have something before its type"),
        ] {
            let fault = UnitName::parse(name).expect_err(name);
            assert_eq!(fault.to_string(), message, "{name}");
        }
    }

    #[test]
    fn names_are_taken() {
        let longest = format!("{}.service", "a".repeat(248));
        for (name, is_template) in [
            ("foo.service", false),
            (longest.as_str(), false),
            (r"yes@no\.service", false),
            (r"dev-disk-by\x2dlabel.swap", false),
            ("a:b_c.d-e.target", false),
            ("..service", false),
            ("foo@.timer", true),
            ("foo@@.service", false),
            ("foo@bar@.service", false),
        ] {
            let parsed = UnitName::parse(name).expect(name);
            assert_eq!(parsed.as_str(), name);
            assert_eq!(parsed.is_template(), is_template, "{name}");
        }
    }

    #[test]
    fn every_type_is_known_by_its_word_and_five_have_templates() {
        for unit_type in UNIT_TYPES {
            assert!(UnitName::parse(format!("a.{unit_type}")).is_ok());
        }
        let has_templates = |t: &&str| UnitName::parse(format!("a@.{t}")).is_ok();
        let with: Vec<_> = UNIT_TYPES.into_iter().filter(has_templates).collect();
        assert_eq!(with, ["path", "service", "socket", "target", "timer"]);
    }
}
