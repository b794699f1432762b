//! What users are shown.

use crate::registry::{self, KnownMachine, ListedUnit, ReportedState, UnitState};
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_fleet_model::wire::{MachineView, StateView, UnitView};

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

/// A unit, with what the machine that it is placed on reports of it; nothing, if it is on none.
pub(super) fn unit_view((unit, state): ListedUnit) -> UnitView {
    let body = unit.body.value;
    let machine = unit.place.map(|place| place.value.machine);
    let current = current(state.as_ref().map(|state| &state.value));
    let is_global = body.global.is_some();
    UnitView {
        name: unit.name,
        options: body.options.into_iter().map(Into::into).collect(),
        desired: unit.want.value.state,
        current: (!is_global).then_some(current),
        machine: machine.filter(|_| !is_global),
        hash: body.hash,
        generation: unit.want.value.generation,
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
    pub(super) fn of<R>(page: registry::Page<R>, view: impl Fn(R) -> T) -> Self {
        Self {
            items: page.items.into_iter().map(view).collect(),
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
