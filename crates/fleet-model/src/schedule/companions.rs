//! Units that leave a drained machine together: those that `MachineOf` ties to each other, in either direction.
//! So no unit is separated from one that it follows, and none is moved to a machine that cannot run it.

use std::collections::{BTreeSet, VecDeque};

use super::cluster::{Cluster, OnMachine};
use super::machine_id::MachineId;
use super::rules::{Neighbours, Refusal, can_run};
use crate::unit::{Requirements, UnitName};

/// A machine as it would be with additional units.
struct With<'a> {
    on_machine: OnMachine<'a>,
    together: &'a BTreeSet<UnitName>,
}

impl Neighbours for With<'_> {
    fn has(&self, unit: &str) -> bool {
        self.together.contains(unit) || self.on_machine.has(unit)
    }

    // The additional units were on one machine before: they do not exclude each other.
    fn conflicts(&self, unit: &UnitName, requirements: &Requirements) -> bool {
        self.on_machine.conflicts(unit, requirements)
    }
}

impl Cluster {
    /// A unit and all that must be on its machine with it, by name.
    pub(super) fn companions(&self, unit: &UnitName, machine: &MachineId) -> BTreeSet<UnitName> {
        let Some(on_machine) = self.placed.get(machine) else {
            return BTreeSet::from([unit.clone()]);
        };
        let mut found = BTreeSet::from([unit]);
        let mut ahead = VecDeque::from([unit]);
        while let Some(name) = ahead.pop_front() {
            let leaders = self.leaders(name.as_str());
            let leaders = leaders.filter_map(|leader| on_machine.get(leader.as_str()));
            let followers = self.followers.get(name.as_str()).into_iter().flatten();
            let followers = followers.filter(|follower| on_machine.contains(*follower));
            for next in leaders.chain(followers) {
                if found.insert(next) {
                    ahead.push_back(next);
                }
            }
        }
        found.into_iter().cloned().collect()
    }

    /// By name, but after the units that they follow. In a circle the first by name comes first.
    pub(super) fn leaders_first(&self, mut rest: BTreeSet<UnitName>) -> Vec<UnitName> {
        let mut ordered = Vec::with_capacity(rest.len());
        while let Some(first) = rest.first() {
            let follows_none = |unit: &&UnitName| {
                let mut leaders = self.leaders(unit.as_str());
                leaders.all(|leader| !rest.contains(leader.as_str()))
            };
            let next = rest.iter().find(follows_none).unwrap_or(first).clone();
            rest.remove(&next);
            ordered.push(next);
        }
        ordered
    }

    /// The machine for units that move together: the least loaded that can run all of them.
    pub(super) fn choose_for_all(
        &self,
        units: &BTreeSet<UnitName>,
        leaving: &MachineId,
    ) -> Option<MachineId> {
        let first = units.first()?;
        let follows_itself = self
            .leaders(first.as_str())
            .any(|leader| leader == first.as_str());
        if units.len() == 1 && !follows_itself {
            return self.choose(first, Some(leaving));
        }
        // A singleton moves by two plans, and the second does not know the others.
        let stays = |unit: &UnitName| {
            let job = &self.units[unit].job;
            job.is_pinned || job.requirements.is_singleton
        };
        if units.iter().any(stays) {
            return None;
        }
        let machines = |unit: &UnitName| &self.pools.get(self.units[unit].pool).machines;
        let fewest = units.iter().map(machines).min_by_key(|pool| pool.len())?;
        let accepts =
            |id: &MachineId| id != leaving && units.iter().all(|unit| self.admits(id, unit, units));
        let mut machines = fewest.iter().map(|(_, id)| id);
        machines.find(|id| accepts(id)).cloned()
    }

    /// Whether a unit may be placed on a machine together with others.
    fn admits(&self, id: &MachineId, name: &UnitName, together: &BTreeSet<UnitName>) -> bool {
        self.admit_with(name, id, together).is_ok() && self.is_free_of_meetings(name, id)
    }

    /// Why a unit cannot be placed on a machine together with others.
    pub(super) fn admit_with(
        &self,
        name: &UnitName,
        id: &MachineId,
        together: &BTreeSet<UnitName>,
    ) -> Result<(), Refusal<'_>> {
        let (unit, node) = (&self.units[name], &self.machines[id]);
        let on_machine = OnMachine {
            cluster: self,
            machine: id,
        };
        let with = With {
            on_machine,
            together,
        };
        let asked = &unit.job.requirements;
        can_run(&unit.job.name, asked, (id, &node.metadata), &with)?;
        node.admits()
    }

    /// When a unit leaves a drained machine, units that it followed may be able to leave without it.
    pub(super) fn suspect_companions(&mut self, unit: &UnitName, machine: &MachineId) {
        if !self.is_draining(machine) {
            return;
        }
        let Some(on_machine) = self.placed.get(machine) else {
            return;
        };
        let leaders = self.leaders(unit.as_str());
        let leaders = leaders.filter_map(|leader| on_machine.get(leader.as_str()));
        let leaders: Vec<_> = leaders.cloned().collect();
        self.suspects.extend(leaders);
    }
}
