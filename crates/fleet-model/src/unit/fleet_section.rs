//! The section `[X-Fleet]`: a unit's requirements, by the rules of the older fleet.

use std::collections::{BTreeMap, BTreeSet};

use super::glob::Glob;
use super::name::NameParts;
use super::option::UnitOption;
use super::requirements::{MachineIdentity, Requirements};

pub const SECTION: &str = "X-Fleet";

const CONFLICTS: Key = Key("Conflicts", &["X-Conflicts"]);
const GLOBAL: Key = Key("Global", &[]);
const MACHINE_ID: Key = Key(
    "MachineID",
    &["X-ConditionMachineID", "X-ConditionMachineBootID"],
);
const MACHINE_METADATA: Key = Key("MachineMetadata", &["X-ConditionMachineMetadata"]);
const MACHINE_OF: Key = Key("MachineOf", &["X-ConditionMachineOf"]);
const REPLACES: Key = Key("Replaces", &[]);
/// New in this fleet: the unit stops itself when its machine's lease is lost, so it never runs twice.
const SINGLETON: Key = Key("Singleton", &[]);

const KEYS: [Key; 7] = [
    CONFLICTS,
    GLOBAL,
    MACHINE_ID,
    MACHINE_METADATA,
    MACHINE_OF,
    REPLACES,
    SINGLETON,
];

/// Name of an option, and its names before version 0.8, newest first.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Key(&'static str, &'static [&'static str]);

impl Key {
    /// The names of all options.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        KEYS.iter().map(|key| key.0)
    }

    pub(super) fn name(self) -> &'static str {
        self.0
    }

    fn has(self, name: &str) -> bool {
        self.0 == name || self.1.contains(&name)
    }

    pub(super) fn is_boolean(self) -> bool {
        self == GLOBAL || self == SINGLETON
    }

    /// Whether a value is the name of one unit or machine, or a pattern of such names: none of them has blanks.
    pub(super) fn names_one_thing(self) -> bool {
        self == MACHINE_ID || self == MACHINE_OF || self == REPLACES
    }
}

/// A unit's `[X-Fleet]` section: quotes are resolved, specifiers are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetSection<'a> {
    values: Vec<(&'a str, String)>,
    bytes: usize,
}

impl<'a> FleetSection<'a> {
    /// The section in a unit's options.
    pub fn of(options: &'a [UnitOption]) -> Self {
        let options = options.iter().filter(|option| option.section == SECTION);
        let bytes = options.clone().map(|option| option.value.len()).sum();
        let values = options.flat_map(|option| {
            let values = unquoted(&option.value).into_iter();
            values.map(|value| (option.name.as_str(), value))
        });
        Self {
            values: values.collect(),
            bytes,
        }
    }

    /// The requirements. Without a name, specifiers stay unresolved. Metadata that is not `key=value` requires
    /// nothing: see [`FleetSection::malformed_metadata`].
    pub fn requirements(&self, name: Option<NameParts<'_>>) -> Requirements {
        let all = |key| self.values_of(key).map(|value| replaced(value, name));
        let globs = |values: Vec<String>| values.into_iter().map(Glob::new).collect();
        let conflicts = all(CONFLICTS).flat_map(|value| {
            let words = value.split_whitespace().map(str::to_owned);
            words.collect::<Vec<_>>()
        });
        Requirements {
            machine_id: all(MACHINE_ID).next().map(MachineIdentity::new),
            machine_of: all(MACHINE_OF).collect(),
            metadata: metadata(all(MACHINE_METADATA)),
            conflicts: globs(conflicts.collect()),
            replaces: globs(all(REPLACES).collect()),
            is_global: all(GLOBAL).last().is_some_and(|value| is_true(&value)),
            is_singleton: all(SINGLETON).last().is_some_and(|value| is_true(&value)),
        }
    }

    /// Unknown options, each once, in their order: they are worth only a warning.
    pub fn unknown(&self) -> Vec<&'a str> {
        let mut seen = BTreeSet::new();
        let names = self.values.iter().map(|(name, _)| *name);
        let unknown = names.filter(|name| !KEYS.iter().any(|key| key.has(name)));
        unknown.filter(|name| seen.insert(*name)).collect()
    }

    /// The values of known options, in the order of the file.
    pub(super) fn known_values(&self) -> impl Iterator<Item = (Key, &str)> {
        self.values.iter().filter_map(|(name, value)| {
            let key = KEYS.into_iter().find(|key| key.has(name))?;
            Some((key, value.as_str()))
        })
    }

    /// The first metadata that is not `key=value`. New units with it are refused: the older fleet ignored it
    /// silently and ran the unit anywhere.
    pub fn malformed_metadata(&self) -> Option<&str> {
        let mut values = self.values_of(MACHINE_METADATA);
        values.find(|value| pair(value).is_none())
    }

    /// Length of its values as written, in bytes. There may be many empty ones between quotes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The values of a key. Older names come first where values add up. A machine's id is the first value of
    /// the newest name.
    fn values_of(&self, key: Key) -> impl Iterator<Item = &str> {
        let newest = std::iter::once(key.0).chain(key.1.iter().copied());
        let mut spellings: Vec<_> = newest.collect();
        if key.0 != MACHINE_ID.0 {
            spellings.reverse();
        }
        spellings.into_iter().flat_map(move |spelling| {
            let values = self
                .values
                .iter()
                .filter(move |(name, _)| *name == spelling);
            values.map(|(_, value)| value.as_str())
        })
    }
}

/// A value that begins and ends with a quote is a list, separated by one space. Quotes cannot be escaped; a
/// quote in the middle only joins the following spaces to the value.
fn unquoted(value: &str) -> Vec<String> {
    if !value.starts_with('"') || !value.ends_with('"') {
        return vec![value.to_owned()];
    }
    let mut values = vec![];
    let mut current = String::new();
    let mut is_quoted = false;
    for c in value.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => values.push(std::mem::take(&mut current)),
            other => current.push(other),
        }
    }
    values.push(current);
    values
}

/// Replaces specifiers by parts of the unit's name, one after the other, so an inserted specifier is replaced,
/// too. Nothing is unescaped, and `%%` is not a specifier.
fn replaced(value: &str, name: Option<NameParts<'_>>) -> String {
    let Some(name) = name else {
        return value.to_owned();
    };
    value
        .replace("%n", name.full)
        .replace("%N", name.stem)
        .replace("%p", name.prefix)
        .replace("%i", name.instance)
}

fn metadata(values: impl Iterator<Item = String>) -> BTreeMap<String, BTreeSet<String>> {
    let mut metadata: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for value in values {
        if let Some((key, value)) = pair(&value) {
            let accepted = metadata.entry(key.to_owned()).or_default();
            accepted.insert(value.to_owned());
        }
    }
    metadata
}

/// Exactly one `=`, with text on both sides.
fn pair(value: &str) -> Option<(&str, &str)> {
    let (key, value) = value.split_once('=')?;
    let is_pair = !key.is_empty() && !value.is_empty() && !value.contains('=');
    is_pair.then_some((key, value))
}

pub(super) fn is_true(value: &str) -> bool {
    const TRUE: [&str; 5] = ["true", "yes", "1", "on", "t"];
    TRUE.contains(&value.to_lowercase().as_str())
}
