//! What follows when a unit comes to a machine or leaves it: counts, loads, and who has to be
//! looked at again.

use super::cluster::Cluster;
use super::machine_id::MachineId;
use super::patterns::{decrease, increase};
use super::pools::forget;
use crate::unit::UnitName;

impl Cluster {
    /// Places a unit, or takes it from where it is. What it was for others where it was, and is
    /// where it comes to, follows. Gives where it was.
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

    /// An active ordinary unit comes to a machine, there or not. It must not say yet that it is on
    /// it, or it is taken for one that is counted there.
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

    /// An active ordinary unit leaves a machine, there or not. It may still say that it is on it.
    pub(super) fn leave(&mut self, name: &UnitName, machine: &MachineId) {
        forget(&mut self.placed, machine, name);
        if self.machines.contains_key(machine) {
            self.leave_present(name, machine);
            self.renew_globals_beside(name, machine);
        } else {
            self.suspect_followers(name, machine);
        }
    }

    /// A unit, global or not, begins to count on a machine that is there.
    pub(super) fn join_present(&mut self, name: &UnitName, machine: &MachineId) {
        self.suspect_rivals(name, machine);
        self.suspect_replaced(name, machine);
        self.count(name, machine);
        self.add_load(machine, 1);
        self.wake_followers(name);
    }

    /// A unit, global or not, ceases to count on a machine that is there.
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

    /// Writes down for the patterns that it has to do with where it is.
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

    /// Before a unit joins: whoever it must not be beside may have to leave, as well as itself.
    fn suspect_rivals(&mut self, name: &UnitName, machine: &MachineId) {
        if self.is_crowded(name, machine) {
            let rivals: Vec<_> = self.rivals(name, machine).cloned().collect();
            self.suspects.extend(rivals);
        }
    }

    /// Those who were there because of it, or will be there without it.
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
