//! The index entries of an active unit: its pool, its patterns, and the units that it follows.

use super::cluster::Cluster;
use super::machine_id::MachineId;
use super::patterns::{PatternId, increase};
use super::pools::forget;
use crate::unit::{Glob, Requirements, UnitName};

impl Cluster {
    /// Adds the requirements of an active unit to the indexes.
    pub(super) fn link(&mut self, name: &UnitName) {
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
        let (pool, members) = self.pools.pool_for(&asked.metadata, &machine);
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
        // A global unit replaces none: the two options exclude each other.
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

    /// Undoes [`link`](Self::link), for a unit that counts on no machine and does not wait.
    pub(super) fn unlink(&mut self, name: &UnitName) {
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
            forget(&mut self.followers, leader, name);
        }
        self.replacers.remove(name);
        if !asked.is_global {
            self.suspect_replaceable(&asked);
        }
    }

    /// Declares each pattern once. New ones get the active units that they match, and their machines.
    fn declare_all(&mut self, globs: &[Glob]) -> Vec<PatternId> {
        let mut declared = Vec::new();
        for (index, glob) in globs.iter().enumerate() {
            if globs[..index].contains(glob) {
                continue;
            }
            let (id, is_new) = self.patterns.declare(glob);
            if is_new {
                self.link_pattern(id);
            }
            declared.push(id);
        }
        declared
    }

    fn link_pattern(&mut self, id: PatternId) {
        for name in self.patterns.matched(id, &self.names) {
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
                increase(&mut pattern.matched_on, &machine);
            }
        }
    }
}
