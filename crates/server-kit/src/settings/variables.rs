//! Environment variables as a source of settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use figment::value::Value;

use super::setting::Setting;
use super::sources::Sources;
use super::table::SettingTable;
use crate::files;

/// Largest file with one value, in bytes.
const VALUE_BYTES_MAX: u64 = 64 * 1024;
/// Names that differ by this many letters count as typing errors.
const TYPOS_MAX: usize = 2;

type Variables = BTreeMap<String, OsString>;

impl Sources {
    /// Adds the variables of the settings, and the variables that name a file with the value. Empty ones count as
    /// unset. Unknown ones with the prefix are only noted: Kubernetes sets some for every Service whose name has the
    /// same beginning.
    #[must_use]
    pub fn variables(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let named = variables.into_iter();
        let named = named.filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let variables: Variables = named.collect();
        for setting in self.table.settings {
            let [own, file] = [
                self.table.variable(setting),
                self.table.file_variable(setting),
            ]
            .map(|name| {
                let name = name?;
                let text = self.text(setting, &name, variables.get(&name)?)?;
                Some((name, text))
            });
            match (own, file) {
                (Some((own, _)), Some((file, _))) => {
                    let text = format!("{own} and {file} are both set; leave one out");
                    self.refuse(setting.key, &own, &text);
                }
                (Some((name, text)), None) => self.put(setting, text.into(), name),
                (None, Some((name, file))) => self.put_file(setting, &name, &file),
                (None, None) => {}
            }
        }
        let misspelt = misspelt(self.table, &variables);
        self.notes.extend(misspelt);
        self
    }

    /// Adds a variable that many programs read.
    #[must_use]
    pub fn common_variable(mut self, key: &str, name: &str) -> Self {
        if let (Some(setting), Some(value)) = (self.table.find(key), std::env::var_os(name))
            && let Some(text) = self.text(setting, name, &value)
        {
            self.put(setting, text.into(), name.to_owned());
        }
        self
    }

    /// Adds a variable that many programs read, if no source has one of these settings.
    #[must_use]
    pub fn fallback_variable(mut self, key: &str, name: &str, unless: &[&str]) -> Self {
        let is_set = std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let replacing = unless.iter().find(|key| self.has(key));
        match replacing {
            None => self.common_variable(key, name),
            Some(other) => {
                if is_set {
                    self.notes
                        .push(format!("{name} is ignored: {other} is set"));
                }
                self
            }
        }
    }

    /// The text of a variable, if it counts.
    fn text(&mut self, setting: &Setting, name: &str, value: &OsString) -> Option<String> {
        let Some(text) = value.to_str() else {
            self.refuse(setting.key, name, "must be a text in UTF-8");
            return None;
        };
        if is_made_by_kubernetes(name, text) {
            let note = format!("{name} is ignored: Kubernetes sets it for a Service of that name");
            self.notes.push(note);
            return None;
        }
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Adds the value in a file. It may be the wrong file, for instance a password file, so messages do not repeat
    /// its text.
    fn put_file(&mut self, setting: &'static Setting, name: &str, file: &str) {
        let origin = format!("{name}: {file}");
        let value = match files::read_text(Path::new(file), VALUE_BYTES_MAX) {
            Ok(text) => setting
                .check(Value::from(text.trim_end_matches(['\r', '\n'])))
                .map_err(|_| format!("its content is not {}", setting.expected())),
            Err(error) => Err(format!("cannot read {file}: {error}")),
        };
        match value {
            Ok(value) => self.put(setting, value, origin),
            Err(error) => self.refuse(setting.key, &origin, &error),
        }
    }
}

/// Notes about variables that look like settings.
fn misspelt(table: &SettingTable, variables: &Variables) -> Vec<String> {
    let settings = table.settings.iter();
    let of_settings = settings.flat_map(|s| [table.variable(s), table.file_variable(s)]);
    let others = table.other_variables.iter().map(ToString::to_string);
    let known: Vec<_> = of_settings.flatten().chain(others).collect();
    let unknown = variables
        .keys()
        .filter(|name| name.starts_with(table.prefix) && !known.contains(name));
    let note = |name: &String| {
        let distance = |known: &String| strsim::damerau_levenshtein(name, known);
        let meant = known.iter().min_by_key(|known| distance(known))?;
        (distance(meant) <= TYPOS_MAX)
            .then(|| format!("{name} is not a setting; did you mean {meant}?"))
    };
    unknown.filter_map(note).collect()
}

/// Kubernetes sets variables for each Service of a namespace: for `hyperfleet-metrics`,
/// `HYPERFLEET_METRICS_PORT=tcp://10.0.0.1:9090`.
fn is_made_by_kubernetes(name: &str, text: &str) -> bool {
    let mut protocols = ["tcp://", "udp://", "sctp://"].into_iter();
    name.ends_with("_PORT") && protocols.any(|protocol| text.starts_with(protocol))
}
