//! From the four sources to one value.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use figment::providers::{Format as _, Serialized, Yaml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};
use humantime_serde::re::humantime::format_duration;

use super::{Settings, SettingsArgs};

/// What every variable begins with.
const PREFIX: &str = "HYPERFLEET_";
/// Where a file is looked for when none is named.
const FILES: [&str; 2] = ["/etc/hyperfleet/config.yaml", "./configs/config.yaml"];
/// Most connections that can be asked for: more than any PostgreSQL serves well.
const CONNECTIONS_MAX: usize = 10_000;
/// Shortest time for which audit entries are kept, if not for ever: a slip must not empty the trail.
const RETENTION_MIN: Duration = Duration::from_hours(1);
/// The settings that the environment can give; `entities` is for the file alone. Texts stay texts
/// even where they look like numbers, as passwords may.
const VARIABLES: [(&str, Kind); 18] = [
    ("server.host", Kind::Text),
    ("server.port", Kind::Plain),
    ("server.jwt.enabled", Kind::Plain),
    ("server.openapi_schema_path", Kind::Text),
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
        let defaults = Figment::from(Serialized::defaults(defaults));
        let settings: Self = defaults.merge(given(args)?).extract().map_err(told)?;
        settings.check()?;
        Ok(settings)
    }

    /// Whether anything says which database to use, be it what the default says, too.
    pub fn names_a_database(args: &SettingsArgs) -> anyhow::Result<bool> {
        let given = given(args)?;
        let mut names = ["url", "host", "port", "name", "username", "password"].iter();
        Ok(names.any(|name| {
            let value = given.find_value(&format!("database.{name}"));
            value.is_ok_and(|value| value.as_str() != Some(""))
        }))
    }

    fn check(&self) -> anyhow::Result<()> {
        let connections = self.database.pool.max_connections;
        if !(1..=CONNECTIONS_MAX).contains(&connections) {
            bail!(
                "database.pool.max_connections is {connections}: set it to between 1 and {CONNECTIONS_MAX}"
            );
        }
        if let Some(kept) = self.audit.retention
            && kept < RETENTION_MIN
        {
            bail!(
                "audit.retention is {}: set it to at least {}, or leave it out to keep entries for ever",
                format_duration(kept),
                format_duration(RETENTION_MIN),
            );
        }
        Ok(())
    }
}

/// Everything but the defaults.
fn given(args: &SettingsArgs) -> anyhow::Result<Figment> {
    let mut figment = Figment::new();
    if let Some(file) = file(args) {
        // Refused here: figment would leave a file out that is not there.
        std::fs::metadata(&file).with_context(|| format!("cannot read {}", file.display()))?;
        figment = figment.merge(Yaml::file_exact(file));
    }
    if let Some(url) = variable("DATABASE_URL") {
        figment = figment.merge(("database.url", url));
    }
    Ok(figment.merge(Environment).merge(args))
}

/// What is wrong with which setting, and where that is to be mended.
fn told(error: figment::Error) -> anyhow::Error {
    let faults = error.into_iter().map(|fault| {
        let setting = fault.path.join(".");
        let source = fault.metadata.as_ref().map(|m| match &m.source {
            Some(figment::Source::File(file)) => file.display().to_string(),
            _ if m.name == Environment::NAME => variable_of(&setting),
            _ => m.name.to_string(),
        });
        let setting = if setting.is_empty() {
            "settings"
        } else {
            &setting
        };
        match source {
            Some(source) => format!("{setting} (from {source}): {}", fault.kind),
            None => format!("{setting}: {}", fault.kind),
        }
    });
    anyhow!("{}", faults.collect::<Vec<_>>().join("\n"))
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

impl Environment {
    const NAME: &str = "environment";
}

/// The variable that gives a setting.
fn variable_of(setting: &str) -> String {
    format!("{PREFIX}{}", setting.replace('.', "_").to_uppercase())
}

impl Provider for Environment {
    fn metadata(&self) -> Metadata {
        Metadata::named(Self::NAME)
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let mut root = Dict::new();
        for (setting, kind) in VARIABLES {
            let Some(text) = variable(&variable_of(setting)) else {
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
