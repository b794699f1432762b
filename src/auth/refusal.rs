//! Why a caller is not let in.

use strum::{IntoStaticStr, VariantNames};

use super::IdentityFault;

const MISSING: &str = "missing";
const NOT_BEARER: &str = "not_bearer";
const IDENTITY: &str = "identity";

/// What is wrong with a token, by the name of the reason. What a client is told is less: [`AuthRefusal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum TokenFault {
    /// Longer than any token should be.
    TooLong,
    /// No compact JWS of two JSON objects, or a name in them stands twice.
    Malformed,
    /// An algorithm that is not taken.
    Algorithm,
    /// A header that must be understood, and is not.
    Critical,
    /// A token of another type.
    Type,
    /// Of another issuer.
    Issuer,
    /// No key of the issuer is meant.
    UnknownKey,
    /// Not signed by the key that is meant.
    Signature,
    /// `exp` or `nbf` is missing, or no moment.
    Times,
    /// No longer valid.
    Expired,
    /// Not valid yet.
    NotYetValid,
    /// For somebody else.
    Audience,
}

/// Every reason in metrics and in the log, by its name.
pub(super) fn reasons() -> impl Iterator<Item = &'static str> {
    [MISSING, NOT_BEARER, IDENTITY]
        .into_iter()
        .chain(TokenFault::VARIANTS.iter().copied())
}

/// Why a caller is not let in, as clients are told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthRefusal {
    /// None of the headers that may carry a token is there.
    #[error("missing authorization header")]
    Missing,
    /// There is a header, and no bearer token in it.
    #[error("authorization header does not use Bearer scheme")]
    NotBearer,
    /// The token is no good. That it was good once is told; any other reason is for the log: it would
    /// help whoever tries tokens.
    #[error("{}", if *.0 == TokenFault::Expired { "JWT token has expired" } else { "invalid JWT token" })]
    Invalid(TokenFault),
    /// The token is good, and nobody knows whose it is.
    #[error("Unable to resolve caller identity: {0}")]
    Unidentified(IdentityFault),
}

impl AuthRefusal {
    /// The name of the reason in metrics and in the log.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Missing => MISSING,
            Self::NotBearer => NOT_BEARER,
            Self::Invalid(fault) => fault.into(),
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
        let unidentified = AuthRefusal::Unidentified(IdentityFault::HeaderPattern);
        for refusal in [AuthRefusal::Missing, AuthRefusal::NotBearer, unidentified] {
            assert!(names.contains(&refusal.reason()), "{refusal:?}");
        }
    }
}
