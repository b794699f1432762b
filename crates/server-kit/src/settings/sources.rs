//! The sources of settings. Each puts its values under the keys of the table; later sources override earlier ones.

use std::collections::BTreeMap;

use figment::Figment;
use figment::error::Kind;
use figment::value::Value;
use serde::de::DeserializeOwned;

use super::load::{Configured, Loaded, Values, located, refused};
use super::setting::{Setting, SettingKind, SettingStatus, written_form};
use super::table::{SettingTable, likeliest};

/// The values of all sources, unchecked.
pub struct Sources {
    pub(super) table: &'static SettingTable,
    values: BTreeMap<&'static str, Unchecked>,
    /// Each with the key or section that it is about; empty if it is about a source.
    pub(super) errors: Vec<(String, String)>,
    /// Warnings.
    pub(super) notes: Vec<String>,
}

struct Unchecked {
    setting: &'static Setting,
    value: Value,
    origin: String,
}

impl Sources {
    pub fn new(table: &'static SettingTable) -> Self {
        Self {
            table,
            values: BTreeMap::new(),
            errors: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds command-line flags.
    #[must_use]
    pub fn flags(mut self, values: &[(&'static Setting, String)]) -> Self {
        for (setting, text) in values {
            let origin = format!("--{}", setting.flag.unwrap_or_default());
            self.put(setting, Value::from(text.as_str()), origin);
        }
        self
    }

    /// Adds a value. An empty one counts as unset, unless the setting is a text.
    pub(super) fn put(&mut self, setting: &'static Setting, value: Value, origin: String) {
        use SettingKind::{Bool, Choice, Duration, Number};
        let is_empty = match &value {
            Value::Empty(..) => true,
            Value::String(_, text) => text.is_empty(),
            _ => false,
        };
        let is_text = !matches!(setting.kind, Bool | Choice(_) | Duration | Number);
        if is_empty && !(is_text && value.as_str().is_some()) {
            return;
        }
        let unchecked = Unchecked {
            setting,
            value,
            origin,
        };
        self.values.insert(setting.key, unchecked);
    }

    /// Notes an invalid value or key. The text follows its name.
    pub(super) fn refuse(&mut self, key: &str, origin: &str, text: &str) {
        let error = format!("{key} (from {origin}): {text}");
        self.errors.push((key.to_owned(), error));
    }

    /// Whether a source has this setting.
    pub(super) fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// Drops everything beside a section, with its errors. Errors of entire sources remain.
    #[must_use]
    pub fn only(mut self, section: &str) -> Self {
        let is_inside = |key: &str| key.split('.').next() == Some(section);
        self.values.retain(|key, _| is_inside(key));
        self.errors
            .retain(|(key, _)| key.is_empty() || is_inside(key));
        self
    }

    /// Checks the values, and merges them over the defaults.
    ///
    /// # Errors
    /// Every error of every source; of a list of entries only the first, because types find it.
    pub fn load<S: DeserializeOwned>(mut self, defaults: &Figment) -> anyhow::Result<Loaded<S>> {
        let mut values = self.checked();
        let settings = loop {
            let placed = values
                .values()
                .filter_map(|configured| Some((configured.setting.place()?, &configured.value)));
            let merged = placed.fold(defaults.clone(), Figment::merge);
            match merged.extract() {
                Ok(settings) => break settings,
                Err(errors) => errors
                    .into_iter()
                    .for_each(|error| self.take_out(&error, &mut values)),
            }
        };
        let errors = self.errors.into_iter().map(|(_, error)| error);
        refused(&errors.collect::<Vec<_>>())?;
        Ok(Loaded {
            settings,
            notes: self.notes,
            table: self.table,
            values,
        })
    }

    /// Notes an error that the types have found, and drops its setting, so that the types find the next one.
    fn take_out(&mut self, error: &figment::Error, values: &mut Values) {
        let message = located(&described(error), values);
        let path = error.path.join(".");
        let count = values.len();
        values.retain(|_, configured| {
            let place = configured.setting.place();
            !place.is_some_and(|place| path.starts_with(place))
        });
        assert!(values.len() < count, "the defaults do not fit: {message}");
        self.errors.push((String::new(), message));
    }

    /// The valid values, under the current names of their settings.
    fn checked(&mut self) -> Values {
        let mut valid = BTreeMap::new();
        let values = std::mem::take(&mut self.values);
        let keys: Vec<_> = values.keys().copied().collect();
        for (
            key,
            Unchecked {
                setting,
                value,
                origin,
            },
        ) in values
        {
            let current = match setting.status {
                SettingStatus::Gone(instead) => {
                    let note = format!("{key} (from {origin}) has no effect: {instead}");
                    self.notes.push(note);
                    continue;
                }
                SettingStatus::Renamed(now) => {
                    self.notes
                        .push(format!("{key} (from {origin}) is now {now}"));
                    self.table.find(now).unwrap_or(setting)
                }
                _ => setting,
            };
            let written = written_form(&value);
            let value = match current.check(value) {
                Ok(value) => value,
                Err(error) => {
                    self.refuse(key, &origin, &error);
                    continue;
                }
            };
            let is_replaced = current.key != key && keys.contains(&current.key);
            if is_replaced {
                continue;
            }
            let text = match current.kind {
                SettingKind::Read(_) => written,
                _ => written_form(&value),
            };
            let configured = Configured {
                setting: current,
                value,
                text,
                origin,
            };
            valid.insert(current.key, configured);
        }
        valid
    }
}

/// An error that the types have found, with the path of the member and the likeliest name.
fn described(error: &figment::Error) -> String {
    let step = |step: &String| match step.parse::<usize>() {
        Ok(index) => format!("[{index}]"),
        Err(_) => format!(".{step}"),
    };
    let path: String = error.path.iter().map(step).collect();
    let path = path.trim_start_matches('.');
    match &error.kind {
        Kind::UnknownField(name, known) => {
            let hint = match likeliest(name, known.iter().copied()) {
                Some(meant) => format!("did you mean {meant}?"),
                None => format!("expected one of: {}", known.join(", ")),
            };
            let is_last = error.path.last() == Some(name);
            let member = if is_last {
                String::new()
            } else {
                format!(".{name}")
            };
            format!("{path}{member}: there is no such member; {hint}")
        }
        kind => format!("{path}: {kind}"),
    }
}
