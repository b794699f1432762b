//! Certificates of the listeners, read again when their files change.
//!
//! Orchestrators replace them by turning a symbolic link, so it is what the files hold that counts,
//! not when they were written.

mod identity;
mod watch;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::version::{TLS12, TLS13};

use crate::config::{Settings, Tls};
use identity::Identity;
use watch::Watched;

/// TLS of each listener that has it.
#[derive(Default)]
pub(super) struct Configs {
    pub(super) api: Option<ServerConfig>,
    pub(super) health: Option<ServerConfig>,
    pub(super) metrics: Option<ServerConfig>,
    /// What is odd, but stops nothing.
    pub(super) notes: Vec<String>,
    watched: Vec<Watched>,
}

/// Reads the certificates of every listener that has TLS.
///
/// # Errors
///
/// Every listener whose pair is not named, cannot be read, or does not fit together.
pub(super) fn load(settings: &Settings) -> anyhow::Result<Configs> {
    let mut configs = Configs::default();
    let mut faults = String::new();
    let server = &settings.server.tls;
    for (listener, path, tls) in [
        ("api", "server.tls", server),
        ("health", "health.tls", &settings.health.tls),
        ("metrics", "metrics.tls", &settings.metrics.tls),
    ] {
        if !tls.enabled {
            continue;
        }
        let files = or_inherited(path, tls, server, &mut configs.notes);
        let (identity, texts) = match Identity::load(listener, path, files) {
            Ok((identity, texts)) => (Arc::new(identity), texts),
            Err(fault) => {
                let _ = writeln!(faults, "{fault:#}");
                continue;
            }
        };
        let config = Some(config(identity.clone())?);
        match listener {
            "api" => configs.api = config,
            "health" => configs.health = config,
            _ => configs.metrics = config,
        }
        configs.watched.push(Watched::new(identity, texts));
    }
    if !faults.is_empty() {
        bail!("{}", faults.trim_end());
    }
    Ok(configs)
}

/// The files of a listener; those of the API where it has none, as in the older service.
fn or_inherited<'a>(path: &str, tls: &'a Tls, server: &'a Tls, notes: &mut Vec<String>) -> &'a Tls {
    let is_unset = |file: &Path| file.as_os_str().is_empty();
    let is_inherited = path != "server.tls" && is_unset(&tls.cert_file) && is_unset(&tls.key_file);
    if !is_inherited || is_unset(&server.cert_file) {
        return tls;
    }
    notes.push(format!(
        "{path} names no files: those of server.tls are used"
    ));
    server
}

/// TLS 1.2 or newer with HTTP/1.1, by `ring`.
fn config(identity: Arc<Identity>) -> anyhow::Result<ServerConfig> {
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(identity);
    Ok(config)
}

impl Configs {
    /// Looks for changed files from now on, as long as the process lives.
    pub(super) fn watch(&mut self) -> std::io::Result<()> {
        let watched = std::mem::take(&mut self.watched);
        if watched.is_empty() {
            return Ok(());
        }
        watch::start(watched)
    }
}
