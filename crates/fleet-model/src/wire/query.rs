//! Query parameters of fleet's API. Unknown ones are ignored: the older clients add `alt=json` to every call.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid value of {0} query parameter")]
pub struct InvalidParameter(pub &'static str);

/// The decoded parameters of a request, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(pub Vec<(String, String)>);

impl Query {
    /// The first value of a filter; `None` if it is empty.
    pub fn filter(&self, name: &str) -> Option<&str> {
        self.values(name).next().filter(|value| !value.is_empty())
    }

    /// The token of the requested page.
    ///
    /// # Errors
    /// It occurs more than once.
    pub fn page_token(&self) -> Result<Option<&str>, InvalidParameter> {
        let mut values = self.values("nextPageToken");
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(InvalidParameter("nextPageToken")),
            (first, None) => Ok(first),
        }
    }

    /// Whether the client wants changes instead of a page.
    ///
    /// # Errors
    /// Not a boolean.
    pub fn is_watch(&self) -> Result<bool, InvalidParameter> {
        self.is_set("watch")
    }

    /// Whether a parameter is `true` or `1`.
    ///
    /// # Errors
    /// Not a boolean.
    pub fn is_set(&self, name: &'static str) -> Result<bool, InvalidParameter> {
        match self.values(name).next() {
            Some("true" | "1") => Ok(true),
            None | Some("false" | "0" | "") => Ok(false),
            Some(_) => Err(InvalidParameter(name)),
        }
    }

    /// The revision to watch from.
    ///
    /// # Errors
    /// Not a positive number.
    pub fn revision(&self) -> Result<Option<i64>, InvalidParameter> {
        let Some(text) = self.filter("revision") else {
            return Ok(None);
        };
        Self::parse_revision(text)
            .map(Some)
            .ok_or(InvalidParameter("revision"))
    }

    /// A revision in the form that clients received.
    pub fn parse_revision(text: &str) -> Option<i64> {
        let is_number = text.bytes().all(|b| b.is_ascii_digit());
        text.parse()
            .ok()
            .filter(|revision| is_number && *revision > 0)
    }

    fn values<'q>(&'q self, name: &str) -> impl Iterator<Item = &'q str> {
        let named = self.0.iter().filter(move |(n, _)| n == name);
        named.map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(pairs: &[(&str, &str)]) -> Query {
        let pairs = pairs
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        Query(pairs.collect())
    }

    #[test]
    fn the_first_of_repeated_filters_counts() {
        let query = query(&[
            ("unitName", "a"),
            ("unitName", "b"),
            ("machineID", ""),
            ("machineID", "m"),
        ]);
        assert_eq!(query.filter("unitName"), Some("a"));
        assert_eq!(query.filter("machineID"), None);
        assert_eq!(query.filter("UNITNAME"), None);
    }

    #[test]
    fn a_repeated_token_is_none() {
        assert_eq!(query(&[]).page_token(), Ok(None));
        assert_eq!(query(&[("nextPageToken", "")]).page_token(), Ok(Some("")));
        let twice = query(&[("nextPageToken", "a"), ("nextPageToken", "a")]);
        let fault = twice.page_token().unwrap_err().to_string();
        assert_eq!(fault, "invalid value of nextPageToken query parameter");
    }

    #[test]
    fn watches_and_revisions_are_said_plainly() {
        for (value, said) in [
            ("true", Ok(true)),
            ("1", Ok(true)),
            ("false", Ok(false)),
            ("", Ok(false)),
            ("yes", Err(InvalidParameter("watch"))),
        ] {
            assert_eq!(query(&[("watch", value)]).is_watch(), said, "{value}");
        }
        for (value, said) in [
            ("7", Ok(Some(7))),
            ("", Ok(None)),
            ("0", Err(())),
            ("-1", Err(())),
            ("+1", Err(())),
            ("9223372036854775808", Err(())),
            ("x", Err(())),
        ] {
            let revision = query(&[("revision", value)]).revision();
            assert_eq!(revision.map_err(drop), said, "{value}");
        }
    }
}
