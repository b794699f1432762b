//! Applies changes to the state and its indexes.

use std::collections::BTreeSet;

use super::cluster::{Cluster, Node, Unit};
use super::machine_id::MachineId;
use super::model::{ClusterChange, Job, Machine};
use crate::unit::UnitName;

impl Cluster {
    /// Applies a change.
    ///
    /// The cost depends on what the change touches: a machine costs its units, a unit costs its requirements
    /// and the names that its patterns may match.
    pub fn apply(&mut self, change: ClusterChange) {
        match change {
            ClusterChange::Machine(machine) => self.put_machine(machine),
            ClusterChange::MachineGone(id) => {
                if self.unclear.remove(&id) {
                    self.suspects
                        .extend(self.placed.get(&id).into_iter().flatten().cloned());
                }
                self.remove_machine(&id);
            }
            ClusterChange::MachineUnclear(id) => {
                self.remove_machine(&id);
                self.unclear.insert(id);
            }
            ClusterChange::Unit(job) => self.put_unit(job),
            ClusterChange::UnitGone(unit) => self.remove_unit(&unit),
        }
    }

    /// Sets whether missing machines are expected to return. If so, active units stay placed on them.
    pub fn await_machines(&mut self, awaits: bool) {
        self.awaits_machines = awaits;
        let gone = self
            .placed
            .iter()
            .filter(|(id, _)| !self.machines.contains_key(*id));
        self.suspects
            .extend(gone.flat_map(|(_, units)| units).cloned());
    }

    fn put_machine(&mut self, machine: Machine) {
        let Machine {
            id,
            metadata,
            availability,
        } = machine;
        self.unclear.remove(&id);
        if self
            .machines
            .get(&id)
            .is_some_and(|node| node.metadata == metadata && node.availability == availability)
        {
            return;
        }
        self.remove_machine(&id);
        let pools = self.pools.enter(&id, 0, &metadata);
        for &pool in &pools {
            self.wake_pool(pool);
        }
        let node = Node {
            metadata,
            availability,
            load: 0,
            globals: BTreeSet::new(),
            pools,
        };
        self.machines.insert(id.clone(), node);
        self.ids.insert(id.clone());
        let units = self.placed.get(&id).cloned().unwrap_or_default();
        for name in &units {
            self.join_present(name, &id);
        }
        self.suspects.extend(units);
        self.renew_globals(&id);
    }

    /// No unit is woken for the freed room: it is on a missing machine.
    fn remove_machine(&mut self, id: &MachineId) {
        let Some((id, node)) = self.machines.remove_entry(id.as_str()) else {
            return;
        };
        self.ids.remove(&id);
        self.pools.exit(&id, node.load, &node.metadata, &node.pools);
        for name in &node.globals {
            self.uncount(name, &id);
        }
        let units = self.placed.get(&id).cloned().unwrap_or_default();
        for name in &units {
            self.uncount(name, &id);
        }
        self.suspects.extend(units);
    }

    fn put_unit(&mut self, job: Job) {
        if let Some(Unit { job: known, .. }) = self.units.get(&job.name)
            && (
                &known.requirements,
                known.desired,
                known.is_pinned,
                &known.stopping_on,
            ) == (
                &job.requirements,
                job.desired,
                job.is_pinned,
                &job.stopping_on,
            )
        {
            self.set_placement(&job.name, job.placed_on);
            return;
        }
        self.withdraw_unit(&job.name);
        self.enter_unit(job);
    }

    fn remove_unit(&mut self, name: &UnitName) {
        self.withdraw_unit(name);
        self.suspects.remove(name);
    }

    /// Removes a unit from the state and all indexes.
    fn withdraw_unit(&mut self, name: &UnitName) {
        let Some(unit) = self.units.get(name) else {
            return;
        };
        let (is_placeable, is_global) = (unit.job.is_placeable(), unit.job.is_active_global());
        if is_placeable && let Some(machine) = unit.job.placed_on.clone() {
            self.leave(name, &machine);
        }
        if is_global {
            self.globals.remove(name);
            self.gather(name);
        }
        if is_placeable || is_global {
            self.stop_waiting(name);
            self.unlink(name);
        }
        self.names.remove(name);
        self.units.remove(name);
    }

    /// Adds an unknown unit with its placement.
    fn enter_unit(&mut self, job: Job) {
        let name = job.name.clone();
        let (is_placeable, is_global) = (job.is_placeable(), job.is_active_global());
        let placed_on = job.placed_on.clone();
        self.names.insert(name.clone());
        // Only after it is counted there.
        self.units.insert(
            name.clone(),
            Unit::new(Job {
                placed_on: None,
                ..job
            }),
        );
        if is_placeable || is_global {
            self.link(&name);
        }
        if is_global {
            self.globals.insert(name.clone());
            self.spread(&name);
        }
        if is_placeable && let Some(machine) = &placed_on {
            self.join(&name, machine);
        }
        if let Some(unit) = self.units.get_mut(&name) {
            unit.job.placed_on = placed_on;
        }
        self.suspect(&name);
    }
}
