//! Loads the settings of `hyperfleet-api`, and checks them together.

use std::path::PathBuf;

use figment::Figment;
use figment::providers::Serialized;
use figment::value::Value;
use humantime_serde::re::humantime::format_duration;
use serde::Serialize;

use super::catalogue::{DATABASE_URL, TABLE};
use super::{Loaded, Settings, SettingsArgs, addresses};
use crate::domain::entity_config::EntityConfig;
use hyperfleet_audit::RETENTION_MIN;
use hyperfleet_server_kit::settings::{Layer, SettingFault, host_fault, is_host, shared_ports};

/// The settings that name the database.
pub(super) const DATABASE: [&str; 6] = [
    "database.url",
    "database.host",
    "database.port",
    "database.name",
    "database.username",
    "database.password",
];
/// Default paths of the settings file.
const FILES: [&str; 2] = ["/etc/hyperfleet/config.yaml", "./configs/config.yaml"];

/// Reads all sources; `defaults` apply to settings without any. Faults are kept for [`Loaded::refuse`].
pub fn load(args: &SettingsArgs, defaults: &Settings) -> Loaded {
    let file = file(args).map(|file| Layer::of_yaml(&TABLE, &file));
    let variables = Layer::of_variables(&TABLE, std::env::vars_os());
    let flags = Layer::of_flags(&TABLE, &args.given);
    let mut layers: Vec<_> = file.into_iter().chain([variables, flags]).collect();
    // `DATABASE_URL` counts only if no other source names the database.
    if layers
        .iter()
        .any(|layer| layer.gives(&DATABASE, DATABASE_URL))
    {
        for layer in &mut layers {
            layer.drop_variable("database.url", DATABASE_URL, "the settings name a database");
        }
    }
    let defaults = Figment::from(Serialized::defaults(defaults));
    let mut loaded = Loaded::of(&TABLE, &defaults, layers);
    let settings = &loaded.settings;
    let mut faults = Vec::from_iter(database_named_twice(&loaded));
    faults.extend(addresses::of_database(&settings.database));
    faults.extend(addresses::of_issuers(&settings.server.jwt));
    faults.extend(settings.faults().into_iter().map(SettingFault::of_values));
    loaded.faults.extend(faults);
    show_entries(&mut loaded);
    loaded
}

/// The setting that names the database, even with its default value, and its source.
pub fn named_database(loaded: &Loaded) -> Option<(&'static str, &str)> {
    let mut keys = DATABASE.into_iter();
    keys.find_map(|key| Some((key, loaded.origin(key)?)))
}

/// The named file, or else the first existing default path.
fn file(args: &SettingsArgs) -> Option<PathBuf> {
    let variable = || std::env::var_os("HYPERFLEET_CONFIG").filter(|path| !path.is_empty());
    let named = args
        .config
        .clone()
        .or_else(|| variable().map(PathBuf::from));
    let usual = || FILES.iter().map(PathBuf::from).find(|file| file.is_file());
    named.or_else(usual)
}

/// Shows entries with their defaults, kinds with their required adapters, and the database's URL without its password.
/// Entries hold no secrets.
fn show_entries(loaded: &mut Loaded) {
    fn json(entries: impl Serialize) -> String {
        let value = Value::serialize(entries).ok();
        let json = value.and_then(|value| serde_json::to_string(&value).ok());
        json.unwrap_or_default()
    }
    let server = &loaded.settings.server;
    let (issuers, dimensions) = (json(&server.jwt.configs), json(&server.tenant.dimensions));
    let kinds = kinds(loaded.settings.entities.as_deref().unwrap_or_default());
    let url = loaded.settings.database.url.as_ref();
    let url = url.filter(|_| loaded.are_known(&["database.url"]));
    let url = url.and_then(addresses::without_password);
    loaded.show("server.jwt.configs", issuers);
    loaded.show("server.tenant.dimensions", dimensions);
    let workloads = loaded.settings.fleet.adapter.workloads.len();
    loaded.show("fleet.adapter.workloads", format!("{workloads} workloads"));
    loaded.show("entities", kinds);
    if let Some(url) = url {
        loaded.show_open("database.url", url);
    }
}

/// Kinds with their required adapters.
fn kinds(entities: &[EntityConfig]) -> String {
    let kind = |entity: &EntityConfig| match &entity.required_adapters[..] {
        [] => entity.kind.clone(),
        adapters => format!("{} ({})", entity.kind, adapters.join(", ")),
    };
    entities.iter().map(kind).collect::<Vec<_>>().join(", ")
}

fn database_named_twice(loaded: &Loaded) -> Option<SettingFault> {
    let url = loaded.origin_with_line("database.url")?;
    let mut parts = DATABASE.iter().skip(1);
    let (part, origin) = parts.find_map(|key| Some((key, loaded.origin_with_line(key)?)))?;
    let text = format!(
        "database.url (from {url}) and {part} (from {origin}) both name a database; leave one out"
    );
    Some(SettingFault::of_key("database.url", text))
}

impl Settings {
    /// Faults of valid values that contradict each other or make no sense.
    pub(super) fn faults(&self) -> Vec<String> {
        let (server, metrics, health) = (&self.server, &self.metrics, &self.health);
        let mut faults = Vec::new();
        if let Some(kept) = self.audit.retention
            && kept < RETENTION_MIN
        {
            faults.push(format!(
                "audit.retention is {}: set it to at least {}, or leave it out to keep entries for ever",
                format_duration(kept),
                format_duration(RETENTION_MIN),
            ));
        }
        let mut hosts = vec![
            ("server.host", &server.host),
            ("metrics.host", &metrics.host),
            ("health.host", &health.host),
        ];
        let database = &self.database;
        // A path: the folder of PostgreSQL's socket.
        if !database.host.starts_with('/') {
            hosts.push(("database.host", &database.host));
        }
        let urls = "; a URL of the database belongs in database.url";
        faults.extend(
            hosts
                .iter()
                .filter_map(|(key, host)| host_fault(key, host, urls)),
        );
        let name = &server.hostname;
        if !name.is_empty() && !is_host(name) {
            faults.push(format!(
                "server.hostname is {name:?}: give the name of a host, or an address"
            ));
        }
        if database.url.is_none() && database.name.trim().is_empty() {
            faults.push("database.name is empty: name the database".to_owned());
        }
        faults.extend(shared_ports(&[
            ("server", &server.host, server.port),
            ("health", &health.host, health.port),
            ("metrics", &metrics.host, metrics.port),
        ]));
        if self.tracing.enabled && self.tracing.service_name.is_empty() {
            faults.push("tracing.service_name is empty: traces need a name".to_owned());
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::entity_config::built_in;

    #[test]
    fn the_built_in_kinds_are_shown_as_they_are() {
        let shown = TABLE.find("entities").unwrap().default;
        assert_eq!(shown, kinds(&built_in()));
    }

    #[test]
    fn what_may_be_a_url_with_a_password_is_not_repeated() {
        for text in ["postgres://u:hush@h/n", "u:hush@h", "http://u:hush@h"] {
            let mut settings = Settings::default();
            settings.server.host = text.to_owned();
            settings.database.host = text.to_owned();
            let said = settings.faults().join("\n");
            assert_eq!(said.matches("it looks like a URL").count(), 2, "{said}");
            assert!(!said.contains("hush"), "{said}");
        }
    }
}
