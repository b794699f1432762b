//! Records read from the registry, key by key.

use super::key::{Key, LabelKey, Prefix, RunKey, StateKey};
use super::record::{
    Body, Cordon, DesiredRecord, Drain, EngineVersion, Global, Label, LastReport, Leader,
    MachineRecord, MoveOrder, Placement, Record, ReplacesOrder, Resume, Run, UnitState, read,
};
use crate::keys::{Entry, Event};

/// The state of a key, as found or after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyChange {
    Unit(String, Record<Body>),
    Desired(String, Record<DesiredRecord>),
    Placement(String, Record<Placement>),
    Run(RunKey, Record<Run>),
    Global(String, Record<Global>),
    Machine(String, Record<MachineRecord>),
    Label(LabelKey, Record<Label>),
    Cordon(String, Record<Cordon>),
    Drain(String, Record<Drain>),
    Move(String, Record<MoveOrder>),
    State(StateKey, Record<UnitState>),
    LastReport(String, Record<LastReport>),
    Leader(Record<Leader>),
    EngineVersion(Record<EngineVersion>),
    ReplacesOrder(Record<ReplacesOrder>),
    Resume(Record<Resume>),
    /// A key below our prefix that this version does not know. A newer program may use it.
    Unknown {
        /// With U+FFFD in place of bytes that are not UTF-8.
        name: String,
        exists: bool,
    },
}

impl KeyChange {
    pub(super) fn of_event(prefix: &Prefix, event: &Event) -> Self {
        Self::new(prefix, &event.key, event.entry.as_ref())
    }

    pub(super) fn of_entry(prefix: &Prefix, entry: &Entry) -> Self {
        Self::new(prefix, &entry.key, Some(entry))
    }

    fn new(prefix: &Prefix, name: &[u8], entry: Option<&Entry>) -> Self {
        let Some(key) = prefix.read(name) else {
            return Self::Unknown {
                name: String::from_utf8_lossy(name).into_owned(),
                exists: entry.is_some() && !prefix.reasons().contains(name),
            };
        };
        match key {
            Key::Unit(name) => Self::Unit(name, read(entry)),
            Key::Desired(name) => Self::Desired(name, read(entry)),
            Key::Placement(name) => Self::Placement(name, read(entry)),
            Key::Run(key) => Self::Run(key, read(entry)),
            Key::Global(name) => Self::Global(name, read(entry)),
            Key::Machine(id) => Self::Machine(id, read(entry)),
            Key::Label(key) => Self::Label(key, read(entry)),
            Key::Cordon(id) => Self::Cordon(id, read(entry)),
            Key::Drain(id) => Self::Drain(id, read(entry)),
            Key::Move(name) => Self::Move(name, read(entry)),
            Key::State(key) => Self::State(key, read(entry)),
            Key::LastReport(id) => Self::LastReport(id, read(entry)),
            Key::Leader => Self::Leader(read(entry)),
            Key::EngineVersion => Self::EngineVersion(read(entry)),
            Key::ReplacesOrder => Self::ReplacesOrder(read(entry)),
            Key::Resume => Self::Resume(read(entry)),
        }
    }
}
