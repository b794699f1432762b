//! Page tokens: after which key a list continues.

use super::table::Family;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;

use super::Error;
use crate::keys::Revision;

/// Longest token that is parsed, in characters.
pub const TOKEN_CHARACTERS_MAX: usize = 1024;
/// Version of the token's format.
const FORM: u8 = 1;

/// Where a list continues. It is opaque to clients and not signed: a forged one can only choose where a page of
/// the caller's own list begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageToken {
    list: u8,
    /// Of the page. Only servers of earlier versions read it: they continue the list at this revision.
    revision: Revision,
    /// The last key of the previous page, without the folder of its list.
    pub(super) last: String,
}

impl PageToken {
    pub(super) fn new(family: Family, revision: Revision, last: String) -> Self {
        Self {
            list: letter(family),
            revision,
            last,
        }
    }

    /// The text for clients.
    pub fn text(&self) -> String {
        let mut bytes = vec![FORM, self.list];
        bytes.extend(self.revision.to_be_bytes());
        bytes.extend(self.last.as_bytes());
        BASE64.encode(bytes)
    }

    /// Parses the text of a client.
    ///
    /// # Errors
    /// [`Error::Token`] for any text that [`text`](Self::text) cannot return.
    pub fn parse(text: &str) -> Result<Self, Error> {
        if text.len() > TOKEN_CHARACTERS_MAX {
            return Err(Error::Token);
        }
        let bytes = BASE64.decode(text).map_err(|_| Error::Token)?;
        let [FORM, letter, rest @ ..] = bytes.as_slice() else {
            return Err(Error::Token);
        };
        let (revision, last) = rest.split_first_chunk().ok_or(Error::Token)?;
        let revision = Revision::from_be_bytes(*revision);
        let last = String::from_utf8(last.to_vec()).map_err(|_| Error::Token)?;
        let is_list = matches!(letter, b'u' | b's' | b'm');
        if !is_list || revision <= 0 || last.is_empty() || last.contains('/') {
            return Err(Error::Token);
        }
        Ok(Self {
            list: *letter,
            revision,
            last,
        })
    }

    /// Refuses a token of another list.
    pub(super) fn check(&self, family: Family) -> Result<(), Error> {
        if self.list == letter(family) {
            Ok(())
        } else {
            Err(Error::Token)
        }
    }
}

fn letter(family: Family) -> u8 {
    match family {
        Family::State => b's',
        Family::Machine => b'm',
        _ => b'u',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written() {
        let token = PageToken::new(Family::State, 7, "a@1.service,m1".to_owned());
        assert_eq!(PageToken::parse(&token.text()).unwrap(), token);
        assert!(token.check(Family::State).is_ok());
        assert!(token.check(Family::Unit).is_err());
    }

    #[test]
    fn what_is_no_token_is_refused() {
        let with = |list, revision: Revision, last: &[u8]| {
            let mut bytes = vec![FORM, list];
            bytes.extend(revision.to_be_bytes());
            bytes.extend(last);
            BASE64.encode(bytes)
        };
        assert!(PageToken::parse(&with(b'u', 1, b"a")).is_ok());
        for text in [
            String::new(),
            "ZAACAA==".to_owned(), // of the older system
            "!".to_owned(),
            BASE64.encode([FORM, b'u', 0, 0]),
            BASE64.encode([2, b'u', 0, 0, 0, 0, 0, 0, 0, 1, b'a']),
            with(b'x', 1, b"a"),
            with(b'u', 0, b"a"),
            with(b'u', -1, b"a"),
            with(b'u', 1, b""),
            with(b'u', 1, b"a/b"),
            with(b'u', 1, b"\xff"),
            with(b'u', 1, &[b'a'; TOKEN_CHARACTERS_MAX]),
        ] {
            assert!(PageToken::parse(&text).is_err(), "{text}");
        }
    }
}
