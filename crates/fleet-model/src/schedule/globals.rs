//! Where global units run. Each machine's list is cached, and renewed only after a relevant change.

use std::collections::BTreeSet;

use super::cluster::{Cluster, Unit};
use super::machine_id::MachineId;
use crate::unit::UnitName;

impl Cluster {
    /// After a unit was placed on a machine or left it: global units that exclude it leave or come.
    pub(super) fn renew_globals_beside(&mut self, name: &UnitName, machine: &MachineId) {
        if !self.globals.is_empty() && self.concerns_globals(&self.units[name]) {
            self.renew_globals(machine);
        }
    }

    /// Whether a unit and some global one exclude each other.
    fn concerns_globals(&self, unit: &Unit) -> bool {
        let mut conflicts = unit.conflicts.iter();
        let mut matched = unit.matched.iter();
        conflicts.any(|id| self.patterns.get(*id).globals_matched > 0)
            || matched.any(|id| self.patterns.get(*id).globals_declaring > 0)
    }

    /// Whether a unit excludes another unit or is excluded by one.
    fn excludes_anybody(&self, unit: &Unit) -> bool {
        let mut matched = unit.matched.iter();
        !unit.conflicts.is_empty()
            || matched.any(|id| {
                let pattern = self.patterns.get(*id);
                pattern.globals_declaring > 0 || !pattern.declared_on.is_empty()
            })
    }

    /// Renews the list of an existing machine: the rule of [`super::globals_on`], through the indexes.
    pub(super) fn renew_globals(&mut self, machine: &MachineId) {
        let Some(node) = self.machines.get_mut(machine) else {
            return;
        };
        let before = std::mem::take(&mut node.globals);
        for name in &before {
            self.uncount(name, machine);
        }
        let mut after = BTreeSet::new();
        for name in self.globals.clone() {
            if self.fits(&name, machine) {
                self.count(&name, machine);
                after.insert(name);
            }
        }
        // Each unit is counted and removed by the same functions.
        for name in after.difference(&before) {
            self.uncount(name, machine);
        }
        for name in before.difference(&after) {
            self.count(name, machine);
        }
        self.change_globals(machine, &before, after);
    }

    fn change_globals(
        &mut self,
        machine: &MachineId,
        before: &BTreeSet<UnitName>,
        after: BTreeSet<UnitName>,
    ) {
        let gone: Vec<_> = before.difference(&after).cloned().collect();
        let new: Vec<_> = after.difference(before).cloned().collect();
        if let Some(node) = self.machines.get_mut(machine) {
            node.globals = after;
        }
        for name in &gone {
            self.leave_present(name, machine);
        }
        for name in &new {
            self.join_present(name, machine);
        }
    }

    fn fits(&self, global: &UnitName, machine: &MachineId) -> bool {
        let unit = &self.units[global];
        let node = self.machines.get(machine);
        node.is_some_and(|node| self.judge(unit, machine, node).is_ok())
    }

    /// Starts a global unit that became active.
    pub(super) fn spread(&mut self, name: &UnitName) {
        let unit = &self.units[name];
        let alone = !self.excludes_anybody(unit);
        let machines = self.pools.get(unit.pool).machines.iter();
        let machines: Vec<_> = machines.map(|(_, id)| id.clone()).collect();
        for machine in machines {
            if !alone {
                self.renew_globals(&machine);
            } else if self.fits(name, &machine) {
                self.host(name, &machine);
            }
        }
    }

    fn host(&mut self, name: &UnitName, machine: &MachineId) {
        if let Some(node) = self.machines.get_mut(machine) {
            node.globals.insert(name.clone());
            self.join_present(name, machine);
        }
    }

    /// Stops a global unit that is about to become inactive. It is no longer in the set of active ones.
    pub(super) fn gather(&mut self, name: &UnitName) {
        let unit = &self.units[name];
        let alone = !self.excludes_anybody(unit);
        let machines = self.pools.get(unit.pool).machines.iter();
        let machines: Vec<_> = machines.map(|(_, id)| id.clone()).collect();
        for machine in machines {
            let node = self.machines.get_mut(&machine);
            if node.is_some_and(|node| node.globals.remove(name)) {
                self.leave_present(name, &machine);
                if !alone {
                    self.renew_globals(&machine);
                }
            }
        }
    }
}
