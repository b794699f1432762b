//! Reads JSON: limits, duplicates and types are checked before anything else.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Display;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use hyperfleet_domain::json_limits::NESTS_MAX;
use hyperfleet_domain::{Constraint, Violation, Violations};

pub use hyperfleet_domain::json_limits::DEPTH_MAX;
use hyperfleet_server_kit::json::RawMembers;

#[derive(Debug, Clone, PartialEq)]
pub enum BodyError {
    /// It is not JSON, or exceeds its limits.
    Malformed(String),
    /// It is a patch that changes nothing.
    NothingToUpdate,
    Invalid(Violations),
}

fn no_json(why: impl Display) -> BodyError {
    BodyError::Malformed(format!("Invalid JSON in request body: {why}"))
}

/// The violations of a body, collected while it is read.
#[derive(Debug, Default)]
pub(super) struct ViolationSink(RefCell<Violations>);

/// The members of an object, in their order, with duplicates.
#[derive(Debug)]
pub(super) struct Members<'a> {
    /// The path of the object; empty for the body itself.
    path: String,
    all: Vec<(Cow<'a, str>, &'a RawValue)>,
    /// Receives the violations of members.
    pub(super) violations: &'a ViolationSink,
}

/// Expected types, with the words for a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Null,
    Bool,
    Number,
    Text,
    Array,
    Object,
}

impl Shape {
    fn of(raw: &RawValue) -> Self {
        match raw.get().as_bytes().first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::Text,
            Some(b't' | b'f') => Self::Bool,
            Some(b'n') => Self::Null,
            _ => Self::Number,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::Text => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

/// Reads a body of any type, and checks its limits.
fn document(bytes: &[u8]) -> Result<&RawValue, BodyError> {
    let text = std::str::from_utf8(bytes).map_err(|_| no_json("not valid UTF-8"))?;
    if text.trim().is_empty() {
        let text = "Request body is required but was empty";
        return Err(BodyError::Malformed(text.to_owned()));
    }
    check_limits(bytes)?;
    serde_json::from_str(text).map_err(no_json)
}

/// Reads a body that must be an object. `null` counts as an empty one.
pub(super) fn body<'a>(
    bytes: &'a [u8],
    violations: &'a ViolationSink,
) -> Result<Members<'a>, BodyError> {
    let raw = document(bytes)?;
    let RawMembers(all) = match Shape::of(raw) {
        Shape::Null => RawMembers::default(),
        Shape::Object => serde_json::from_str(raw.get()).map_err(no_json)?,
        _ => return Err(BodyError::Invalid(wrong_type("", Shape::Object).into())),
    };
    Ok(Members {
        path: String::new(),
        all,
        violations,
    })
}

/// Reads a body that must be an object, not `null`.
pub(super) fn object_body<'a>(
    bytes: &'a [u8],
    violations: &'a ViolationSink,
) -> Result<Members<'a>, BodyError> {
    if is_null(document(bytes)?) {
        return Err(BodyError::Invalid(wrong_type("", Shape::Object).into()));
    }
    body(bytes, violations)
}

/// Reads a body that must be an array.
pub(super) fn array_body(bytes: &[u8]) -> Result<Vec<&RawValue>, BodyError> {
    let raw = document(bytes)?;
    match Shape::of(raw) {
        Shape::Array => serde_json::from_str(raw.get()).map_err(no_json),
        _ => Err(BodyError::Invalid(wrong_type("", Shape::Array).into())),
    }
}

pub(super) fn is_null(raw: &RawValue) -> bool {
    Shape::of(raw) == Shape::Null
}

