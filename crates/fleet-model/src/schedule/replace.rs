//! Units that leave a machine for another (`Replaces`).
//!
//! The older fleet moved either of the two, to any machine. Here only the replaced unit moves, the one whose name the
//! other's pattern matches. It moves only to a machine that can run it without another such pair. So every move
//! removes one pair, and units do not move in circles.

use std::collections::BTreeSet;

use super::cluster::{Cluster, Unit};
use super::machine_id::MachineId;
use crate::unit::{Requirements, UnitName};

impl Cluster {
    /// The first unit, by name, for which a unit must leave a machine.
    pub(super) fn replacer<'a>(
        &'a self,
        name: &UnitName,
        machine: &MachineId,
    ) -> Option<&'a UnitName> {
        let unit = &self.units[name];
        let patterns = unit.matched.iter().map(|id| self.patterns.get(*id));
        let there = patterns.filter_map(|pattern| pattern.replacing_on.get(machine));
        let mut candidates: Vec<_> = there.flatten().collect();
        candidates.sort_unstable();
        candidates
            .into_iter()
            .find(|other| self.displaces(&self.units[*other], unit))
    }

    /// Whether a unit must leave for the other if both are on one machine. Not if each replaces the other, and
    /// not if the one that would stay follows the one that would leave, because it would move after it.
    fn displaces(&self, other: &Unit, unit: &Unit) -> bool {
        let (other, unit) = (&other.job, &unit.job);
        other.name != unit.name
            && other.is_placeable()
            && unit.is_placeable()
            && other.requirements.replaces(unit.name.as_str())
            && !unit.requirements.replaces(other.name.as_str())
            && !self.follows(&other.name, &unit.name)
    }

    /// Whether one unit follows another, directly or through others.
    fn follows(&self, follower: &UnitName, leader: &UnitName) -> bool {
        let mut seen = BTreeSet::from([follower.as_str()]);
        let mut ahead = vec![follower.as_str()];
        while let Some(name) = ahead.pop() {
            for next in self.leaders(name) {
                if next == leader.as_str() {
                    return true;
                }
                if seen.insert(next) {
                    ahead.push(next);
                }
            }
        }
        false
    }

    /// Whether a unit would replace no unit on a machine, and none would replace it.
    pub(super) fn is_free_of_meetings(&self, name: &UnitName, machine: &MachineId) -> bool {
        let unit = &self.units[name];
        self.replacer(name, machine).is_none()
            && (unit.replaces.is_empty()
                || !self.replaced(name, machine).any(|other| other != name))
    }

    /// Units on a machine that must leave it for a unit.
    fn replaced<'a>(
        &'a self,
        name: &'a UnitName,
        machine: &MachineId,
    ) -> impl Iterator<Item = &'a UnitName> {
        let there = self.placed.get(machine).into_iter().flatten();
        there.filter(move |other| self.displaces(&self.units[name], &self.units[*other]))
    }

    /// Before a unit joins: units that must leave for it.
    pub(super) fn suspect_replaced(&mut self, name: &UnitName, machine: &MachineId) {
        if !self.units[name].replaces.is_empty() {
            let replaced: Vec<_> = self.replaced(name, machine).cloned().collect();
            self.suspects.extend(replaced);
        }
    }

    /// A change of what a unit follows can change the result of [`Self::follows`].
    pub(super) fn suspect_replaceable(&mut self, changed: &Requirements) {
        if changed.machine_of.is_empty() {
            return;
        }
        let replacers = self.replacers.iter();
        let patterns = replacers.flat_map(|name| &self.units[name].replaces);
        let names = patterns.flat_map(|id| &self.patterns.get(*id).names);
        self.suspects.extend(names.cloned());
    }
}
