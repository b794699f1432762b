//! A unit's requirements on its machine, from `[X-Fleet]`.

use std::collections::{BTreeMap, BTreeSet};

use super::glob::Glob;

/// The requirements of one unit, with specifiers replaced. The default has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requirements {
    /// The only machine that can run it.
    pub machine_id: Option<MachineIdentity>,
    /// Units that must be on the same machine, every one.
    pub machine_of: BTreeSet<String>,
    /// Required metadata: for every key one of its values.
    pub metadata: BTreeMap<String, BTreeSet<String>>,
    /// Units that must not be on the same machine. One of the two declares it.
    pub conflicts: Vec<Glob>,
    /// Units that must leave the machine for this one.
    pub replaces: Vec<Glob>,
    /// Whether it runs on every matching machine, rather than on one.
    pub is_global: bool,
    /// Whether it must never run twice, not even during a network partition.
    pub is_singleton: bool,
}

/// A machine in a unit file: its id, or the first eight characters of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineIdentity(String);

impl MachineIdentity {
    /// How many characters of an id suffice.
    pub const SHORT: usize = 8;

    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn names(&self, id: &str) -> bool {
        id == self.0 || (self.0.len() == Self::SHORT && id.starts_with(&self.0))
    }
}

impl Requirements {
    /// Whether it excludes a unit of that name by its own declaration.
    pub fn conflicts_with(&self, name: &str) -> bool {
        self.conflicts.iter().any(|glob| glob.matches(name))
    }

    /// Whether a unit of that name must leave for it.
    pub fn replaces(&self, name: &str) -> bool {
        self.replaces.iter().any(|glob| glob.matches(name))
    }
}

/// The first required key for which this metadata has none of the values, with these values.
pub fn unmet<'a>(
    asked: &'a BTreeMap<String, BTreeSet<String>>,
    metadata: &BTreeMap<String, String>,
) -> Option<(&'a str, &'a BTreeSet<String>)> {
    let mut asked = asked.iter();
    let unmet = asked.find(|(key, values)| {
        let value = metadata.get(*key);
        value.is_none_or(|value| !values.contains(value))
    });
    unmet.map(|(key, values)| (key.as_str(), values))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_characters_name_a_machine_and_no_other_number() {
        let id = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
        for (given, names) in [
            (id, true),
            (&id[..8], true),
            (&id[..7], false),
            (&id[..9], false),
            ("", false),
        ] {
            assert_eq!(MachineIdentity::new(given).names(id), names, "{given}");
        }
    }

    #[test]
    fn keys_must_all_be_there_and_one_value_of_each_is_enough() {
        let wanted = [("zone", ["east", "west"].as_slice()), ("disk", &["ssd"])];
        let requirements = Requirements {
            metadata: wanted
                .into_iter()
                .map(|(key, values)| {
                    let values = values.iter().map(|&value| value.to_owned());
                    (key.to_owned(), values.collect())
                })
                .collect(),
            ..Requirements::default()
        };
        let machine = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs.map(|&(k, v)| (k.to_owned(), v.to_owned())).collect()
        };
        let is_met = |metadata: &BTreeMap<_, _>| unmet(&requirements.metadata, metadata).is_none();
        assert!(is_met(&machine(&[("zone", "west"), ("disk", "ssd")])));
        assert!(!is_met(&machine(&[("zone", "north"), ("disk", "ssd")])));
        assert!(!is_met(&machine(&[("zone", "west")])));
        assert_eq!(unmet(&BTreeMap::new(), &machine(&[])), None);
    }
}
