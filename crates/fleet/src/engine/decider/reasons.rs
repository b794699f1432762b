//! Stores in the registry why units are on no machine.
//!
//! Each reason costs time in proportion to the machines. So reasons are found only when there is nothing to
//! place, in slices: first for units without a stored reason, as fast as possible; then again for all others,
//! because another machine or unit may have changed the reason, with a limit per tick.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

use crate::registry::{RefusalRecord, Snapshot, Step, Why};
use hyperfleet_fleet_model::schedule::{Cluster, Explanation};

/// Machines checked per slice, over all units: some milliseconds.
const JUDGED_PER_SLICE: usize = 20_000;
/// Units checked per slice, so that the resulting steps fit one transaction.
const UNITS_PER_SLICE: usize = 60;
/// Machines checked between two ticks to renew stored reasons.
const JUDGED_PER_TICK: usize = 100_000;
const REASON_BYTES_MAX: usize = 4096;
const REQUIREMENT_BYTES_MAX: usize = 512;
/// Most requirements that a reason lists separately.
const REFUSALS_MAX: usize = 32;

/// Which units are on no machine, and which of them need a reason.
#[derive(Debug, Default)]
pub(super) struct Reasons {
    /// Units that need another machine: they are on none, or on a drained one.
    unplaced: BTreeSet<String>,
    /// Those of them that are on a machine.
    stuck: BTreeSet<String>,
    /// Those of them without a current reason in the registry.
    unexplained: BTreeSet<String>,
    /// Other unplaced units whose reasons must be checked again.
    doubtful: BTreeSet<String>,
    /// Units with a stored reason that are not unplaced.
    refuted: BTreeSet<String>,
    /// Whether anything has changed since all reasons were scheduled for a check.
    is_old: bool,
    /// How many machines may still be checked for `doubtful` units.
    allowance: usize,
}

impl Reasons {
    /// How many units need a machine and have none.
    pub(super) fn unplaced_count(&self) -> usize {
        self.unplaced.len() - self.stuck.len()
    }

    /// Records a change that may affect stored reasons.
    pub(super) fn everything_changed(&mut self) {
        self.is_old = true;
    }

    /// Updates the sets after a change of a unit or its stored reason.
    pub(super) fn update(&mut self, name: &str, snapshot: &Snapshot, cluster: &Cluster) {
        let sets = [
            &mut self.unplaced,
            &mut self.stuck,
            &mut self.unexplained,
            &mut self.refuted,
        ];
        for set in sets {
            set.remove(name);
        }
        let is_unplaced = cluster.needs_machine(name);
        let is_placed = cluster.job(name).is_some_and(|job| job.placed_on.is_some());
        let explained = snapshot.whys.get(name).map(|why| why.value.generation);
        if is_unplaced && is_placed {
            self.stuck.insert(name.to_owned());
        }
        if is_unplaced {
            self.unplaced.insert(name.to_owned());
            let current = snapshot
                .desired
                .get(name)
                .map(|desired| desired.value.generation);
            if explained != current {
                self.unexplained.insert(name.to_owned());
            }
        } else {
            self.doubtful.remove(name);
            if explained.is_some() {
                self.refuted.insert(name.to_owned());
            }
        }
    }

    pub(super) fn tick(&mut self) {
        self.allowance = JUDGED_PER_TICK;
        if self.doubtful.is_empty() && std::mem::take(&mut self.is_old) {
            self.doubtful = &self.unplaced - &self.unexplained;
        }
    }

    /// The steps of the next slice; `None` if there is nothing to check now.
    pub(super) fn slice(
        &mut self,
        snapshot: &Snapshot,
        cluster: &Cluster,
        is_unreadable: impl Fn(&str) -> bool,
    ) -> Option<Vec<Step>> {
        let (mut steps, mut looked_at, mut judged) = (Vec::new(), 0, 0);
        let cost = cluster.machine_count().max(1);
        while looked_at < UNITS_PER_SLICE && judged < JUDGED_PER_SLICE {
            let Some(name) = self.next(cost) else {
                break;
            };
            looked_at += 1;
            if is_unreadable(&name) {
                continue;
            }
            let Some(explanation) = cluster.explain(&name) else {
                // Not for unplaced units: this reason is no longer true.
                steps.push(Step::Unexplain { unit: name });
                continue;
            };
            judged += cost;
            steps.extend(renewed(name, &explanation, snapshot));
        }
        (looked_at > 0).then_some(steps)
    }

    fn next(&mut self, cost: usize) -> Option<String> {
        if let Some(name) = self.refuted.pop_first() {
            return Some(name);
        }
        if let Some(name) = self.unexplained.pop_first() {
            return Some(name);
        }
        if self.allowance == 0 {
            return None;
        }
        let name = self.doubtful.pop_first()?;
        self.allowance = self.allowance.saturating_sub(cost);
        Some(name)
    }
}

/// The step that stores a unit's reason, unless the same is stored.
fn renewed(name: String, explanation: &Explanation<'_>, snapshot: &Snapshot) -> Option<Step> {
    let desired = snapshot.desired.get(&name)?;
    let why = why(desired.value.generation, explanation);
    let stored = snapshot.whys.get(&name).map(|stored| &stored.value);
    (stored != Some(&why)).then_some(Step::Explain {
        unit: name,
        why,
        desired: desired.revision,
    })
}

fn why(generation: u64, explanation: &Explanation<'_>) -> Why {
    let groups = match explanation {
        Explanation::Refused(groups) => groups.as_slice(),
        Explanation::NoMachines
        | Explanation::Cycle(_)
        | Explanation::WaitsFor(_)
        | Explanation::Stopping(_)
        | Explanation::Tied(_)
        | Explanation::NotYet(_) => &[],
    };
    let refusals = groups.iter().take(REFUSALS_MAX).map(|group| RefusalRecord {
        requirement: shortened(&group.refusal, REQUIREMENT_BYTES_MAX),
        count: u64::try_from(group.count).unwrap_or(u64::MAX),
        machines: group.machines.iter().copied().map(str::to_owned).collect(),
    });
    Why {
        generation,
        is_blocked: !matches!(
            explanation,
            Explanation::Stopping(_) | Explanation::NotYet(_)
        ),
        reason: shortened(explanation, REASON_BYTES_MAX),
        refusals: refusals.collect(),
    }
}

/// The beginning of a text, without formatting the rest: thousands of units may follow each other in a circle.
fn shortened(text: &impl fmt::Display, bytes_max: usize) -> String {
    let mut beginning = Beginning {
        text: String::new(),
        bytes_max,
    };
    if write!(beginning, "{text}").is_err() {
        beginning.text.push('…');
    }
    beginning.text
}

struct Beginning {
    text: String,
    bytes_max: usize,
}

impl fmt::Write for Beginning {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = self.bytes_max - self.text.len();
        let fits = more.floor_char_boundary(room);
        self.text.push_str(&more[..fits]);
        if fits < more.len() {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}
