//! One setting: its type, sources and purpose.

use figment::value::Value;
use humantime_serde::re::humantime::{format_duration, parse_duration};

/// One row of a table of settings.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Name for people; in files with sections its path, with dots.
    pub key: &'static str,
    /// Path in the typed settings; empty if it equals the key.
    pub path: &'static str,
    pub kind: SettingKind,
    /// As text; empty for none.
    pub default: &'static str,
    /// Minimum and maximum, as texts.
    pub range: Option<(&'static str, &'static str)>,
    /// Without the dashes.
    pub flag: Option<&'static str>,
    pub short_flag: Option<char>,
    /// For people.
    pub help: &'static str,
    /// Follows the help text of values without a unit.
    pub unit: &'static str,
    pub status: SettingStatus,
    /// Whether another variable can name a file with the value.
    pub has_file_variable: bool,
}

/// The type of a setting's value.
#[derive(Debug, Clone, Copy)]
pub enum SettingKind {
    /// Any text, even one that looks like a number.
    Text,
    /// A text that is always redacted.
    Secret,
    File,
    /// A whole number.
    Number,
    Bool,
    /// Numbers with units.
    Duration,
    Choice(&'static [&'static str]),
    /// Texts; in one text they are separated by commas.
    List,
    /// Entries with members of their own, only in a file. The documented default applies if there are none.
    Objects,
    /// A text that the product parses; reports contain it as it was written.
    Read(fn(&str) -> Result<Value, String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingStatus {
    Used,
    /// A reload applies a new value.
    Reloaded,
    /// This is the older name of another setting.
    Renamed(&'static str),
    /// It no longer has an effect. The text says what to do instead.
    Gone(&'static str),
}

/// A used setting whose path equals its key.
pub const fn row(
    key: &'static str,
    kind: SettingKind,
    default: &'static str,
    help: &'static str,
) -> Setting {
    Setting {
        key,
        path: "",
        kind,
        default,
        range: None,
        flag: None,
        short_flag: None,
        help,
        unit: "",
        status: SettingStatus::Used,
        has_file_variable: false,
    }
}

impl Setting {
    /// Whether it has an effect under this name.
    pub fn is_used(&self) -> bool {
        use SettingStatus::{Reloaded, Used};
        matches!(self.status, Used | Reloaded)
    }

    /// Its path in the typed settings, if it has one.
    pub(super) fn place(&self) -> Option<&'static str> {
        let path = if self.path.is_empty() {
            self.key
        } else {
            self.path
        };
        self.is_used().then_some(path)
    }

    /// The first part of its key.
    pub fn section(&self) -> &'static str {
        self.key.split('.').next().unwrap_or_default()
    }

    /// Checks a value from a source; variables, flags and INI files provide text.
    ///
    /// # Errors
    /// The expectation, as the rest of a sentence after its name. Secrets are not repeated.
    pub(super) fn check(&self, value: Value) -> Result<Value, String> {
        let (text, is_text) = (written_form(&value), value.as_str().is_some());
        let is_scalar = is_text || value.to_u128().is_some() || value.to_bool().is_some();
        let checked = match self.kind {
            SettingKind::Objects => Some(value),
            SettingKind::Read(read) => Some(read(&text)?),
            SettingKind::Text | SettingKind::Secret | SettingKind::File => {
                let text = is_text.then_some(value);
                return text.ok_or_else(|| "must be a text: put it in quotes".to_owned());
            }
            SettingKind::List => {
                return texts(value).ok_or_else(|| "must be a list of texts".to_owned());
            }
            _ if !is_scalar => None,
            SettingKind::Number => text.parse::<u64>().ok().map(Value::from),
            SettingKind::Bool => match text.to_ascii_lowercase().as_str() {
                "true" | "t" | "1" => Some(Value::from(true)),
                "false" | "f" | "0" => Some(Value::from(false)),
                _ => None,
            },
            SettingKind::Duration => {
                // Without a unit only 0 is unambiguous.
                let time = parse_duration(&text).ok();
                let time = time.filter(|time| is_text || time.is_zero());
                time.map(|time| Value::from(format_duration(time).to_string()))
            }
            SettingKind::Choice(words) => words.contains(&text.as_str()).then_some(value),
        };
        let value = checked.ok_or_else(|| format!("\"{text}\" is not {}", self.expected()))?;
        match self.range {
            Some((least, most))
                if !(amount(least)..=amount(most)).contains(&amount(&written_form(&value))) =>
            {
                Err(format!("\"{text}\" is not between {least} and {most}"))
            }
            _ => Ok(value),
        }
    }

    /// The expected kind of value.
    pub(super) fn expected(&self) -> String {
        match self.kind {
            SettingKind::Choice(words) => format!("one of: {}", words.join(", ")),
            SettingKind::Number => "a whole number".to_owned(),
            SettingKind::Bool => "true or false".to_owned(),
            SettingKind::Duration => "a duration such as 30s, 5m or 1h30m".to_owned(),
            _ => "a text".to_owned(),
        }
    }

    /// The allowed values in Markdown; empty if the type says everything.
    pub(super) fn allowed(&self) -> String {
        match (self.kind, self.range) {
            (_, Some((least, most))) => format!("`{least}` to `{most}`"),
            (SettingKind::Choice(words), None) => {
                let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
                words.join(", ")
            }
            _ => String::new(),
        }
    }
}

/// A number or duration in a comparable form.
fn amount(text: &str) -> Option<u128> {
    let time = || parse_duration(text).map(|time| time.as_nanos()).ok();
    text.parse().ok().or_else(time)
}

fn texts(value: Value) -> Option<Value> {
    if let Some(text) = value.as_str() {
        let items = text.split(',').map(str::trim).filter(|t| !t.is_empty());
        return Some(items.collect::<Vec<_>>().into());
    }
    match &value {
        Value::Array(_, items) if items.iter().all(|item| item.as_str().is_some()) => Some(value),
        _ => None,
    }
}

/// A value as people write it; entries as JSON.
pub(super) fn written_form(value: &Value) -> String {
    match value {
        Value::String(_, text) => text.clone(),
        Value::Array(_, items) if items.iter().all(|item| item.as_str().is_some()) => items
            .iter()
            .map(written_form)
            .collect::<Vec<_>>()
            .join(", "),
        Value::Empty(..) => String::new(),
        value => serde_json::to_string(value).unwrap_or_default(),
    }
}
