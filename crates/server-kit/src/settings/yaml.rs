//! A YAML file as a source of settings.

use std::path::Path;

use anyhow::{Context as _, bail};
use figment::value::{Dict, Value};

use super::sources::Sources;
use crate::files;

/// Largest file, in bytes.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

impl Sources {
    /// Adds a YAML file. An unreadable or invalid one is an error.
    #[must_use]
    pub fn yaml(mut self, path: &Path) -> Self {
        match document(path) {
            Ok(dict) => self.walk("", dict, &path.display().to_string()),
            Err(error) => self.errors.push((String::new(), format!("{error:#}"))),
        }
        self
    }

    /// Adds the settings of a section; empty settings and sections count as unset.
    fn walk(&mut self, above: &str, dict: Dict, origin: &str) {
        for (name, value) in dict {
            let key = if above.is_empty() {
                name
            } else {
                format!("{above}.{name}")
            };
            let is_below = |other: &str| {
                let rest = other.strip_prefix(key.as_str());
                rest.is_some_and(|rest| rest.starts_with('.'))
            };
            let below = self.table.settings.iter().find(|s| is_below(s.key));
            match (self.table.find(&key), below, value) {
                (Some(setting), _, value) => self.put(setting, value, origin.to_owned()),
                (None, Some(_), Value::Empty(..)) => {}
                (None, Some(_), Value::Dict(_, inner)) => self.walk(&key, inner, origin),
                (None, Some(below), _) => {
                    let text = format!("must hold settings, such as {}", below.key);
                    self.refuse(&key, origin, &text);
                }
                (None, None, _) => {
                    let advice = self.table.advice(&key);
                    self.refuse(&key, origin, &format!("there is no such setting{advice}"));
                }
            }
        }
    }
}

/// The settings in a file.
fn document(path: &Path) -> anyhow::Result<Dict> {
    let text = files::read_text(path, BYTES_MAX)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let said = || format!("{} is not a settings file", path.display());
    // Through a value, which refuses repeated keys.
    let mut document: yaml_serde::Value = yaml_serde::from_str(&text).with_context(said)?;
    document.apply_merge().with_context(said)?;
    match document {
        yaml_serde::Value::Null => Ok(Dict::new()),
        yaml_serde::Value::Mapping(_) => yaml_serde::from_value(document).with_context(said),
        // It may be a password: its text is not repeated.
        _ => bail!("{}: it holds no `key: value`", said()),
    }
}
