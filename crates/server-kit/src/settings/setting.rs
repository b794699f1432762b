//! One setting: what it takes, where it can come from, and what it is for.

use std::time::Duration;

use figment::value::Value;
use humantime_serde::re::humantime::{format_duration, parse_duration};

/// One row of a table of settings.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Its name, in files with sections the path with dots.
    pub key: &'static str,
    /// Where its value is in the typed settings; empty if it has no place there.
    pub path: &'static str,
    /// What it takes.
    pub kind: SettingKind,
    /// As text; empty for none.
    pub default: &'static str,
    /// What values are allowed.
    pub range: SettingRange,
    /// Its flag, without the dashes.
    pub flag: Option<&'static str>,
    /// Its flag of one letter.
    pub short_flag: Option<char>,
    /// What it is for, for people.
    pub help: &'static str,
    /// What follows the help text where values have no unit.
    pub unit: &'static str,
    /// Whether it still means something.
    pub status: SettingStatus,
    /// Whether another variable can name a file that holds the value.
    pub has_file_variable: bool,
    /// A variable that many programs read; its own comes before it.
    pub common_variable: Option<&'static str>,
}

/// What a setting takes.
#[derive(Debug, Clone, Copy)]
pub enum SettingKind {
    /// Any text; stays text even where it looks like a number.
    Text,
    /// A text that is never shown.
    Secret,
    /// A path.
    File,
    /// A whole number.
    Number,
    /// `true` or `false`.
    Bool,
    /// Numbers with units.
    Duration,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Texts; divided by commas where they come as one.
    List,
    /// Entries with members of their own, in the file alone. The default is what is shown of none.
    Objects,
    /// A text that the product reads; shown as it was written.
    Read(ReadFn),
}

/// Reads a text, or says what it must be.
pub type ReadFn = fn(&str) -> Result<Value, String>;

/// What values are allowed.
#[derive(Debug, Clone, Copy)]
pub enum SettingRange {
    /// All.
    Any,
    /// Numbers from the first to the second.
    Numbers(u128, u128),
    /// Times from the first to the second.
    Times(Duration, Duration),
}

