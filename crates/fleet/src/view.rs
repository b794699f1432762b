//! What users are shown.

use std::collections::BTreeMap;

use crate::registry::{
    self, Body, KnownMachine, ListedUnit, ReportedState, Stored, UnitRecord, UnitState,
};
use hyperfleet_fleet_model::unit::{DesiredState, UnitOption};

/// A unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitView {
    /// What it is called.
    pub name: String,
    /// The lines of its file.
    pub options: Vec<UnitOption>,
    /// What is wanted of it.
    pub desired: DesiredState,
    /// How far it is; none for a unit that is for all machines. Says what the agent has done, not what became of it:
    /// a service that crashed is launched still.
    pub current: Option<DesiredState>,
    /// The machine that it is placed on; none if there is none, or if it is for all.
    pub machine: Option<String>,
    /// What tells its file from others: 40 digits.
    pub hash: String,
    /// How often its file or what is wanted of it has changed: 1 at first.
    pub generation: u64,
}

/// What became of a unit on a machine, in systemd's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateView {
    /// Of which unit.
    pub unit: String,
    /// On which machine.
    pub machine: String,
    /// What tells the file that runs there from others.
    pub hash: String,
    /// Whether its file could be read.
    pub load: String,
    /// Whether it runs.
    pub active: String,
    /// The same, finer.
    pub sub: String,
}

/// A machine that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineView {
    /// Its id.
    pub id: String,
    /// Where others reach it; empty if it does not say.
    pub ip: String,
    /// What its configuration says of it, and over that what was set while it runs.
    pub metadata: BTreeMap<String, String>,
}

/// Some of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// In order.
    pub items: Vec<T>,
    /// What to ask for the next page with; none if this is the end. To clients it is opaque.
    pub next: Option<String>,
}

/// Which state it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateKey {
    /// Of which unit.
    pub unit: String,
    /// On which machine.
    pub machine: String,
}

impl UnitView {
    /// A unit, with what the machine that it is placed on reports of it; nothing, if it is on none.
    pub(super) fn new(unit: UnitRecord, state: Option<&Stored<UnitState>>) -> Self {
        let Body {
            options,
            hash,
            global,
        } = unit.body.value;
        let machine = unit.place.map(|place| place.value.machine);
        let current = current(state.map(|state| &state.value));
        let is_global = global.is_some();
        Self {
            name: unit.name,
            options,
            desired: unit.want.value.state,
            current: (!is_global).then_some(current),
            machine: machine.filter(|_| !is_global),
            hash,
            generation: unit.want.value.generation,
        }
    }
}

/// How far a unit is, by what the machine that it is placed on reports of it.
pub(super) fn current(state: Option<&UnitState>) -> DesiredState {
    match state {
        None => DesiredState::Inactive,
        Some(UnitState {
            launched: false, ..
        }) => DesiredState::Loaded,
        Some(UnitState { launched: true, .. }) => DesiredState::Launched,
    }
}

impl From<ListedUnit> for UnitView {
    fn from((unit, state): ListedUnit) -> Self {
        Self::new(unit, state.as_ref())
    }
}

impl From<ReportedState> for StateView {
    fn from(reported: ReportedState) -> Self {
        let state = reported.state.value;
        Self {
            unit: reported.unit,
            machine: reported.machine,
            hash: state.hash,
            load: state.load,
            active: state.active,
            sub: state.sub,
        }
    }
}

impl From<KnownMachine> for MachineView {
    fn from(known: KnownMachine) -> Self {
        Self {
            id: known.id,
            ip: known.machine.value.ip,
            metadata: known.metadata,
        }
    }
}

impl<T> Page<T> {
    pub(super) fn of<R: Into<T>>(page: registry::Page<R>) -> Self {
        Self {
            items: page.items.into_iter().map(Into::into).collect(),
            next: page.next.map(|token| token.text()),
        }
    }

    pub(super) fn empty() -> Self {
        Self {
            items: Vec::new(),
            next: None,
        }
    }
}
