//! The sources of settings, each as a layer of values by key. Every value is checked against the
//! catalogue as it is read, so that all faults of all sources are told at once.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use figment::value::{Dict, Map, Value};
use figment::{Metadata, Profile, Provider};

use super::SettingsArgs;
use super::catalogue::{CATALOGUE, Setting, setting};
use super::load::CUSTOM;
use super::retired;

/// Largest settings file, in bytes.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Largest file with one value, in bytes.
const VALUE_BYTES_MAX: u64 = 64 * 1024;
/// How like a known name another one must be to be taken for a slip.
const LIKENESS_MIN: f64 = 0.8;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// A settings file.
    File(PathBuf),
    /// A variable.
    Variable(String),
    /// The file that a variable names.
    FileOf {
        /// The variable.
        variable: String,
        /// The file.
        file: PathBuf,
    },
    /// A flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(file) => write!(f, "{}", file.display()),
            Self::Variable(variable) => f.write_str(variable),
            Self::FileOf { variable, file } => write!(f, "{variable}: {}", file.display()),
            Self::Flag(flag) => write!(f, "--{flag}"),
        }
    }
}

/// What one source says.
#[derive(Debug, Default)]
pub(super) struct Layer {
    pub(super) values: BTreeMap<&'static str, (Value, Origin)>,
    /// What it says by older names.
    pub(super) older: BTreeMap<&'static str, (Value, Origin)>,
    /// What is wrong in it, with where.
    pub(super) faults: Vec<String>,
    /// What is odd, but stops nothing.
    pub(super) notes: Vec<String>,
}

impl Layer {
    pub(super) fn put(
        &mut self,
        setting: &'static Setting,
        value: Result<Value, String>,
        origin: Origin,
    ) {
        match value {
            Ok(value) => {
                self.values.insert(setting.key, (value, origin));
            }
            Err(fault) => {
                let key = setting.key;
                self.faults.push(format!("{key} (from {origin}): {fault}"));
            }
        }
    }

    /// What it says by older names, as a layer of its own; it does not say it any more.
    pub(super) fn take_older(&mut self) -> Option<Self> {
        let values = std::mem::take(&mut self.older);
        (!values.is_empty()).then(|| Self {
            values,
            ..Self::default()
        })
    }

    /// The settings file.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is no YAML.
    pub(super) fn of_file(path: &Path) -> anyhow::Result<Self> {
        let text = read(path, FILE_BYTES_MAX)?;
        let said = || format!("{} is not a settings file", path.display());
        // By way of a value: it refuses a key that stands twice.
        let mut document: yaml_serde::Value = yaml_serde::from_str(&text).with_context(said)?;
        document.apply_merge().with_context(said)?;
        let mut layer = Self::default();
        if document.is_null() {
            return Ok(layer);
        }
        let mut dict: Dict = yaml_serde::from_value(document).with_context(said)?;
        retired::from_file(&mut dict, path, &mut layer);
        layer.walk("", dict, path);
        Ok(layer)
    }

    fn walk(&mut self, above: &str, dict: Dict, path: &Path) {
        for (name, value) in dict {
            let key = if above.is_empty() {
                name
            } else {
                format!("{above}.{name}")
            };
            let is_section = || CATALOGUE.iter().any(|s| is_below(s.key, &key));
            match (setting(&key), value) {
                // A section, or a setting, about which nothing is said.
                (_, Value::Empty(..)) if setting(&key).is_some() || is_section() => {}
                (Some(setting), value) => {
                    self.put(setting, setting.check(value), Origin::File(path.to_owned()));
                }
                (None, Value::Dict(_, inner)) if is_section() => self.walk(&key, inner, path),
                (None, _) if is_section() => self.faults.push(format!(
                    "{key} (from {}): must hold settings, such as {}",
                    path.display(),
                    CATALOGUE
                        .iter()
                        .find(|s| is_below(s.key, &key))
                        .map_or("", |s| s.key),
                )),
                (None, _) => self.faults.push(unknown(&key, path)),
            }
        }
    }

