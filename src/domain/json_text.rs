//! JSON as text from the database to a client, without parsed values in between.

use std::cmp::Ordering;

use memchr::memchr2;
use serde::Serialize;
use serde_json::Value;

/// Deepest nesting of arrays and objects: that of `serde_json`.
const DEPTH_MAX: usize = 128;
/// How often, on average, each byte may be copied to sort members.
const COPIES_MAX: usize = 4;
/// Every integer of this length fits in 64 bits.
const PLAIN_CHARACTERS_MAX: usize = 18;

/// JSON as answers have it: no blanks, members sorted by name, numbers as `serde_json` writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonText(String);

impl JsonText {
    /// The text of a value whose maps are sorted.
    pub fn of(value: &impl Serialize) -> Self {
        // Fails only for maps whose keys are not texts.
        Self(serde_json::to_string(value).unwrap_or_default())
    }

    /// Rewrites the text of a value: the same as [`JsonText::of`] of the value, without making it. Strings stay
    /// unchanged: they must have no escapes but those that JSON requires, as in a `jsonb` column.
    ///
    /// `None` if the text is not JSON. This is not a validation: some invalid texts pass.
    pub fn rewrite(text: &str) -> Option<Self> {
        // Deeply nested members out of order would be copied for each level.
        Self::rewrite_in_one_pass(text)
            .or_else(|| Some(Self::of(&serde_json::from_str::<Value>(text).ok()?)))
    }

    /// `None` also if sorting members takes too many copies.
    fn rewrite_in_one_pass(text: &str) -> Option<Self> {
        let mut rewriter = Rewriter {
            text: text.as_bytes(),
            at: 0,
            out: Vec::with_capacity(text.len()),
            members: Vec::with_capacity(16),
            spare: Vec::new(),
            copies_left: COPIES_MAX * text.len(),
        };
        rewriter.value(0)?;
        rewriter.skip_blanks();
        let is_all = rewriter.at == text.len();
        let rewritten = String::from_utf8(rewriter.out).ok();
        rewritten.filter(|_| is_all).map(Self)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One pass over a text. The members of an object are written as they come, and sorted at its end.
struct Rewriter<'t> {
    text: &'t [u8],
    at: usize,
    out: Vec<u8>,
    /// Of the open objects, outermost first.
    members: Vec<Member<'t>>,
    spare: Vec<u8>,
    /// How many more bytes may be copied to sort members.
    copies_left: usize,
}

struct Member<'t> {
    name: Name<'t>,
    /// Its start in the output.
    begin: usize,
    end: usize,
}

#[derive(Clone, Copy)]
struct Name<'t> {
    /// Its first eight bytes: comparing these numbers nearly always decides.
    beginning: u64,
    /// As in the text, with its quotes.
    quoted: &'t [u8],
    has_escapes: bool,
}

