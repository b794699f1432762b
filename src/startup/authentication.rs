//! Builds the authentication of callers from the settings.

use anyhow::bail;

use crate::config::Jwt;
use hyperfleet_auth::{Authentication, Authenticator, Issuer, Pace};
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::errors::ErrorList;

/// The configured issuers; `None` if callers need no token.
///
/// Reads the files that the settings name, and nothing else.
///
/// # Errors
///
/// Every setting that is unusable, with its path.
pub(super) fn issuers(jwt: &Jwt) -> anyhow::Result<Option<Vec<Issuer>>> {
    if !jwt.enabled {
        return Ok(None);
    }
    if jwt.configs.is_empty() {
        bail!(
            "server.jwt.configs requires at least one issuer when jwt is enabled: name one in the \
             file (docs/guides/authentication.md). To serve without authentication, set \
             --server-jwt-enabled=false, or HYPERFLEET_SERVER_JWT_ENABLED=false, or \
             server.jwt.enabled: false in the file"
        );
    }
    let issuers = hyperfleet_auth::issuers(&jwt.configs, Pace::default()).map_err(|errors| {
        let errors = errors.iter().map(|error| format!("server.jwt.{error}"));
        ErrorList(errors.collect())
    })?;
    Ok(Some(issuers))
}

/// Starts to accept the tokens of these issuers.
pub(super) fn start(issuers: Option<Vec<Issuer>>, clock: &Clock) -> Authentication {
    match issuers {
        Some(issuers) => Authentication::On(Authenticator::start(issuers, Pace::default(), clock)),
        None => Authentication::Off,
    }
}
