//! Why a caller is refused.

use strum::{IntoStaticStr, VariantNames};

use super::IdentityError;

const MISSING: &str = "missing";
const NOT_BEARER: &str = "not_bearer";
const IDENTITY: &str = "identity";

/// What is wrong with a token; the name is the reason in metrics and in the log. Clients see less of it: [`AuthRefusal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum TokenError {
    /// Longer than a token may be.
    TooLong,
    /// Not a compact JWS of two JSON objects, or with a repeated name in one of them.
    Malformed,
    /// An algorithm that the service does not accept.
    Algorithm,
    /// An extension that the service does not know and must understand.
    Critical,
    Type,
    Issuer,
    /// No key of the issuer fits the token.
    UnknownKey,
    /// Not signed by the key that fits.
    Signature,
    /// `exp` or `nbf` is missing, or not a time.
    Times,
    Expired,
    NotYetValid,
    Audience,
}

/// The name of every reason in metrics and in the log.
pub(super) fn reasons() -> impl Iterator<Item = &'static str> {
    [MISSING, NOT_BEARER, IDENTITY]
        .into_iter()
        .chain(TokenError::VARIANTS.iter().copied())
}

/// Why a caller is refused, as clients see it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthRefusal {
    /// No header that may carry a token is present.
    #[error("missing authorization header")]
    Missing,
    /// A header is present, but has no bearer token.
    #[error("authorization header does not use Bearer scheme")]
    NotBearer,
    /// The token is invalid. Clients see only that it has expired; any other reason is for the log, because it would
    /// help an attacker.
    #[error("{}", if *.0 == TokenError::Expired { "JWT token has expired" } else { "invalid JWT token" })]
    Invalid(TokenError),
    /// The token is valid, but the identity is unknown.
    #[error("Unable to resolve caller identity: {0}")]
    Unidentified(IdentityError),
}

impl AuthRefusal {
    /// The name of the reason in metrics and in the log.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Missing => MISSING,
            Self::NotBearer => NOT_BEARER,
            Self::Invalid(error) => error.into(),
            Self::Unidentified(_) => IDENTITY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_listed() {
        let mut names: Vec<_> = reasons().collect();
        names.sort_unstable();
        let known = "algorithm audience critical expired identity issuer malformed missing not_bearer \
            not_yet_valid signature times too_long type unknown_key";
        assert_eq!(names.join(" "), known);
        let unidentified = AuthRefusal::Unidentified(IdentityError::HeaderPattern);
        for refusal in [AuthRefusal::Missing, AuthRefusal::NotBearer, unidentified] {
            assert!(names.contains(&refusal.reason()), "{refusal:?}");
        }
    }
}
