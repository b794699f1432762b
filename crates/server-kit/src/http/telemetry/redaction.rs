//! Redaction of clients' data in the log.

use std::borrow::Cow;
use std::fmt::Write as _;

use actix_web::HttpRequest;
use actix_web::http::header::HeaderMap;
use actix_web::web::{Data, Query};
use serde_json::{Map, Value};
use tracing::level_filters::LevelFilter;

use crate::settings::REDACTED;

/// Headers whose values are always secret.
const ALWAYS: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
];
/// Members that name another member of the same object, which has the value; `path` in operations of a JSON Patch.
const NAMES: &[&str] = &["name", "key", "path"];
const VALUES: &[&str] = &["value", "values"];
/// Longest body that is checked, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Most bytes of any text in the log.
const LOGGED_BYTES_MAX: usize = 4 * 1024;

/// Headers, members and parameters whose values the log hides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redaction {
    headers: Vec<String>,
    fields: Vec<String>,
}

impl Redaction {
    /// Hides the values of these headers, and of members and parameters whose name contains one of `fields`, in
    /// any case. The headers of credentials are always hidden.
    pub fn new(headers: &[String], fields: &[String]) -> Self {
        let lower = |names: &[String]| names.iter().map(|n| n.trim().to_lowercase()).collect();
        let mut fields: Vec<String> = fields.iter().map(|name| bare(name)).collect();
        // Every name contains the empty text.
        fields.retain(|field| !field.is_empty());
        Self {
            headers: lower(headers),
            fields,
        }
    }

    /// `name: value` for each header, as a JSON object.
    pub(super) fn headers(&self, headers: &HeaderMap) -> String {
        let mut redacted = Map::new();
        for (name, value) in headers {
            let name = name.as_str();
            let is_named = ALWAYS.contains(&name) || self.headers.iter().any(|h| h == name);
            let is_secret = is_named || self.is_secret(name);
            let value = if is_secret {
                REDACTED.to_owned()
            } else {
                self.address(&String::from_utf8_lossy(value.as_bytes()))
            };
            redacted.insert(name.to_owned(), Value::String(value));
        }
        shortened(&Value::Object(redacted).to_string(), LOGGED_BYTES_MAX).into_owned()
    }

    /// The value of a header. If it is an address, as that of a `Referer`, its password and secret parameters
    /// are hidden.
    fn address(&self, value: &str) -> String {
        let Some(end) = value.find(['?', '#']) else {
            return without_password(value);
        };
        let (place, rest) = (&value[..end], &value[end + 1..]);
        let mark = &value[end..=end];
        format!("{}{mark}{}", without_password(place), self.query(rest))
    }

    /// The query of a request. A search may contain a secret field with its value.
    pub(super) fn query(&self, query: &str) -> String {
        let mut redacted = String::new();
        for (index, pair) in query.split('&').enumerate() {
            if index > 0 {
                redacted.push('&');
            }
            let name = pair.split('=').next().unwrap_or_default();
            if self.is_secret(&decoded(pair)) {
                let _ = write!(redacted, "{name}={REDACTED}");
            } else {
                redacted.push_str(pair);
            }
        }
        shortened(&redacted, LOGGED_BYTES_MAX).into_owned()
    }

    /// A body, if it is JSON and not too long; otherwise its length.
    fn body(&self, body: &[u8]) -> String {
        let bytes = body.len();
        if bytes > BODY_BYTES_MAX {
            return format!("{bytes} bytes");
        }
        let Ok(mut value) = serde_json::from_slice(body) else {
            return format!("{bytes} bytes that are no JSON");
        };
        self.mask(&mut value);
        shortened(&value.to_string(), LOGGED_BYTES_MAX).into_owned()
    }

