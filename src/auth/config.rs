//! Issuers: as operators set them, and as they are once that is checked.

use std::path::PathBuf;

use reqwest::{Client, Url};
use serde::{Deserialize, Serialize};

use super::fetch::Published;
use super::identity::IdentityRule;

/// One issuer, as an entry of `server.jwt.configs` sets it. Texts and paths are empty for none.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct IssuerConfig {
    /// What `iss` must say.
    pub issuer_url: String,
    /// Where its keys are published.
    pub jwk_cert_url: String,
    /// File with its keys, read again when it changes.
    pub jwk_cert_file: PathBuf,
    /// PEM file with authorities to trust beside the system's when keys are fetched.
    pub jwk_cert_ca_file: PathBuf,
    /// Header that carries the token, after `Bearer`.
    pub header: String,
    /// What `aud` must contain.
    pub audience: String,
    /// Claim that says who is calling.
    pub identity_claim: String,
    /// Regular expression that identities must match somewhere.
    pub identity_claim_pattern: String,
    /// Header that says who is calling instead of the claim.
    pub identity_header: String,
}

impl Default for IssuerConfig {
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

/// An issuer whose settings are right.
#[derive(Debug)]
pub struct Issuer {
    pub(super) url: String,
    pub(super) header: String,
    pub(super) audience: Option<String>,
    pub(super) identity: IdentityRule,
    pub(super) file: Option<KeyFile>,
    pub(super) address: Option<KeyAddress>,
}

/// A file of keys, with what it held first.
#[derive(Debug)]
pub(super) struct KeyFile {
    pub(super) path: PathBuf,
    pub(super) published: Published,
}

/// An address of keys, with the client that asks it.
#[derive(Debug)]
pub(super) struct KeyAddress {
    pub(super) url: Url,
    pub(super) client: Client,
}
