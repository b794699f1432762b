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
    /// Words that `kind` does not list, because it parses the text itself. For the reference.
    pub words: &'static [&'static str],
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
    /// A variable that many programs read. The setting's own takes precedence.
    pub common_variable: Option<&'static str>,
}

/// The type of a setting's value.
#[derive(Debug, Clone, Copy)]
pub enum SettingKind {
    /// Any text, even one that looks like a number.
    Text,
    /// A text that is never shown.
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
    /// Entries with members of their own, only in a file. The default is shown if there are none.
    Objects,
    /// A text that the product parses; shown as it was written.
    Read(fn(&str) -> Result<Value, String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingStatus {
    Used,
    /// A reload applies a new value.
    Reloaded,
    /// This is the older name of another setting.
    Renamed(&'static str),
    /// It has no effect any more. The text says what to do instead.
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
        words: &[],
        range: None,
        flag: None,
        short_flag: None,
        help,
        unit: "",
        status: SettingStatus::Used,
        has_file_variable: false,
        common_variable: None,
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
        let (text, is_text) = (shown(&value), value.as_str().is_some());
        let checked = match self.kind {
            SettingKind::Objects => Some(value),
            SettingKind::Read(read) => return read(&text),
            SettingKind::Text | SettingKind::Secret | SettingKind::File => {
                let text = is_text.then_some(value);
                return text.ok_or_else(|| "must be a text: put it in quotes".to_owned());
            }
            SettingKind::List => {
                return texts(value).ok_or_else(|| "must be a list of texts".to_owned());
            }
            SettingKind::Number if is_text || value.to_u128().is_some() => {
                text.parse::<u64>().ok().map(Value::from)
            }
            SettingKind::Bool if is_text || value.to_bool().is_some() => {
                match text.to_ascii_lowercase().as_str() {
                    "true" | "t" | "1" => Some(Value::from(true)),
                    "false" | "f" | "0" => Some(Value::from(false)),
                    _ => None,
                }
            }
            SettingKind::Duration => {
                // Without a unit only 0 is unambiguous.
                let time = parse_duration(&text)
                    .ok()
                    .filter(|t| is_text || t.is_zero());
                time.map(|time| Value::from(format_duration(time).to_string()))
            }
            SettingKind::Choice(words) if words.contains(&text.as_str()) => Some(value),
            SettingKind::Number | SettingKind::Bool | SettingKind::Choice(_) => None,
        };
        checked.ok_or_else(|| format!("\"{text}\" is not {}", self.expected()))
    }

    /// The expected kind of value.
    pub(super) fn expected(&self) -> String {
        let expected = match self.kind {
            SettingKind::Choice(words) => return format!("one of: {}", words.join(", ")),
            SettingKind::Number => "a whole number",
            SettingKind::Bool => "true or false",
            SettingKind::Duration => "a duration such as 30s, 5m or 1h30m",
            SettingKind::List => "a list of texts",
            SettingKind::Objects => "a list of entries",
            _ => "a text",
        };
        expected.to_owned()
    }

    /// The allowed values in Markdown, from what [`Setting::check`] and [`Setting::exceeded`] compare with. Empty if the
    /// type says everything.
    pub(super) fn allowed(&self) -> String {
        let words = match self.kind {
            SettingKind::Choice(words) => words,
            _ => self.words,
        };
        let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
        let range = self
            .range
            .map(|(least, most)| format!("`{least}` to `{most}`"));
        range.unwrap_or_else(|| words.join(", "))
    }

    /// The limits, if a checked value exceeds them.
    pub(super) fn exceeded(&self, value: &Value) -> Option<(&'static str, &'static str)> {
        let (least, most) = self.range?;
        let is_allowed = (amount(least)..=amount(most)).contains(&amount(&shown(value)));
        (!is_allowed).then_some((least, most))
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

/// A value as people write it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(_, text) => text.clone(),
        Value::Char(_, letter) => letter.to_string(),
        Value::Bool(_, truth) => truth.to_string(),
        Value::Num(_, number) => match (number.to_u128(), number.to_f64()) {
            (Some(number), _) => number.to_string(),
            (_, number) => number.map_or_else(String::new, |n| n.to_string()),
        },
        Value::Array(_, items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Dict(_, _) => "an object".to_owned(),
        Value::Empty(..) => String::new(),
    }
}
