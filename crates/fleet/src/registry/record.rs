//! The values of the keys: JSON with the version `v` of its form. Values of another version are not changed,
//! and unknown fields are ignored.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};

use crate::keys::{Entry, Lease, Revision};
use hyperfleet_fleet_model::unit::{
    DesiredState, FleetSection, Glob, NameParts, Options, Requirements, UnitName, UnitOption,
};

/// Version of every value that this program writes.
const VERSION: u64 = 1;

/// Whether a record with this version is from a newer program: the only rule that tells it from damage. It is
/// never overwritten or removed. All other unreadable records are damage: without a version, with an unknown
/// older one, or of ours with missing fields.
pub fn is_newer(version: Option<u64>) -> bool {
    version.is_some_and(|version| version > VERSION)
}

/// A unit's file, and whether it is global.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body {
    #[serde(serialize_with = "with_empty_values")]
    pub options: Vec<UnitOption>,
    /// Digest of the file's canonical text.
    pub hash: String,
    /// Set for a global unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global: Option<GlobalRule>,
}

impl Body {
    /// The stored form of a unit's file. Only this function derives what agents need to know of global units.
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

    /// The requirements of the unit with this name.
    pub fn requirements(&self, name: &str) -> Requirements {
        let section = FleetSection::of(&self.options);
        Requirements {
            // Agents use the stored rule, and both must agree.
            is_global: self.global.is_some(),
            ..section.requirements(NameParts::of(name))
        }
    }
}

/// Writes options with their empty values, which programs of earlier versions require.
fn with_empty_values<S: Serializer>(options: &[UnitOption], to: S) -> Result<S::Ok, S::Error> {
    let members = options.iter().map(|option| {
        let UnitOption {
            name,
            section,
            value,
        } = option;
        BTreeMap::from([("name", name), ("section", section), ("value", value)])
    });
    to.collect_seq(members)
}

/// Where a global unit runs, for agents, which do not read the file to find out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GlobalRule {
    /// For every key one of its values must match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, BTreeSet<String>>,
    /// Patterns of conflicting units.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
}

impl GlobalRule {
    /// The unit's requirements by this rule alone.
    pub fn requirements(&self) -> Requirements {
        Requirements {
            metadata: self.metadata.clone(),
            conflicts: self.conflicts.iter().map(Glob::new).collect(),
            is_global: true,
            ..Requirements::default()
        }
    }
}

/// A unit's desired state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DesiredRecord {
    pub state: DesiredState,
    /// 1 at first, and one more with each change of the file or the desired state.
    pub generation: u64,
    /// How many restarts of the launched unit, and stops of the loaded one, were requested.
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    pub machine: String,
    /// Digest of the placed file.
    pub hash: String,
    /// Term of the deciding engine.
    pub epoch: Revision,
    /// The move that brought the unit here; `None` if it was on no machine before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moved>,
}

/// Where a unit was before it came to its machine, and why it left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// The machine that it left.
    pub from: String,
    /// For people, in the words of the engine's log.
    pub reason: String,
}

/// An order to one agent about a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Digest of the file to run.
    pub hash: String,
    pub state: DesiredState,
    /// The term of the engine that placed the unit here; 0 from versions that did not store it. Agents refuse a
    /// lower epoch than they have seen.
    #[serde(default)]
    pub epoch: Revision,
    /// Requested restarts and stops. When this changes, an agent restarts a launched unit, and stops a loaded one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u64,
}

/// An order to every matching agent about a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Global {
    /// Digest of the file to run.
    pub hash: String,
    pub state: DesiredState,
    /// Requested restarts and stops. When this changes, an agent restarts a launched unit, and stops a loaded one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub restarts: u64,
    #[serde(flatten)]
    pub rule: GlobalRule,
}

/// A machine, as its agent describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineRecord {
    /// Address for users.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ip: String,
    /// `host:port` at which the fleetd of other machines reach this machine's fleetd; empty if they cannot.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// Configured metadata.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Whether its agent is halted until an operator orders it to resume.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub halted: bool,
    /// Resources of the machine, each in its own unit. Nothing uses it yet: placement by resources comes later.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capacity: BTreeMap<String, u64>,
}

/// Metadata that users set while the machine runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// `None` hides the configured value.
    pub value: Option<String>,
}

/// No further units are placed on the machine. Only the existence of the key counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cordon {}

/// The units of a machine must leave. With a deadline the key is on a lease.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
}

