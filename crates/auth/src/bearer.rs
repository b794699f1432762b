//! Finds the token in a request.

/// A field of a request's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderField<'a> {
    Absent,
    One(&'a [u8]),
    /// Repeated, so that it is unclear which value counts.
    Several,
}

/// The field has a value without a bearer token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotBearer;

impl<'a> HeaderField<'a> {
    /// Of all values of the field.
    pub fn of(mut values: impl Iterator<Item = &'a [u8]>) -> Self {
        match (values.next(), values.next()) {
            (None, _) => Self::Absent,
            (Some(value), None) => Self::One(value),
            (Some(_), Some(_)) => Self::Several,
        }
    }

    /// The token: the second of two words of which the first is `Bearer`, in any case. `None` without a header or with
    /// an empty one.
    pub(super) fn token(self) -> Option<Result<&'a str, NotBearer>> {
        let value = match self {
            Self::Absent => return None,
            Self::Several => return Some(Err(NotBearer)),
            Self::One(value) => value,
        };
        // A value that is not UTF-8 is present, but has no token.
        let mut words = str::from_utf8(value)
            .unwrap_or("?")
            .split_ascii_whitespace();
        let first = words.next()?;
        Some(match (words.next(), words.next()) {
            (Some(token), None) if first.eq_ignore_ascii_case("bearer") => Ok(token),
            _ => Err(NotBearer),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_the_second_of_two_words() {
        let no = Some(Err(NotBearer));
        for (value, token) in [
            ("Bearer abc", Some(Ok("abc"))),
            ("bEARER abc", Some(Ok("abc"))),
            ("  Bearer \t abc  ", Some(Ok("abc"))),
            ("Bearer", no),
            ("Bearer ", no),
            ("abc", no),
            ("Basic abc", no),
            ("Bearer abc def", no),
            ("Bearer Bearer abc", no),
            ("Bearer,abc", no),
            ("Bearer\u{a0}abc", no),
            ("", None),
            (" \t", None),
        ] {
            let found = HeaderField::One(value.as_bytes()).token();
            assert_eq!(found, token, "{value:?}");
        }
        assert_eq!(HeaderField::One(b"Bearer \xff").token(), no);
    }

    #[test]
    fn a_field_that_is_there_twice_holds_nothing() {
        let values = |count| std::iter::repeat_n(&b"Bearer abc"[..], count);
        assert_eq!(HeaderField::of(values(0)).token(), None);
        assert_eq!(HeaderField::of(values(1)).token(), Some(Ok("abc")));
        let several = HeaderField::of(values(2));
        assert_eq!(several.token(), Some(Err(NotBearer)));
    }
}
