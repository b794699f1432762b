//! What stands in the keys: JSON with the version `v` of its form. What is of another version than ours is left
//! alone; fields that are not ours are passed over.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::keys::{Entry, Lease, Revision};
use hyperfleet_fleet_model::unit::{
    DesiredState, FleetSection, Glob, NameParts, Options, Requirements, UnitName, UnitOption,
};
use hyperfleet_fleet_model::wire::RefusalView;

/// The version of every value that is written.
const VERSION: u64 = 1;

/// Whether what names this version is a newer program's: the one rule that tells it from damage. It is never written
/// over or removed. All else that cannot be read is of nobody: no version, one that never was, or ours without what
/// belongs to it.
pub fn is_newer(version: Option<u64>) -> bool {
    version.is_some_and(|version| version > VERSION)
}

/// What a unit is: its file, and whether it is for one machine or for all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    /// The lines of its file.
    pub options: Vec<UnitOption>,
    /// The digest of its file's canonical text. Equal digests are equal files.
    pub hash: String,
    /// Set for a unit that runs on every machine that fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global: Option<GlobalRule>,
}

impl Body {
    /// A unit's file as it is stored. The one place that says what of it agents are to know of global units.
    pub fn new(name: &UnitName, options: &Options) -> Self {
        let asked = FleetSection::of(options.list()).requirements(name.parts());
        let global = asked.is_global.then(|| GlobalRule {
            metadata: asked.metadata,
            conflicts: asked.conflicts.iter().map(ToString::to_string).collect(),
        });
        Self {
            options: options.list().to_vec(),
            hash: options.hash().to_string(),
            global,
        }
    }

    /// What the unit of that name asks of machines.
    pub fn requirements(&self, name: &str) -> Requirements {
        let section = FleetSection::of(&self.options);
        Requirements {
            // Agents go by the stored rule, and both have to mean the same.
            is_global: self.global.is_some(),
            ..section.requirements(NameParts::of(name))
        }
    }
}

/// Where a global unit runs, for agents, which do not read bodies to find out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobalRule {
    /// What the machine's metadata must say: for every key one of its values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, BTreeSet<String>>,
    /// Patterns of the units that it must not be beside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
}

impl GlobalRule {
    /// What the unit asks of machines, by this rule alone.
    pub fn requirements(&self) -> Requirements {
        Requirements {
            metadata: self.metadata.clone(),
            conflicts: self.conflicts.iter().map(Glob::new).collect(),
            is_global: true,
            ..Requirements::default()
        }
    }
}

/// What users want of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    /// What it should be.
    pub state: DesiredState,
    /// 1 at first, and one more with each change of its file or its desired state.
    pub generation: u64,
    /// How often it was to be restarted.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Where a unit is placed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// On which machine.
    pub machine: String,
    /// The digest of the file that was placed.
    pub hash: String,
    /// The term of the engine that decided so.
    pub epoch: Revision,
}

/// What an agent has to do with a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The digest of the file to run.
    pub hash: String,
    /// What it should be.
    pub state: DesiredState,
    /// The term of the engine that placed the unit here; 0 from versions that did not say so. Agents refuse a lower one
    /// than they have seen.
    #[serde(default)]
    pub epoch: Revision,
    /// How often it was to be restarted. An agent that runs the unit restarts it when this changes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u64,
}

/// What every agent that fits has to do with a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Global {
    /// The digest of the file to run.
    pub hash: String,
    /// What it should be.
    pub state: DesiredState,
    /// How often it was to be restarted. An agent that runs the unit restarts it when this changes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u64,
    /// Where.
    #[serde(flatten)]
    pub rule: GlobalRule,
}

/// A machine, as its agent describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Where others reach it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ip: String,
    /// `host:port` where the fleetd of other machines reach its fleetd; empty if they do not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// What its configuration says of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// The version of the agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// What it has of each resource, in the resource's own units; nothing asks for it yet (decision F8).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, u64>,
}

/// Metadata that was set while the machine runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Its value; none hides what the machine's configuration says.
    pub value: Option<String>,
}

/// A machine takes no further units. What counts is that the key exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cordon {}

/// The units of a machine are to leave it. The key is on a lease if that has a deadline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// The lease of the key, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
}

impl Drain {
    /// One that runs out with a lease.
    pub(super) fn on(lease: Lease) -> Self {
        Self { lease: Some(lease) }
    }
}

/// A unit is to go from one machine to another, if it is still there and may come here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveOrder {
    pub from: String,
    pub to: String,
}

/// What became of a unit on a machine, in systemd's words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitState {
    /// Whether its file could be read.
    pub load: String,
    /// Whether it runs.
    pub active: String,
    /// The same, finer.
    pub sub: String,
    /// The digest of the file that runs.
    pub hash: String,
    /// Whether the agent has started it.
    pub launched: bool,
    /// What keeps the agent from bringing it to its desired state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
}

/// Why a unit is not placed (decision F6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// Of what the unit was when this was found.
    pub generation: u64,
    /// The whole of it, for people.
    #[serde(default)]
    pub reason: String,
    /// What refused, and how many machines; none if it is not machines that refuse.
    pub refusals: Vec<Refusal>,
}

/// Machines that refuse a unit for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The requirement that is not met.
    pub requirement: String,
    /// How many machines refuse for it.
    pub count: u64,
    /// Some of them, by id.
    pub machines: Vec<String>,
}

