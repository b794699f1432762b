use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Who may call.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Jwt {
    /// Whether callers must present a token.
    pub enabled: bool,
    /// Whose tokens are taken, in the order in which they are tried.
    pub configs: Vec<Issuer>,
}

/// One issuer of tokens.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Issuer {
    /// What `iss` must say.
    pub issuer_url: String,
    /// Where its keys are published; empty for nowhere.
    pub jwk_cert_url: String,
    /// File with its keys, read again when it changes; empty for none.
    pub jwk_cert_file: PathBuf,
    /// PEM file with authorities to trust beside the system's when keys are fetched; empty for none.
    pub jwk_cert_ca_file: PathBuf,
    /// Header that carries the token, after `Bearer`.
    pub header: String,
    /// What `aud` must contain; empty for anything.
    pub audience: String,
    /// Claim that says who is calling.
    pub identity_claim: String,
    /// Regular expression that identities must match somewhere; empty for any.
    pub identity_claim_pattern: String,
    /// Header that says who is calling instead of the claim; empty for none.
    pub identity_header: String,
}

impl Default for Jwt {
    fn default() -> Self {
        Self {
            enabled: true,
            configs: Vec::new(),
        }
    }
}

impl Default for Issuer {
    fn default() -> Self {
        Self {
            issuer_url: String::new(),
            jwk_cert_url: String::new(),
            jwk_cert_file: PathBuf::new(),
            jwk_cert_ca_file: PathBuf::new(),
            header: "Authorization".to_owned(),
            audience: String::new(),
            identity_claim: "email".to_owned(),
            identity_claim_pattern: String::new(),
            identity_header: String::new(),
        }
    }
}
