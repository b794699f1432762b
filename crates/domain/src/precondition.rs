//! Conditional requests (RFC 9110, section 13): a tag names a state of a resource, and a request may depend on it.
//!
//! ```text
//! "g7.r12"  everything that an answer shows: generation 7, revision 12
//! "g7"      what is declared: generation 7, whatever adapters have reported since
//! ```

use std::fmt;

use super::{Constraint, Violation};

/// The state of a resource that an answer shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntityTag {
    /// Changes with what is declared.
    pub generation: i32,
    /// Changes with everything that an answer shows.
    pub revision: i64,
}

impl EntityTag {
    /// Ends the tags of compressed answers: other bytes need another strong tag.
    pub const GZIP: &str = "-gzip";

    /// Whether a client's tag, without its quotes, names this state.
    fn is_named(self, opaque: &str) -> bool {
        let Self {
            generation,
            revision,
        } = self;
        let opaque = opaque.strip_suffix(Self::GZIP).unwrap_or(opaque);
        opaque == format!("g{generation}.r{revision}") || opaque == format!("g{generation}")
    }
}

impl fmt::Display for EntityTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"g{}.r{}\"", self.generation, self.revision)
    }
}

/// One tag of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListedTag {
    is_weak: bool,
    /// Without quotes.
    opaque: String,
}

/// The value of `If-Match` or `If-None-Match`.
#[derive(Debug, Clone, PartialEq, Eq)]
enum TagList {
    /// `*`
    Any,
    Of(Vec<ListedTag>),
}

/// What a request demands of the state of its resource. The default demands nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preconditions {
    if_match: Option<TagList>,
    if_none_match: Option<TagList>,
}

/// How the state of a resource meets the preconditions of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreconditionOutcome {
    /// The request continues.
    Holds,
    /// `If-Match` names other states.
    Failed,
    /// `If-None-Match` names this state: the client has it.
    NotModified,
}

impl Preconditions {
    /// Longest value of one of the headers, in bytes.
    pub const BYTES_MAX: usize = 4096;
    /// Most tags of one of the headers.
    pub const TAGS_MAX: usize = 100;

    /// Reads the lines of both headers.
    ///
    /// # Errors
    ///
    /// The header that is no `*` and no list of tags, or that exceeds a limit.
    pub fn parse<'a>(
        if_match: impl IntoIterator<Item = &'a [u8]>,
        if_none_match: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Self, Violation> {
        Ok(Self {
            if_match: TagList::parse("If-Match", if_match)?,
            if_none_match: TagList::parse("If-None-Match", if_none_match)?,
        })
    }

    /// Compares them with a state: `If-Match` first, by the strong comparison, then `If-None-Match`, by the weak one.
    pub fn check(&self, tag: EntityTag) -> PreconditionOutcome {
        let is_matched = self
            .if_match
            .as_ref()
            .is_none_or(|list| list.names(tag, false));
        let is_current = self
            .if_none_match
            .as_ref()
            .is_some_and(|list| list.names(tag, true));
        match (is_matched, is_current) {
            (false, _) => PreconditionOutcome::Failed,
            (true, true) => PreconditionOutcome::NotModified,
            (true, false) => PreconditionOutcome::Holds,
        }
    }
}

impl TagList {
    /// `None` where there is no such header.
    fn parse<'a>(
        header: &'static str,
        lines: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Option<Self>, Violation> {
        let lines: Vec<_> = lines.into_iter().collect();
        if lines.is_empty() {
            return Ok(None);
        }
        let value = lines.join(&b", "[..]);
        if value.len() > Preconditions::BYTES_MAX {
            let message = format!(
                "{header} must be at most {} bytes",
                Preconditions::BYTES_MAX
            );
            return Err(Violation::new(header, Constraint::MaxLength, message));
        }
        if value.trim_ascii() == b"*" {
            return Ok(Some(Self::Any));
        }
        let Some(tags) = read_tags(&value).filter(|tags| !tags.is_empty()) else {
            let message = format!("{header} must be * or a list of tags in quotes, such as \"g7\"");
            return Err(Violation::new(header, Constraint::Format, message));
        };
        if tags.len() > Preconditions::TAGS_MAX {
            let message = format!(
                "{header} must have at most {} tags",
                Preconditions::TAGS_MAX
            );
            return Err(Violation::new(header, Constraint::Max, message));
        }
        Ok(Some(Self::Of(tags)))
    }

