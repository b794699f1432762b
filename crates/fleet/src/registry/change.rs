//! What is read from the registry, key by key.

use super::key::{Key, LabelKey, Prefix, RunKey, StateKey};
use super::record::{
    Body, Cordon, Drain, EngineVersion, Global, Label, LastReport, Leader, Machine, MoveOrder,
    Place, ReplacesOrder, Resume, Run, Seen, UnitState, Want, Why, read,
};
use crate::keys::{Entry, Event};

/// A key was found to be so, or became so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// What a unit is.
    Unit(String, Seen<Body>),
    /// What users want of it.
    Want(String, Seen<Want>),
    /// Where it is placed.
    Place(String, Seen<Place>),
    /// What an agent has to do.
    Run(RunKey, Seen<Run>),
    /// What every agent that fits has to do.
    Global(String, Seen<Global>),
    /// A machine.
    Machine(String, Seen<Machine>),
    /// Metadata of a machine that was set while it runs.
    Label(LabelKey, Seen<Label>),
    /// A machine takes no further units.
    Cordon(String, Seen<Cordon>),
    /// A machine's units are to leave it.
    Drain(String, Seen<Drain>),
    /// A unit is to go from one machine to another.
    Move(String, Seen<MoveOrder>),
    /// What became of a unit on a machine.
    State(StateKey, Seen<UnitState>),
    /// When a machine's agent last reported.
    LastReport(String, Seen<LastReport>),
    /// Why a unit is not placed.
    Why(String, Seen<Why>),
    /// Who decides.
    Leader(Seen<Leader>),
    /// The newest engine.
    EngineVersion(Seen<EngineVersion>),
    /// The last unit that was given `Replaces`.
    ReplacesOrder(Seen<ReplacesOrder>),
    /// Agents are to go on with a registry that went back in time.
    Resume(Seen<Resume>),
    /// A key below our prefix that is none of ours, such as a newer program may use.
    Unknown {
        /// What it is called, as far as it is text.
        name: String,
        /// Whether it is there.
        exists: bool,
    },
}

impl Change {
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
                exists: entry.is_some(),
            };
        };
        match key {
            Key::Unit(name) => Self::Unit(name, read(entry)),
            Key::Want(name) => Self::Want(name, read(entry)),
            Key::Place(name) => Self::Place(name, read(entry)),
            Key::Run(key) => Self::Run(key, read(entry)),
            Key::Global(name) => Self::Global(name, read(entry)),
            Key::Machine(id) => Self::Machine(id, read(entry)),
            Key::Label(key) => Self::Label(key, read(entry)),
            Key::Cordon(id) => Self::Cordon(id, read(entry)),
            Key::Drain(id) => Self::Drain(id, read(entry)),
            Key::Move(name) => Self::Move(name, read(entry)),
            Key::State(key) => Self::State(key, read(entry)),
            Key::LastReport(id) => Self::LastReport(id, read(entry)),
            Key::Why(name) => Self::Why(name, read(entry)),
            Key::Leader => Self::Leader(read(entry)),
            Key::EngineVersion => Self::EngineVersion(read(entry)),
            Key::ReplacesOrder => Self::ReplacesOrder(read(entry)),
            Key::Resume => Self::Resume(read(entry)),
        }
    }
}
