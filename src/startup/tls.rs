//! TLS of the API's three listeners.

use std::path::Path;

use rustls::ServerConfig;

use crate::config::{Settings, Tls};
use hyperfleet_server_kit::errors::ErrorList;
use hyperfleet_server_kit::tls::{self, Files, Watched};

/// TLS of each listener that has it.
#[derive(Default)]
pub(super) struct Configs {
    pub(super) api: Option<ServerConfig>,
    pub(super) health: Option<ServerConfig>,
    pub(super) metrics: Option<ServerConfig>,
    /// Warnings: odd settings that stop nothing.
    pub(super) notes: Vec<String>,
    pub(super) watched: Vec<Watched>,
}

/// Reads the certificates of every listener that has TLS.
///
/// # Errors
///
/// Every listener whose pair is not named, is unreadable, or does not fit together.
pub(super) fn load(settings: &Settings) -> anyhow::Result<Configs> {
    let (mut configs, mut errors) = (Configs::default(), ErrorList::default());
    let Configs {
        api,
        health,
        metrics,
        notes,
        watched,
    } = &mut configs;
    let server = &settings.server.tls;
    for (slot, listener, path, tls) in [
        (api, "api", "server.tls", server),
        (health, "health", "health.tls", &settings.health.tls),
        (metrics, "metrics", "metrics.tls", &settings.metrics.tls),
    ] {
        if !tls.enabled {
            continue;
        }
        let files = or_inherited(path, tls, server, notes);
        if let Some((config, watch)) = errors.part(serve(listener, path, files)) {
            *slot = Some(config);
            watched.push(watch);
        }
    }
    errors.refuse()?;
    Ok(configs)
}

/// The files of a listener, or the files of the API if it has none, as in the Go HyperFleet API.
fn or_inherited<'a>(path: &str, tls: &'a Tls, server: &'a Tls, notes: &mut Vec<String>) -> &'a Tls {
    let is_unset = |file: &Path| file.as_os_str().is_empty();
    let is_inherited = path != "server.tls" && is_unset(&tls.cert_file) && is_unset(&tls.key_file);
    if !is_inherited || is_unset(&server.cert_file) {
        return tls;
    }
    notes.push(format!(
        "{path} names no files: it uses the files of server.tls"
    ));
    server
}

fn serve(listener: &'static str, path: &str, tls: &Tls) -> anyhow::Result<(ServerConfig, Watched)> {
    let mut errors = ErrorList::default();
    for (name, file) in [("cert_file", &tls.cert_file), ("key_file", &tls.key_file)] {
        if file.as_os_str().is_empty() {
            let text = format!("{path}.enabled is true, but {path}.{name} is not set");
            errors.0.push(text);
        }
    }
    errors.refuse()?;
    let (cert, key) = (format!("{path}.cert_file"), format!("{path}.key_file"));
    tls::serve(&Files {
        listener,
        pair: path,
        cert: (&cert, &tls.cert_file),
        key: (&key, &tls.key_file),
        client_ca: None,
    })
}
