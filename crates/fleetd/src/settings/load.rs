//! Loads the settings, and checks those that belong together.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::keys::TABLE;
use super::sections::{Settings, base};
use super::{Loaded, PAGE_SIZE_MAX};
use hyperfleet_server_kit::settings::Sources;

/// Default file, read if it exists.
const FILE: &str = "/etc/fleet/fleet.conf";
/// Name of the service in traces, a standard variable of OpenTelemetry.
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";

/// Reads the given file, or the default one if it exists, and the environment, which takes precedence.
///
/// # Errors
/// Every fault of the sources.
pub fn load(named: Option<&Path>) -> anyhow::Result<Loaded> {
    // A file that cannot be checked is reported, not ignored.
    let is_there = |file: &PathBuf| file.try_exists().unwrap_or(true);
    let usual = || Some(PathBuf::from(FILE)).filter(is_there);
    let file = named.map(Path::to_owned).or_else(usual);
    let mut loaded = from_sources(file.as_deref(), std::env::vars_os())?;
    if let Some(name) = std::env::var(SERVICE_NAME).ok().filter(|n| !n.is_empty()) {
        loaded.settings.tracing.service_name = name;
    }
    Ok(loaded)
}

/// The settings of a file and variables.
pub(super) fn from_sources(
    file: Option<&Path>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> anyhow::Result<Loaded> {
    let sources = Sources::new(&TABLE);
    let sources = match file {
        Some(file) => sources.ini(file),
        None => sources,
    };
    let mut loaded: Loaded = sources.variables(variables).load(&base())?;
    let settings = &mut loaded.settings;
    settings.combine();
    if settings.page_size > PAGE_SIZE_MAX {
        loaded.notes.push(format!(
            "token_limit: {} is above the maximum of a page; using {PAGE_SIZE_MAX}",
            settings.page_size
        ));
        settings.page_size = PAGE_SIZE_MAX;
    }
    loaded.refuse(contradictions(&loaded.settings))?;
    Ok(loaded)
}

/// Faults of settings that are valid one by one, but not together.
fn contradictions(settings: &Settings) -> Vec<String> {
    let (etcd, listen) = (&settings.etcd, &settings.listen);
    let is_set = |path: &Path| !path.as_os_str().is_empty();
    let rules = [
        (
            is_set(&etcd.password_file) && !settings.etcd_password.is_empty(),
            "etcd_password and etcd_password_file are both set; leave one out",
        ),
        (
            is_set(&listen.cert_file) != is_set(&listen.key_file),
            "listen_cert_file and listen_key_file go together: set both, or none",
        ),
        (
            is_set(&listen.client_ca_file) && !is_set(&listen.cert_file),
            "listen_client_ca_file needs listen_cert_file and listen_key_file: client certificates require TLS",
        ),
        (
            listen.is_anonymous && is_set(&listen.client_ca_file),
            "listen_anonymous and listen_client_ca_file contradict each other: leave one out",
        ),
    ];
    let broken = rules.into_iter().filter(|(is_broken, _)| *is_broken);
    broken.map(|(_, fault)| fault.to_owned()).collect()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
