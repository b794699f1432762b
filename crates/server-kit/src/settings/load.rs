//! Merges the sources into typed settings, with the origin of each value.

use anyhow::bail;
use figment::Figment;
use serde::de::DeserializeOwned;

use super::fault::SettingFault;
use super::layer::{Given, Layer, Values};
use super::misfit;
use super::setting::{SettingStatus, shown};
use super::table::SettingTable;
use crate::faults::Faults;

/// Settings with their origins and faults.
#[derive(Debug, Clone)]
pub struct Loaded<S> {
    /// A setting with a fault has its default.
    pub settings: S,
    /// Warnings about the sources, to be logged.
    pub notes: Vec<String>,
    pub(super) table: &'static SettingTable,
    pub(super) given: Values,
    /// Faults; a product adds its own.
    pub faults: Vec<SettingFault>,
}

/// Keys whose values have changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changed {
    /// Those that a reload applies.
    pub at_once: Vec<&'static str>,
    /// Those that need a restart.
    pub at_a_start: Vec<&'static str>,
}

impl<S: DeserializeOwned> Loaded<S> {
    /// Merges the sources, weakest first, over the defaults.
    pub fn of(table: &'static SettingTable, defaults: &Figment, mut layers: Vec<Layer>) -> Self {
        let older = layers
            .iter_mut()
            .map(|layer| std::mem::take(&mut layer.older));
        let mut given: Values = older.flatten().collect();
        let (mut notes, mut faults) = (Vec::new(), Vec::new());
        for layer in layers {
            given.extend(layer.values);
            notes.extend(layer.notes);
            faults.extend(layer.faults);
        }
        given.retain(|_, given| {
            let fault = out_of_range(table, given);
            let is_allowed = fault.is_none();
            faults.extend(fault);
            is_allowed
        });
        let settings = extracted(defaults, &mut given, &mut faults);
        Self {
            settings,
            notes,
            table,
            given,
            faults,
        }
    }
}

impl<S> Loaded<S> {
    /// Whether the values of all these settings and sections are known.
    pub fn are_known(&self, sections: &[&str]) -> bool {
        let mut faults = self.faults.iter();
        !faults.any(|fault| sections.iter().any(|section| fault.touches(section)))
    }

    /// Whether no setting of this section has a fault.
    pub fn is_sound(&self, section: &str) -> bool {
        !self.faults.iter().any(|fault| fault.concerns(section))
    }

    /// Refuses settings with faults, their own or these.
    ///
    /// # Errors
    /// All faults.
    pub fn refuse(&self, others: impl IntoIterator<Item = String>) -> anyhow::Result<()> {
        let own = self.faults.iter().map(ToString::to_string);
        let faults = own.chain(others);
        let faults: Vec<_> = faults.map(|f| in_one_line(&self.located(&f))).collect();
        match &faults[..] {
            [] => Ok(()),
            [one] => bail!("{one}"),
            several => bail!("the settings have faults:\n  - {}", several.join("\n  - ")),
        }
    }

    /// What is made from these settings and sections.
    ///
    /// # Errors
    /// All faults of the settings and of what is made.
    pub fn part<T>(
        &self,
        sections: &[&str],
        make: impl FnOnce(&S) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut faults = Faults::default();
        let part = faults.part_if(self.are_known(sections), || make(&self.settings));
        self.refuse(faults.0)?;
        let Some(part) = part else {
            unreachable!("what was not made has a fault");
        };
        Ok(part)
    }

    /// A fault with the source of the first given setting that it names. After the first colon it gives advice, and names
    /// settings that are not at fault.
    fn located(&self, fault: &str) -> String {
        let statement = fault.split_once(": ").map_or(fault, |(before, _)| before);
        if statement.contains(" (from ") {
            return fault.to_owned();
        }
        let mut at = 0;
        for word in statement.split_inclusive(' ') {
            let path = word.trim_end_matches([' ', ',']);
            let mut given = self.given.values();
            if let Some(given) = given.find(|given| names(path, given.setting.key)) {
                let (before, after) = fault.split_at(at + path.len());
                let path = path.replace('[', ".").replace(']', "");
                return format!("{before} (from {}){after}", given.origin_of(&path));
            }
            at += word.len();
        }
        fault.to_owned()
    }

    /// The settings, if they have no faults themselves.
    ///
    /// # Errors
    /// All faults.
    pub fn sound(self) -> anyhow::Result<Self> {
        self.refuse([])?;
        Ok(self)
    }

    /// The source of a setting that is not at its default.
    pub fn origin(&self, key: &str) -> Option<&str> {
        self.given.get(key).map(|given| given.origin.as_str())
    }

    /// The same with the line of the file.
    pub fn origin_with_line(&self, key: &str) -> Option<String> {
        self.given.get(key).map(|given| given.origin_of(key))
    }

    /// Shows a setting as this text.
    pub fn show(&mut self, key: &str, text: String) {
        if let Some(given) = self.given.get_mut(key) {
            given.text = text;
        }
    }

    /// Shows a given secret as this text, which hides the secret part.
    pub fn show_open(&mut self, key: &str, text: String) {
        if let Some(given) = self.given.get_mut(key) {
            given.open = Some(text);
        }
    }

    /// Settings whose values differ from earlier ones.
    pub fn changed_since(&self, before: &Self) -> Changed {
        let text = |loaded: &Self, key, default| {
            let given = loaded.given.get(key).map(|given| &given.text);
            given.map_or(default, String::as_str).to_owned()
        };
        let changed = |status| {
            let rows = self.table.settings.iter().filter(|s| s.status == status);
            let changed =
                rows.filter(|s| text(self, s.key, s.default) != text(before, s.key, s.default));
            changed.map(|s| s.key).collect()
        };
        Changed {
            at_once: changed(SettingStatus::Reloaded),
            at_a_start: changed(SettingStatus::Used),
        }
    }
}

/// Whether a path names a setting, a member of its entries, or a section with it.
fn names(path: &str, setting: &str) -> bool {
    let member = path.strip_prefix(setting);
    let in_section = setting.strip_prefix(path).filter(|_| path.contains('.'));
    member.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        || in_section.is_some_and(|rest| rest.starts_with('.'))
}

/// So that each fault is one item of a list.
fn in_one_line(fault: &str) -> String {
    let lines = fault.lines().map(str::trim);
    lines
        .filter(|l| !l.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn out_of_range(table: &SettingTable, given: &Given) -> Option<SettingFault> {
    let (setting, value) = (given.setting, &given.value);
    let (least, most) = setting.exceeded(value)?;
    let origin = given.origin_of(setting.key);
    let text = (table.out_of_range)(setting.key, &origin, &shown(value), least, most);
    Some(SettingFault::of_value(setting.key, text))
}

/// Merges given values over the defaults. A value of a wrong type is reported and left out, because an
/// extraction finds only the first fault.
fn extracted<S: DeserializeOwned>(
    defaults: &Figment,
    given: &mut Values,
    faults: &mut Vec<SettingFault>,
) -> S {
    loop {
        let placed = given
            .values()
            .filter_map(|g| Some((g.setting.place()?, &g.value)));
        let layers = placed.fold(defaults.clone(), Figment::merge);
        let error = match layers.extract() {
            Ok(settings) => return settings,
            Err(error) => error,
        };
        let mut is_better = false;
        for fault in error {
            let (fault, is_mended) = misfit::take_out(&fault, given);
            faults.push(fault);
            is_better |= is_mended;
        }
        if !is_better {
            // Not a given value: the defaults do not fit, which a test of the product detects.
            given.clear();
        }
    }
}
