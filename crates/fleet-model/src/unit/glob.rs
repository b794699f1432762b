//! Patterns for unit names, matched as in the older fleet (Go's `path.Match`): the whole name, byte order, no
//! braces.

use std::fmt;

/// A pattern. `*` is any text without `/`, `?` any character except `/`, `[a-c]` one of them, `[^a-c]` any
/// other, and `\` escapes the next character. A malformed pattern matches nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Glob(String);

impl Glob {
    /// A pattern, malformed or not.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The only name that it matches, if it has no wildcard.
    pub fn literal(&self) -> Option<&str> {
        let is_plain = !self.0.contains(['*', '?', '[', '\\']);
        is_plain.then_some(&self.0)
    }

    /// The literal prefix of every name that it matches.
    pub fn prefix(&self) -> &str {
        let end = self.0.find(['*', '?', '[', '\\']);
        &self.0[..end.unwrap_or(self.0.len())]
    }

    /// Whether it matches a whole name. Takes time in proportion to the product of their lengths at most.
    pub fn matches(&self, name: &str) -> bool {
        if let Some(literal) = self.literal() {
            return literal == name;
        }
        Pattern::read(&self.0).is_some_and(|pattern| pattern.matches(name))
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A parsed pattern.
struct Pattern(Vec<Part>);

enum Part {
    /// Any text without `/`.
    Star,
    /// Any character except `/`.
    Any,
    One(char),
    /// One of these ranges, or none of them.
    Class {
        is_negated: bool,
        ranges: Vec<(char, char)>,
    },
}

impl Pattern {
    /// `None` for a malformed pattern.
    fn read(text: &str) -> Option<Self> {
        let mut parts = Vec::new();
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            parts.push(match c {
                '*' => Part::Star,
                '?' => Part::Any,
                '\\' => Part::One(rest.next()?),
                '[' => class(&mut rest)?,
                other => Part::One(other),
            });
        }
        Some(Self(parts))
    }

    /// Backtracks to the last star only: no earlier one can help.
    fn matches(&self, name: &str) -> bool {
        let parts = &self.0;
        let name: Vec<_> = name.chars().collect();
        let (mut part, mut at) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        loop {
            match parts.get(part) {
                Some(Part::Star) => {
                    star = Some((part, at));
                    part += 1;
                    continue;
                }
                Some(one) if name.get(at).is_some_and(|c| one.matches(*c)) => {
                    (part, at) = (part + 1, at + 1);
                    continue;
                }
                None if at == name.len() => return true,
                _ => {}
            }
            match star {
                Some((of, from)) if name.get(from).is_some_and(|c| *c != '/') => {
                    star = Some((of, from + 1));
                    (part, at) = (of + 1, from + 1);
                }
                _ => return false,
            }
        }
    }
}

impl Part {
    fn matches(&self, c: char) -> bool {
        match self {
            Self::Star => false,
            Self::Any => c != '/',
            Self::One(one) => *one == c,
            Self::Class { is_negated, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *is_negated
            }
        }
    }
}

/// The content of `[…]`: at least one range, with `-` and `]` only after a `\`.
fn class(rest: &mut std::str::Chars<'_>) -> Option<Part> {
    let is_negated = rest.as_str().starts_with('^');
    if is_negated {
        rest.next();
    }
    let mut ranges = Vec::new();
    loop {
        if rest.as_str().starts_with(']') && !ranges.is_empty() {
            rest.next();
            return Some(Part::Class { is_negated, ranges });
        }
        let low = bound(rest)?;
        let mut high = low;
        if rest.as_str().starts_with('-') {
            rest.next();
            high = bound(rest)?;
        }
        ranges.push((low, high));
    }
}

fn bound(rest: &mut std::str::Chars<'_>) -> Option<char> {
    match rest.next()? {
        '-' | ']' => None,
        '\\' => rest.next(),
        other => Some(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_name_is_matched() {
        for (pattern, name, matches) in [
            ("web@[^1].service", "web@2.service", true),
            ("web@[^1].service", "web@1.service", false),
            ("{a,b}.service", "a.service", false),
            ("A*", "a.service", false),
            ("web", "web.service", false),
            (r"web@\*.service", "web@*.service", true),
            (r"web@\*.service", "web@1.service", false),
            ("*", "", true),
            ("*", "a/b", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("job-[0-9].servic?", "job-7.service", true),
            ("[!1]", "!", true),
            ("[!1]", "1", true),
            ("[!1]", "2", false),
            ("?", "☃", true),
            ("[a-c]x", "bx", true),
            ("[c-a]", "b", false),
            (r"[\]]", "]", true),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(
                Glob::new(pattern).matches(name),
                matches,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn malformed_ones_match_nothing() {
        for pattern in [
            "[r", "[", "[]", "[]a]", "[a-]", "[-a]", r"a\", "[^]", "a*[", r"[\",
        ] {
            for name in [pattern, "", "r", "a", "]", "-"] {
                assert!(!Glob::new(pattern).matches(name), "{pattern} {name}");
            }
        }
    }

    #[test]
    fn many_stars_take_no_longer_than_the_product_of_the_lengths() {
        let pattern = Glob::new("*a".repeat(200) + "b");
        assert!(!pattern.matches(&"a".repeat(2000)));
    }

    #[test]
    fn what_is_plain_is_known() {
        assert_eq!(Glob::new("a.service").literal(), Some("a.service"));
        assert_eq!(Glob::new("a*").literal(), None);
        assert_eq!(Glob::new("web@*.service").prefix(), "web@");
        assert_eq!(Glob::new("a.service").prefix(), "a.service");
    }
}
