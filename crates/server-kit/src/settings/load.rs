//! Loaded settings, with the source of each value.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, bail};
use figment::value::Value;

use super::setting::{Setting, SettingStatus};
use super::table::SettingTable;
use crate::errors::ErrorList;

/// Valid settings with their sources.
#[derive(Debug, Clone)]
pub struct Loaded<S> {
    pub settings: S,
    /// Warnings about the sources, to be logged.
    pub notes: Vec<String>,
    pub(super) table: &'static SettingTable,
    pub(super) values: Values,
}

/// The values of sources, by the keys of their settings.
pub(super) type Values = BTreeMap<&'static str, Configured>;

/// A valid value from a source.
#[derive(Clone)]
pub(super) struct Configured {
    pub(super) setting: &'static Setting,
    pub(super) value: Value,
    /// The text to show, unless it is a secret.
    pub(super) text: String,
    /// Its source, for people.
    pub(super) origin: String,
}

/// Without the value, which may be a secret.
impl fmt::Debug for Configured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Configured({})", self.origin)
    }
}

/// Keys whose values have changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Those that a reload applies.
    pub at_once: Vec<&'static str>,
    /// Those that need a restart.
    pub at_a_start: Vec<&'static str>,
}

impl<S> Loaded<S> {
    /// The source of a setting that is not at its default.
    pub fn origin(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(|value| value.origin.as_str())
    }

    /// Refuses settings with these errors, which begin with a setting.
    ///
    /// # Errors
    /// All errors, each with the source of its setting.
    pub fn refuse(&self, errors: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
        let errors = errors.into_iter();
        let errors: Vec<_> = errors.map(|error| located(&error, &self.values)).collect();
        refused(&errors)
    }

    /// What is made from the settings.
    ///
    /// # Errors
    /// All its errors.
    pub fn made<T>(&self, make: impl FnOnce(&S) -> anyhow::Result<T>) -> anyhow::Result<T> {
        let mut errors = ErrorList::default();
        let part = errors.part(make(&self.settings));
        self.refuse(errors.0)?;
        part.context("every missing part has an error")
    }

    /// Settings whose values differ from earlier ones.
    pub fn changed_since(&self, before: &Self) -> Changed {
        let text = |loaded: &Self, setting: &Setting| {
            let configured = loaded.values.get(setting.key);
            configured
                .map_or(setting.default, |value| &value.text)
                .to_owned()
        };
        let changed = |status| {
            let rows = self.table.settings.iter().filter(|s| s.status == status);
            let changed = rows.filter(|s| text(self, s) != text(before, s));
            changed.map(|s| s.key).collect()
        };
        Changed {
            at_once: changed(SettingStatus::Reloaded),
            at_a_start: changed(SettingStatus::Used),
        }
    }
}

/// An error with the source of the setting or section that it begins with.
pub(super) fn located(error: &str, values: &Values) -> String {
    let end = error.find([' ', ':', ',']).unwrap_or(error.len());
    let (path, said) = error.split_at(end);
    let is_of = |key: &str| {
        let rests = [path.strip_prefix(key), key.strip_prefix(path)];
        let mut rests = rests.into_iter().flatten();
        rests.any(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    match values.iter().find(|(key, _)| is_of(key)) {
        Some((_, value)) => format!("{path} (from {}){said}", value.origin),
        None => error.to_owned(),
    }
}

/// # Errors
/// All errors, each on a line.
pub(super) fn refused(errors: &[String]) -> anyhow::Result<()> {
    let in_one_line = |error: &String| {
        let lines = error.lines().map(str::trim).filter(|l| !l.is_empty());
        lines.collect::<Vec<_>>().join(" ")
    };
    let errors: Vec<_> = errors.iter().map(in_one_line).collect();
    match &errors[..] {
        [] => Ok(()),
        [one] => bail!("{one}"),
        several => bail!("the settings have faults:\n  - {}", several.join("\n  - ")),
    }
}
