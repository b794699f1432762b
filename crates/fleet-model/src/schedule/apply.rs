//! What was seen, taken over into the state and its indexes.

use std::collections::BTreeSet;

use super::cluster::{Cluster, Node, Unit};
use super::machine_id::MachineId;
use super::model::{Change, Job, Machine};
use crate::unit::{DesiredState, Requirements, UnitName};

impl Cluster {
    /// Takes over a change that was seen.
    ///
    /// It costs what has to do with it: a machine costs the units on it, a unit its requirements
    /// and the names that its patterns may match.
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Machine(machine) => self.put_machine(machine),
            Change::MachineGone(id) => self.remove_machine(&id),
            Change::Unit {
                unit,
                requirements,
                desired,
            } => self.put_unit(unit, requirements, desired),
            Change::UnitGone(unit) => self.remove_unit(&unit),
            Change::Placed { unit, machine } => {
                let machine = machine.filter(|id| !id.as_str().is_empty());
                if self.units.contains_key(&unit) {
                    self.set_placement(&unit, machine);
                }
            }
        }
    }

    fn put_machine(&mut self, machine: Machine) {
        let Machine { id, metadata } = machine;
        if self
            .machines
            .get(&id)
            .is_some_and(|node| node.metadata == metadata)
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

    /// Nobody is woken for what is free now: it is free on a machine that is not there.
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

    fn put_unit(&mut self, name: UnitName, requirements: Requirements, desired: DesiredState) {
        if let Some(Unit { job, .. }) = self.units.get(&name)
            && (&job.requirements, job.desired) == (&requirements, desired)
        {
            return;
        }
        let placed_on = self.withdraw_unit(&name).and_then(|job| job.placed_on);
        self.enter_unit(Job {
            name,
            requirements,
            desired,
            placed_on,
        });
    }

    fn remove_unit(&mut self, name: &UnitName) {
        self.withdraw_unit(name);
        self.suspects.remove(name);
    }

    /// Takes a unit out of everything.
    fn withdraw_unit(&mut self, name: &UnitName) -> Option<Job> {
        let unit = self.units.get(name)?;
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
        self.units.remove(name).map(|unit| unit.job)
    }

    /// Takes a unit in that is not known, with its placement.
    fn enter_unit(&mut self, job: Job) {
        let name = job.name.clone();
        let (is_placeable, is_global) = (job.is_placeable(), job.is_active_global());
        let placed_on = job.placed_on.clone();
        self.names.insert(name.clone());
        // Not before it is counted there.
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
