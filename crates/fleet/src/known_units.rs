//! Units and machines of the registry in the form of decisions, for the engine, which decides, and for the API,
//! which explains.

use crate::registry::{Key, Placement, Snapshot, Stored, is_part};
use hyperfleet_fleet_model::schedule::{Cluster, ClusterChange, Job, Machine, MachineId};
use hyperfleet_fleet_model::unit::{DesiredState, Requirements, UnitName};

/// Everything known, for an empty cluster. Takes time in proportion to the registry.
pub(crate) fn changes(snapshot: &Snapshot) -> Vec<ClusterChange> {
    let machines = snapshot.machines.keys();
    let machines = machines.map(|id| ClusterChange::Machine(machine(snapshot, id)));
    let unclear = snapshot.unreadable.keys().filter_map(|key| match key {
        Key::Machine(id) => Some(ClusterChange::MachineUnclear(MachineId::new(id.as_str()))),
        _ => None,
    });
    let units = snapshot.bodies.keys().chain(snapshot.placements.keys());
    let units = units
        .filter_map(|name| job(snapshot, name))
        .map(ClusterChange::Unit);
    machines.chain(unclear).chain(units).collect()
}

/// The cluster of these changes.
pub(crate) fn cluster(changes: Vec<ClusterChange>) -> Cluster {
    let mut cluster = Cluster::new();
    for change in changes {
        cluster.apply(change);
    }
    cluster
}

/// An existing machine.
pub(crate) fn machine(snapshot: &Snapshot, id: &str) -> Machine {
    Machine {
        id: MachineId::new(id),
        metadata: snapshot.metadata(id),
        availability: snapshot.availability(id),
    }
}

/// A unit's part in decisions; `None` if it has none.
///
/// A pinned unit requires nothing of its machine, and keeps away units that it is known to exclude.
pub(crate) fn job(snapshot: &Snapshot, name: &str) -> Option<Job> {
    let body = snapshot.bodies.get(name).map(|body| &body.value);
    let placement = placement_of(snapshot, name);
    let unit = UnitName::stored(name);
    let is_pinned = is_pinned(snapshot, name);
    let (requirements, desired) = if is_pinned {
        placement?;
        let conflicts = body.map(|body| body.requirements(name).conflicts);
        let requirements = Requirements {
            conflicts: conflicts.unwrap_or_default(),
            ..Requirements::default()
        };
        (requirements, DesiredState::Loaded)
    } else {
        let state = snapshot.desired.get(name)?.value.state;
        // A template never runs, whatever its stored desired state.
        let is_template = unit.is_template();
        let state = if is_template {
            DesiredState::Inactive
        } else {
            state
        };
        (body?.requirements(name), state)
    };
    let must_stop_first = requirements.is_singleton && placement.is_none();
    Some(Job {
        name: unit,
        requirements,
        desired,
        placed_on: placement.map(|placement| MachineId::new(placement.value.machine.as_str())),
        is_pinned,
        stopping_on: must_stop_first
            .then(|| stopping_on(snapshot, name))
            .flatten(),
    })
}

/// Whether some record of a unit is unreadable: the engine then must not change it.
pub(crate) fn is_pinned(snapshot: &Snapshot, name: &str) -> bool {
    is_misplaced(snapshot, name) || snapshot.is_pinned(name)
}

/// Whether a unit's place names an impossible machine.
pub(crate) fn is_misplaced(snapshot: &Snapshot, name: &str) -> bool {
    snapshot.placements.contains_key(name) && placement_of(snapshot, name).is_none()
}

/// The first machine that still reports an unplaced unit. Agents report units that are loaded.
fn stopping_on(snapshot: &Snapshot, name: &str) -> Option<MachineId> {
    let states = snapshot.states_of(name);
    let mut machines = states.map(|(key, _)| key.machine.as_str());
    let is_there = |machine: &str| {
        let key = || Key::Machine(machine.to_owned());
        snapshot.machines.contains_key(machine) || snapshot.unreadable.contains_key(&key())
    };
    let machine = machines.find(|machine| is_there(machine))?;
    Some(MachineId::new(machine))
}

/// A unit's place, unless it names an impossible machine.
fn placement_of<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a Stored<Placement>> {
    let placement = snapshot.placements.get(name);
    placement.filter(|placement| is_part(&placement.value.machine))
}
