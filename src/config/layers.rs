//! The sources of settings, each as a layer of values by key. Every value is checked against the
//! catalogue as it is read, so that all faults of all sources are told at once.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use figment::value::{Dict, Map, Value};
use figment::{Metadata, Profile, Provider};

use super::SettingsArgs;
use super::catalogue::{CATALOGUE, Setting, setting};
use super::fault::Fault;
use super::load::CUSTOM;
use super::retired;
use crate::kit::files;

/// Largest settings file, in bytes.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Largest file with one value, in bytes.
const VALUE_BYTES_MAX: u64 = 64 * 1024;
/// Variables that are no settings of this program alone, with the settings that they stand for.
const CUSTOMS: [(&str, &str); 2] = [
    (CUSTOM, "database.url"),
    ("OTEL_SERVICE_NAME", "tracing.service_name"),
];
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

/// What one source says, secrets included: nothing to be printed.
#[derive(Default)]
pub(super) struct Layer {
    pub(super) values: BTreeMap<&'static str, (Value, Origin)>,
    /// What it says by older names.
    pub(super) older: BTreeMap<&'static str, (Value, Origin)>,
    /// What is wrong in it, with where.
    pub(super) faults: Vec<Fault>,
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
                let text = format!("{key} (from {origin}): {fault}");
                self.faults.push(Fault::of_key(key, text));
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

    /// The settings file. One that cannot be read, or is none, is a fault.
    pub(super) fn of_file(path: &Path) -> Self {
        let mut layer = Self::default();
        match document(path) {
            Ok(mut dict) => {
                retired::from_file(&mut dict, path, &mut layer);
                layer.walk("", dict, path);
            }
            Err(error) => layer.faults.push(Fault::of_source(format!("{error:#}"))),
        }
        layer
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
                (None, _) if is_section() => {
                    let mut below = CATALOGUE.iter().filter(|s| is_below(s.key, &key));
                    let such = below.next().map_or("", |s| s.key);
                    let file = path.display();
                    let text = format!("{key} (from {file}): must hold settings, such as {such}");
                    self.faults.push(Fault::of_key(key, text));
                }
                (None, _) => {
                    let text = unknown(&key, path);
                    self.faults.push(Fault::of_key(key, text));
                }
            }
        }
    }

    /// The environment. Empty variables count as unset.
    pub(super) fn of_environment() -> Self {
        let mut layer = Self::default();
        retired::from_environment(&mut layer);
        for (name, key) in CUSTOMS {
            if let Some(setting) = setting(key)
                && let Some(text) = layer.variable(setting, name)
            {
                let origin = Origin::Variable(name.to_owned());
                layer.put(setting, setting.read(&text), origin);
            }
        }
        for setting in CATALOGUE {
            layer.put_variables(setting);
        }
        layer.notes.extend(misspelt_variables());
        layer
    }

    /// What the variables of one setting say.
    fn put_variables(&mut self, setting: &'static Setting) {
        let Some(name) = setting.variable() else {
            return;
        };
        let given = self.variable(setting, &name);
        let given = given.filter(|text| {
            let is_made = is_made_by_kubernetes(&name, text);
            if is_made {
                self.notes.push(format!(
                    "{name} does not count: Kubernetes sets it for a Service of that name"
                ));
            }
            !is_made
        });
        if let Some(text) = &given {
            self.put(setting, setting.read(text), Origin::Variable(name.clone()));
        }
        let Some(variable) = setting.file_variable() else {
            return;
        };
        let Some(file) = self.variable(setting, &variable).map(PathBuf::from) else {
            return;
        };
        if given.is_some() {
            let key = setting.key;
            let text = format!("{key}: {name} and {variable} are both set; leave one out");
            self.faults.push(Fault::of_key(key, text));
            return;
        }
        let value = value_in(&file, setting);
        self.put(setting, value, Origin::FileOf { variable, file });
    }

    /// A variable's value; empty ones count as unset, and what is no text is a fault of its setting.
    pub(super) fn variable(&mut self, setting: &Setting, name: &str) -> Option<String> {
        let Ok(text) = std::env::var_os(name)?.into_string() else {
            let key = setting.key;
            let text = format!("{key} (from {name}): must be a text in UTF-8");
            self.faults.push(Fault::of_key(key, text));
            return None;
        };
        Some(text).filter(|text| !text.is_empty())
    }

    /// The flags.
    pub(super) fn of_flags(args: &SettingsArgs) -> Self {
        let mut layer = Self::default();
        retired::from_flags(args, &mut layer);
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

/// Kubernetes tells every container in a namespace of its Services: of one that is called
/// `hyperfleet-metrics` by `HYPERFLEET_METRICS_PORT=tcp://10.0.0.1:9090`.
fn is_made_by_kubernetes(name: &str, text: &str) -> bool {
    let mut protocols = ["tcp://", "udp://", "sctp://"].into_iter();
    name.ends_with("_PORT") && protocols.any(|protocol| text.starts_with(protocol))
}

/// The settings that a file holds.
fn document(path: &Path) -> anyhow::Result<Dict> {
    let text = files::read_text(path, FILE_BYTES_MAX)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let said = || format!("{} is not a settings file", path.display());
    // By way of a value: it refuses a key that stands twice.
    let mut document: yaml_serde::Value = yaml_serde::from_str(&text).with_context(said)?;
    document.apply_merge().with_context(said)?;
    match document {
        yaml_serde::Value::Null => Ok(Dict::new()),
        yaml_serde::Value::Mapping(_) => yaml_serde::from_value(document).with_context(said),
        // Somebody's password, perhaps: its text is not repeated.
        _ => bail!("{}: it holds no `key: value`", said()),
    }
}

/// The value that a file holds alone. The file may be another than was meant, that of a password for
/// instance: its text is not repeated.
fn value_in(file: &Path, setting: &Setting) -> Result<Value, String> {
    let text = files::read_text(file, VALUE_BYTES_MAX)
        .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let value = setting.read(text.trim_end_matches(['\r', '\n']));
    value.map_err(|_| format!("what it holds is not {}", setting.kind.expected()))
}