    /// Whether one of the tags names a state. In the strong comparison weak tags name nothing.
    fn names(&self, tag: EntityTag, is_weak_enough: bool) -> bool {
        match self {
            Self::Any => true,
            Self::Of(tags) => {
                let mut tags = tags
                    .iter()
                    .filter(|listed| is_weak_enough || !listed.is_weak);
                tags.any(|listed| tag.is_named(&listed.opaque))
            }
        }
    }
}

/// Reads `#entity-tag` (RFC 9110, sections 5.6.1 and 8.8.3), empty elements included. `None` for anything else.
fn read_tags(mut rest: &[u8]) -> Option<Vec<ListedTag>> {
    let mut tags = Vec::new();
    loop {
        rest = rest.trim_ascii_start();
        if let Some(after) = rest.strip_prefix(b",") {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Some(tags);
        }
        let quoted = rest.strip_prefix(b"W/");
        let is_weak = quoted.is_some();
        let opened = quoted.unwrap_or(rest).strip_prefix(b"\"")?;
        let end = opened.iter().position(|byte| *byte == b'"')?;
        let (opaque, after) = (&opened[..end], &opened[end + 1..]);
        if !opaque.iter().all(|byte| is_tag_byte(*byte)) {
            return None;
        }
        tags.push(ListedTag {
            is_weak,
            opaque: String::from_utf8_lossy(opaque).into_owned(),
        });
        rest = after.trim_ascii_start();
        if !rest.is_empty() && !rest.starts_with(b",") {
            return None;
        }
    }
}

