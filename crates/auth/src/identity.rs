//! Finds the identity of an authenticated caller: in the identity header, else in the claim
//! (`docs/guides/authentication.md`).

use regex::Regex;
use serde_json::{Map, Value};

use super::HeaderField;

const IDENTITY_BYTES_MAX: usize = 256;

/// Claims with the same meaning under another name.
const ALIASES: [(&str, &str); 3] = [
    ("username", "preferred_username"),
    ("first_name", "given_name"),
    ("last_name", "family_name"),
];

/// Where the identities of an issuer's callers are, and what they may contain.
#[derive(Debug)]
pub(super) struct IdentityRule {
    pub(super) claim: String,
    /// The header that takes precedence over the claim.
    pub(super) header: Option<String>,
    /// Must match a part of each identity.
    pub(super) pattern: Option<Regex>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Source {
    #[error("header {0:?}")]
    Header(String),
    #[error("JWT claim {0:?}")]
    Claim(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    #[error("identity claim {0:?} not found or empty")]
    NotFound(String),
    #[error("{0} value exceeds maximum length {IDENTITY_BYTES_MAX}")]
    TooLong(Source),
    /// It has control characters, or is not a text.
    #[error("{0} value contains invalid characters")]
    Characters(Source),
    /// The header's value does not match the issuer's pattern.
    #[error("identity header value does not match required pattern")]
    HeaderPattern,
    /// The claim's value does not match the issuer's pattern.
    #[error("identity claim value does not match required pattern")]
    ClaimPattern,
}

impl IdentityRule {
    /// The identity in the header; `None` without one, so that the claim counts. An invalid header is an error: the
    /// claim must not replace it.
    pub(super) fn of_header<'a>(
        &self,
        field: impl Fn(&str) -> HeaderField<'a>,
    ) -> Option<Result<String, IdentityError>> {
        let name = self.header.as_deref()?;
        let source = || Source::Header(name.to_owned());
        let bytes = match field(name) {
            HeaderField::Absent => return None,
            HeaderField::Several => return Some(Err(IdentityError::Characters(source()))),
            HeaderField::One(bytes) => bytes,
        };
        let Ok(text) = str::from_utf8(bytes) else {
            return Some(Err(IdentityError::Characters(source())));
        };
        let text = text.trim();
        (!text.is_empty()).then(|| self.checked(text, source, IdentityError::HeaderPattern))
    }

    pub(super) fn of_claims(&self, claims: &Map<String, Value>) -> Result<String, IdentityError> {
        let text = claim_text(claims, &self.claim)
            .ok_or_else(|| IdentityError::NotFound(self.claim.clone()))?;
        let source = || Source::Claim(self.claim.clone());
        self.checked(text, source, IdentityError::ClaimPattern)
    }

    fn checked(
        &self,
        text: &str,
        source: impl Fn() -> Source,
        mismatch: IdentityError,
    ) -> Result<String, IdentityError> {
        if text.len() > IDENTITY_BYTES_MAX {
            return Err(IdentityError::TooLong(source()));
        }
        if text.chars().any(char::is_control) {
            return Err(IdentityError::Characters(source()));
        }
        match &self.pattern {
            Some(pattern) if !pattern.is_match(text) => Err(mismatch),
            _ => Ok(text.to_owned()),
        }
    }
}

/// The text of a claim, or of one of its aliases.
fn claim_text<'a>(claims: &'a Map<String, Value>, claim: &str) -> Option<&'a str> {
    let text = |name: &str| {
        let text = claims.get(name)?.as_str()?.trim();
        (!text.is_empty()).then_some(text)
    };
    let alias = || {
        ALIASES.iter().find_map(|&(one, other)| match claim {
            _ if claim == one => text(other),
            _ if claim == other => text(one),
            _ => None,
        })
    };
    let part = || {
        let name = text("name")?;
        let (first, rest) = name.split_once(' ').unwrap_or((name, ""));
        let part = match claim {
            "first_name" | "given_name" => first,
            "last_name" | "family_name" => rest.trim_start(),
            _ => "",
        };
        (!part.is_empty()).then_some(part)
    };
    text(claim).or_else(alias).or_else(part)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rule(claim: &str, header: Option<&str>, pattern: Option<&str>) -> IdentityRule {
        IdentityRule {
            claim: claim.to_owned(),
            header: header.map(ToOwned::to_owned),
            pattern: pattern.map(|pattern| Regex::new(pattern).unwrap()),
        }
    }

    fn of_claims(claim: &str, claims: &Value) -> Result<String, String> {
        let found = rule(claim, None, None).of_claims(claims.as_object().unwrap());
        found.map_err(|error| error.to_string())
    }

    #[test]
    fn a_claim_or_its_alias_says_who_calls() {
        for (claim, claims, identity) in [
            ("email", json!({"email": " a@b "}), "a@b"),
            (
                "email",
                json!({"email": "service-account:sentinel"}),
                "service-account:sentinel",
            ),
            ("iss", json!({"iss": "https://x"}), "https://x"),
            ("clientId", json!({"clientId": "c"}), "c"),
            (
                "username",
                json!({"username": "u", "preferred_username": "p"}),
                "u",
            ),
            (
                "username",
                json!({"username": " ", "preferred_username": "p"}),
                "p",
            ),
            ("preferred_username", json!({"username": "u"}), "u"),
            ("first_name", json!({"given_name": "g"}), "g"),
            ("given_name", json!({"first_name": "f"}), "f"),
            ("last_name", json!({"family_name": "f"}), "f"),
            ("first_name", json!({"name": "Ada King Lovelace"}), "Ada"),
            (
                "last_name",
                json!({"name": "Ada King Lovelace"}),
                "King Lovelace",
            ),
        ] {
            assert_eq!(
                of_claims(claim, &claims).as_deref(),
                Ok(identity),
                "{claims}"
            );
        }
        for (claim, claims) in [
            ("email", json!({})),
            ("email", json!({"email": ""})),
            ("email", json!({"email": 7})),
            ("email", json!({"email": ["a@b"]})),
            ("email", json!({"Email": "a@b"})),
            ("last_name", json!({"name": "Ada"})),
        ] {
            let error = format!("identity claim \"{claim}\" not found or empty");
            assert_eq!(of_claims(claim, &claims), Err(error), "{claims}");
        }
    }

    #[test]
    fn identities_have_limits() {
        let exact = "é".repeat(128);
        assert_eq!(of_claims("email", &json!({"email": exact})), Ok(exact));
        let long = of_claims("email", &json!({"email": "e".repeat(257)}));
        let text = "JWT claim \"email\" value exceeds maximum length 256";
        assert_eq!(long, Err(text.to_owned()));
        for bad in [
            "a\0b",
            "a\nb",
            "a\u{7f}b",
            "a\u{1b}[0m",
            "a\u{85}b",
            "a\u{9b}0m",
        ] {
            let error = of_claims("email", &json!({"email": bad}));
            let text = "JWT claim \"email\" value contains invalid characters";
            assert_eq!(error, Err(text.to_owned()), "{bad:?}");
        }
    }

    #[test]
    fn a_header_counts_before_the_claim_even_if_it_is_at_error() {
        let rule = rule("email", Some("X-Caller"), Some("@corp"));
        let found = |value: HeaderField<'static>| {
            let found = rule.of_header(|name| {
                assert_eq!(name, "X-Caller");
                value
            });
            found.map(|found| found.map_err(|error| error.to_string()))
        };
        let bad = |text: &str| Some(Err(text.to_owned()));
        let characters = bad("header \"X-Caller\" value contains invalid characters");
        assert_eq!(
            found(HeaderField::One(b" a@corp.example ")),
            Some(Ok("a@corp.example".to_owned()))
        );
        assert_eq!(found(HeaderField::Absent), None);
        assert_eq!(found(HeaderField::One(b"  ")), None);
        assert_eq!(found(HeaderField::Several), characters);
        assert_eq!(found(HeaderField::One(b"a\xff")), characters);
        assert_eq!(found(HeaderField::One(b"a\x01@corp")), characters);
        assert_eq!(
            found(HeaderField::One(b"a@home")),
            bad("identity header value does not match required pattern")
        );
        assert_eq!(
            found(HeaderField::One(&[b'x'; 257])),
            bad("header \"X-Caller\" value exceeds maximum length 256")
        );
        let claims = json!({"email": "a@home"});
        let error = rule.of_claims(claims.as_object().unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "identity claim value does not match required pattern"
        );
    }
}
