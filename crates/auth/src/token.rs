//! Parses a token, before any of it is trusted.
//!
//! `jsonwebtoken` is used for signatures only. Its `decode` compares times with the system's clock in whole seconds,
//! accepts an `iss` in a list and names that occur twice, and checks `iss` last: a token of another issuer would cause a
//! fetch of keys.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::Algorithm;
use serde_json::{Map, Value};

use super::TokenError;
use hyperfleet_server_kit::json::unique_object;

/// Longest token, in bytes. A longer one is not even split.
pub(super) const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Longest name of a key, in bytes.
const KID_BYTES_MAX: usize = 256;

/// The algorithms that the service can accept. The key decides which of them it is used with.
const ALGORITHMS: [Algorithm; 5] = {
    use Algorithm::{ES256, EdDSA, RS256, RS384, RS512};
    [RS256, RS384, RS512, ES256, EdDSA]
};

/// The acceptable algorithm of this name (RFC 7518 §3.1, RFC 8037). Names are compared exactly.
pub(super) fn algorithm(name: &str) -> Option<Algorithm> {
    let known = name.parse().ok();
    known.filter(|algorithm| ALGORITHMS.contains(algorithm))
}

/// A parsed compact JWS (RFC 7515 §3.1).
///
/// Ignores `jku`, `jwk`, `x5u` and `x5c`, which say where keys are: a token must not choose its own judge.
#[derive(Debug)]
pub(super) struct Token<'a> {
    /// The signed part.
    pub(super) message: &'a str,
    /// The signature, in its encoded form.
    pub(super) signature: &'a str,
    pub(super) algorithm: Algorithm,
    pub(super) kid: Option<String>,
    pub(super) claims: Map<String, Value>,
}

impl<'a> Token<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, TokenError> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(TokenError::TooLong);
        }
        let (message, signature) = text.rsplit_once('.').ok_or(TokenError::Malformed)?;
        let (header, payload) = message.split_once('.').ok_or(TokenError::Malformed)?;
        if signature.is_empty() || payload.contains('.') {
            return Err(TokenError::Malformed);
        }
        let (algorithm, kid) = read_header(&object(header)?)?;
        Ok(Self {
            message,
            signature,
            algorithm,
            kid,
            claims: object(payload)?,
        })
    }
}

fn object(part: &str) -> Result<Map<String, Value>, TokenError> {
    let text = URL_SAFE_NO_PAD.decode(part);
    let text = text.map_err(|_| TokenError::Malformed)?;
    unique_object(&text).ok_or(TokenError::Malformed)
}

fn read_header(header: &Map<String, Value>) -> Result<(Algorithm, Option<String>), TokenError> {
    let name = header.get("alg").and_then(Value::as_str);
    let algorithm = name.and_then(algorithm).ok_or(TokenError::Algorithm)?;
    // The service understands no extension, so none may be critical (RFC 7515 §4.1.11).
    if header.contains_key("crit") {
        return Err(TokenError::Critical);
    }
    if let Some(kind) = header.get("typ") {
        let kind = kind.as_str().ok_or(TokenError::Type)?;
        if !is_token_type(kind) {
            return Err(TokenError::Type);
        }
    }
    let kid = match header.get("kid") {
        None => None,
        Some(Value::String(kid)) if kid.len() <= KID_BYTES_MAX => Some(kid.clone()),
        Some(_) => return Err(TokenError::UnknownKey),
    };
    Ok((algorithm, kid))
}

/// `JWT` (RFC 7519 §5.1) or `at+jwt` (RFC 9068 §2.1), with or without `application/`.
fn is_token_type(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let kind = kind.strip_prefix("application/").unwrap_or(&kind);
    kind == "jwt" || kind == "at+jwt"
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn token(header: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        format!("{}.{}.c2ln", part(header), part(&json!({"iss": "x"})))
    }

    #[test]
    fn a_header_says_which_key_and_algorithm_are_meant() {
        let text = token(&json!({"alg": "ES256", "kid": "a", "typ": "JWT", "jku": "https://evil"}));
        let token = Token::parse(&text).unwrap();
        assert_eq!(token.algorithm, Algorithm::ES256);
        assert_eq!(token.kid.as_deref(), Some("a"));
        assert_eq!(token.claims["iss"], "x");
        assert_eq!(format!("{}.{}", token.message, token.signature), text);
    }

    #[test]
    fn headers_that_cannot_be_honoured_are_refused() {
        for (header, error) in [
            (json!({}), TokenError::Algorithm),
            (json!({"alg": "none"}), TokenError::Algorithm),
            (json!({"alg": "HS256"}), TokenError::Algorithm),
            (json!({"alg": "rs256"}), TokenError::Algorithm),
            (json!({"alg": ["RS256"]}), TokenError::Algorithm),
            (json!({"alg": "RS256", "crit": []}), TokenError::Critical),
            (json!({"alg": "RS256", "typ": "JOSE"}), TokenError::Type),
            (json!({"alg": "RS256", "typ": 1}), TokenError::Type),
            (json!({"alg": "RS256", "kid": 1}), TokenError::UnknownKey),
            (
                json!({"alg": "RS256", "kid": "k".repeat(257)}),
                TokenError::UnknownKey,
            ),
        ] {
            let text = token(&header);
            assert_eq!(Token::parse(&text).err(), Some(error), "{header}");
        }
        for kind in [
            "jwt",
            "JWT",
            "at+JWT",
            "application/at+jwt",
            "Application/JWT",
        ] {
            let text = token(&json!({"alg": "EdDSA", "typ": kind}));
            assert!(Token::parse(&text).is_ok(), "{kind}");
        }
    }

    #[test]
    fn what_is_no_compact_jws_is_refused() {
        let good = token(&json!({"alg": "RS256"}));
        assert!(Token::parse(&good).is_ok());
        let (message, _) = good.rsplit_once('.').unwrap();
        let (header, payload) = message.split_once('.').unwrap();
        for text in [
            String::new(),
            "..".to_owned(),
            message.to_owned(),
            format!("{message}."),
            format!("{good}.c2ln"),
            format!("{good}."),
            format!(".{good}"),
            format!("{header}..c2ln"),
            format!(".{payload}.c2ln"),
            format!("{header}=.{payload}.c2ln"),
            format!("{header}.{payload}=.c2ln"),
            format!("{header}.W10.c2ln"),
        ] {
            assert_eq!(
                Token::parse(&text).err(),
                Some(TokenError::Malformed),
                "{text}"
            );
        }
        let long = format!("{good}{}", "x".repeat(TOKEN_BYTES_MAX));
        assert_eq!(Token::parse(&long).err(), Some(TokenError::TooLong));
    }
}
