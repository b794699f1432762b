//! The settings of one daemon, and their names in each source.

use figment::Figment;
use figment::value::Value;
use serde::de::DeserializeOwned;

use super::setting::{Setting, SettingKind, SettingStatus};

/// Similarity above which an unknown name counts as a typing error.
const LIKENESS_MIN: f64 = 0.8;

/// Every setting of a daemon.
#[derive(Debug)]
pub struct SettingTable {
    /// In the order of the documentation.
    pub settings: &'static [Setting],
    /// Prefix of the variables.
    pub prefix: &'static str,
    /// Variables with the prefix that are no settings.
    pub other_variables: &'static [&'static str],
    /// Where settings are listed, for people.
    pub reference: &'static str,
}

impl SettingTable {
    pub fn find(&self, key: &str) -> Option<&'static Setting> {
        self.settings.iter().find(|setting| setting.key == key)
    }

    /// The variable of a setting; `None` for settings that only a file can set.
    pub fn variable(&self, setting: &Setting) -> Option<String> {
        let name = || setting.key.replace('.', "_").to_uppercase();
        let has_variable = !matches!(setting.kind, SettingKind::Objects);
        has_variable.then(|| format!("{}{}", self.prefix, name()))
    }

    /// The variable that names a file with the value.
    pub fn file_variable(&self, setting: &Setting) -> Option<String> {
        let variable = self.variable(setting)?;
        setting.has_file_variable.then(|| variable + "_FILE")
    }

    /// Advice for an unknown key, to append to a message.
    pub(super) fn advice(&self, key: &str) -> String {
        let sections = self.settings.iter().flat_map(|setting| {
            let dots = setting.key.match_indices('.');
            dots.map(|(at, _)| setting.key.get(..at).unwrap_or_default())
        });
        let known = self.settings.iter().map(|setting| setting.key);
        match likeliest(key, known.chain(sections)) {
            Some(meant) => format!("; did you mean {meant}?"),
            None => format!("; see {}", self.reference),
        }
    }

    /// The used settings as a Markdown table.
    pub fn markdown<'a>(
        &self,
        head: &str,
        settings: impl IntoIterator<Item = &'a Setting>,
    ) -> String {
        let has_flags = self.settings.iter().any(|setting| setting.flag.is_some());
        let line = |cells: [&str; 6]| {
            let cells = cells.iter().enumerate();
            let cells = cells.filter(|(column, _)| has_flags || *column != 2);
            let cells: Vec<_> = cells.map(|(_, cell)| *cell).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let row = |setting: &Setting| {
            let variables = [self.variable(setting), self.file_variable(setting)];
            let variables: Vec<_> = variables.iter().flatten().map(|v| code(v)).collect();
            let flag = setting.flag.map(|flag| code(&format!("--{flag}")));
            let default = match setting.kind {
                SettingKind::Objects => String::new(),
                _ => code(setting.default),
            };
            let reload = match setting.status {
                SettingStatus::Reloaded => "; applied by a reload",
                _ => "",
            };
            let help = format!("{}{}{reload}", setting.help, setting.unit);
            let (key, variables) = (code(setting.key), variables.join(", "));
            let (flag, allowed) = (flag.unwrap_or_default(), setting.allowed());
            line([&key, &variables, &flag, &default, &allowed, &help])
        };
        let used = settings.into_iter().filter(|setting| setting.is_used());
        let head = [head, "variable", "flag", "default", "values", "what it is"];
        line(head) + &line(["---"; 6]) + &used.map(row).collect::<String>()
    }
}

fn code(text: &str) -> String {
    match text {
        "" => String::new(),
        text => format!("`{text}`"),
    }
}

/// Every default as a layer. Texts have one even if it is empty.
pub fn default_layers(settings: &[Setting]) -> Figment {
    let with_default = settings.iter().filter(|setting| match setting.kind {
        SettingKind::Objects => false,
        SettingKind::Text | SettingKind::File | SettingKind::Read(_) => true,
        _ => !setting.default.is_empty(),
    });
    let placed = with_default.filter_map(|setting| Some((setting.place()?, setting)));
    placed.fold(Figment::new(), |layers, (path, setting)| {
        match setting.check(Value::from(setting.default)) {
            Ok(value) => layers.merge((path, value)),
            Err(error) => unreachable!("the default of {}: {error}", setting.key),
        }
    })
}

/// Typed settings with all defaults.
///
/// # Panics
/// A default is missing or invalid, which a test of the product detects.
pub fn defaults<S: DeserializeOwned>(settings: &[Setting]) -> S {
    let defaults = default_layers(settings).extract();
    defaults.unwrap_or_else(|error| unreachable!("the defaults: {error}"))
}

/// The known name that was most likely meant, if one is similar.
pub(super) fn likeliest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.map(|known| (strsim::jaro_winkler(name, known), known));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .map(|(_, known)| known)
}
