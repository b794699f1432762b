//! The table of records: the key of each in etcd, its value, and the snapshot's member that has it. A new record is a
//! line here, its value in `record`, and its use: the compiler names the places that must decide about it.

use std::collections::{BTreeMap, BTreeSet};

use super::key::{BEFORE_MACHINE, KeyPart, LabelKey, Prefix, RunKey, StateKey};
use super::record::{
    Body, Cordon, DesiredRecord, Drain, EngineVersion, Global, Label, LastReport, Leader,
    MachineRecord, MoveOrder, Placement, Record, ReplacesOrder, Resume, Run, Stored, UnitState,
    read,
};
use crate::keys::{Entry, Event, Range, Revision};

/// Unreadable keys, with the version that each names.
pub type UnreadableKeys = BTreeMap<Key, Option<u64>>;

/// Records of many keys, each with the folder of its keys; then records of one key.
macro_rules! records {
    (
        $($(#[$doc:meta])* $kind:ident($part:ty) in $folder:literal is $value:ty, $member:ident;)*
        --
        $($(#[$one_doc:meta])* $one:ident at $name:literal is $one_value:ty, $one_member:ident;)*
    ) => {
        /// A parsed key below the prefix.
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Key {
            $($(#[$doc])* $kind($part),)*
            $($(#[$one_doc])* $one,)*
        }

        /// The family of keys that a name belongs to, for ranges.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Family {
            $($kind,)*
        }

        impl Family {
            pub(super) const fn folder(self) -> &'static str {
                match self {
                    $(Self::$kind => $folder,)*
                }
            }
        }

        impl Prefix {
            /// The key's name in the store.
            pub(super) fn name(&self, key: &Key) -> String {
                match key {
                    $(Key::$kind(part) => self.below(&format!("{}{part}", Family::$kind.folder())),)*
                    $(Key::$one => self.below($name),)*
                }
            }

            /// Parses a name of the store; `None` for unknown keys.
            pub(super) fn read(&self, name: &[u8]) -> Option<Key> {
                let rest = std::str::from_utf8(name).ok()?.strip_prefix(self.as_str())?;
                $(if rest == $name {
                    return Some(Key::$one);
                })*
                $(if let Some(rest) = rest.strip_prefix($folder) {
                    return KeyPart::parse(rest).map(Key::$kind);
                })*
                None
            }
        }

        /// The state of a key, as found or after a change.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum KeyChange {
            $($kind($part, Record<$value>),)*
            $($one(Record<$one_value>),)*
            /// A key below our prefix that this version does not know. A newer program may use it.
            Unknown {
                /// With U+FFFD in place of bytes that are not UTF-8.
                name: String,
                exists: bool,
            },
        }

        impl KeyChange {
            fn of_key(key: Key, entry: Option<&Entry>) -> Self {
                match key {
                    $(Key::$kind(part) => Self::$kind(part, read(entry)),)*
                    $(Key::$one => Self::$one(read(entry)),)*
                }
            }
        }

        /// Every record at one revision. Unreadable ones are only named.
        ///
        /// A snapshot to which later changes were applied equals the snapshot of the later revision.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        pub struct Snapshot {
            pub revision: Revision,
            $($(#[$doc])* pub $member: BTreeMap<$part, Stored<$value>>,)*
            $($(#[$one_doc])* pub $one_member: Option<Stored<$one_value>>,)*
            pub unreadable: UnreadableKeys,
            /// Unknown keys below the prefix.
            pub unknown: BTreeSet<String>,
        }

        impl Snapshot {
            /// Applies a change. Returns its key; `None` for an unknown one.
            pub fn apply(&mut self, change: KeyChange) -> Option<Key> {
                Some(match change {
                    $(KeyChange::$kind(part, record) => {
                        let key = Key::$kind(part.clone());
                        record_unreadable(&mut self.unreadable, &key, &record);
                        match record.into_stored() {
                            Some(stored) => _ = self.$member.insert(part, stored),
                            None => _ = self.$member.remove(&part),
                        }
                        key
                    })*
                    $(KeyChange::$one(record) => {
                        record_unreadable(&mut self.unreadable, &Key::$one, &record);
                        self.$one_member = record.into_stored();
                        Key::$one
                    })*
                    KeyChange::Unknown { name, exists } => {
                        if exists {
                            self.unknown.insert(name);
                        } else {
                            self.unknown.remove(&name);
                        }
                        return None;
                    }
                })
            }
        }
    };
}

records! {
    /// `unit/<name>`: the unit's file.
    Unit(String) in "unit/" is Body, bodies;
    /// `want/<name>`: the unit's desired state.
    Desired(String) in "want/" is DesiredRecord, desired;
    /// `place/<name>`: the unit's machine.
    Placement(String) in "place/" is Placement, placements;
    /// `run/<machine>/<name>`: an order to one agent.
    Run(RunKey) in "run/" is Run, runs;
    /// `global/<name>`: an order to every matching agent.
    Global(String) in "global/" is Global, globals;
    /// `machine/<id>`: a registered machine.
    Machine(String) in "machine/" is MachineRecord, machines;
    /// `label/<id>/<key>`: metadata that users set.
    Label(LabelKey) in "label/" is Label, labels;
    /// `cordon/<id>`: no further units are placed on the machine.
    Cordon(String) in "cordon/" is Cordon, cordons;
    /// `drain/<id>`: the machine's units must leave.
    Drain(String) in "drain/" is Drain, drains;
    /// `move/<name>`: an order to move a unit.
    Move(String) in "move/" is MoveOrder, moves;
    /// `state/<name>,<machine>`: what a machine reports of a unit.
    State(StateKey) in "state/" is UnitState, states;
    /// `report/<id>`: the machine's last report. It outlives the machine's lease.
    LastReport(String) in "report/" is LastReport, last_reports;
    --
    /// `engine/leader`: the leading engine.
    Leader at "engine/leader" is Leader, leader;
    /// `engine/version`: the newest engine that ever led.
    EngineVersion at "engine/version" is EngineVersion, engine_version;
    /// `order/replaces`: the last unit that was given `Replaces`.
    ReplacesOrder at "order/replaces" is ReplacesOrder, replaces_order;
    /// `order/resume`: the order to resume after the registry went back in time.
    Resume at "order/resume" is Resume, resume;
}

impl KeyChange {
    pub(super) fn of_event(prefix: &Prefix, event: &Event) -> Self {
        Self::new(prefix, &event.key, event.entry.as_ref())
    }

    pub(super) fn of_entry(prefix: &Prefix, entry: &Entry) -> Self {
        Self::new(prefix, &entry.key, Some(entry))
    }

    fn new(prefix: &Prefix, name: &[u8], entry: Option<&Entry>) -> Self {
        match prefix.read(name) {
            Some(key) => Self::of_key(key, entry),
            None => Self::Unknown {
                name: String::from_utf8_lossy(name).into_owned(),
                exists: entry.is_some() && !prefix.reasons().contains(name),
            },
        }
    }
}

impl Key {
    /// The keys that make up a unit: all that are named after it alone.
    pub(super) fn own(unit: &str) -> [Self; 4] {
        [Self::Unit, Self::Desired, Self::Placement, Self::Global].map(|key| key(unit.to_owned()))
    }

    /// The unit that the key is about, if any.
    pub(crate) fn unit(&self) -> Option<&str> {
        match self {
            Self::Unit(unit)
            | Self::Desired(unit)
            | Self::Placement(unit)
            | Self::Global(unit)
            | Self::Move(unit)
            | Self::Run(RunKey { unit, .. })
            | Self::State(StateKey { unit, .. }) => Some(unit),
            Self::Machine(_)
            | Self::LastReport(_)
            | Self::Label(_)
            | Self::Cordon(_)
            | Self::Drain(_)
            | Self::Leader
            | Self::EngineVersion
            | Self::ReplacesOrder
            | Self::Resume => None,
        }
    }

    pub(crate) fn run(machine: &str, unit: &str) -> Self {
        Self::Run(RunKey {
            machine: machine.to_owned(),
            unit: unit.to_owned(),
        })
    }
}

impl Prefix {
    pub(super) fn family(&self, family: Family) -> Range {
        Range::below(&self.below(family.folder()))
    }

    /// The `run/` or `label/` keys of one machine, or the states of one unit.
    pub(super) fn part(&self, family: Family, part: &str) -> Range {
        let end = if family == Family::State {
            BEFORE_MACHINE
        } else {
            '/'
        };
        Range::below(&self.below(&format!("{}{part}{end}", family.folder())))
    }
}

/// Notes whether a record is unreadable.
fn record_unreadable<T>(unreadable: &mut UnreadableKeys, key: &Key, record: &Record<T>) {
    match record {
        Record::Unreadable { version } => _ = unreadable.insert(key.clone(), *version),
        Record::Present(_) | Record::Absent => _ = unreadable.remove(key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Vec<Key> {
        let (unit, machine) = ("a@1.service".to_owned(), "m1".to_owned());
        vec![
            Key::Unit(unit.clone()),
            Key::Desired(unit.clone()),
            Key::Placement(unit.clone()),
            Key::run(&machine, &unit),
            Key::Global(unit.clone()),
            Key::Machine(machine.clone()),
            Key::Label(LabelKey {
                machine: machine.clone(),
                key: "zone".to_owned(),
            }),
            Key::Cordon(machine.clone()),
            Key::Drain(machine.clone()),
            Key::LastReport(machine.clone()),
            Key::State(StateKey {
                unit: unit.clone(),
                machine,
            }),
            Key::Move(unit),
            Key::Leader,
            Key::EngineVersion,
            Key::ReplacesOrder,
            Key::Resume,
        ]
    }

    #[test]
    fn a_key_that_is_written_is_read_as_the_same() {
        for prefix in [Prefix::default(), Prefix::new("/my/fleet").unwrap()] {
            for key in keys() {
                assert_eq!(prefix.read(prefix.name(&key).as_bytes()), Some(key));
            }
        }
    }

    #[test]
    fn what_is_not_ours_is_no_key() {
        let prefix = Prefix::default();
        for name in [
            "/fleet/v3/",
            "/fleet/v3/unit",
            "/fleet/v3/unit/",
            "/fleet/v3/unit/a/b",
            "/fleet/v4/unit/a",
            "/fleet/v3/run/m1",
            "/fleet/v3/run/m1/",
            "/fleet/v3/state/a.service",
            "/fleet/v3/engine/lead",
            "/fleet/v3/unit/a b",
            "/fleet/v3/unit/a,b",
            "/fleet/v3/zzz/a",
            "",
        ] {
            assert_eq!(prefix.read(name.as_bytes()), None, "{name}");
        }
        assert_eq!(prefix.read(b"/fleet/v3/unit/\xff"), None);
    }

    #[test]
    fn states_sort_by_unit_then_machine() {
        let prefix = Prefix::default();
        let mut names = Vec::new();
        for unit in [
            "a-b.service",
            "a.service",
            "a.service-x.service",
            "a@1.service",
        ] {
            for machine in ["m1", "m2"] {
                names.push(prefix.name(&Key::State(StateKey {
                    unit: unit.to_owned(),
                    machine: machine.to_owned(),
                })));
            }
        }
        assert!(names.is_sorted(), "{names:?}");
    }
}
