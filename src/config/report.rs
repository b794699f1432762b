//! What the settings come to, for people: each value with its source, secrets left out.

use figment::Figment;
use figment::providers::Serialized;
use figment::value::{Dict, Value};
use serde_json::json;

use super::catalogue::{CATALOGUE, Kind, Setting, shown};
use super::layers::Origin;
use super::secret::REDACTED;
use super::{Loaded, Settings};

/// One setting as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    /// Its key.
    pub key: &'static str,
    /// Its value as people write it; a secret's is left out.
    pub value: String,
    /// Where it comes from.
    pub origin: Origin,
}

impl Loaded {
    /// Every setting, in the order of the catalogue.
    #[must_use]
    pub fn effective(&self) -> Vec<Effective> {
        let values = values(&self.settings);
        let effective = |setting: &Setting| Effective {
            key: setting.key,
            value: setting_shown(setting, values.as_ref()),
            origin: self
                .origins
                .get(setting.key)
                .cloned()
                .unwrap_or(Origin::Default),
        };
        CATALOGUE.iter().map(effective).collect()
    }

    /// The settings that are not defaults, on one line, for the log.
    #[must_use]
    pub fn summary(&self) -> String {
        let given = self.effective().into_iter();
        let given = given.filter(|setting| setting.origin != Origin::Default);
        let said: Vec<_> = given.map(|s| format!("{}={}", s.key, s.value)).collect();
        said.join(" ")
    }
}

/// Every setting as a JSON array of objects with `key`, `value` and `source`.
#[must_use]
pub fn as_json(effective: &[Effective]) -> serde_json::Value {
    let entry =
        |e: &Effective| json!({"key": e.key, "value": e.value, "source": e.origin.to_string()});
    effective.iter().map(entry).collect()
}

/// Every setting as a table.
#[must_use]
pub fn as_table(effective: &[Effective]) -> String {
    let keys = effective.iter().map(|e| e.key.len()).max().unwrap_or(0);
    let values = effective.iter().map(|e| e.value.len()).max().unwrap_or(0);
    let values = values.min(40);
    let head = format!("{:keys$}  {:values$}  SOURCE\n", "SETTING", "VALUE");
    let row = |e: &Effective| format!("{:keys$}  {:values$}  {}\n", e.key, e.value, e.origin);
    std::iter::once(head)
        .chain(effective.iter().map(row))
        .collect()
}

/// The settings as one tree of values.
fn values(settings: &Settings) -> Option<Dict> {
    Figment::from(Serialized::defaults(settings)).extract().ok()
}

/// The value of one setting in the tree.
fn find<'a>(dict: &'a Dict, key: &str) -> Option<&'a Value> {
    match key.split_once('.') {
        None => dict.get(key),
        Some((first, rest)) => match dict.get(first)? {
            Value::Dict(_, inner) => find(inner, rest),
            _ => None,
        },
    }
}

fn setting_shown(setting: &Setting, values: Option<&Dict>) -> String {
    let value = values.and_then(|values| find(values, setting.key));
    let text = match value {
        None | Some(Value::Empty(..)) => String::new(),
        // Nothing in them is secret. Kinds are many: `openapi` shows what they come to.
        Some(value @ Value::Array(_, entries)) if setting.kind == Kind::Objects => {
            match setting.key {
                "entities" => format!("{} kinds", entries.len()),
                _ => serde_json::to_string(value).unwrap_or_default(),
            }
        }
        Some(value) => shown(value),
    };
    if setting.kind == Kind::Secret && !text.is_empty() {
        REDACTED.to_owned()
    } else {
        text
    }
}

/// The default of a setting, as people write it; empty if there is none.
pub(super) fn default_of(setting: &Setting) -> String {
    thread_local! {
        // Asked for once for each flag, variable and row of a table.
        static DEFAULTS: Option<Dict> = values(&Settings::default());
    }
    DEFAULTS.with(|defaults| setting_shown(setting, defaults.as_ref()))
}

/// The tables of docs/configuration.md: one for each section.
#[must_use]
pub fn reference() -> String {
    let sections = CATALOGUE.chunk_by(|one, other| one.section() == other.section());
    sections.flat_map(table_of).collect()
}

fn table_of(section: &[Setting]) -> Vec<String> {
    let name = section.first().map_or("", Setting::section);
    let mut lines = vec![
        format!("\n### {name}\n\n"),
        "| setting | variable | flag | default | what it is |\n".to_owned(),
        "| --- | --- | --- | --- | --- |\n".to_owned(),
    ];
    lines.extend(section.iter().map(row_of));
    lines
}

fn row_of(setting: &Setting) -> String {
    let code = |text: String| match text.as_str() {
        "" => text,
        _ => format!("`{text}`"),
    };
    let variables = [setting.variable(), setting.file_variable()];
    let variables: Vec<_> = variables.into_iter().flatten().map(code).collect();
    let flag = setting.flag.map_or_else(String::new, |f| format!("--{f}"));
    let default = match setting.kind {
        Kind::Objects => String::new(),
        _ => default_of(setting),
    };
    format!(
        "| `{}` | {} | {} | {} | {} |\n",
        setting.key,
        variables.join(", "),
        code(flag),
        code(default),
        setting.help,
    )
}
