//! Certificates of the listeners, read again when their files change.
//!
//! Orchestrators replace them by turning a symbolic link, so it is what the files hold that counts,
//! not when they were written.

mod clients;
mod identity;
mod watch;

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::NoServerSessionStorage;
use rustls::version::{TLS12, TLS13};

use crate::config::{Settings, Tls};
use identity::Identity;
pub(crate) use watch::Watched;

pub(crate) use clients::authorities;
pub(crate) use identity::{Files, check_pair};

/// TLS of each listener that has it.
#[derive(Default)]
pub(crate) struct Configs {
    pub(crate) api: Option<ServerConfig>,
    pub(crate) health: Option<ServerConfig>,
    pub(crate) metrics: Option<ServerConfig>,
    /// What is odd, but stops nothing.
    pub(crate) notes: Vec<String>,
    watched: Vec<Watched>,
}

/// Reads the certificates of every listener that has TLS.
///
/// # Errors
///
/// Every listener whose pair is not named, cannot be read, or does not fit together.
pub(crate) fn load(settings: &Settings) -> anyhow::Result<Configs> {
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
        let with_tls = named(path, files).and_then(|()| {
            let (cert, key) = (format!("{path}.cert_file"), format!("{path}.key_file"));
            serve(&Files {
                listener,
                pair: path,
                cert: (&cert, &files.cert_file),
                key: (&key, &files.key_file),
                client_ca: None,
            })
        });
        let (config, watched) = match with_tls {
            Ok(with_tls) => with_tls,
            Err(fault) => {
                let _ = writeln!(faults, "{fault:#}");
                continue;
            }
        };
        let config = Some(config);
        match listener {
            "api" => configs.api = config,
            "health" => configs.health = config,
            _ => configs.metrics = config,
        }
        configs.watched.push(watched);
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

/// Checks that the pair is named at all.
fn named(path: &str, tls: &Tls) -> anyhow::Result<()> {
    for (name, file) in [("cert_file", &tls.cert_file), ("key_file", &tls.key_file)] {
        if file.as_os_str().is_empty() {
            bail!("{path}.enabled is true, but {path}.{name} is not set");
        }
    }
    Ok(())
}

/// TLS of one listener by these files, and what looks after them.
///
/// # Errors
///
/// One cannot be read, or they do not fit together.
pub(crate) fn serve(files: &Files<'_>) -> anyhow::Result<(ServerConfig, Watched)> {
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
    let clients = identity.clients();
    let asks = clients.is_some();
    let config = match clients {
        Some(clients) => config.with_client_cert_verifier(clients),
        None => config.with_no_client_auth(),
    };
    let mut config = config.with_cert_resolver(identity);
    if asks {
        // Who goes on with an earlier session is not asked again, though its authority may be gone meanwhile.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(config)
}

/// Looks for changed files from now on, as long as the process lives.
pub(crate) fn watch(watched: Vec<Watched>) -> std::io::Result<()> {
    if watched.is_empty() {
        return Ok(());
    }
    watch::start(watched)
}

impl Configs {
    /// Looks for changed files from now on, as long as the process lives.
    pub(crate) fn watch(&mut self) -> std::io::Result<()> {
        watch(std::mem::take(&mut self.watched))
    }
}