    /// The environment. Empty variables count as unset.
    pub(super) fn of_environment() -> Self {
        let mut layer = Self::default();
        retired::from_environment(&mut layer);
        if let Some(url) = variable(CUSTOM)
            && let Some(setting) = setting("database.url")
        {
            let origin = Origin::Variable(CUSTOM.to_owned());
            layer.put(setting, setting.read(&url), origin);
        }
        if let Some(name) = variable("OTEL_SERVICE_NAME")
            && let Some(setting) = setting("tracing.service_name")
        {
            let origin = Origin::Variable("OTEL_SERVICE_NAME".to_owned());
            layer.put(setting, setting.read(&name), origin);
        }
        for setting in CATALOGUE {
            let Some(name) = setting.variable() else {
                continue;
            };
            let given = variable(&name);
            if let Some(text) = &given {
                layer.put(setting, setting.read(text), Origin::Variable(name.clone()));
            }
            if let Some(file_variable) = setting.file_variable()
                && let Some(file) = variable(&file_variable)
            {
                if given.is_some() {
                    layer.faults.push(format!(
                        "{}: {name} and {file_variable} are both set; leave one out",
                        setting.key
                    ));
                    continue;
                }
                let file = PathBuf::from(file);
                let text = read(&file, VALUE_BYTES_MAX).map_err(|error| format!("{error:#}"));
                let value = text.and_then(|t| setting.read(t.trim_end_matches(['\r', '\n'])));
                let origin = Origin::FileOf {
                    variable: file_variable,
                    file,
                };
                layer.put(setting, value, origin);
            }
        }
        layer.notes.extend(misspelt_variables());
        layer
    }

    /// The flags.
    pub(super) fn of_flags(args: &SettingsArgs) -> Self {
        let mut layer = Self::default();
        for (setting, text) in args.given() {
            let flag = setting.flag.unwrap_or_default();
            layer.put(setting, setting.read(text), Origin::Flag(flag));
        }
        layer
    }
}

impl Provider for &Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named("settings")
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let mut root = Dict::new();
        for (key, (value, _)) in &self.values {
            insert(&mut root, key, value.clone());
        }
        Ok(Map::from([(Profile::Default, root)]))
    }
}

/// Puts a value at a dotted path.
fn insert(dict: &mut Dict, key: &str, value: Value) {
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

fn is_below(key: &str, section: &str) -> bool {
    key.strip_prefix(section)
        .is_some_and(|rest| rest.starts_with('.'))
}

fn unknown(key: &str, path: &Path) -> String {
    let sections = CATALOGUE.iter().flat_map(|setting| {
        let dots = setting.key.match_indices('.');
        dots.map(|(at, _)| setting.key.get(..at).unwrap_or_default())
    });
    let known = CATALOGUE.iter().map(|setting| setting.key).chain(sections);
    let meant = match likeliest(key, known) {
        Some(meant) => format!("; did you mean {meant}?"),
        None => "; docs/configuration.md lists what there is".to_owned(),
    };
    format!(
        "{key} (from {}): there is no such setting{meant}",
        path.display()
    )
}

/// What of these is so like a name that it was most likely meant.
pub(super) fn likeliest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.map(|known| (strsim::jaro_winkler(name, known), known));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .map(|(_, known)| known)
}

/// Variables that look like ours and are not. Not refused: Kubernetes sets some for every service
/// whose name begins like ours.
fn misspelt_variables() -> Vec<String> {
    let known: Vec<_> = CATALOGUE
        .iter()
        .flat_map(|s| [s.variable(), s.file_variable()])
        .flatten()
        .chain(["HYPERFLEET_CONFIG".to_owned()])
        .collect();
    let given = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let ours = given.filter(|name| name.starts_with("HYPERFLEET_") && !known.contains(name));
    let ours = ours.filter(|name| !retired::is_variable(name));
    ours.filter_map(|name| {
        let distance = |known: &str| strsim::damerau_levenshtein(&name, known);
        let meant = known.iter().map(|k| (distance(k), k)).min()?;
        (meant.0 <= 2).then(|| format!("{name} is no setting; did you mean {}?", meant.1))
    })
    .collect()
}

fn read(path: &Path, bytes_max: u64) -> anyhow::Result<String> {
    let read = || -> anyhow::Result<String> {
        let mut text = String::new();
        let mut file = std::fs::File::open(path)?.take(bytes_max + 1);
        let bytes = file.read_to_string(&mut text)?;
        anyhow::ensure!(
            bytes as u64 <= bytes_max,
            "it has more than {bytes_max} bytes"
        );
        Ok(text)
    };
    read().with_context(|| format!("cannot read {}", path.display()))
}

/// A variable's value; empty ones count as unset.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
