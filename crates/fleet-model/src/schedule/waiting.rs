//! Units that found no machine. A unit is in three waiting lists, and is checked again only when one of them wakes it:
//!
//! | waiting list of | wakes the unit when |
//! | --- | --- |
//! | its pool | a machine joins the pool |
//! | each pattern that it declares or that matches it | a unit that declares or matches it leaves a machine |
//! | each of its leaders | the leader is placed |

use std::collections::BTreeSet;

use super::cluster::Cluster;
use super::patterns::PatternId;
use super::pools::{PoolId, forget};
use crate::unit::UnitName;

impl Cluster {
    pub(super) fn wait(&mut self, name: &UnitName) {
        let Some(unit) = self.units.get_mut(name) else {
            return;
        };
        unit.is_waiting = true;
        self.pools.get_mut(unit.pool).waiting.insert(name.clone());
        for id in unit.patterns() {
            self.patterns.get_mut(id).waiting.insert(name.clone());
        }
        for leader in &unit.job.requirements.machine_of {
            self.waiting
                .entry(leader.clone())
                .or_default()
                .insert(name.clone());
        }
    }

    /// Removes the unit from all waiting lists.
    pub(super) fn stop_waiting(&mut self, name: &UnitName) {
        let Some(unit) = self.units.get_mut(name) else {
            return;
        };
        unit.is_waiting = false;
        self.pools.get_mut(unit.pool).waiting.remove(name);
        for id in unit.patterns() {
            self.patterns.get_mut(id).waiting.remove(name);
        }
        for leader in &unit.job.requirements.machine_of {
            forget(&mut self.waiting, leader, name);
        }
    }

    pub(super) fn wake_pool(&mut self, pool: PoolId) {
        let waiting = std::mem::take(&mut self.pools.get_mut(pool).waiting);
        self.wake(waiting);
    }

    pub(super) fn wake_pattern(&mut self, pattern: PatternId) {
        let waiting = std::mem::take(&mut self.patterns.get_mut(pattern).waiting);
        self.wake(waiting);
    }

    pub(super) fn wake_followers(&mut self, leader: &UnitName) {
        if !self.waiting.is_empty() {
            let waiting = self.waiting.remove(leader.as_str());
            self.wake(waiting.unwrap_or_default());
        }
    }

    /// A woken unit may remain in other lists, where it is ignored or woken in vain.
    fn wake(&mut self, waiting: BTreeSet<UnitName>) {
        for name in waiting {
            if let Some(unit) = self.units.get_mut(&name)
                && unit.is_waiting
            {
                unit.is_waiting = false;
                self.suspects.insert(name);
            }
        }
    }
}