impl<'a> Members<'a> {
    /// The dotted path of a member.
    pub(super) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() {
            name.to_owned()
        } else {
            format!("{}.{name}", self.path)
        }
    }

    /// Takes a member. `null` counts as absent. Of a repeated member the first one counts, and the second is a
    /// violation.
    pub(super) fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        self.take_even_null(name).filter(|raw| !is_null(raw))
    }

    /// As [`Members::take`], but `null` is a value.
    pub(super) fn take_even_null(&mut self, name: &str) -> Option<&'a RawValue> {
        let mut found = None;
        let mut count = 0;
        self.all.retain(|(key, raw)| {
            if key == name {
                count += 1;
                found.get_or_insert(*raw);
            }
            key != name
        });
        if count > 1 {
            let path = self.path_of(name);
            let message = format!("field '{path}' must appear only once");
            self.violations.add(path, Constraint::Unique, message);
        }
        found
    }

    /// Takes a value of any type, even `null`.
    pub(super) fn value(&mut self, name: &str) -> Option<Value> {
        let raw = self.take_even_null(name)?;
        self.violations.value(raw, &self.path_of(name))
    }

    /// Whether the member is present and `null`.
    pub(super) fn is_null(&self, name: &str) -> bool {
        let mut named = self.all.iter().filter(|(key, _)| key == name);
        named.any(|(_, raw)| is_null(raw))
    }

    /// The first member that was not taken.
    pub(super) fn unknown(&self) -> Option<&str> {
        self.all.first().map(|(key, _)| &**key)
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        let raw = self.take(name)?;
        self.violations.text(raw, &self.path_of(name))
    }

    pub(super) fn integer(&mut self, name: &str) -> Option<i32> {
        let raw = self.take(name)?;
        self.violations
            .decode(raw, &self.path_of(name), Shape::Number)
    }

    /// Takes an object, to be read member by member.
    pub(super) fn object(&mut self, name: &str) -> Option<Members<'a>> {
        let raw = self.take(name)?;
        self.violations.members(raw, &self.path_of(name))
    }

    /// Every member, the last one of each name, for objects whose names are data.
    pub(super) fn into_entries(self) -> impl Iterator<Item = (Cow<'a, str>, &'a RawValue)> {
        self.all.into_iter()
    }
}

impl ViolationSink {
    pub(super) fn add(
        &self,
        field: impl Into<String>,
        constraint: Constraint,
        message: impl Into<String>,
    ) {
        self.extend([Violation::new(field, constraint, message)]);
    }

    pub(super) fn extend(&self, violations: impl IntoIterator<Item = Violation>) {
        self.0.borrow_mut().extend(violations);
    }

    pub(super) fn count(&self) -> usize {
        self.0.borrow().as_slice().len()
    }

    /// Whether the member has a violation.
    pub(super) fn has(&self, field: &str) -> bool {
        let violations = self.0.borrow();
        violations
            .as_slice()
            .iter()
            .any(|violation| violation.field == field)
    }

    /// Refuses the body if it has violations.
    pub(super) fn check(&self) -> Result<(), BodyError> {
        match self.0.take() {
            violations if violations.is_empty() => Ok(()),
            violations => Err(BodyError::Invalid(violations)),
        }
    }

    /// Reads an object member by member.
    pub(super) fn members<'a>(&'a self, raw: &'a RawValue, path: &str) -> Option<Members<'a>> {
        let RawMembers(all) = self.decode(raw, path, Shape::Object)?;
        Some(Members {
            path: path.to_owned(),
            all,
            violations: self,
        })
    }

    /// Reads an array element by element.
    pub(super) fn elements<'a>(&self, raw: &'a RawValue, path: &str) -> Option<Vec<&'a RawValue>> {
        self.decode(raw, path, Shape::Array)
    }

    pub(super) fn text(&self, raw: &RawValue, path: &str) -> Option<String> {
        self.decode(raw, path, Shape::Text)
    }

    /// Reads an object that is stored unchanged, with its numbers as the database will return them: the same object
    /// sent again must equal the stored one.
    pub(super) fn document(&self, raw: &RawValue, path: &str) -> Option<Map<String, Value>> {
        let mut document: Map<String, Value> = self.decode(raw, path, Shape::Object)?;
        document.values_mut().for_each(normalize_numbers);
        Some(document)
    }

    /// Reads a value of any type, with its numbers as in [`ViolationSink::document`].
    fn value(&self, raw: &RawValue, path: &str) -> Option<Value> {
        let read = serde_json::from_str(raw.get());
        let read = read.map_err(|error| self.extend([unstorable(path, &error)]));
        let mut value = read.ok()?;
        normalize_numbers(&mut value);
        Some(value)
    }

    /// Reads a value of one type.
    fn decode<'a, T: Deserialize<'a>>(
        &self,
        raw: &'a RawValue,
        path: &str,
        shape: Shape,
    ) -> Option<T> {
        if Shape::of(raw) != shape {
            self.extend([wrong_type(path, shape)]);
            return None;
        }
        let decoded = serde_json::from_str(raw.get());
        let violation = decoded.map_err(|error| match shape {
            // `1.5`, or a number that does not fit, in place of an integer.
            Shape::Number => unfit_number(path),
            _ => unstorable(path, &error),
        });
        violation.map_err(|violation| self.extend([violation])).ok()
    }
}