impl From<Refusal> for RefusalView {
    fn from(refusal: Refusal) -> Self {
        Self {
            count: refusal.count,
            machines: refusal.machines,
            requirement: refusal.requirement,
        }
    }
}

/// Who decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// The machine whose engine it is.
    pub id: String,
    /// The version of that engine.
    pub version: u64,
}

/// The newest engine that ever decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineVersion {
    /// Its version.
    pub version: u64,
}

/// The last unit that was given `Replaces`. Its key puts such writes in an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacesOrder {
    /// The unit's name.
    pub unit: String,
}

/// When a machine's agent last reported. What counts is when it was put.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastReport {}

/// An operator's word that the registry is right although it went back in time. What counts is when it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {}

/// A value that was read, with its key's revisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<T> {
    /// What stands there.
    pub value: T,
    /// When the key was created.
    pub created: Revision,
    /// When it was last put.
    pub revision: Revision,
}

/// What a key is found to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen<T> {
    /// It is there.
    Here(Stored<T>),
    /// It is not, or no longer.
    Gone,
    /// Something stands there that is not ours to read.
    Foreign {
        /// The version that it names.
        version: Option<u64>,
    },
}

impl<T> Seen<T> {
    /// What is there; what is foreign is not.
    pub fn here(self) -> Option<Stored<T>> {
        match self {
            Self::Here(stored) => Some(stored),
            Self::Gone | Self::Foreign { .. } => None,
        }
    }
}

/// A value with the version of its form.
#[derive(Serialize, Deserialize)]
struct Versioned<T> {
    v: u64,
    #[serde(flatten)]
    value: T,
}

#[derive(Deserialize)]
struct VersionOnly {
    v: Option<u64>,
}

/// A value as it is stored.
pub(super) fn write(value: &impl Serialize) -> Vec<u8> {
    let v = VERSION;
    serde_json::to_vec(&Versioned { v, value }).expect("records have names and plain values")
}

/// What an entry holds, if it is of our version.
pub(super) fn read<T: DeserializeOwned>(entry: Option<&Entry>) -> Seen<T> {
    let Some(entry) = entry else {
        return Seen::Gone;
    };
    if let Ok(Versioned { v: VERSION, value }) = serde_json::from_slice(&entry.value) {
        return Seen::Here(Stored {
            value,
            created: entry.created,
            revision: entry.modified,
        });
    }
    let only = serde_json::from_slice::<VersionOnly>(&entry.value).ok();
    let version = only.and_then(|only| only.v);
    Seen::Foreign { version }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_unit_asks_for_is_by_its_name_and_by_what_is_stored() {
        let file =
            b"[X-Fleet]\nMachineOf=%p.socket\nMachineMetadata=host=%i\nConflicts=db*\nGlobal=1";
        let options = Options::parse(file).unwrap();
        let body = Body::new(&UnitName::stored("web@7.service"), &options);
        let rule = body.global.clone().unwrap();
        assert!(rule.metadata["host"].contains("7"));
        assert_eq!(rule.conflicts, ["db*"]);
        assert_eq!(body.hash, options.hash().to_string());
        let asked = body.requirements("web@7.service");
        assert!(asked.is_global && asked.machine_of.contains("web.socket"));
        let ordinary = Body {
            global: None,
            ..body
        };
        assert!(!ordinary.requirements("web@7.service").is_global);
    }

    fn entry(value: &str) -> Entry {
        Entry {
            key: Vec::new(),
            value: value.into(),
            created: 3,
            modified: 5,
        }
    }

    #[test]
    fn values_are_what_the_documentation_says() {
        let want = Want {
            state: DesiredState::Launched,
            generation: 2,
            restarts: 0,
        };
        let text = String::from_utf8(write(&want)).unwrap();
        assert_eq!(text, r#"{"v":1,"state":"launched","generation":2}"#);
        let global = Global {
            hash: "h".into(),
            state: DesiredState::Loaded,
            restarts: 0,
            rule: GlobalRule::default(),
        };
        let text = String::from_utf8(write(&global)).unwrap();
        assert_eq!(text, r#"{"v":1,"hash":"h","state":"loaded"}"#);
        assert_eq!(
            read::<Global>(Some(&entry(&text))).here().unwrap().value,
            global
        );
    }

    #[test]
    fn fields_that_are_not_ours_are_passed_over() {
        let seen = read::<Label>(Some(&entry(r#"{"v":1,"value":"x","since":7}"#)));
        let value = Some("x".to_owned());
        assert_eq!(seen.here().unwrap().value, Label { value });
    }

    #[test]
    fn what_is_not_ours_to_read_is_foreign() {
        for (text, version) in [
            (r#"{"v":2,"state":"launched","generation":1}"#, Some(2)),
            (r#"{"state":"launched","generation":1}"#, None),
            (r#"{"v":1,"state":"flying","generation":1}"#, Some(1)),
            (r#"{"v":1}"#, Some(1)),
            ("launched", None),
            ("", None),
        ] {
            assert_eq!(
                read::<Want>(Some(&entry(text))),
                Seen::Foreign { version },
                "{text}"
            );
        }
        assert_eq!(read::<Want>(None), Seen::Gone);
    }
}
