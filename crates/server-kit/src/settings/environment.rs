//! Environment variables as a source of settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use figment::value::Value;

use super::fault::SettingFault;
use super::layer::Layer;
use super::setting::Setting;
use super::table::SettingTable;
use crate::files;

/// Largest file with one value, in bytes.
const VALUE_BYTES_MAX: u64 = 64 * 1024;
/// Names that differ by this many letters count as typing errors.
const SLIP_LETTERS_MAX: usize = 2;

type Variables = BTreeMap<String, OsString>;

impl Layer {
    /// Reads the variables. Empty ones count as unset. Unknown ones with the prefix are only noted: Kubernetes
    /// sets some for every Service whose name has the same beginning.
    pub fn of_variables(
        table: &'static SettingTable,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        let set = variables.into_iter().filter(|(_, value)| !value.is_empty());
        let named = set.filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let variables: Variables = named.collect();
        let mut layer = Self::new(table);
        for setting in table.settings {
            layer.put_variables(setting, &variables);
        }
        layer.notes.extend(slips(table, &variables));
        layer
    }

    fn put_variables(&mut self, setting: &'static Setting, variables: &Variables) {
        let own = self.table.variable(setting);
        let common = setting.common_variable.map(str::to_owned);
        let mut is_given = false;
        for name in common.into_iter().chain(own.clone()) {
            if let Some(text) = self.variable(setting, &name, variables) {
                is_given = own.as_ref() == Some(&name);
                self.put(setting, Value::from(text), name);
            }
        }
        let Some(name) = self.table.file_variable(setting) else {
            return;
        };
        let Some(file) = self.variable(setting, &name, variables) else {
            return;
        };
        if is_given {
            let (key, own) = (setting.key, own.unwrap_or_default());
            let text = format!("{key}: {own} and {name} are both set; leave one out");
            return self.faults.push(SettingFault::of_key(key, text));
        }
        let origin = format!("{name}: {file}");
        match value_in(Path::new(file), setting) {
            Ok(value) => self.put(setting, value, origin),
            Err(fault) => self.refuse(setting, &origin, &fault),
        }
    }

    /// The effective text of a variable.
    fn variable<'a>(
        &mut self,
        setting: &Setting,
        name: &str,
        variables: &'a Variables,
    ) -> Option<&'a str> {
        let Some(text) = variables.get(name)?.to_str() else {
            self.refuse(setting, name, "must be a text in UTF-8");
            return None;
        };
        if is_made_by_kubernetes(name, text) {
            self.notes.push(format!(
                "{name} is ignored: Kubernetes sets it for a Service of that name"
            ));
            return None;
        }
        Some(text)
    }
}

/// Notes about variables that look like settings.
fn slips(table: &SettingTable, variables: &Variables) -> Vec<String> {
    let settings = table.settings.iter();
    let known: Vec<_> = settings
        .flat_map(|setting| [table.variable(setting), table.file_variable(setting)])
        .flatten()
        .chain(table.other_variables.iter().map(ToString::to_string))
        .collect();
    let ours = variables
        .keys()
        .filter(|name| name.starts_with(table.prefix));
    let unknown = ours.filter(|name| !known.contains(name));
    let slip = |name: &String| {
        let distance = |known: &str| strsim::damerau_levenshtein(name, known);
        let (letters, meant) = known.iter().map(|k| (distance(k), k)).min()?;
        let said = table.unknown_variable;
        (letters <= SLIP_LETTERS_MAX).then(|| format!("{name} {said}; did you mean {meant}?"))
    };
    unknown.filter_map(slip).collect()
}

/// Kubernetes sets variables for each Service of a namespace: for `hyperfleet-metrics`,
/// `HYPERFLEET_METRICS_PORT=tcp://10.0.0.1:9090`.
fn is_made_by_kubernetes(name: &str, text: &str) -> bool {
    let mut protocols = ["tcp://", "udp://", "sctp://"].into_iter();
    name.ends_with("_PORT") && protocols.any(|protocol| text.starts_with(protocol))
}

/// The value in a file. It may be the wrong file, for instance that of a password, so messages do not repeat
/// its text.
fn value_in(file: &Path, setting: &Setting) -> Result<Value, String> {
    let text = files::read_text(file, VALUE_BYTES_MAX)
        .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let value = setting.check(Value::from(text.trim_end_matches(['\r', '\n'])));
    value.map_err(|_| format!("its content is not {}", setting.expected()))
}
