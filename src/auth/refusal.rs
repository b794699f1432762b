//! Why a caller is not let in.

use super::IdentityFault;

/// What is wrong with a token. What a client is told is less: [`Refusal`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

impl TokenFault {
    /// The name of the reason in metrics and in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::Malformed => "malformed",
            Self::Algorithm => "algorithm",
            Self::Critical => "critical",
            Self::Type => "type",
            Self::Issuer => "issuer",
            Self::UnknownKey => "unknown_key",
            Self::Signature => "signature",
            Self::Times => "times",
            Self::Expired => "expired",
            Self::NotYetValid => "not_yet_valid",
            Self::Audience => "audience",
        }
    }
}

/// Every reason, by its name.
pub(super) const REASONS: [&str; 15] = [
    "missing",
    "not_bearer",
    "identity",
    "too_long",
    "malformed",
    "algorithm",
    "critical",
    "type",
    "issuer",
    "unknown_key",
    "signature",
    "times",
    "expired",
    "not_yet_valid",
    "audience",
];

/// Why a caller is not let in, as clients are told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// None of the headers that may carry a token is there.
    #[error("missing authorization header")]
    Missing,
    /// There is a header, and no bearer token in it.
    #[error("authorization header does not use Bearer scheme")]
    NotBearer,
    /// The token was good once.
    #[error("JWT token has expired")]
    Expired,
    /// The token is no good. The reason is for the log: it would help whoever tries tokens.
    #[error("invalid JWT token")]
    Invalid(TokenFault),
    /// The token is good, and nobody knows whose it is.
    #[error("Unable to resolve caller identity: {0}")]
    Unidentified(IdentityFault),
}

impl Refusal {
    /// The name of the reason in metrics and in the log.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::NotBearer => "not_bearer",
            Self::Expired => TokenFault::Expired.as_str(),
            Self::Invalid(fault) => fault.as_str(),
            Self::Unidentified(_) => "identity",
        }
    }
}

impl From<TokenFault> for Refusal {
    fn from(fault: TokenFault) -> Self {
        match fault {
            TokenFault::Expired => Self::Expired,
            other => Self::Invalid(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_listed() {
        let source = include_str!("refusal.rs");
        let names = source.lines().filter_map(|line| {
            let (variant, name) = line.trim().split_once(" => \"")?;
            variant
                .starts_with("Self::")
                .then(|| name.trim_end_matches("\","))
        });
        let mut names: Vec<_> = names.collect();
        let mut listed = REASONS.to_vec();
        names.sort_unstable();
        listed.sort_unstable();
        assert_eq!(names, listed);
    }
}