/// Normalizes numbers: a whole number is an integer in any spelling, and zero has no sign.
fn normalize_numbers(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(normalize_numbers),
        Value::Array(elements) => elements.iter_mut().for_each(normalize_numbers),
        Value::Number(number) if number.is_f64() => {
            if let Some(integer) = number.as_f64().and_then(as_integer) {
                *number = integer;
            }
        }
        Value::Number(_) | Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The integer that equals a float, if it fits: `1.0` and `1e2` are `1` and `100`, so that a client with another
/// spelling of numbers changes nothing.
fn as_integer(float: f64) -> Option<Number> {
    if float.fract() != 0.0 {
        return None;
    }
    let digits = format!("{float:.0}");
    let unsigned = digits.parse::<u64>().ok().map(Number::from);
    unsigned.or_else(|| digits.parse::<i64>().ok().map(Number::from))
}

fn wrong_type(path: &str, shape: Shape) -> Violation {
    // Paths in messages have no list positions, as clients of the older service know them.
    let mut depth = 0;
    let mut bare = path.to_owned();
    bare.retain(|c| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        depth == 0 && !matches!(c, '[' | ']')
    });
    let subject = if bare.is_empty() {
        "the body".to_owned()
    } else {
        format!("field '{bare}'")
    };
    let message = format!("{subject} must be {}", shape.words());
    Violation::new(path, Constraint::Format, message)
}

fn unfit_number(path: &str) -> Violation {
    let greatest = i32::MAX;
    let message = format!(
        "field '{path}' must be an integer of at most {greatest}, without a fraction or an exponent"
    );
    Violation::new(path, Constraint::Format, message)
}

/// The text is JSON, but contains what cannot be stored unchanged: a number beyond all limits.
fn unstorable(path: &str, error: &serde_json::Error) -> Violation {
    let message = format!("field '{path}' cannot be kept as it is: {error}");
    Violation::new(path, Constraint::Format, message)
}

/// Checks in one pass what no parser would report: nesting, NUL characters and unpaired surrogates (the database
/// cannot store them), and integers that 64 bits do not hold (they would silently become another number).
fn check_limits(json: &[u8]) -> Result<(), BodyError> {
    let (mut depth, mut nests) = (0, 0);
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                nests += 1;
                if nests > NESTS_MAX {
                    let why = format!("more than {NESTS_MAX} arrays and objects");
                    return Err(no_json(why));
                }
                if depth > DEPTH_MAX {
                    let why = format!("nested deeper than {DEPTH_MAX} levels");
                    return Err(no_json(why));
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                at = end_of_text(json, at)?;
                continue;
            }
            b'-' | b'0'..=b'9' => {
                at = end_of_number(json, at)?;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// The position after the closing quote; the end of the input if there is none.
fn end_of_text(json: &[u8], quote: usize) -> Result<usize, BodyError> {
    let mut at = quote + 1;
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => return Ok(at + 1),
            b'\\' if json[at..].starts_with(br"\u0000") => {
                let why = r"strings must not contain the NUL character (\u0000)";
                return Err(no_json(why));
            }
            b'\\' => at += escape_length(&json[at..])?,
            _ => at += 1,
        }
    }
    Ok(at)
}

/// The length of the escape at this position. An invalid one is left to the parser.
fn escape_length(json: &[u8]) -> Result<usize, BodyError> {
    match unit(json) {
        None => Ok(2),
        Some(0xd800..=0xdbff) if matches!(json.get(6..).and_then(unit), Some(0xdc00..=0xdfff)) => {
            Ok(12)
        }
        Some(0xd800..=0xdfff) => Err(no_json(
            r"strings must not contain unpaired surrogates (\ud800 to \udfff)",
        )),
        Some(_) => Ok(6),
    }
}

/// The UTF-16 unit of an escape such as `\u00e9` at the start.
fn unit(json: &[u8]) -> Option<u16> {
    let digits = json.strip_prefix(br"\u")?.get(..4)?;
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
    u16::from_str_radix(digits, 16).ok()
}

