//! What one source says, each value checked as it is read, so that the faults of all sources are told at once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use figment::value::Value;

use super::fault::SettingFault;
use super::setting::{Setting, SettingKind, SettingStatus, shown};
use super::table::SettingTable;
use super::yaml_lines::YamlLines;

/// A value that a source gives.
#[derive(Clone)]
pub(super) struct Given {
    pub(super) setting: &'static Setting,
    pub(super) value: Value,
    /// As it is shown, unless it is a secret.
    pub(super) text: String,
    /// What of a secret may be shown.
    pub(super) open: Option<String>,
    /// Where it comes from, for people.
    pub(super) origin: String,
    /// The lines of that file.
    lines: Arc<YamlLines>,
}

impl Given {
    /// Where the member at a path comes from, with the line if that is known.
    pub(super) fn origin_of(&self, path: &str) -> String {
        self.lines.located(path, &self.origin)
    }
}

/// Without the value, which may be a secret.
impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Given({})", self.origin)
    }
}

/// Values that are given, by the keys of their settings.
pub(super) type Values = BTreeMap<&'static str, Given>;

/// What one source says, secrets included.
pub struct Layer {
    pub(super) table: &'static SettingTable,
    pub(super) values: Values,
    /// What it says by older names, which is weaker than what any source says by its own.
    pub(super) older: Values,
    pub(super) faults: Vec<SettingFault>,
    /// What is odd, but stops nothing.
    pub(super) notes: Vec<String>,
    /// Of a YAML file.
    pub(super) lines: Arc<YamlLines>,
}

impl Layer {
    pub(super) fn new(table: &'static SettingTable) -> Self {
        Self {
            table,
            values: BTreeMap::new(),
            older: BTreeMap::new(),
            faults: Vec::new(),
            notes: Vec::new(),
            lines: Arc::default(),
        }
    }

    /// What flags say.
    pub fn of_flags(table: &'static SettingTable, given: &[(&'static Setting, String)]) -> Self {
        let mut layer = Self::new(table);
        for (setting, text) in given {
            let origin = format!("--{}", setting.flag.unwrap_or_default());
            layer.put(setting, Value::from(text.as_str()), origin);
        }
        layer
    }

    /// Takes a value as the source has it.
    pub(super) fn put(&mut self, setting: &'static Setting, written: Value, origin: String) {
        let key = setting.key;
        let meant = match setting.status {
            SettingStatus::Gone(instead) => {
                let note = format!("{key} (from {origin}) does nothing: {instead}");
                return self.notes.push(note);
            }
            SettingStatus::Renamed(now) => {
                let note = format!("{key} (from {origin}) is now {now}");
                self.notes.push(note);
                self.table.find(now).unwrap_or(setting)
            }
            _ => setting,
        };
        let mut text = shown(&written);
        let value = match meant.check(written) {
            Ok(value) => value,
            Err(fault) => return self.refuse(setting, &origin, &fault),
        };
        if !matches!(meant.kind, SettingKind::Read(_)) {
            text = shown(&value);
        }
        let is_older = meant.key != key;
        let values = if is_older {
            &mut self.older
        } else {
            &mut self.values
        };
        let setting = meant;
        let given = Given {
            setting,
            value,
            text,
            open: None,
            origin,
            lines: Arc::clone(&self.lines),
        };
        values.insert(setting.key, given);
    }

    /// A value that cannot be used. The fault follows the key.
    pub(super) fn refuse(&mut self, setting: &Setting, origin: &str, fault: &str) {
        let origin = self.lines.located(setting.key, origin);
        let text = format!("{} (from {origin}): {fault}", setting.key);
        let about = match setting.status {
            SettingStatus::Renamed(now) => now,
            _ => setting.key,
        };
        self.faults.push(SettingFault::of_key(about, text));
    }

    /// Whether it gives one of these settings, by another variable than that.
    pub fn gives(&self, keys: &[&str], but: &str) -> bool {
        let mut given = keys.iter().filter_map(|key| self.values.get(key));
        given.any(|given| given.origin != but)
    }

    /// Drops a value that comes from that variable, and notes why.
    pub fn drop_variable(&mut self, key: &str, variable: &str, why: &str) {
        let given = self.values.get(key);
        if given.is_some_and(|given| given.origin == variable) {
            self.values.remove(key);
            self.notes.push(format!("{variable} does not count: {why}"));
        }
    }

    /// Drops the faults of values that another source replaces.
    pub fn forget_replaced_by(&mut self, stronger: &Self) {
        let is_replaced = |fault: &SettingFault| {
            let mut keys = stronger.values.keys();
            keys.any(|key| fault.is_of(key))
        };
        self.faults.retain(|fault| !is_replaced(fault));
    }
}
