//! Names of units and their parts.
//!
//! ```text
//! name     := stem "." type
//! stem     := prefix [ "@" instance ]        the first "@" of it
//! template := prefix "@." type               a stem whose instance is empty
//! ```

use std::sync::Arc;

use crate::identity::identity;

identity!(
    /// The name of a unit. A new one has at most 255 bytes, one of [`UNIT_TYPES`] after its last dot, and
    /// before it one or more of `A-Z a-z 0-9 : _ . \ @ -`, not starting with `@`.
    UnitName
);

/// The suffixes of unit names without the dot: the types of units, as in systemd.
///
/// This is the only list of types. It is the one that the older server documented and accepted. That server's
/// agents and client had a shorter one: an agent lost its own `target`, `swap` and `slice` units, and the
/// client made `foo.target` a `foo.target.service`. All code that needs the type of a unit uses this list, so
/// every accepted type is supported.
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
/// The types whose names may contain an `@`.
const TEMPLATE_TYPES: [&str; 5] = ["path", "service", "socket", "target", "timer"];

/// Why a text is no unit name: the first broken rule, in the older server's words where it has the rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    #[error("unit name cannot be empty")]
    Empty,
    #[error("unit name exceeds maximum length ({})", UnitName::BYTES_MAX)]
    TooLong,
    #[error(r#"unit name must contain ".""#)]
    NoDot,
    #[error(r#"unit name cannot end in ".""#)]
    EndsInDot,
    /// The text after its last dot is not a type.
    #[error("invalid unit type: {0:?}")]
    Type(String),
    /// It has an `@`, and units of its type cannot be templates.
    #[error("invalid unit type for template: {0:?}")]
    TemplateType(String),
    #[error("invalid character {0:?} in unit name")]
    Character(char),
    #[error(r#"unit name cannot start in "@""#)]
    StartsInAt,
    /// Nothing precedes its only dot. The older server accepted it against its own manual.
    #[error("unit name must have something before its type")]
    EmptyStem,
}

impl UnitName {
    /// systemd's limit, which is that of the names of files, too. The older server accepted 256 bytes, which no systemd
    /// could load.
    pub const BYTES_MAX: usize = 255;

    /// Checks a name.
    ///
    /// # Errors
    /// The first broken rule, in the order of [`InvalidName`].
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

    /// The name of a stored unit. It was checked before, and stays valid if the rules have changed since.
    pub fn stored(text: impl Into<Arc<str>>) -> Self {
        Self::unchecked(text)
    }

    /// The parts of the name; `None` if a stored name has no dot.
    pub fn parts(&self) -> Option<NameParts<'_>> {
        NameParts::of(self.as_str())
    }

    /// Whether it is a template: units are made from it, and it never runs itself.
    pub fn is_template(&self) -> bool {
        self.parts().is_some_and(|parts| parts.is_template())
    }
}

/// Includes the backslash: systemd uses it to escape characters that names cannot have.
fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ':' | '_' | '.' | '\\' | '@' | '-')
}

/// A parsed name, which need not be valid for a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameParts<'a> {
    /// The whole name, `%n`.
    pub full: &'a str,
    /// Before the last dot, `%N`.
    pub stem: &'a str,
    /// Before the first `@` of the stem, or the whole stem; `%p`.
    pub prefix: &'a str,
    /// After the first `@` of the stem, or empty; `%i`.
    pub instance: &'a str,
    /// After the last dot.
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
        let long = format!("{}.service", "a".repeat(248));
        for (name, message) in [
            ("", "unit name cannot be empty"),
            (&long, "unit name exceeds maximum length (255)"),
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
        let longest = format!("{}.service", "a".repeat(247));
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
