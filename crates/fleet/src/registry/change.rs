//! What is read from the registry, key by key.

use serde::de::DeserializeOwned;

use super::key::{Key, Prefix};
use super::record::{
    self, Body, EngineVersion, Global, Label, Leader, Machine, Place, Run, Seen, UnitState, Want,
    Why,
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
    Run {
        /// Whose work it is.
        machine: String,
        /// With which unit.
        unit: String,
        /// What.
        run: Seen<Run>,
    },
    /// What every agent that fits has to do.
    Global(String, Seen<Global>),
    /// A machine.
    Machine(String, Seen<Machine>),
    /// Metadata of a machine that was set while it runs.
    Label {
        /// Whose.
        machine: String,
        /// Its name.
        key: String,
        /// What.
        label: Seen<Label>,
    },
    /// What became of a unit on a machine.
    State {
        /// Of which unit.
        unit: String,
        /// Who says so.
        machine: String,
        /// What.
        state: Seen<UnitState>,
    },
    /// Why a unit is not placed.
    Why(String, Seen<Why>),
    /// Who decides.
    Leader(Seen<Leader>),
    /// The newest engine.
    EngineVersion(Seen<EngineVersion>),
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
        fn seen<T: DeserializeOwned>(entry: Option<&Entry>) -> Seen<T> {
            record::read(entry)
        }
        let Some(key) = prefix.read(name) else {
            return Self::Unknown {
                name: String::from_utf8_lossy(name).into_owned(),
                exists: entry.is_some(),
            };
        };
        match key {
            Key::Unit(name) => Self::Unit(name, seen(entry)),
            Key::Want(name) => Self::Want(name, seen(entry)),
            Key::Place(name) => Self::Place(name, seen(entry)),
            Key::Run { machine, unit } => Self::Run {
                machine,
                unit,
                run: seen(entry),
            },
            Key::Global(name) => Self::Global(name, seen(entry)),
            Key::Machine(id) => Self::Machine(id, seen(entry)),
            Key::Label { machine, key } => Self::Label {
                machine,
                key,
                label: seen(entry),
            },
            Key::State { unit, machine } => Self::State {
                unit,
                machine,
                state: seen(entry),
            },
            Key::Why(name) => Self::Why(name, seen(entry)),
            Key::Leader => Self::Leader(seen(entry)),
            Key::EngineVersion => Self::EngineVersion(seen(entry)),
        }
    }
}
