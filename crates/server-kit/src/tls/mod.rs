//! Certificates of listeners, read again when their files change.
//!
//! Orchestrators replace them by switching a symbolic link, so their contents are compared, not their
//! modification times.

mod clients;
mod identity;
mod watch;

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::NoServerSessionStorage;
use rustls::version::{TLS12, TLS13};

use identity::Identity;
pub use watch::{Watched, watch};

pub use clients::authorities;
pub use identity::{Files, check_pair};

/// TLS of one listener with these files, and their watch.
///
/// # Errors
/// One cannot be read, or they do not fit together.
pub fn serve(files: &Files<'_>) -> anyhow::Result<(ServerConfig, Watched)> {
    let (identity, texts) = Identity::load(files)?;
    let identity = Arc::new(identity);
    let config = config(identity.clone())?;
    Ok((config, Watched::new(identity, texts)))
}

/// TLS 1.2 or newer with HTTP/1.1, by `ring`.
fn config(identity: Arc<Identity>) -> anyhow::Result<ServerConfig> {
    let provider = Arc::new(ring::default_provider());
    let config =
        ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13, &TLS12])?;
    let clients = identity.clients.clone();
    let asks = clients.is_some();
    let config = match clients {
        Some(clients) => config.with_client_cert_verifier(clients),
        None => config.with_no_client_auth(),
    };
    let mut config = config.with_cert_resolver(identity);
    if asks {
        // A resumed session is not verified again, though its authority may have been removed.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}
