//! Checks the claims that a token must have (RFC 7519 §4.1).

use chrono::{DateTime, Utc};
use serde_json::{Map, Number, Value};

use super::TokenError;

/// Allowed difference between the clocks of issuer and service, in microseconds.
const LEEWAY: i64 = 30_000_000;
/// The latest valid time: the end of the year 9999, in seconds.
const SECONDS_MAX: f64 = 253_402_300_800.0;

/// When a token is valid, in microseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    expires: i64,
    begins: Option<i64>,
}

impl Validity {
    /// Reads `exp`, which is required, and `nbf`. `iat` does not limit validity.
    pub(super) fn of(claims: &Map<String, Value>) -> Result<Self, TokenError> {
        let expires = claims.get("exp").and_then(moment);
        let begins = match claims.get("nbf") {
            None => None,
            Some(value) => Some(moment(value).ok_or(TokenError::Times)?),
        };
        Ok(Self {
            expires: expires.ok_or(TokenError::Times)?,
            begins,
        })
    }

    pub(super) fn check(self, now: DateTime<Utc>) -> Result<(), TokenError> {
        let now = now.timestamp_micros();
        if now >= self.expires + LEEWAY {
            return Err(TokenError::Expired);
        }
        match self.begins {
            Some(begins) if now < begins - LEEWAY => Err(TokenError::NotYetValid),
            _ => Ok(()),
        }
    }
}

/// A `NumericDate`: seconds since 1970, possibly with a fraction.
fn moment(value: &Value) -> Option<i64> {
    let seconds = value.as_number().and_then(Number::as_f64)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is in range, and a fraction of a microsecond does not matter"
    )]
    let micros = (seconds.abs() <= SECONDS_MAX).then(|| (seconds * 1e6).round() as i64);
    micros
}

/// Whether the issuer made the token. Both are compared exactly: a further slash makes another issuer.
pub(super) fn is_of(claims: &Map<String, Value>, issuer: &str) -> bool {
    claims.get("iss").and_then(Value::as_str) == Some(issuer)
}

/// Whether a token is for an audience, and possibly for others.
pub(super) fn is_for(claims: &Map<String, Value>, audience: &str) -> bool {
    match claims.get("aud") {
        Some(Value::String(one)) => one == audience,
        Some(Value::Array(several)) => {
            several.iter().all(Value::is_string) && several.iter().any(|one| one == audience)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(claims: &Value, now: &str) -> Result<(), TokenError> {
        Validity::of(claims.as_object().unwrap())?.check(now.parse().unwrap())
    }

    #[test]
    fn the_leeway_ends_to_the_microsecond() {
        let at = |second: &str| format!("2026-01-01T10:00:{second}Z");
        let exp = 1_767_261_600; // 10:00:00
        for (claims, now, outcome) in [
            (json!({"exp": exp}), at("29.999999"), Ok(())),
            (json!({"exp": exp}), at("30"), Err(TokenError::Expired)),
            (json!({"exp": 1_767_261_600.5}), at("30.499999"), Ok(())),
            (
                json!({"exp": 1_767_261_600.5}),
                at("30.5"),
                Err(TokenError::Expired),
            ),
            (json!({"exp": exp + 999, "nbf": exp + 60}), at("30"), Ok(())),
            (
                json!({"exp": exp + 999, "nbf": exp + 60}),
                at("29.999999"),
                Err(TokenError::NotYetValid),
            ),
            (json!({"exp": -1}), at("0"), Err(TokenError::Expired)),
            (json!({"exp": exp + 9, "iat": exp + 9999}), at("0"), Ok(())),
        ] {
            let now = now.replace(":0Z", ":00Z");
            assert_eq!(check(&claims, &now), outcome, "{claims} at {now}");
        }
    }

    #[test]
    fn times_are_numbers_within_reason() {
        for claims in [
            json!({}),
            json!({"exp": null}),
            json!({"exp": "1767261600"}),
            json!({"exp": [1_767_261_600]}),
            json!({"exp": true}),
            json!({"exp": 1e300}),
            json!({"exp": i64::MAX}),
            json!({"exp": u64::MAX}),
            json!({"exp": -1e300}),
            json!({"exp": 1_767_261_600, "nbf": "0"}),
            json!({"exp": 1_767_261_600, "nbf": null}),
        ] {
            let outcome = check(&claims, "2026-01-01T10:00:00Z");
            assert_eq!(outcome, Err(TokenError::Times), "{claims}");
        }
        let late = json!({"exp": 253_402_300_800_i64});
        assert_eq!(check(&late, "2026-01-01T10:00:00Z"), Ok(()));
    }

    #[test]
    fn an_audience_is_a_text_or_in_a_list() {
        for (claims, is_it) in [
            (json!({"aud": "api"}), true),
            (json!({"aud": ["other", "api"]}), true),
            (json!({"aud": "API"}), false),
            (json!({"aud": "api other"}), false),
            (json!({"aud": [["api"]]}), false),
            (json!({"aud": ["api", 1]}), false),
            (json!({"aud": {"api": true}}), false),
            (json!({"aud": []}), false),
            (json!({}), false),
        ] {
            assert_eq!(
                is_for(claims.as_object().unwrap(), "api"),
                is_it,
                "{claims}"
            );
        }
    }
}