fn end_of_number(json: &[u8], start: usize) -> Result<usize, BodyError> {
    let rest = &json[start..];
    let part = |b: &u8| matches!(b, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    let length = rest.iter().take_while(|b| part(b)).count();
    let number = &rest[..length];
    let digits = number.strip_prefix(b"-").unwrap_or(number);
    // 19 digits always fit; of those with 20, some do.
    let is_large = digits.len() > 18 && digits.iter().all(u8::is_ascii_digit);
    if is_large && !std::str::from_utf8(number).is_ok_and(fits_64_bits) {
        return Err(no_json("an integer does not fit in 64 bits"));
    }
    Ok(start + length)
}

fn fits_64_bits(number: &str) -> bool {
    number.parse::<i64>().is_ok() || number.parse::<u64>().is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn violation(json: &str) -> String {
        match body(json.as_bytes(), &ViolationSink::default()) {
            Err(BodyError::Malformed(text)) => text,
            other => format!("{other:?}"),
        }
    }

    fn is_body(json: &str) -> bool {
        body(json.as_bytes(), &ViolationSink::default()).is_ok()
    }

    #[test]
    fn bodies_that_are_no_json_say_where() {
        for (json, part) in [
            ("", "required but was empty"),
            (" \n", "required but was empty"),
            ("{", "EOF while parsing"),
            ("{\"a\":1", "EOF while parsing"),
            ("{\"a\":1} x", "trailing characters at line 1 column 9"),
            ("{\"a\" 1}", "expected `:`"),
            ("nul", "EOF while parsing"),
            ("nulx", "expected ident"),
            ("{\"a\":\"\u{1}\"}", "control character"),
            (r#"{"a":"\u0000"}"#, "NUL character"),
            (r#"{"\u0000":1}"#, "NUL character"),
            (r#"{"a":{"b":"\ud800"}}"#, "unpaired surrogates"),
            (r#"{"a":["\uD83D\ud83d"]}"#, "unpaired surrogates"),
            (r#"{"\udc00":1}"#, "unpaired surrogates"),
            (r#"{"a":"\ud83d\u0000"}"#, "unpaired surrogates"),
            (r#"{"a":"\ud8"}"#, "invalid escape"),
            (r#"{"a":18446744073709551616}"#, "does not fit in 64 bits"),
            (r#"{"a":-9223372036854775809}"#, "does not fit in 64 bits"),
        ] {
            assert!(
                violation(json).contains(part),
                "{json:?}: {}",
                violation(json)
            );
        }
        assert_eq!(
            body(b"{\"a\":\"\xff\"}", &ViolationSink::default()).unwrap_err(),
            BodyError::Malformed("Invalid JSON in request body: not valid UTF-8".to_owned())
        );
    }

    #[test]
    fn what_looks_like_a_violation_but_is_none_passes() {
        for json in [
            r#"{"a":"\\u0000"}"#, // a backslash and a text
            r#"{"a":"\\ud800"}"#,
            r#"{"a":"\ud83d\uDE00\u00e9"}"#,
            r#"{"a":"18446744073709551616"}"#, // a text
            r#"{"a":18446744073709551615,"b":-9223372036854775808}"#,
            r#"{"a":1e300,"b":0.12345678901234567890123}"#,
            "null",
            " {} ",
        ] {
            assert!(is_body(json), "{json}");
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        let nested = |depth: usize| {
            format!(
                "{{\"a\":{}{}}}",
                "[".repeat(depth - 1),
                "]".repeat(depth - 1)
            )
        };
        assert!(is_body(&nested(DEPTH_MAX)));
        assert!(violation(&nested(DEPTH_MAX + 1)).contains("nested deeper than 64 levels"));
    }

    #[test]
    fn arrays_and_objects_have_a_limit_and_what_stands_in_texts_does_not_count() {
        let many = |count: usize| format!("{{\"a\":[\"[[\"{}]}}", ",[]".repeat(count - 2));
        assert!(is_body(&many(NESTS_MAX)));
        assert!(violation(&many(NESTS_MAX + 1)).contains("more than 20000 arrays and objects"));
    }

    #[test]
    fn a_repeated_member_is_a_violation() {
        let violations = ViolationSink::default();
        let mut members = body(br#"{"a":1,"b":2,"a":3}"#, &violations).unwrap();
        assert_eq!(members.integer("a"), Some(1));
        assert_eq!(
            violations.0.borrow().as_slice()[0].message,
            "field 'a' must appear only once"
        );
        assert_eq!(members.unknown(), Some("b"));
    }

    #[test]
    fn types_are_named_without_list_positions() {
        let violation = wrong_type("conditions[3].status", Shape::Text);
        assert_eq!(violation.field, "conditions[3].status");
        assert_eq!(
            violation.message,
            "field 'conditions.status' must be a string"
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = body(&bytes, &ViolationSink::default());
        }

        #[test]
        fn no_json_like_text_panics(text in r#"[\[\]{}",:\\u0-9eE.+\-a-f ]{0,48}"#) {
            let _ = body(text.as_bytes(), &ViolationSink::default());
        }
    }
}
