//! The brake: a change that would remove more than half of all units of the adapter, and more than ten, waits
//! for an operator. A faulty configuration or an accidental mass deletion thus stops services on only a part of
//! the machines.
//!
//! A removal first waits for a short time, so that the removals of one change are counted together. After a start of
//! the adapter, removals wait until every resource has been checked. Removals of the last ten minutes count, too.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a removal waits for others of the same change.
const SETTLE: Duration = Duration::from_secs(2);
/// How long a removal counts.
const WINDOW: Duration = Duration::from_mins(10);

/// Removals above both limits wait for an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RemovalLimit {
    /// How many units may always be removed.
    pub units: usize,
    /// Percent of the adapter's units; 100 for no limit.
    pub percent: u32,
}

/// The brake's decision on the removals of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrakeDecision {
    Go,
    Wait(Duration),
    /// An operator must approve.
    Held {
        /// Units of all resources that wait to be removed.
        pending: usize,
        /// Units removed in the last ten minutes.
        removed: usize,
        /// The adapter's units.
        owned: usize,
    },
}

/// Pending and recent removals. Times are counted from any fixed moment.
#[derive(Debug)]
pub struct Brake {
    limit: RemovalLimit,
    /// By resource: how many units, and since when.
    pending: HashMap<String, (usize, Duration)>,
    removed: VecDeque<(Duration, usize)>,
}

impl Brake {
    pub fn new(limit: RemovalLimit) -> Self {
        Self {
            limit,
            pending: HashMap::new(),
            removed: VecDeque::new(),
        }
    }

    /// Decides on the removals of one resource. `units` is 0 if there are none. `owned` counts the adapter's
    /// current units, without those that are stopping. `has_seen_all` says whether the removals of all
    /// resources are known.
    pub fn decide(
        &mut self,
        resource: &str,
        units: usize,
        owned: usize,
        has_seen_all: bool,
        is_approved: bool,
        now: Duration,
    ) -> BrakeDecision {
        while self
            .removed
            .front()
            .is_some_and(|(at, _)| now.saturating_sub(*at) > WINDOW)
        {
            self.removed.pop_front();
        }
        if units == 0 {
            self.pending.remove(resource);
            return BrakeDecision::Go;
        }
        let entry = self
            .pending
            .entry(resource.to_owned())
            .or_insert((units, now));
        entry.0 = units;
        let since = entry.1;
        let removed: usize = self.removed.iter().map(|(_, units)| units).sum();
        let is_small = owned + removed <= self.limit.units;
        if is_small || self.limit.percent >= 100 || is_approved {
            return self.go(resource, units, now);
        }
        if !has_seen_all {
            return BrakeDecision::Wait(SETTLE);
        }
        let unsettled = SETTLE.saturating_sub(now.saturating_sub(since));
        if !unsettled.is_zero() {
            return BrakeDecision::Wait(unsettled);
        }
        let pending: usize = self.pending.values().map(|(units, _)| units).sum();
        if self.exceeds(pending + removed, owned + removed) {
            return BrakeDecision::Held {
                pending,
                removed,
                owned,
            };
        }
        self.go(resource, units, now)
    }

    /// Forgets the removals of resources without units.
    pub fn retain(&mut self, has_units: impl Fn(&str) -> bool) {
        self.pending.retain(|resource, _| has_units(resource));
    }

    fn go(&mut self, resource: &str, units: usize, now: Duration) -> BrakeDecision {
        self.pending.remove(resource);
        self.removed.push_back((now, units));
        BrakeDecision::Go
    }

    fn exceeds(&self, going: usize, of: usize) -> bool {
        let percent = usize::try_from(self.limit.percent).unwrap_or(100);
        going > self.limit.units && going * 100 > of * percent
    }
}

#[cfg(test)]
#[path = "tests/brake.rs"]
mod tests;
