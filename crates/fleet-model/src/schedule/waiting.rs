//! Units that were looked at and found no machine. They are not looked at again before something
//! changes that may have been in the way:
//!
//! | wait | until |
//! | --- | --- |
//! | at their pool | a machine comes into it |
//! | at the patterns that they have to do with | a unit that has, too, leaves a machine |
//! | at the units that they follow | one of them comes to a machine |

use std::collections::BTreeSet;

use super::cluster::Cluster;
use super::patterns::PatternId;
use super::pools::{PoolId, forget};
use crate::unit::UnitName;

impl Cluster {
    /// It found no machine.
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

    /// It is nowhere to be found any more.
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

    /// They may still be listed in other places. There they are passed over, or woken for
    /// nothing.
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
