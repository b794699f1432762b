//! What a unit asks of the machine it runs on, read from `[X-Fleet]`.

use std::collections::{BTreeMap, BTreeSet};

use super::glob::Glob;

/// The requirements of one unit, specifiers replaced. The default asks for nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requirements {
    /// The only machine that will do.
    pub machine_id: Option<MachineIdentity>,
    /// Units that must be on the same machine, every one.
    pub machine_of: BTreeSet<String>,
    /// What the machine's metadata must say: for every key one of its values.
    pub metadata: BTreeMap<String, BTreeSet<String>>,
    /// Units that must not be on the same machine; whichever of the two says so.
    pub conflicts: Vec<Glob>,
    /// Units that have to leave the machine for this one.
    pub replaces: Vec<Glob>,
    /// Whether it runs on every machine that fits, rather than on one.
    pub is_global: bool,
    /// Whether it must never run twice, not even while the cluster is cut in two (decision F5).
    pub is_singleton: bool,
}

/// What names a machine in a unit file: its id, or the first eight characters of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineIdentity(String);

impl MachineIdentity {
    /// How many characters of an id are enough.
    pub const SHORT: usize = 8;

    /// The machine of that id, or of an id that begins so if there are eight characters.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// As it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it names the machine with this id.
    pub fn names(&self, id: &str) -> bool {
        id == self.0 || (self.0.len() == Self::SHORT && id.starts_with(&self.0))
    }
}

impl Requirements {
    /// Whether it must not be beside a unit of that name, by what it says itself.
    pub fn conflicts_with(&self, name: &str) -> bool {
        self.conflicts.iter().any(|glob| glob.matches(name))
    }

    /// Whether a unit of that name has to leave for it.
    pub fn replaces(&self, name: &str) -> bool {
        self.replaces.iter().any(|glob| glob.matches(name))
    }
}

/// The first key of which a machine's metadata has none of the values that are asked for, with these.
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
        let suits = |metadata: &BTreeMap<_, _>| unmet(&requirements.metadata, metadata).is_none();
        assert!(suits(&machine(&[("zone", "west"), ("disk", "ssd")])));
        assert!(!suits(&machine(&[("zone", "north"), ("disk", "ssd")])));
        assert!(!suits(&machine(&[("zone", "west")])));
        assert_eq!(unmet(&BTreeMap::new(), &machine(&[])), None);
    }
}