/// `etagc`: visible characters but quotes, and bytes above ASCII.
fn is_tag_byte(byte: u8) -> bool {
    matches!(byte, 0x21 | 0x23..=0x7e | 0x80..)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TAG: EntityTag = EntityTag {
        generation: 7,
        revision: 12,
    };

    fn if_match(value: &str) -> Result<Preconditions, Violation> {
        Preconditions::parse([value.as_bytes()], [])
    }

    fn if_none_match(value: &str) -> Result<Preconditions, Violation> {
        Preconditions::parse([], [value.as_bytes()])
    }

    #[test]
    fn without_the_headers_every_state_will_do() {
        assert_eq!(
            Preconditions::parse([], []).unwrap(),
            Preconditions::default()
        );
        assert_eq!(
            Preconditions::default().check(TAG),
            PreconditionOutcome::Holds
        );
    }

    #[test]
    fn tags_are_compared_as_the_rfc_says() {
        for (value, strong, weak) in [
            ("*", true, true),
            (" * ", true, true),
            ("\"g7.r12\"", true, true),
            ("\"g7\"", true, true),
            ("\"g7.r12-gzip\"", true, true),
            ("W/\"g7.r12\"", false, true),
            ("W/\"g7\"", false, true),
            ("\"g1\", W/\"g7\" ,, \"x,y\"", false, true),
            ("\"g1\",\"g7\"", true, true),
            ("\"g8\"", false, false),
            ("\"g7.r11\"", false, false),
            ("\"g7.r13\"", false, false),
            ("\"g07\"", false, false),
            ("\"g7.r012\"", false, false),
            ("\"g7.\"", false, false),
            ("\"r12\"", false, false),
            ("\"\"", false, false),
            ("\"-gzip\"", false, false),
            ("\"*\"", false, false),
            ("\"\u{e9}\"", false, false),
        ] {
            let expected = if strong {
                PreconditionOutcome::Holds
            } else {
                PreconditionOutcome::Failed
            };
            assert_eq!(if_match(value).unwrap().check(TAG), expected, "{value}");
            let expected = if weak {
                PreconditionOutcome::NotModified
            } else {
                PreconditionOutcome::Holds
            };
            assert_eq!(
                if_none_match(value).unwrap().check(TAG),
                expected,
                "{value}"
            );
        }
    }

    #[test]
    fn if_match_comes_first() {
        let both = |first: &'static str, second: &'static str| {
            let both = Preconditions::parse([first.as_bytes()], [second.as_bytes()]);
            both.unwrap().check(TAG)
        };
        assert_eq!(both("\"g8\"", "\"g7\""), PreconditionOutcome::Failed);
        assert_eq!(both("\"g7\"", "\"g7\""), PreconditionOutcome::NotModified);
        assert_eq!(both("\"g7\"", "\"g8\""), PreconditionOutcome::Holds);
    }

    #[test]
    fn several_lines_are_one_list() {
        let lines = ["\"g1\"", "\"g7\""].map(str::as_bytes);
        let conditions = Preconditions::parse(lines, []).unwrap();
        assert_eq!(conditions.check(TAG), PreconditionOutcome::Holds);
    }

    #[test]
    fn what_is_no_list_of_tags_is_refused_by_the_name_of_its_header() {
        for bad in [
            "",
            " ",
            ",",
            "g7",
            "\"g7",
            "g7\"",
            "W/g7",
            "w/\"g7\"",
            "W/ \"g7\"",
            "*, \"g7\"",
            "\"g7\", *",
            "\"g7\" \"g8\"",
            "\"g 7\"",
            "\"g7\";",
            "'g7'",
        ] {
            let violation = if_match(bad).unwrap_err();
            assert_eq!(
                (&*violation.field, violation.constraint),
                ("If-Match", Constraint::Format),
                "{bad:?}"
            );
            let violation = if_none_match(bad).unwrap_err();
            assert_eq!(violation.field, "If-None-Match", "{bad:?}");
        }
    }

    #[test]
    fn lists_have_limits() {
        let tags = |count: usize| vec!["\"g7\""; count].join(",");
        assert!(if_match(&tags(Preconditions::TAGS_MAX)).is_ok());
        let violation = if_match(&tags(Preconditions::TAGS_MAX + 1)).unwrap_err();
        assert_eq!(violation.constraint, Constraint::Max);
        let long = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
        assert!(if_match(&long(Preconditions::BYTES_MAX)).is_ok());
        let violation = if_match(&long(Preconditions::BYTES_MAX + 1)).unwrap_err();
        assert_eq!(violation.constraint, Constraint::MaxLength);
    }

    proptest! {
        #[test]
        fn a_tag_names_its_own_state_and_no_other(
            generation in 1..50_i32, revision in 1..50_i64, other_generation in 1..50_i32, other_revision in 1..50_i64,
        ) {
            let tag = EntityTag { generation, revision };
            let other = EntityTag { generation: other_generation, revision: other_revision };
            let printed = if_match(&tag.to_string()).unwrap();
            prop_assert_eq!(printed.check(tag), PreconditionOutcome::Holds);
            let expected = if other == tag { PreconditionOutcome::Holds } else { PreconditionOutcome::Failed };
            prop_assert_eq!(printed.check(other), expected);
            let declared = if_match(&format!("\"g{generation}\"")).unwrap();
            let expected = if other_generation == generation { PreconditionOutcome::Holds } else { PreconditionOutcome::Failed };
            prop_assert_eq!(declared.check(other), expected);
        }

        #[test]
        fn any_bytes_are_read_or_refused(value in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Preconditions::parse([&value[..]], [&value[..]]);
        }

        #[test]
        fn a_tag_is_found_wherever_it_stands_in_a_list(
            before in proptest::collection::vec("[!#-~]{0,8}", 0..5), after in proptest::collection::vec("[!#-~]{0,8}", 0..5),
        ) {
            let quoted = |tags: &[String]| tags.iter().map(|tag| format!("\"x{tag}\"")).collect::<Vec<_>>();
            let all = [quoted(&before), vec![TAG.to_string()], quoted(&after)].concat();
            prop_assert_eq!(if_match(&all.join(",")).unwrap().check(TAG), PreconditionOutcome::Holds);
            let others = [quoted(&before), quoted(&after), vec!["\"x\"".to_owned()]].concat();
            prop_assert_eq!(if_match(&others.join(" , ")).unwrap().check(TAG), PreconditionOutcome::Failed);
        }
    }
}
