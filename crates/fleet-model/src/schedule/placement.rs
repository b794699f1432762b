//! Updates counts and loads when a unit is placed on a machine or leaves it, and marks the units that must be
//! checked again.

use super::cluster::Cluster;
use super::machine_id::MachineId;
use super::patterns::{decrease, increase};
use super::pools::forget;
use crate::unit::UnitName;

impl Cluster {
    /// Places a unit or removes it from its machine, with all consequences for other units. Returns its earlier
    /// machine.
    pub(super) fn set_placement(
        &mut self,
        name: &UnitName,
        to: Option<MachineId>,
    ) -> Option<MachineId> {
        let unit = self.units.get(name)?;
        let from = unit.job.placed_on.clone();
        if from == to {
            return from;
        }
        let counts = unit.job.is_placeable();
        if counts && let Some(machine) = &from {
            self.leave(name, machine);
        }
        if counts && let Some(machine) = &to {
            self.join(name, machine);
        }
        if let Some(unit) = self.units.get_mut(name) {
            unit.job.placed_on = to;
        }
        self.suspect(name);
        from
    }

    /// An active ordinary unit comes to a machine, existing or not. Its own placement must not be set yet, or
    /// it would count as present there.
    pub(super) fn join(&mut self, name: &UnitName, machine: &MachineId) {
        let units = self.placed.entry(machine.clone()).or_default();
        units.insert(name.clone());
        if self.machines.contains_key(machine) {
            self.join_present(name, machine);
            self.renew_globals_beside(name, machine);
        } else {
            self.suspect_followers(name, machine);
        }
    }

    /// An active ordinary unit leaves a machine, existing or not. Its own placement may still be set.
    pub(super) fn leave(&mut self, name: &UnitName, machine: &MachineId) {
        forget(&mut self.placed, machine, name);
        if self.machines.contains_key(machine) {
            self.leave_present(name, machine);
            self.renew_globals_beside(name, machine);
        } else {
            self.suspect_followers(name, machine);
        }
    }

    /// Counts a unit, global or not, on an existing machine.
    pub(super) fn join_present(&mut self, name: &UnitName, machine: &MachineId) {
        self.suspect_rivals(name, machine);
        self.suspect_replaced(name, machine);
        self.count(name, machine);
        self.add_load(machine, 1);
        self.wake_followers(name);
    }

    /// Stops counting a unit, global or not, on an existing machine.
    pub(super) fn leave_present(&mut self, name: &UnitName, machine: &MachineId) {
        self.uncount(name, machine);
        self.add_load(machine, -1);
        let patterns: Vec<_> = self.units[name].patterns().collect();
        for pattern in patterns {
            self.wake_pattern(pattern);
        }
        self.suspect_followers(name, machine);
        self.suspect_companions(name, machine);
    }

    /// Updates the patterns that concern the unit with its machine.
    pub(super) fn count(&mut self, name: &UnitName, machine: &MachineId) {
        let unit = &self.units[name];
        for &id in &unit.conflicts {
            increase(&mut self.patterns.get_mut(id).declared_on, machine);
        }
        for &id in &unit.matched {
            increase(&mut self.patterns.get_mut(id).matched_on, machine);
        }
        for &id in &unit.replaces {
            let on = self
                .patterns
                .get_mut(id)
                .replacing_on
                .entry(machine.clone());
            on.or_default().insert(name.clone());
        }
    }

    pub(super) fn uncount(&mut self, name: &UnitName, machine: &MachineId) {
        let unit = &self.units[name];
        for &id in &unit.conflicts {
            decrease(&mut self.patterns.get_mut(id).declared_on, machine);
        }
        for &id in &unit.matched {
            decrease(&mut self.patterns.get_mut(id).matched_on, machine);
        }
        for &id in &unit.replaces {
            forget(&mut self.patterns.get_mut(id).replacing_on, machine, name);
        }
    }

    pub(super) fn add_load(&mut self, machine: &MachineId, by: i32) {
        if let Some(node) = self.machines.get_mut(machine) {
            let from = node.load;
            node.load = from.saturating_add_signed(by);
            self.pools.reload(machine, from, node.load, &node.pools);
        }
    }

    /// Before a unit joins: units that it excludes, or that exclude it, may have to leave, and so may the unit.
    fn suspect_rivals(&mut self, name: &UnitName, machine: &MachineId) {
        if self.is_crowded(name, machine) {
            let rivals: Vec<_> = self.rivals(name, machine).cloned().collect();
            self.suspects.extend(rivals);
        }
    }

    /// Units that were there because of this one, or will be there without it.
    fn suspect_followers(&mut self, leader: &UnitName, machine: &MachineId) {
        let Some(followers) = self.followers.get(leader.as_str()) else {
            return;
        };
        let Some(there) = self.placed.get(machine) else {
            return;
        };
        let both: Vec<_> = if followers.len() < there.len() {
            followers
                .iter()
                .filter(|unit| there.contains(*unit))
                .cloned()
                .collect()
        } else {
            there
                .iter()
                .filter(|unit| followers.contains(*unit))
                .cloned()
                .collect()
        };
        self.suspects.extend(both);
    }
}