    fn mask(&self, value: &mut Value) {
        match value {
            Value::Object(members) => {
                // As in lists of variables: {"name": "DB_PASSWORD", "value": "…"}.
                let is_named = members
                    .iter()
                    .any(|(name, value)| is_one(NAMES, name) && self.is_named_so(value));
                for (name, value) in members {
                    if self.is_secret(name) || (is_named && is_one(VALUES, name)) {
                        *value = Value::String(REDACTED.to_owned());
                    } else {
                        self.mask(value);
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn is_named_so(&self, name: &Value) -> bool {
        name.as_str().is_some_and(|name| self.is_secret(name))
    }

    fn is_secret(&self, name: &str) -> bool {
        let name = bare(name);
        self.fields.iter().any(|field| name.contains(field))
    }
}

fn is_one(names: &[&str], name: &str) -> bool {
    names.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// An address without user and password.
fn without_password(place: &str) -> String {
    let Some((scheme, rest)) = place.split_once("://") else {
        return place.to_owned();
    };
    let host_end = rest.find(['/', '#']).unwrap_or(rest.len());
    match rest[..host_end].rfind('@') {
        Some(at) => format!("{scheme}://{REDACTED}{}", &rest[at..]),
        None => place.to_owned(),
    }
}

/// A name without differences of spelling: `apiKey`, `api-key` and `API_KEY` are equal.
fn bare(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '-' | '_' | ' '));
    letters.flat_map(char::to_lowercase).collect()
}

/// Logs a body at level `trace`.
pub fn log_body(request: &HttpRequest, body: &[u8]) {
    if LevelFilter::current() < LevelFilter::DEBUG {
        return;
    }
    // `tracing` evaluates this only if the level is enabled.
    if let Some(redaction) = request.app_data::<Data<Redaction>>() {
        tracing::debug!(body = redaction.body(body), "its body");
    }
}

/// Decodes percent-encoding.
fn decoded(pair: &str) -> String {
    let pairs = Query::<Vec<(String, String)>>::from_query(pair);
    let pairs = pairs.map(Query::into_inner).unwrap_or_default();
    let texts = pairs.into_iter().map(|(name, value)| name + "=" + &value);
    texts.reduce(|a, b| a + &b).unwrap_or_default()
}

/// A client's text, cut after `bytes_max` bytes, with a sign where it was cut.
pub(super) fn shortened(text: &str, bytes_max: usize) -> Cow<'_, str> {
    if text.len() <= bytes_max {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(bytes_max);
    Cow::Owned(format!("{}…", &text[..end]))
}

#[cfg(test)]
mod tests {
    use actix_web::http::header::{HeaderName, HeaderValue};

    use super::*;

    fn redaction() -> Redaction {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        Redaction::new(&owned(&["X-Api-Key"]), &owned(&["password", "Token", ""]))
    }

    #[test]
    fn secret_headers_are_hidden_whatever_is_set() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-api-key", "hunter2"),
            ("authorization", "Bearer hunter2"),
            ("cookie", "id=hunter2"),
            ("accept", "*/*"),
        ] {
            let name = HeaderName::from_static(name);
            headers.append(name, HeaderValue::from_static(value));
        }
        let redacted = redaction().headers(&headers);
        assert!(!redacted.contains("hunter2"), "{redacted}");
        assert_eq!(redacted.matches(REDACTED).count(), 3, "{redacted}");
        assert!(redacted.contains(r#""accept":"*/*""#), "{redacted}");
        let redacted = Redaction::default().headers(&headers);
        assert_eq!(redacted.matches(REDACTED).count(), 2, "{redacted}");
    }

    #[test]
    fn secret_members_are_hidden_however_deep() {
        let body = br#"{"spec": {"DbPassword": {"a": "hunter2"}, "list": [{"accessToken": ["hunter2"]}], "size": 3}}"#;
        let redacted = redaction().body(body);
        assert!(!redacted.contains("hunter2"), "{redacted}");
        assert!(redacted.contains(r#""size":3"#), "{redacted}");
        assert_eq!(
            redaction().body(b"password=hunter2"),
            "16 bytes that are no JSON"
        );
        let long = format!("\"{}\"", "x".repeat(BODY_BYTES_MAX));
        assert_eq!(redaction().body(long.as_bytes()), "65538 bytes");
        let long = format!("\"{}\"", "x".repeat(BODY_BYTES_MAX - 2));
        assert!(redaction().body(long.as_bytes()).len() <= LOGGED_BYTES_MAX + '…'.len_utf8());
    }

    #[test]
    fn pairs_of_a_name_and_a_value_are_read_as_members() {
        let body = br#"{"env": [{"name": "DB_PASSWORD", "value": "hunter2"}, {"Value": ["hunter2"], "Key": "accessToken"},
            {"name": "SIZE", "value": "3"}, {"name": {"password": 1}, "value": "4"}]}"#;
        let redacted = redaction().body(body);
        assert!(!redacted.contains("hunter2"), "{redacted}");
        assert!(redacted.contains(r#""name":"DB_PASSWORD""#), "{redacted}");
        assert!(redacted.contains(r#""value":"3""#), "{redacted}");
        assert!(redacted.contains(r#""value":"4""#), "{redacted}");
        let patch =
            br#"[{"op": "add", "path": "/spec/db~1password", "value": {"now": "hunter2"}}]"#;
        let redacted = redaction().body(patch);
        assert!(!redacted.contains("hunter2"), "{redacted}");
    }

    #[test]
    fn secrets_in_addresses_of_headers_are_redacted() {
        let log = |value: &'static str| {
            let mut headers = HeaderMap::new();
            let name = HeaderName::from_static("referer");
            headers.append(name, HeaderValue::from_static(value));
            redaction().headers(&headers)
        };
        for secret in [
            "https://a.example/b?page=2&token=hunter2",
            "https://a.example/b?page=2#access_token=hunter2",
            "https://me:hunter2@a.example/b",
            "https://me:hunter2@a.example",
            "/b?%74oken=hunter2",
        ] {
            let redacted = log(secret);
            assert!(!redacted.contains("hunter2"), "{redacted}");
        }
        let plain = "https://a.example/@b?page=2&search=name='c'";
        assert_eq!(log(plain), format!("{{\"referer\":\"{plain}\"}}"));
    }

    #[test]
    fn spellings_of_a_name_are_one() {
        let redaction = Redaction::new(&[], &["api_key".to_owned(), "token".to_owned()]);
        let body = br#"{"apiKey": "hunter2", "API-KEY": "hunter2", "the_api_key": "hunter2"}"#;
        assert!(
            !redaction.body(body).contains("hunter2"),
            "{}",
            redaction.body(body)
        );
        let mut headers = HeaderMap::new();
        for name in ["x-vault-token", "x-amz-security-token", "apikey"] {
            let name = HeaderName::from_static(name);
            headers.append(name, HeaderValue::from_static("hunter2"));
        }
        let redacted = redaction.headers(&headers);
        assert!(!redacted.contains("hunter2"), "{redacted}");
    }

    #[test]
    fn secret_parameters_are_hidden_and_searches_for_secrets() {
        let redaction = redaction();
        for query in [
            "token=hunter2",
            "access_TOKEN=hunter2",
            "%74oken=hunter2",
            "search=labels.password%20%3D%20%27hunter2%27",
            "search=labels.pass%77ord='hunter2'",
        ] {
            let redacted = redaction.query(&format!("{query}&page=2"));
            assert!(!redacted.contains("hunter2"), "{redacted}");
            assert!(
                redacted.ends_with(&format!("={REDACTED}&page=2")),
                "{redacted}"
            );
        }
        assert_eq!(redaction.query(""), "");
        assert_eq!(redaction.query("a=1&b"), "a=1&b");
    }
}