/// What a setting means today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingStatus {
    /// It has an effect.
    Used,
    /// A reload takes a new value, too.
    Reloaded,
    /// It is checked, and has no effect in this version.
    WithoutEffect,
    /// The older name of this setting.
    Renamed(&'static str),
    /// It means nothing any more; what to do instead.
    Gone(&'static str),
}

/// A setting that is used, at the path that its key says.
pub const fn row(
    key: &'static str,
    kind: SettingKind,
    default: &'static str,
    help: &'static str,
) -> Setting {
    Setting {
        key,
        path: key,
        kind,
        default,
        range: SettingRange::Any,
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
    /// Mounts it at this path, which becomes its key, too.
    pub const fn at(self, path: &'static str) -> Self {
        let key = path;
        Self { key, path, ..self }
    }

    /// Gives it another key, not another path.
    pub const fn named(self, key: &'static str) -> Self {
        Self { key, ..self }
    }

    /// Gives it a flag.
    pub const fn flag(self, flag: &'static str) -> Self {
        let flag = Some(flag);
        Self { flag, ..self }
    }

    /// Gives it a flag of one letter, too.
    pub const fn short_flag(self, letter: char) -> Self {
        let short_flag = Some(letter);
        Self { short_flag, ..self }
    }

    /// Describes it otherwise.
    pub const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    /// Allows these numbers.
    pub const fn between(self, least: u128, most: u128) -> Self {
        let range = SettingRange::Numbers(least, most);
        Self { range, ..self }
    }

    /// Allows these times.
    pub const fn lasting(self, least: Duration, most: Duration) -> Self {
        let range = SettingRange::Times(least, most);
        Self { range, ..self }
    }

    /// Has a function read it, whose values may lack a unit that is told behind the help text.
    pub const fn written_as(self, read: ReadFn, default: &'static str, unit: &'static str) -> Self {
        let kind = SettingKind::Read(read);
        Self {
            kind,
            default,
            unit,
            ..self
        }
    }

    /// Gives it a variable with the name of a file to read it from.
    pub const fn file_variable(self) -> Self {
        let has_file_variable = true;
        Self {
            has_file_variable,
            ..self
        }
    }

    /// Has a variable that many programs read give it, too.
    pub const fn common_variable(self, name: &'static str) -> Self {
        let common_variable = Some(name);
        Self {
            common_variable,
            ..self
        }
    }

    /// Says what it means today. What is not used has no place in the typed settings.
    pub const fn status(self, status: SettingStatus) -> Self {
        let path = match status {
            SettingStatus::Used | SettingStatus::Reloaded => self.path,
            _ => "",
        };
        Self {
            path,
            status,
            ..self
        }
    }

    /// Whether it has an effect under this name.
    pub fn is_used(&self) -> bool {
        matches!(self.status, SettingStatus::Used | SettingStatus::Reloaded)
    }

    /// What it is for, for people.
    pub(super) fn described(&self) -> String {
        let reload = match self.status {
            SettingStatus::Reloaded => "; taken by a reload",
            _ => "",
        };
        format!("{}{}{reload}", self.help, self.unit)
    }

    /// The first part of its key.
    pub fn section(&self) -> &'static str {
        self.key.split('.').next().unwrap_or_default()
    }

    /// Its value as a source gives it: what variables, flags and INI files give is text.
    ///
    /// # Errors
    ///
    /// What it must be, to follow its name. Secrets are not repeated.
    pub(super) fn check(&self, value: Value) -> Result<Value, String> {
        let text = shown(&value);
        let is_text = value.as_str().is_some();
        let refused = Err(format!("\"{text}\" is not {}", self.expected()));
        match self.kind {
            SettingKind::Objects => Ok(value),
            SettingKind::Read(read) => read(&text),
            SettingKind::Text | SettingKind::Secret | SettingKind::File if is_text => Ok(value),
            SettingKind::Text | SettingKind::Secret | SettingKind::File => {
                Err("must be a text: put it in quotes".to_owned())
            }
            SettingKind::List => texts(value),
            SettingKind::Number if is_text || value.to_u128().is_some() => {
                text.parse::<u64>().map(Value::from).or(refused)
            }
            SettingKind::Bool if is_text || value.to_bool().is_some() => {
                match text.to_ascii_lowercase().as_str() {
                    "true" | "t" | "1" => Ok(Value::from(true)),
                    "false" | "f" | "0" => Ok(Value::from(false)),
                    _ => refused,
                }
            }
            SettingKind::Duration => match parse_duration(&text) {
                // Without a unit only 0 means the same to everybody.
                Ok(time) if is_text || time.is_zero() => {
                    Ok(Value::from(format_duration(time).to_string()))
                }
                _ => refused,
            },
            SettingKind::Choice(words) if words.contains(&text.as_str()) => Ok(value),
            SettingKind::Number | SettingKind::Bool | SettingKind::Choice(_) => refused,
        }
    }

    /// What a value of it is.
    pub(super) fn expected(&self) -> String {
        let expected = match self.kind {
            SettingKind::Text | SettingKind::Secret | SettingKind::File | SettingKind::Read(_) => {
                "a text"
            }
            SettingKind::Number => "a whole number",
            SettingKind::Bool => "true or false",
            SettingKind::Duration => "a duration such as 30s, 5m or 1h30m",
            SettingKind::Choice(words) => return format!("one of: {}", words.join(", ")),
            SettingKind::List => "a list of texts",
            SettingKind::Objects => "a list of entries",
        };
        expected.to_owned()
    }

    /// A checked value outside of its limits, with the least and the most that is allowed.
    pub(super) fn out_of_range(&self, value: &Value) -> Option<[String; 3]> {
        match self.range {
            SettingRange::Any => None,
            SettingRange::Numbers(least, most) => {
                let number = value.to_u128()?;
                let is_allowed = (least..=most).contains(&number);
                (!is_allowed).then(|| [number, least, most].map(|number| number.to_string()))
            }
            SettingRange::Times(least, most) => {
                let time = parse_duration(value.as_str()?).ok()?;
                let is_allowed = (least..=most).contains(&time);
                (!is_allowed).then(|| [time, least, most].map(|t| format_duration(t).to_string()))
            }
        }
    }
}

fn texts(value: Value) -> Result<Value, String> {
    if let Some(text) = value.as_str() {
        let items = text.split(',').map(str::trim).filter(|t| !t.is_empty());
        return Ok(items.collect::<Vec<_>>().into());
    }
    match &value {
        Value::Array(_, items) if items.iter().all(|item| item.as_str().is_some()) => Ok(value),
        _ => Err("must be a list of texts".to_owned()),
    }
}

/// A value as people write it.
pub(super) fn shown(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    if let Some(truth) = value.to_bool() {
        return truth.to_string();
    }
    if let Some(number) = value.to_u128() {
        return number.to_string();
    }
    match value {
        Value::Array(_, items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Num(_, number) => number.to_f64().map_or_else(String::new, |n| n.to_string()),
        Value::Dict(_, _) => "an object".to_owned(),
        _ => String::new(),
    }
}
