//! Steps of an engine for one unit.

use hyperfleet_fleet::registry::{Placement, Run, Step, Stored, UnitRecord};
use hyperfleet_fleet_model::schedule::{MachineId, Reason, Task};
use hyperfleet_fleet_model::unit::{DesiredState, UnitName};

/// Places an unplaced unit.
pub fn place(unit: &UnitRecord, machine: &str) -> Step {
    step(unit, None, Some(machine))
}

/// Takes a unit from its machine.
pub fn withdraw(unit: &UnitRecord) -> Step {
    step(unit, Some(placed_on(unit)), None)
}

pub fn move_to(unit: &UnitRecord, machine: &str) -> Step {
    step(unit, Some(placed_on(unit)), Some(machine))
}

/// Moves a unit because its machine is lost.
pub fn move_from_lost(unit: &UnitRecord, machine: &str) -> Step {
    let mut step = move_to(unit, machine);
    if let Step::Planned { task, .. } = &mut step {
        task.reason = Reason::MachineGone(MachineId::new(placed_on(unit)));
    }
    step
}

fn placed_on(unit: &UnitRecord) -> &str {
    let place = unit.placement.as_ref();
    &place.expect("it is placed").value.machine
}

fn step(unit: &UnitRecord, from: Option<&str>, to: Option<&str>) -> Step {
    let revision = |placement: &Stored<Placement>| placement.revision.max(unit.desired.revision);
    let run_from = unit.placement.as_ref().map(revision);
    Step::Planned {
        run_from,
        run_to: run_from.filter(|_| from == to),
        task: Task {
            unit: UnitName::stored(unit.name.as_str()),
            from: from.map(MachineId::new),
            to: to.map(MachineId::new),
            reason: Reason::NotPlaced(DesiredState::Launched),
        },
        run: Run {
            hash: unit.body.value.hash.clone(),
            state: unit.desired.value.state,
            epoch: 0,
            restarts: unit.desired.value.restarts,
        },
        desired: unit.desired.revision,
        placement: unit.placement.as_ref().map_or(0, |place| place.revision),
        moved: None,
    }
}
