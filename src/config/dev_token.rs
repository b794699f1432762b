//! Defines the command line of `dev-token`.
#![allow(
    clippy::doc_markdown,
    reason = "these comments are the text of --help, where backticks would be noise"
)]

use std::path::PathBuf;
use std::time::Duration;

use humantime_serde::re::humantime::parse_duration;

#[derive(Debug, clap::Args)]
pub struct DevTokenArgs {
    /// Folder of the key pair, created if missing: key.pk8, readable only by its owner, and
    /// jwks.json, for the service
    #[arg(long, value_name = "FOLDER", default_value = ".dev/token")]
    pub folder: PathBuf,
    /// Issuer of the token: issuer_url in the service's settings
    #[arg(long, value_name = "URL", default_value = "http://localhost/dev-token", value_parser = issuer)]
    pub issuer: String,
    /// Subject of the token (sub)
    #[arg(long, value_name = "NAME", default_value = "developer")]
    pub subject: String,
    /// Identity of the caller (email)
    #[arg(long, value_name = "ADDRESS", default_value = "developer@localhost")]
    pub email: String,
    /// Audience of the token (aud) [default: none]
    #[arg(long, value_name = "NAME")]
    pub audience: Option<String>,
    /// Validity of the token
    #[arg(long, value_name = "TIME", default_value = "8h", value_parser = parse_duration)]
    pub valid_for: Duration,
}

/// An issuer that settings accept; no service would accept the token of another one.
fn issuer(text: &str) -> Result<String, String> {
    let checked = hyperfleet_auth::issuer_url(text);
    checked.map_err(|error| format!("no service accepts it as issuer_url: it {error}"))?;
    Ok(text.to_owned())
}
