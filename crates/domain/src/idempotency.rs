//! Requests with an `Idempotency-Key`: one effect and one answer, however often the request is sent.

use chrono::{DateTime, Utc};

use super::{Constraint, Tenancy, Violation};

/// The name of the header.
const HEADER: &str = "Idempotency-Key";

/// The key that a client gives a request and its repetitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// Longest key, in bytes.
    pub const BYTES_MAX: usize = 255;

    /// Reads the lines of the header: a structured string (RFC 8941, section 3.3.3) without parameters, or the same key
    /// without quotes, as many clients send it. `None` where there is no such header.
    ///
    /// # Errors
    ///
    /// Several lines, no key, a longer one, or other characters.
    pub fn parse<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<Self>, Violation> {
        let mut lines = lines.into_iter();
        let Some(value) = lines.next() else {
            return Ok(None);
        };
        let violation = |constraint, text: String| Violation::new(HEADER, constraint, text);
        if lines.next().is_some() {
            let message = format!("{HEADER} must be there once");
            return Err(violation(Constraint::Unique, message));
        }
        let Some(key) = read_key(value.trim_ascii()).filter(|key| !key.is_empty()) else {
            let message = format!(
                "{HEADER} must be a text in quotes, or visible ASCII characters other than quotes, \\, commas and semicolons"
            );
            return Err(violation(Constraint::Format, message));
        };
        if key.len() > Self::BYTES_MAX {
            let message = format!("{HEADER} must be at most {} characters", Self::BYTES_MAX);
            return Err(violation(Constraint::MaxLength, message));
        }
        Ok(Some(Self(key)))
    }

    /// The key without its quotes.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn read_key(value: &[u8]) -> Option<String> {
    let Some(quoted) = value.strip_prefix(b"\"") else {
        let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"\\,;".contains(byte);
        return value.iter().all(is_plain).then(|| text(value));
    };
    let mut key = Vec::new();
    let mut rest = quoted.iter();
    loop {
        match rest.next()? {
            b'"' => break,
            b'\\' => key.push(*rest.next().filter(|byte| b"\"\\".contains(byte))?),
            byte @ 0x20..=0x7e => key.push(*byte),
            _ => return None,
        }
    }
    rest.next().is_none().then(|| text(&key))
}

/// ASCII as text.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A digest of everything that a request asks for. Two requests with the same one are repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

/// A request with a key, which belongs to its tenant and its caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedRequest {
    /// Tenant of the caller.
    pub tenancy: Tenancy,
    pub caller: String,
    pub key: IdempotencyKey,
    pub fingerprint: Fingerprint,
    /// When the service began to work on it.
    pub at: DateTime<Utc>,
}

/// A response, as it is stored with its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredAnswer {
    pub status: u16,
    /// Value of `ETag`.
    pub tag: Option<String>,
    /// JSON; absent where the answer has no body.
    pub body: Option<Vec<u8>>,
}

/// A completed request, with its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRequest {
    pub fingerprint: Fingerprint,
    pub answer: StoredAnswer,
}

impl StoredRequest {
    /// The answer to a later request with the same key; `None` if that asks for something else.
    pub fn answer_to(self, request: &KeyedRequest) -> Option<StoredAnswer> {
        (self.fingerprint == request.fingerprint).then_some(self.answer)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(value: &str) -> Result<Option<String>, Violation> {
        let key = IdempotencyKey::parse([value.as_bytes()])?;
        Ok(key.map(|key| key.as_str().to_owned()))
    }

    #[test]
    fn a_key_is_the_same_with_quotes_and_without() {
        for (value, key) in [
            (
                "8e03978e-40d5-43dd-bc93-6894a57f9324",
                "8e03978e-40d5-43dd-bc93-6894a57f9324",
            ),
            (
                "\"8e03978e-40d5-43dd-bc93-6894a57f9324\"",
                "8e03978e-40d5-43dd-bc93-6894a57f9324",
            ),
            (" deploy/42:a ", "deploy/42:a"),
            ("\"a b, c; d\"", "a b, c; d"),
            (r#""a\"b\\c""#, "a\"b\\c"),
        ] {
            assert_eq!(parse(value).unwrap().as_deref(), Some(key), "{value}");
        }
        assert_eq!(IdempotencyKey::parse([]), Ok(None));
    }

    #[test]
    fn other_texts_are_no_keys() {
        for bad in [
            "",
            " ",
            "\"\"",
            "\"",
            "\"a",
            "a\"",
            "\"a\"b",
            "\"a\";q=1",
            "a b",
            "a,b",
            "a;b",
            "a\\b",
            r#""a\b""#,
            "\u{e9}",
            "\"\u{e9}\"",
            "a\tb",
            "\"a\tb\"",
        ] {
            let violation = parse(bad).unwrap_err();
            assert_eq!(
                (&*violation.field, violation.constraint),
                (HEADER, Constraint::Format),
                "{bad:?}"
            );
        }
        let longest = "x".repeat(IdempotencyKey::BYTES_MAX);
        assert_eq!(parse(&longest).unwrap(), Some(longest.clone()));
        let violation = parse(&format!("{longest}x")).unwrap_err();
        assert_eq!(violation.constraint, Constraint::MaxLength);
        let twice = IdempotencyKey::parse([&b"a"[..], b"a"]).unwrap_err();
        assert_eq!(twice.constraint, Constraint::Unique);
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_read_back(key in "[ -~]{1,60}") {
            let quoted = format!("\"{}\"", key.replace('\\', "\\\\").replace('"', "\\\""));
            prop_assert_eq!(parse(&quoted).unwrap(), Some(key));
        }

        #[test]
        fn any_bytes_are_read_or_refused(value in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = IdempotencyKey::parse([&value[..]]);
        }
    }
}
