//! Loads the settings of `hyperfleet-api`.

use std::path::PathBuf;

use anyhow::Context as _;
use figment::Figment;
use figment::providers::Serialized;

use super::catalogue::TABLE;
use super::{Health, Jwt, Loaded, Settings, SettingsArgs};
use hyperfleet_server_kit::ending::Misuse;
use hyperfleet_server_kit::settings::Sources;

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

/// Reads all sources; `defaults` apply to settings without any.
///
/// # Errors
///
/// Every error of the sources.
pub fn load(args: &SettingsArgs, defaults: &Settings) -> anyhow::Result<Loaded> {
    merged(sources(args), defaults).context(Misuse)
}

/// Reads only the section `health`.
///
/// # Errors
///
/// Every error of this section. An error elsewhere in a file that was edited since the start says nothing about the
/// running instance.
pub fn load_health(args: &SettingsArgs) -> anyhow::Result<Health> {
    let loaded = merged(sources(args).only("health"), &Settings::default())?;
    Ok(loaded.settings.health)
}

fn sources(args: &SettingsArgs) -> Sources {
    let sources = Sources::new(&TABLE);
    let sources = match file(args) {
        Some(file) => sources.yaml(&file),
        None => sources,
    };
    let sources = sources
        .common_variable("tracing.service_name", "OTEL_SERVICE_NAME")
        .variables(std::env::vars_os())
        .flags(&args.flag_values);
    sources.fallback_variable("database.url", "DATABASE_URL", &DATABASE)
}

fn merged(sources: Sources, defaults: &Settings) -> anyhow::Result<Loaded> {
    let loaded: Loaded = sources.load(&Figment::from(Serialized::defaults(defaults)))?;
    let mut parts = DATABASE.iter().skip(1);
    let part = parts.find_map(|key| Some((key, loaded.origin(key)?)));
    let both = loaded
        .origin("database.url")
        .and(part)
        .map(|(part, origin)| {
            format!("database.url and {part} (from {origin}) both name a database; leave one out")
        });
    let errors = both
        .into_iter()
        .chain(open_passwords(&loaded.settings.server.jwt));
    loaded.refuse(errors)?;
    Ok(loaded)
}

/// The errors of issuers whose addresses have a password: messages show them.
fn open_passwords(jwt: &Jwt) -> impl Iterator<Item = String> {
    let addresses = jwt.configs.iter().enumerate().flat_map(|(index, issuer)| {
        [
            ("issuer_url", &issuer.issuer_url),
            ("jwk_cert_url", &issuer.jwk_cert_url),
        ]
        .map(|(name, address)| (index, name, address))
    });
    let open = addresses.filter(|(.., address)| address.contains('@'));
    open.map(|(index, name, _)| {
        format!(
            "server.jwt.configs[{index}].{name} must not have a user or a password: it is shown. Write any other @ as %40"
        )
    })
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
