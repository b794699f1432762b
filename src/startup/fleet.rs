//! The registry of fleet's API, served beside the service's own.

use anyhow::Context as _;
use hyperfleet_fleet::start::etcd::{self, SettingNames};
use hyperfleet_fleet::start::{RegistryLocation, registry_prefix};

use crate::config;
use hyperfleet_server_kit::errors::ErrorList;

/// The service's names for the settings of etcd.
const ETCD: SettingNames = SettingNames {
    endpoints: "fleet.etcd.endpoints",
    username: "fleet.etcd.username",
    password: "fleet.etcd.password_file",
    ca_file: "fleet.etcd.ca_file",
    cert_file: "fleet.etcd.cert_file",
    key_file: "fleet.etcd.key_file",
};

/// The registry of units and machines. Reads the files that the settings name.
///
/// # Errors
///
/// Every error, with its setting.
pub(super) fn registry_location(
    settings: &config::FleetSettings,
) -> anyhow::Result<RegistryLocation> {
    let etcd = etcd::settings(&settings.etcd, &config::Secret::default(), &ETCD);
    let prefix = registry_prefix("fleet.etcd.key_prefix", &settings.etcd.key_prefix);
    let mut errors = ErrorList::default();
    let parts = errors.part(etcd).zip(errors.part(prefix));
    errors.refuse()?;
    let (etcd, prefix) = parts.context("every missing part has an error")?;
    Ok(RegistryLocation {
        etcd,
        prefix,
        page_size: settings.page_size,
    })
}
