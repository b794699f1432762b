//! Issuers, as operators configure them and after the check.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::fetch::{KeyAddress, Published};
use super::identity::IdentityRule;

/// One entry of `server.jwt.configs`. Empty texts and paths are unset.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct IssuerConfig {
    /// Required value of `iss`.
    pub issuer_url: String,
    /// Address of its keys.
    pub jwk_cert_url: String,
    /// File with its keys, read again when it changes.
    pub jwk_cert_file: PathBuf,
    /// PEM file with authorities to trust beside the system's when keys are fetched.
    pub jwk_cert_ca_file: PathBuf,
    /// File with the bearer token to send when keys are fetched, read again for each fetch.
    pub jwk_cert_token_file: PathBuf,
    /// Header that carries the token, after `Bearer`.
    pub header: String,
    /// Value that `aud` must contain.
    pub audience: String,
    /// Claim with the caller's identity.
    pub identity_claim: String,
    /// Regular expression that must match a part of each identity.
    pub identity_claim_pattern: String,
    /// Header with the caller's identity, in place of the claim.
    pub identity_header: String,
}

impl Default for IssuerConfig {
    fn default() -> Self {
        Self {
            issuer_url: String::new(),
            jwk_cert_url: String::new(),
            jwk_cert_file: PathBuf::new(),
            jwk_cert_ca_file: PathBuf::new(),
            jwk_cert_token_file: PathBuf::new(),
            header: "Authorization".to_owned(),
            audience: String::new(),
            identity_claim: "email".to_owned(),
            identity_claim_pattern: String::new(),
            identity_header: String::new(),
        }
    }
}

#[derive(Debug)]
pub struct Issuer {
    pub(super) url: String,
    pub(super) header: String,
    pub(super) audience: Option<String>,
    pub(super) identity: IdentityRule,
    pub(super) file: Option<KeyFile>,
    pub(super) address: Option<KeyAddress>,
}

/// A file of keys, with its content at the start.
#[derive(Debug)]
pub(super) struct KeyFile {
    pub(super) path: PathBuf,
    pub(super) published: Published,
}
