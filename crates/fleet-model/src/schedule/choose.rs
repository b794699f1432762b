//! Chooses the machine for a unit: of those that can run it, the one with the fewest units, and among equals
//! the first by id.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::cluster::{Cluster, Unit};
use super::machine_id::MachineId;
use crate::unit::UnitName;

impl Cluster {
    /// The machine for a unit that must leave this one or, with `None`, is on none. A unit that must leave
    /// moves only to a machine where no unit would have to leave again.
    ///
    /// A singleton leaves in one plan and is placed in a later one, which does not know the first. So it
    /// prefers a machine that it would not have to leave again.
    pub(super) fn choose(&self, name: &UnitName, leaving: Option<&MachineId>) -> Option<MachineId> {
        let lasting = || self.choose_among(name, leaving, |id| self.is_free_of_meetings(name, id));
        let any = || self.choose_among(name, leaving, |_| true);
        if leaving.is_some() {
            lasting()
        } else if self.units[name].job.requirements.is_singleton {
            lasting().or_else(any)
        } else {
            any()
        }
    }

    fn choose_among(
        &self,
        name: &UnitName,
        leaving: Option<&MachineId>,
        is_allowed: impl Fn(&MachineId) -> bool,
    ) -> Option<MachineId> {
        let unit = &self.units[name];
        if leaving.is_none() && self.is_excluded_everywhere(unit) {
            return None;
        }
        let accepts = |id: &MachineId| {
            Some(id) != leaving
                && self
                    .machines
                    .get(id)
                    .is_some_and(|node| self.admit(unit, id, node).is_ok())
                && is_allowed(id)
        };
        if let Some(few) = self.few(unit) {
            return few.into_iter().map(|(_, id)| id).find(accepts);
        }
        let machines = self.pools.get(unit.pool).machines.iter();
        machines.map(|(_, id)| id).find(|id| accepts(id)).cloned()
    }

    /// Whether a pattern alone keeps a unit from every machine.
    fn is_excluded_everywhere(&self, unit: &Unit) -> bool {
        let all = self.machines.len();
        let mut conflicts = unit.conflicts.iter();
        let mut matched = unit.matched.iter();
        conflicts.any(|id| self.patterns.get(*id).matched_on.len() == all)
            || matched.any(|id| self.patterns.get(*id).declared_on.len() == all)
    }

    /// The only candidate machines, in order, if the unit names them or follows an ordinary unit.
    fn few(&self, unit: &Unit) -> Option<BTreeSet<(u32, MachineId)>> {
        let asked = &unit.job.requirements;
        let with_load = |id: &MachineId| {
            let node = self.machines.get(id);
            node.map(|node| (node.load, id.clone()))
        };
        if let Some(wanted) = &asked.machine_id {
            let from = (Bound::Included(wanted.as_str()), Bound::Unbounded);
            let from = self.ids.range::<str, _>(from);
            let alike = from.take_while(|id| id.as_str().starts_with(wanted.as_str()));
            let named = alike.filter(|id| wanted.names(id.as_str()));
            return Some(named.filter_map(with_load).collect());
        }
        let mut leaders = asked.machine_of.iter();
        let ordinary = leaders.find(|leader| !self.globals.contains(leader.as_str()))?;
        let leader = self.units.get(ordinary.as_str());
        let machine = leader.and_then(|leader| leader.job.placed_on.as_ref());
        Some(machine.and_then(with_load).into_iter().collect())
    }
}
