//! The views of units, machines and states for users.

use std::collections::BTreeMap;

use crate::registry::{KnownMachine, ListedUnit, ReportedState, UnitState};
use hyperfleet_fleet_model::schedule::{Availability, MachineId, Move};
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_fleet_model::wire::{MachineView, MoveView, RebalanceView, StateView, UnitView};

/// A unit, with the report of the machine where it is placed, if any.
pub(super) fn unit_view((unit, state): ListedUnit) -> UnitView {
    let body = unit.body.value;
    let machine = unit.placement.map(|placement| placement.value.machine);
    let state = state.as_ref().map(|state| &state.value);
    let current = current(state, unit.desired.value.restarts);
    let is_global = body.global.is_some();
    UnitView {
        name: unit.name,
        options: body.options,
        desired: unit.desired.value.state,
        current: (!is_global).then_some(current),
        machine: machine.filter(|_| !is_global),
    }
}

/// A unit's current state, by the report of its machine. Until the machine has carried out all requested restarts,
/// a launched unit counts as loaded, so that clients can wait for a restart.
pub(super) fn current(state: Option<&UnitState>, restarts: u64) -> DesiredState {
    match state {
        None => DesiredState::Inactive,
        // The agent cannot load it.
        Some(state) if !state.error.is_empty() && state.load == "error" => DesiredState::Inactive,
        Some(state) if state.launched && state.restarts.is_none_or(|done| done == restarts) => {
            DesiredState::Launched
        }
        Some(_) => DesiredState::Loaded,
    }
}

pub(super) fn state_view((key, state): ReportedState) -> StateView {
    let state = state.value;
    StateView {
        unit: key.unit,
        machine: key.machine,
        hash: state.hash,
        load: state.load,
        active: state.active,
        sub: state.sub,
        error: state.error,
    }
}

pub(super) fn machine_view(known: KnownMachine) -> MachineView {
    let (cordoned, draining) = marks(known.availability);
    MachineView {
        cordoned,
        draining,
        halted: known.machine.value.halted,
        id: known.id,
        ip: known.machine.value.ip,
        metadata: known.metadata,
        version: known.machine.value.version,
    }
}

/// A plan of moves, with the loads before and after.
pub(super) fn rebalance_view(
    before: BTreeMap<MachineId, u32>,
    moves: Vec<Move>,
    after: BTreeMap<MachineId, u32>,
) -> RebalanceView {
    let loads = |loads: BTreeMap<MachineId, u32>| {
        let named = loads.into_iter();
        named.map(|(id, load)| (id.to_string(), load)).collect()
    };
    let one = |one: Move| MoveView {
        from: one.from.to_string(),
        name: one.unit.to_string(),
        to: one.to.to_string(),
    };
    RebalanceView {
        after: loads(after),
        before: loads(before),
        moves: moves.into_iter().map(one).collect(),
    }
}

/// Whether a machine is cordoned, and whether it is drained.
pub(super) fn marks(availability: Availability) -> (bool, bool) {
    match availability {
        Availability::Open => (false, false),
        Availability::Cordoned => (true, false),
        Availability::Draining => (true, true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launched_unit_is_loaded_until_it_has_restarted() {
        let report = |launched, restarts| UnitState {
            load: "loaded".to_owned(),
            active: "active".to_owned(),
            sub: "running".to_owned(),
            hash: String::new(),
            launched,
            restarts,
            error: String::new(),
            result: String::new(),
        };
        for (launched, restarts, expected) in [
            (true, Some(2), DesiredState::Launched),
            (true, Some(1), DesiredState::Loaded),
            // An agent of an older version.
            (true, None, DesiredState::Launched),
            (false, Some(2), DesiredState::Loaded),
        ] {
            let state = report(launched, restarts);
            assert_eq!(current(Some(&state), 2), expected, "{state:?}");
        }
    }
}
