//! What was seen, taken over into the state and its indexes.

use std::collections::BTreeSet;

use super::cluster::{Cluster, Node, Unit};
use super::model::{Change, Desired, Job, Machine};
use super::names::{MachineId, UnitName};
use super::patterns::PatternId;
use crate::domain::unit::{Glob, Requirements};

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
            Change::Desired { unit, desired } => self.set_desired(&unit, desired),
            Change::UnitGone(unit) => self.remove_unit(&unit),
            Change::Placed { unit, machine } => {
                let machine = machine.filter(|id| !id.as_str().is_empty());
                self.observe_placement(unit, machine);
            }
        }
    }

    fn observe_placement(&mut self, unit: UnitName, machine: Option<MachineId>) {
        if self.units.contains_key(&unit) {
            self.set_placement(&unit, machine);
        } else if let Some(machine) = machine {
            self.strays.insert(unit, machine);
        } else {
            self.strays.remove(&unit);
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

    fn put_unit(&mut self, name: UnitName, requirements: Requirements, desired: Desired) {
        if let Some(Unit { job, .. }) = self.units.get(&name)
            && (&job.requirements, job.desired) == (&requirements, desired)
        {
            return;
        }
        let placed_on = self.strays.remove(&name);
        let before = self.withdraw_unit(&name);
        let placed_on = before.map_or(placed_on, |job| job.placed_on);
        self.enter_unit(Job {
            name,
            requirements,
            desired,
            placed_on,
        });
    }

    fn set_desired(&mut self, name: &UnitName, desired: Desired) {
        let Some(unit) = self.units.get_mut(name) else {
            return;
        };
        if unit.job.desired.is_active() == desired.is_active() {
            unit.job.desired = desired;
        } else if let Some(job) = self.withdraw_unit(name) {
            self.enter_unit(Job { desired, ..job });
        }
    }

    fn remove_unit(&mut self, name: &UnitName) {
        self.strays.remove(name);
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
        self.units.remove(name).map(|unit| unit.job)
    }

    /// Takes a unit in that is not known, with its placement.
    fn enter_unit(&mut self, job: Job) {
        let name = job.name.clone();
        let (is_placeable, is_global) = (job.is_placeable(), job.is_active_global());
        let placed_on = job.placed_on.clone();
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

    /// Tells the indexes what an active unit asks for.
    fn link(&mut self, name: &UnitName) {
        let unit = &self.units[name];
        let asked = unit.job.requirements.clone();
        let matched = self.patterns.matching(name);
        for &id in &matched {
            self.patterns.get_mut(id).names.insert(name.clone());
            self.patterns.get_mut(id).globals_matched += usize::from(asked.is_global);
        }
        let machine = |id: &MachineId| {
            self.machines
                .get(id)
                .map(|node| (node.load, &node.metadata))
        };
        let (pool, members) = self.pools.ask(&asked.metadata, &machine);
        for id in members {
            if let Some(node) = self.machines.get_mut(&id) {
                node.pools.push(pool);
            }
        }
        if let Some(unit) = self.units.get_mut(name) {
            (unit.matched, unit.pool) = (matched, pool);
        }
        let conflicts = self.declare_all(&asked.conflicts);
        for &id in &conflicts {
            self.patterns.get_mut(id).globals_declaring += usize::from(asked.is_global);
        }
        // A global unit replaces nobody: the two do not go together.
        let replaces = if asked.is_global {
            Vec::new()
        } else {
            self.declare_all(&asked.replaces)
        };
        if let Some(unit) = self.units.get_mut(name) {
            (unit.conflicts, unit.replaces) = (conflicts, replaces);
        }
        if !asked.replaces.is_empty() && !asked.is_global {
            self.replacers.insert(name.clone());
        }
        self.link_followers(name, &asked);
    }

    fn link_followers(&mut self, name: &UnitName, asked: &Requirements) {
        if asked.is_global {
            return;
        }
        for leader in &asked.machine_of {
            self.followers
                .entry(leader.clone())
                .or_default()
                .insert(name.clone());
        }
        self.suspect_replaceable(asked);
    }

    fn unlink(&mut self, name: &UnitName) {
        let unit = &self.units[name];
        let asked = unit.job.requirements.clone();
        let (pool, matched) = (unit.pool, unit.matched.clone());
        let (conflicts, replaces) = (unit.conflicts.clone(), unit.replaces.clone());
        for id in self.pools.unask(pool) {
            if let Some(node) = self.machines.get_mut(&id) {
                node.pools.retain(|other| *other != pool);
            }
        }
        for id in matched {
            self.patterns.get_mut(id).names.remove(name);
            self.patterns.get_mut(id).globals_matched -= usize::from(asked.is_global);
        }
        for &id in &conflicts {
            self.patterns.get_mut(id).globals_declaring -= usize::from(asked.is_global);
        }
        for id in conflicts.into_iter().chain(replaces) {
            for matched in self.patterns.revoke(id) {
                if let Some(unit) = self.units.get_mut(&matched) {
                    unit.matched.retain(|other| *other != id);
                }
            }
        }
        for leader in asked.machine_of.iter().filter(|_| !asked.is_global) {
            if let Some(followers) = self.followers.get_mut(leader) {
                followers.remove(name);
                if followers.is_empty() {
                    self.followers.remove(leader);
                }
            }
        }
        self.replacers.remove(name);
        if !asked.is_global {
            self.suspect_replaceable(&asked);
        }
    }

    /// Each pattern once. New ones are told of the active units that they match, and where those are.
    fn declare_all(&mut self, globs: &[Glob]) -> Vec<PatternId> {
        let mut declared = Vec::new();
        for (index, glob) in globs.iter().enumerate() {
            if globs[..index].contains(glob) {
                continue;
            }
            let (id, is_new) = self.patterns.declare(glob);
            if is_new {
                self.tell(id);
            }
            declared.push(id);
        }
        declared
    }

    fn tell(&mut self, id: PatternId) {
        let names: Vec<_> = self
            .patterns
            .matched(id, &self.units)
            .into_iter()
            .cloned()
            .collect();
        for name in names {
            let Some(unit) = self.units.get_mut(&name) else {
                continue;
            };
            let (is_global, is_placeable) = (unit.job.is_active_global(), unit.job.is_placeable());
            if !is_global && !is_placeable {
                continue;
            }
            unit.matched.push(id);
            let machines: Vec<_> = if is_global {
                let hosts = self.pools.get(unit.pool).machines.iter().map(|(_, id)| id);
                hosts
                    .filter(|id| self.machines[*id].globals.contains(&name))
                    .cloned()
                    .collect()
            } else {
                let placed_on = unit.job.placed_on.iter();
                placed_on
                    .filter(|id| self.machines.contains_key(*id))
                    .cloned()
                    .collect()
            };
            let pattern = self.patterns.get_mut(id);
            pattern.names.insert(name);
            pattern.globals_matched += usize::from(is_global);
            for machine in machines {
                super::patterns::increase(&mut pattern.matched_on, &machine);
            }
        }
    }
}
