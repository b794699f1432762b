//! Loads the settings, and checks those that belong together.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::keys::TABLE;
use super::sections::{Settings, base};
use super::{Loaded, PAGE_SIZE_MAX};
use hyperfleet_server_kit::settings::{Layer, SettingFault};

/// Default file, read if it exists.
const FILE: &str = "/etc/fleet/fleet.conf";
/// Name of the service in traces, a standard variable of OpenTelemetry.
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";

/// Reads the given file, or the default one if it exists, and the environment, which takes precedence. Faults
/// are kept for [`Loaded::refuse`].
pub fn load(named: Option<&Path>) -> Loaded {
    // A file that cannot be checked is reported, not ignored.
    let is_there = |file: &PathBuf| file.try_exists().unwrap_or(true);
    let usual = || Some(PathBuf::from(FILE)).filter(is_there);
    let file = named.map(Path::to_owned).or_else(usual);
    let mut loaded = from_sources(file.as_deref(), std::env::vars_os());
    if let Some(name) = std::env::var(SERVICE_NAME).ok().filter(|n| !n.is_empty()) {
        loaded.settings.tracing.service_name = name;
    }
    loaded
}

/// The settings of a file and variables.
pub(super) fn from_sources(
    file: Option<&Path>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Loaded {
    let variables = Layer::of_variables(&TABLE, variables);
    let mut file = file.map(|file| Layer::of_ini(&TABLE, file));
    if let Some(file) = &mut file {
        file.forget_replaced_by(&variables);
    }
    let layers = file.into_iter().chain([variables]).collect();
    let mut loaded = Loaded::of(&TABLE, &base(), layers);
    let settings = &mut loaded.settings;
    settings.settle();
    if settings.page_size > PAGE_SIZE_MAX {
        loaded.notes.push(format!(
            "token_limit: {} is above the maximum of a page; using {PAGE_SIZE_MAX}",
            settings.page_size
        ));
        settings.page_size = PAGE_SIZE_MAX;
    }
    loaded.faults.extend(together(&loaded.settings));
    loaded
}

/// Faults of settings that are valid one by one, but not together.
fn together(settings: &Settings) -> Vec<SettingFault> {
    let (etcd, listen) = (&settings.etcd, &settings.listen);
    let mut faults = Vec::new();
    let mut fault = |key: &str, text: &str| faults.push(SettingFault::of_key(key, text.to_owned()));
    let is_set = |path: &Path| !path.as_os_str().is_empty();
    if is_set(&etcd.password_file) && !settings.etcd_password.is_empty() {
        let text = "etcd_password and etcd_password_file are both set; leave one out";
        fault("etcd_password_file", text);
    }
    if is_set(&listen.cert_file) != is_set(&listen.key_file) {
        let text = "listen_cert_file and listen_key_file go together: set both, or none";
        fault("listen_cert_file", text);
    }
    if is_set(&listen.client_ca_file) && !is_set(&listen.cert_file) {
        let text = "listen_client_ca_file needs listen_cert_file and listen_key_file: client certificates require TLS";
        fault("listen_client_ca_file", text);
    }
    if listen.is_anonymous && is_set(&listen.client_ca_file) {
        let text =
            "listen_anonymous and listen_client_ca_file contradict each other: leave one out";
        fault("listen_anonymous", text);
    }
    faults
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