impl<'t> Rewriter<'t> {
    fn value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'"' => {
                let (string, _) = self.string()?;
                self.out.extend_from_slice(string);
                Some(())
            }
            b'{' if depth < DEPTH_MAX => self.object(depth + 1),
            b'[' if depth < DEPTH_MAX => self.array(depth + 1),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => None,
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.at += 1;
        self.out.push(b'{');
        let (first, mut is_sorted) = (self.members.len(), true);
        let mut has_next = self.peek()? != b'}';
        while has_next {
            let begin = self.out.len();
            let name = self.name()?;
            self.value(depth)?;
            let before = self.members[first..].last();
            is_sorted = is_sorted && before.is_none_or(|before| before.name.order(name).is_lt());
            let end = self.out.len();
            self.members.push(Member { name, begin, end });
            has_next = self.has_next(b'}')?;
        }
        self.at += 1;
        if !is_sorted {
            self.sort_members(first)?;
        }
        self.members.truncate(first);
        self.out.push(b'}');
        Some(())
    }

    /// Writes a name and its colon.
    fn name(&mut self) -> Option<Name<'t>> {
        (self.peek()? == b'"').then_some(())?;
        let (quoted, has_escapes) = self.string()?;
        (self.peek()? == b':').then_some(())?;
        self.at += 1;
        self.out.extend_from_slice(quoted);
        self.out.push(b':');
        let beginning = if has_escapes {
            beginning(read(quoted).as_bytes())
        } else {
            beginning(&quoted[1..quoted.len() - 1])
        };
        Some(Name {
            beginning,
            quoted,
            has_escapes,
        })
    }

    /// Sorts the members of the innermost object.
    fn sort_members(&mut self, first: usize) -> Option<()> {
        let members = &mut self.members[first..];
        let begin = members.first()?.begin;
        self.copies_left = self.copies_left.checked_sub(self.out.len() - begin)?;
        members.sort_unstable_by(|one, other| one.name.order(other.name));
        self.spare.clear();
        self.spare.reserve(self.out.len() - begin);
        for member in members {
            if !self.spare.is_empty() {
                self.spare.push(b',');
            }
            self.spare
                .extend_from_slice(&self.out[member.begin..member.end]);
        }
        self.out.truncate(begin);
        self.out.extend_from_slice(&self.spare);
        Some(())
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.at += 1;
        self.out.push(b'[');
        let mut has_next = self.peek()? != b']';
        while has_next {
            self.value(depth)?;
            has_next = self.has_next(b']')?;
        }
        self.at += 1;
        self.out.push(b']');
        Some(())
    }

    /// Whether another element or member follows, and not the end.
    fn has_next(&mut self, end: u8) -> Option<bool> {
        let next = self.peek()?;
        if next == b',' {
            self.at += 1;
            self.out.push(b',');
        }
        (next == b',' || next == end).then_some(next == b',')
    }

    /// A string with its quotes, of which the first was seen; and whether it has escapes.
    fn string(&mut self) -> Option<(&'t [u8], bool)> {
        let rest = self.text.get(self.at..)?;
        let (mut length, mut has_escapes) = (1, false);
        loop {
            length += memchr2(b'"', b'\\', rest.get(length..)?)?;
            if rest[length] == b'"' {
                break;
            }
            has_escapes = true;
            length += 2;
        }
        self.at += length + 1;
        Some((&rest[..=length], has_escapes))
    }

    fn literal(&mut self, literal: &[u8]) -> Option<()> {
        let is_there = self.text.get(self.at..)?.starts_with(literal);
        self.at += literal.len();
        self.out.extend_from_slice(literal);
        is_there.then_some(())
    }

    fn number(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let is_part = |b: &&u8| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let number = &rest[..rest.iter().take_while(is_part).count()];
        self.at += number.len();
        let digits = number.strip_prefix(b"-").unwrap_or(number);
        let is_plain = digits.iter().all(u8::is_ascii_digit) && number != b"-0";
        if is_plain && (1..PLAIN_CHARACTERS_MAX).contains(&digits.len()) {
            self.out.extend_from_slice(number);
        } else {
            let number: serde_json::Number = serde_json::from_slice(number).ok()?;
            self.out.extend_from_slice(number.to_string().as_bytes());
        }
        Some(())
    }

    /// The next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.text.get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    fn skip_blanks(&mut self) {
        let _ = self.peek();
    }
}

impl Name<'_> {
    /// The order of their unescaped texts.
    fn order(self, other: Self) -> Ordering {
        let beginnings = self.beginning.cmp(&other.beginning);
        beginnings.then_with(|| {
            if self.has_escapes || other.has_escapes {
                read(self.quoted).cmp(&read(other.quoted))
            } else {
                let bare = |name: Self| &name.quoted[1..name.quoted.len() - 1];
                bare(self).cmp(bare(other))
            }
        })
    }
}

/// The unescaped text of a string.
fn read(quoted: &[u8]) -> String {
    serde_json::from_slice(quoted).unwrap_or_default()
}