impl Drain {
    pub(super) fn on(lease: Lease) -> Self {
        Self { lease: Some(lease) }
    }
}

/// An order to move a unit, if it is still on the first machine and fits the second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveOrder {
    pub from: String,
    pub to: String,
}

/// What a machine reports of a unit, as systemd names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitState {
    /// Whether systemd could read the file.
    pub load: String,
    /// Whether the unit runs.
    pub active: String,
    /// `active` in detail.
    pub sub: String,
    /// Digest of the running file.
    pub hash: String,
    /// Whether the agent has started it.
    pub launched: bool,
    /// The requested restarts when the agent last started it; `None` from agents that do not report them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u64>,
    /// Why the agent cannot bring it to its desired state.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// Why a failed unit has failed, as systemd names it, such as `exit-code`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result: String,
}

/// The leading engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// The engine's machine.
    pub id: String,
    pub version: u64,
}

/// The newest engine that ever led.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineVersion {
    pub version: u64,
}

/// The last unit that was given `Replaces`. Its key orders such writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplacesOrder {
    pub unit: String,
}

/// Marks the last report of a machine's agent. Only the revision of the key counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastReport {}

/// An operator's order to resume although the registry went back in time. Only the revision of the key counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {}

/// A value that was read, with its key's revisions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<T> {
    pub value: T,
    pub created: Revision,
    /// Revision of the last put.
    pub revision: Revision,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record<T> {
    Present(Stored<T>),
    Absent,
    /// The value cannot be read.
    Unreadable {
        /// The version that it names.
        version: Option<u64>,
    },
}

impl<T> Record<T> {
    /// The value, if the key exists and is readable.
    pub fn into_stored(self) -> Option<Stored<T>> {
        match self {
            Self::Present(stored) => Some(stored),
            Self::Absent | Self::Unreadable { .. } => None,
        }
    }
}

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

/// The stored form of a value.
pub(super) fn write(value: &impl Serialize) -> Vec<u8> {
    let v = VERSION;
    serde_json::to_vec(&Versioned { v, value }).expect("records have names and plain values")
}

/// The value of an entry, if it is of our version.
pub(super) fn read<T: DeserializeOwned>(entry: Option<&Entry>) -> Record<T> {
    let Some(entry) = entry else {
        return Record::Absent;
    };
    if let Ok(Versioned { v: VERSION, value }) = serde_json::from_slice(&entry.value) {
        return Record::Present(Stored {
            value,
            created: entry.created,
            revision: entry.modified,
        });
    }
    let only = serde_json::from_slice::<VersionOnly>(&entry.value).ok();
    let version = only.and_then(|only| only.v);
    Record::Unreadable { version }
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

    #[test]
    fn an_empty_value_is_stored_for_programs_that_require_it() {
        let options = Options::parse(b"[Service]\nExecStart=").unwrap();
        let body = Body::new(&UnitName::stored("a.service"), &options);
        let stored = serde_json::to_value(&body).unwrap();
        let expected =
            serde_json::json!([{"section": "Service", "name": "ExecStart", "value": ""}]);
        assert_eq!(stored["options"], expected);
        assert_eq!(serde_json::from_value::<Body>(stored).unwrap(), body);
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
        let desired = DesiredRecord {
            state: DesiredState::Launched,
            generation: 2,
            restarts: 0,
        };
        let text = String::from_utf8(write(&desired)).unwrap();
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
            read::<Global>(Some(&entry(&text)))
                .into_stored()
                .unwrap()
                .value,
            global
        );
    }

    #[test]
    fn fields_that_are_not_ours_are_passed_over() {
        let seen = read::<Label>(Some(&entry(r#"{"v":1,"value":"x","since":7}"#)));
        let value = Some("x".to_owned());
        assert_eq!(seen.into_stored().unwrap().value, Label { value });
    }

    #[test]
    fn records_of_other_versions_are_unreadable() {
        for (text, version) in [
            (r#"{"v":2,"state":"launched","generation":1}"#, Some(2)),
            (r#"{"state":"launched","generation":1}"#, None),
            (r#"{"v":1,"state":"flying","generation":1}"#, Some(1)),
            (r#"{"v":1}"#, Some(1)),
            ("launched", None),
            ("", None),
        ] {
            assert_eq!(
                read::<DesiredRecord>(Some(&entry(text))),
                Record::Unreadable { version },
                "{text}"
            );
        }
        assert_eq!(read::<DesiredRecord>(None), Record::Absent);
    }
}
