//! A YAML file as a source of settings.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use figment::value::{Dict, Value};

use super::fault::SettingFault;
use super::layer::Layer;
use super::lines::Lines;
use super::table::SettingTable;
use crate::files;

/// Largest file, in bytes.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

impl Layer {
    /// Reads a YAML file. An unreadable or invalid one is a fault.
    pub fn of_yaml(table: &'static SettingTable, path: &Path) -> Self {
        let mut layer = Self::new(table);
        match document(path) {
            Ok((dict, lines)) => {
                layer.lines = Arc::new(lines);
                layer.walk("", dict, path);
            }
            Err(error) => {
                let fault = SettingFault::of_source(format!("{error:#}"));
                layer.faults.push(fault);
            }
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
            let mut below = self.table.settings.iter().filter(|s| is_below(s.key, &key));
            let (setting, below) = (self.table.find(&key), below.next());
            let said = match (setting, below, value) {
                // An empty setting or section.
                (Some(_), _, Value::Empty(..)) | (_, Some(_), Value::Empty(..)) => continue,
                (Some(setting), _, value) => {
                    self.put(setting, value, path.display().to_string());
                    continue;
                }
                (None, Some(_), Value::Dict(_, inner)) => {
                    self.walk(&key, inner, path);
                    continue;
                }
                (None, Some(below), _) => format!("must hold settings, such as {}", below.key),
                (None, None, _) => {
                    format!("there is no such setting{}", self.table.advice(&key))
                }
            };
            let origin = self.lines.located(&key, &path.display().to_string());
            let text = format!("{key} (from {origin}): {said}");
            self.faults.push(SettingFault::of_key(key, text));
        }
    }
}

fn is_below(key: &str, section: &str) -> bool {
    key.strip_prefix(section)
        .is_some_and(|rest| rest.starts_with('.'))
}

/// The settings in a file, and their lines.
fn document(path: &Path) -> anyhow::Result<(Dict, Lines)> {
    let text = files::read_text(path, BYTES_MAX)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let said = || format!("{} is not a settings file", path.display());
    // Through a value, which refuses repeated keys.
    let mut document: yaml_serde::Value = yaml_serde::from_str(&text).with_context(said)?;
    document.apply_merge().with_context(said)?;
    let dict = match document {
        yaml_serde::Value::Null => Dict::new(),
        yaml_serde::Value::Mapping(_) => yaml_serde::from_value(document).with_context(said)?,
        // It may be a password: its text is not repeated.
        _ => bail!("{}: it holds no `key: value`", said()),
    };
    Ok((dict, Lines::of_yaml(&text)))
}