/// The first eight bytes of a name as a number, in the order of the names.
fn beginning(name: &[u8]) -> u64 {
    let mut first = [0; 8];
    for (place, byte) in first.iter_mut().zip(name) {
        *place = *byte;
    }
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Number, Value, json};

    use super::*;

    #[test]
    fn blanks_go_and_members_are_sorted() {
        for (text, expected) in [
            ("{}", "{}"),
            (" [ ] ", "[]"),
            ("null", "null"),
            (
                r#"{"b": 1, "aa": {"d": [], "c": [1, "x: , y"]}}"#,
                r#"{"aa":{"c":[1,"x: , y"],"d":[]},"b":1}"#,
            ),
            (r#"{"ab": 1, "a": 2, "": 3}"#, r#"{"":3,"a":2,"ab":1}"#),
            (
                r#"{"the same! ": 1, "the same!": 2, "the same!\t": 3}"#,
                r#"{"the same!":2,"the same!\t":3,"the same! ":1}"#,
            ),
            (
                r#"{"a!": 1, "a": 2, "a\"": 3}"#,
                r#"{"a":2,"a!":1,"a\"":3}"#,
            ),
            (
                r#"{"\u0001": 1, "\n": 2, "A": 3}"#,
                r#"{"\u0001":1,"\n":2,"A":3}"#,
            ),
            (
                r#"["\\", "\"]", "é", true, false, null]"#,
                r#"["\\","\"]","é",true,false,null]"#,
            ),
        ] {
            let rewritten = JsonText::rewrite(text);
            assert_eq!(
                rewritten.as_ref().map(JsonText::as_str),
                Some(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn numbers_are_written_as_those_of_values() {
        for (text, expected) in [
            ("0", "0"),
            ("-12", "-12"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("1.50", "1.5"),
            ("0.0000001", "1e-7"),
            (&format!("1{}", "0".repeat(300)), "1e+300"),
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(JsonText::of(&value).as_str(), expected);
            assert_eq!(
                JsonText::rewrite(text),
                Some(JsonText::of(&value)),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_nested_deeply_and_out_of_order_is_not_copied_for_each_level() {
        let mut text = "0".to_owned();
        for _ in 0..120 {
            text = format!(r#"{{"b": 0, "aa": {text}}}"#);
        }
        assert_eq!(JsonText::rewrite_in_one_pass(&text), None);
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(JsonText::rewrite(&text), Some(JsonText::of(&value)));
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            "{",
            "[1",
            "[1,]",
            "{\"a\"}",
            "{\"a\":}",
            "{1:2}",
            "{\"a\":1,}",
            "\"a",
            "\"a\\",
            "tru",
            "1 2",
            "-",
            "1.",
            "[1}",
            "1e400",
        ] {
            assert_eq!(JsonText::rewrite(text), None, "{text}");
        }
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(JsonText::rewrite(&nested(DEPTH_MAX)).is_some());
        assert_eq!(JsonText::rewrite(&nested(DEPTH_MAX + 1)), None);
    }

    /// Writes a value as a `jsonb` column does: blanks, shorter names first.
    fn stored(value: &Value) -> String {
        match value {
            Value::Array(all) => {
                let all: Vec<_> = all.iter().map(stored).collect();
                format!("[{}]", all.join(", "))
            }
            Value::Object(all) => {
                let mut all: Vec<_> = all.iter().collect();
                all.sort_by_key(|(name, _)| (name.len(), *name));
                let all = all
                    .iter()
                    .map(|(name, value)| format!("{}: {}", json!(name), stored(value)));
                format!("{{{}}}", all.collect::<Vec<_>>().join(", "))
            }
            scalar => scalar.to_string(),
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let name = prop_oneof!["[a-c]{0,3}", any::<String>()];
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>()
                .prop_map(|number| Number::from_f64(number).map_or(Value::Null, Value::from)),
            any::<String>().prop_map(Value::from),
        ];
        scalar.prop_recursive(5, 64, 8, move |inner| {
            let members = prop::collection::vec((name.clone(), inner.clone()), 0..8);
            prop_oneof![
                prop::collection::vec(inner, 0..8).prop_map(Value::from),
                members.prop_map(|members| Value::from(Map::from_iter(members))),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_stored_text_becomes_the_text_of_its_value(value in values()) {
            let expected = JsonText::of(&value);
            prop_assert_eq!(JsonText::rewrite(&stored(&value)), Some(expected.clone()));
            prop_assert_eq!(JsonText::rewrite(expected.as_str()), Some(expected));
        }

        #[test]
        fn no_text_is_too_odd(text in any::<String>(), marks in r#"[\[\]{}",:\\0-9tfn.e -]{0,40}"#) {
            let _ = (JsonText::rewrite(&text), JsonText::rewrite(&marks));
        }
    }
}
