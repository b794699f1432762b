//! The command line of `dev-token`.
#![allow(
    clippy::doc_markdown,
    reason = "these comments are the text of --help, where backticks would be noise"
)]

use std::path::PathBuf;
use std::time::Duration;

use humantime_serde::re::humantime::parse_duration;

/// Options of `dev-token`.
#[derive(Debug, clap::Args)]
pub struct DevTokenArgs {
    /// Folder for the key pair, which is made if it is not there: key.pk8, for its owner alone, and
    /// jwks.json, for the service
    #[arg(long, value_name = "FOLDER", default_value = ".dev/token")]
    pub folder: PathBuf,
    /// Who the token is from: issuer_url of the service's settings
    #[arg(long, value_name = "URL", default_value = "http://localhost/dev-token", value_parser = issuer)]
    pub issuer: String,
    /// Who the token is about (sub)
    #[arg(long, value_name = "NAME", default_value = "developer")]
    pub subject: String,
    /// How the service names the caller (email)
    #[arg(long, value_name = "ADDRESS", default_value = "developer@localhost")]
    pub email: String,
    /// Whom the token is for (aud) [default: nobody in particular]
    #[arg(long, value_name = "NAME")]
    pub audience: Option<String>,
    /// How long it is good for
    #[arg(long, value_name = "TIME", default_value = "8h", value_parser = parse_duration)]
    pub valid_for: Duration,
}

/// An issuer that settings can name: a token of another one is taken nowhere.
fn issuer(text: &str) -> Result<String, String> {
    let checked = crate::auth::issuer_url(text);
    checked.map_err(|fault| format!("no service takes it as issuer_url: it {fault}"))?;
    Ok(text.to_owned())
}
