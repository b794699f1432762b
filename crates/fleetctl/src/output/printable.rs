//! Removes control characters from texts of servers and files, which could rewrite a terminal's contents.

use std::borrow::Cow;
use std::fmt::Write as _;

/// A text in one line, with control characters as `\xNN`.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, char::is_control)
}

/// A text of several lines, with control characters as `\xNN`, except line feeds and tabs.
pub(crate) fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c.is_control() && !matches!(c, '\n' | '\t'))
}

fn escaped(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            let _ = write!(escaped, "\\x{:02x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

/// Printable lines from bytes in pieces. A character may be divided between two pieces.
#[derive(Debug, Default)]
pub(crate) struct PrintablePieces {
    /// The beginning of a character.
    begun: Vec<u8>,
}

impl PrintablePieces {
    pub(crate) fn next(&mut self, piece: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(piece);
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(&printable_lines(chunk.valid()));
            let invalid = chunk.invalid();
            let is_begun = |error: std::str::Utf8Error| error.error_len().is_none();
            if chunks.peek().is_none() && str::from_utf8(invalid).is_err_and(is_begun) {
                self.begun = invalid.to_vec();
            } else {
                push_bytes(&mut text, invalid);
            }
        }
        text
    }

    /// The rest at the end.
    pub(crate) fn end(self) -> String {
        let mut text = String::new();
        push_bytes(&mut text, &self.begun);
        text
    }
}

fn push_bytes(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        let _ = write!(text, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        for (text, line, lines) in [
            ("plain ü", "plain ü", "plain ü"),
            ("\x1b[2J", r"\x1b[2J", r"\x1b[2J"),
            ("a\tb\nc\rd", r"a\x09b\x0ac\x0dd", "a\tb\nc\\x0dd"),
            ("\u{9b}2J\x7f", r"\x9b2J\x7f", r"\x9b2J\x7f"),
        ] {
            assert_eq!(printable(text), line);
            assert_eq!(printable_lines(text), lines);
        }
    }

    #[test]
    fn pieces_may_divide_characters() {
        let mut pieces = PrintablePieces::default();
        let mut text = String::new();
        for piece in [
            &b"a\xc3"[..],
            b"\xbc\x1b[m\n\xc2",
            b"\x9b\xff",
            b"b\xe2\x82",
        ] {
            text.push_str(&pieces.next(piece));
        }
        assert_eq!(text + &pieces.end(), "aü\\x1b[m\n\\x9b\\xffb\\xe2\\x82");
    }
}
