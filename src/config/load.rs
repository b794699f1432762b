//! From the four sources to one value.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use figment::providers::{Format as _, Serialized, Yaml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::{Settings, SettingsArgs};

/// What every variable begins with.
const PREFIX: &str = "HYPERFLEET_";
/// Where a file is looked for when none is named.
const FILES: [&str; 2] = ["/etc/hyperfleet/config.yaml", "./configs/config.yaml"];
/// The settings that the environment can give; `entities` is for the file alone. Texts stay texts
/// even where they look like numbers, as passwords may.
const VARIABLES: [(&str, Kind); 17] = [
    ("server.host", Kind::Text),
    ("server.port", Kind::Plain),
    ("server.jwt.enabled", Kind::Plain),
    ("database.url", Kind::Text),
    ("database.host", Kind::Text),
    ("database.port", Kind::Plain),
    ("database.name", Kind::Text),
    ("database.username", Kind::Text),
    ("database.password", Kind::Text),
    ("database.ssl.mode", Kind::Text),
    ("database.ssl.root_cert_file", Kind::Text),
    ("database.pool.max_connections", Kind::Plain),
    ("database.pool.request_timeout", Kind::Text),
    ("logging.level", Kind::Text),
    ("logging.format", Kind::Text),
    ("lists.include_deleted", Kind::Plain),
    ("audit.retention", Kind::Text),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A text.
    Text,
    /// A number or a truth value.
    Plain,
}

impl Settings {
    /// Reads all sources. `defaults` stand where none of them says anything.
    ///
    /// # Errors
    ///
    /// A file that was named and cannot be read; a key that is not known; a value that does not
    /// fit. The text says which source it came from.
    pub fn load(args: &SettingsArgs, defaults: &Self) -> anyhow::Result<Self> {
        let mut figment = Figment::from(Serialized::defaults(defaults));
        if let Some(file) = file(args) {
            // Refused here: figment would leave a file out that is not there.
            std::fs::metadata(&file).with_context(|| format!("cannot read {}", file.display()))?;
            figment = figment.merge(Yaml::file_exact(file));
        }
        if let Some(url) = variable("DATABASE_URL") {
            figment = figment.merge(("database.url", url));
        }
        let settings: Self = figment.merge(Environment).merge(args).extract()?;
        if settings.database.pool.max_connections == 0 {
            anyhow::bail!("database.pool.max_connections is 0: set it to at least 1");
        }
        Ok(settings)
    }
}

fn file(args: &SettingsArgs) -> Option<PathBuf> {
    let named = args.config.clone();
    let named = named.or_else(|| variable("HYPERFLEET_CONFIG").map(PathBuf::from));
    if named.is_some() {
        return named;
    }
    let mut usual = FILES.iter().map(Path::new);
    usual.find(|file| file.is_file()).map(Path::to_owned)
}

/// `HYPERFLEET_SERVER_PORT` for `server.port`; empty ones count as unset.
struct Environment;

impl Provider for Environment {
    fn metadata(&self) -> Metadata {
        Metadata::named("environment variables HYPERFLEET_*")
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let mut root = Dict::new();
        for (setting, kind) in VARIABLES {
            let name = format!("{PREFIX}{}", setting.replace('.', "_").to_uppercase());
            let Some(text) = variable(&name) else {
                continue;
            };
            let value = match kind {
                Kind::Text => Value::from(text),
                Kind::Plain => text.parse().unwrap_or_else(|_| Value::from(text.as_str())),
            };
            insert(&mut root, setting, value);
        }
        Ok(Map::from([(Profile::Default, root)]))
    }
}

/// Puts a value at a dotted path.
pub(super) fn insert(dict: &mut Dict, key: &str, value: Value) {
    let Some((first, rest)) = key.split_once('.') else {
        dict.insert(key.to_owned(), value);
        return;
    };
    let entry = dict
        .entry(first.to_owned())
        .or_insert_with(|| Value::from(Dict::new()));
    if let Value::Dict(_, inner) = entry {
        insert(inner, rest, value);
    }
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
