//! Units and machines of the registry in the form of decisions, for the engine, which decides, and for the API,
//! which explains.

use crate::registry::{Key, Place, Snapshot, StateKey, Stored, is_part};
use hyperfleet_fleet_model::schedule::{Change, Job, Machine, MachineId};
use hyperfleet_fleet_model::unit::{DesiredState, Requirements, UnitName};

/// Everything known, for an empty cluster. Takes time in proportion to the registry.
pub(crate) fn changes(known: &Snapshot) -> Vec<Change> {
    let machines = known.machines.keys();
    let machines = machines.map(|id| Change::Machine(machine(known, id)));
    let units = known.bodies.keys().chain(known.places.keys());
    let units = units.filter_map(|name| job(known, name)).map(Change::Unit);
    machines.chain(units).collect()
}

/// An existing machine.
pub(crate) fn machine(known: &Snapshot, id: &str) -> Machine {
    Machine {
        id: MachineId::new(id),
        metadata: known.metadata(id),
        availability: known.availability(id),
    }
}

/// A unit's part in decisions; `None` if it has none.
///
/// A pinned unit requires nothing of its machine, and keeps away units that it is known to exclude.
pub(crate) fn job(known: &Snapshot, name: &str) -> Option<Job> {
    let body = known.bodies.get(name).map(|body| &body.value);
    let place = placed(known, name);
    let unit = UnitName::stored(name);
    let is_pinned = is_pinned(known, name);
    let (requirements, desired) = if is_pinned {
        place?;
        let conflicts = body.map(|body| body.requirements(name).conflicts);
        let requirements = Requirements {
            conflicts: conflicts.unwrap_or_default(),
            ..Requirements::default()
        };
        (requirements, DesiredState::Loaded)
    } else {
        let state = known.wants.get(name)?.value.state;
        // A template never runs, whatever its stored desired state.
        let is_template = unit.is_template();
        let state = if is_template {
            DesiredState::Inactive
        } else {
            state
        };
        (body?.requirements(name), state)
    };
    let must_stop_first = requirements.is_singleton && place.is_none();
    Some(Job {
        name: unit,
        requirements,
        desired,
        placed_on: place.map(|place| MachineId::new(place.value.machine.as_str())),
        is_pinned,
        stopping_on: must_stop_first.then(|| stopping_on(known, name)).flatten(),
    })
}

/// Whether some record of a unit is unreadable: the engine then must not change it.
pub(crate) fn is_pinned(known: &Snapshot, name: &str) -> bool {
    is_misplaced(known, name) || known.is_pinned(name)
}

/// Whether a unit's place names an impossible machine.
pub(crate) fn is_misplaced(known: &Snapshot, name: &str) -> bool {
    known.places.contains_key(name) && placed(known, name).is_none()
}

/// The first machine that still reports an unplaced unit. Agents report units that are loaded.
fn stopping_on(known: &Snapshot, name: &str) -> Option<MachineId> {
    let first = StateKey {
        unit: name.to_owned(),
        machine: String::new(),
    };
    let states = known.states.range(first..).map(|(key, _)| key);
    let mut machines = states
        .take_while(|key| key.unit == name)
        .map(|key| key.machine.as_str());
    let is_there = |machine: &str| {
        let key = || Key::Machine(machine.to_owned());
        known.machines.contains_key(machine) || known.foreign.contains_key(&key())
    };
    let machine = machines.find(|machine| is_there(machine))?;
    Some(MachineId::new(machine))
}

/// A unit's place, unless it names an impossible machine.
fn placed<'a>(known: &'a Snapshot, name: &str) -> Option<&'a Stored<Place>> {
    let place = known.places.get(name);
    place.filter(|place| is_part(&place.value.machine))
}
