//! The engine's log lines and metrics.
//!
//! Metrics have the names of the older fleet where it had such metrics. Their values differ: those of the older fleet
//! were wrong.

use metrics::{counter, gauge, histogram};
use tokio::time::Instant;

use crate::keys::Revision;
use crate::registry::{Step, Written, is_newer};
use hyperfleet_fleet_model::schedule::{MachineId, Reason, Task};
use hyperfleet_server_kit::telemetry::MetricKind::{Counter, Gauge, Histogram};
use hyperfleet_server_kit::telemetry::{Metric, MetricTable};

/// A plan of more steps is logged in one line, its steps at level `debug`.
const TOLD_STEPS_MAX: usize = 100;

/// Most keys that are logged at a time. The others are counted.
const LOGGED_KEYS_MAX: usize = 100;
/// Longest key that is logged in full. All of ours are shorter.
const KEY_CHARACTERS_MAX: usize = 1024;

const LEADING: &str = "fleet_engine_leading";
const LEADER_START_TIME: &str = "fleet_engine_leader_start_time";
const EPOCH: &str = "fleet_engine_epoch";
const LAST_PASS: &str = "fleet_engine_last_pass_timestamp_seconds";
const MACHINES: &str = "fleet_engine_machines";
const UNITS_UNPLACED: &str = "fleet_engine_units_unplaced";
const KEYS_LEFT_ALONE: &str = "fleet_engine_keys_left_alone";
const TASKS: &str = "fleet_engine_task_count_total";
const TASK_FAILURES: &str = "fleet_engine_task_failure_count_total";
const PASSES: &str = "fleet_engine_reconcile_count_total";
const PASS_FAILURES: &str = "fleet_engine_reconcile_failure_count_total";
const PASS_SECONDS: &str = "fleet_engine_reconcile_duration_second";

const PLACE: &str = "attemptscheduleunit";
const WITHDRAW: &str = "unscheduleunit";
const MACHINE_AWAY: &str = "machine_away";
const RUN: &str = "run";

#[rustfmt::skip]
pub const METRICS: MetricTable = &[
    Metric::new(LEADING, Gauge, &[],
        "Whether this engine leads: 1 or 0."),
    Metric::new(LEADER_START_TIME, Gauge, &[],
        "Since when this engine leads, in seconds since 1970; 0 while it does not."),
    Metric::new(EPOCH, Gauge, &[],
        "The term of this engine, by its epoch; 0 while it does not lead."),
    Metric::new(LAST_PASS, Gauge, &[],
        "When this engine last finished deciding, in seconds since 1970; 0 while it does not lead."),
    Metric::new(MACHINES, Gauge, &[],
        "Machines that are members of the cluster; 0 while this engine does not lead."),
    Metric::new(UNITS_UNPLACED, Gauge, &[],
        "Units that need a machine and have none; 0 while this engine does not lead."),
    Metric::new(KEYS_LEFT_ALONE, Gauge, &[],
        "Keys that the engine cannot read or does not know. It changes nothing about their units and machines."),
    Metric::new(TASKS, Counter, &["type"],
        "Placements and withdrawals that were written; a move is one of each."),
    Metric::new(TASK_FAILURES, Counter, &["type"],
        "Stale placements and withdrawals: their input had changed, and they were decided again."),
    Metric::new(PASSES, Counter, &[],
        "Plans with something to do."),
    Metric::new(PASS_FAILURES, Counter, &["type"],
        "Units that the engine moved off a missing machine (machine_away), or off one that could no longer run them (run)."),
    Metric::new(PASS_SECONDS, Histogram(&[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0]), &[],
        "Time to make and write plans with something to do."),
];

/// Creates every series at 0, so that the first event is visible as growth.
pub fn count_from_zero() {
    for name in [TASKS, TASK_FAILURES] {
        for kind in [PLACE, WITHDRAW] {
            counter!(name, "type" => kind).absolute(0);
        }
    }
    for why in [MACHINE_AWAY, RUN] {
        counter!(PASS_FAILURES, "type" => why).absolute(0);
    }
    counter!(PASSES).absolute(0);
    record_leadership_end();
}

#[expect(
    clippy::cast_precision_loss,
    reason = "seconds, epochs and counts are far below 2^52"
)]
pub(super) fn leads(epoch: Revision, since: Option<i64>) {
    gauge!(LEADING).set(1.0);
    gauge!(EPOCH).set(epoch as f64);
    if let Some(since) = since {
        gauge!(LEADER_START_TIME).set(since as f64);
    }
}

pub(super) fn record_leadership_end() {
    for name in [
        LEADING,
        EPOCH,
        LEADER_START_TIME,
        LAST_PASS,
        MACHINES,
        UNITS_UNPLACED,
        KEYS_LEFT_ALONE,
    ] {
        gauge!(name).set(0.0);
    }
}

/// The leading engine's view of its cluster.
#[derive(Debug)]
pub(super) struct ClusterGauges {
    pub(super) machines: usize,
    pub(super) unplaced: usize,
    pub(super) left_alone: usize,
    /// Time of this decision, in seconds since 1970; `None` while the engine waits for its own writes.
    pub(super) decided_at: Option<i64>,
}

#[expect(
    clippy::cast_precision_loss,
    reason = "seconds and counts are far below 2^52"
)]
pub(super) fn set_gauges(gauges: &ClusterGauges) {
    gauge!(MACHINES).set(gauges.machines as f64);
    gauge!(UNITS_UNPLACED).set(gauges.unplaced as f64);
    gauge!(KEYS_LEFT_ALONE).set(gauges.left_alone as f64);
    if let Some(seconds) = gauges.decided_at {
        gauge!(LAST_PASS).set(seconds as f64);
    }
}

/// Logs new keys that are unreadable or unknown.
pub(super) fn left_alone(
    unreadable: impl Iterator<Item = (String, Option<u64>)>,
    unknown: Vec<String>,
) {
    let unreadable = unreadable.map(|(key, version)| match version {
        Some(version) if is_newer(Some(version)) => (key, format!("of version {version}")),
        _ => (key, "not to be read".to_owned()),
    });
    let unknown = unknown
        .into_iter()
        .map(|key| (key, "of no known name".to_owned()));
    for (logged, (key, what)) in unreadable.chain(unknown).enumerate() {
        if logged == LOGGED_KEYS_MAX {
            tracing::warn!("more unreadable or unknown keys in etcd: see {KEYS_LEFT_ALONE}");
            return;
        }
        let key = shortened(&key);
        tracing::warn!(
            key,
            what,
            "unreadable or unknown key in etcd: its unit or machine is not changed"
        );
    }
}

/// A key for people. Control characters are escaped, and long keys are cut, because anybody may have written
/// it.
fn shortened(key: &str) -> String {
    let mut escaped = key.escape_debug();
    let mut text: String = escaped.by_ref().take(KEY_CHARACTERS_MAX).collect();
    if escaped.next().is_some() {
        text.push('…');
    }
    text
}

/// A plan being carried out. Dropped, it logs its result.
#[derive(Debug)]
pub(super) struct Pass {
    begun: Instant,
    planned: usize,
    placed: u64,
    moved: u64,
    withdrawn: u64,
    stale: u64,
}

impl Pass {
    pub(super) fn begin(begun: Instant, planned: usize) -> Self {
        counter!(PASSES).increment(1);
        Self {
            begun,
            planned,
            placed: 0,
            moved: 0,
            withdrawn: 0,
            stale: 0,
        }
    }

    fn is_long(&self) -> bool {
        self.planned > TOLD_STEPS_MAX
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let seconds = self.begun.elapsed().as_secs_f64();
        histogram!(PASS_SECONDS).record(seconds);
        if self.is_long() {
            let Self {
                planned,
                placed,
                moved,
                withdrawn,
                stale,
                ..
            } = *self;
            tracing::info!(
                planned,
                placed,
                moved,
                withdrawn,
                stale,
                seconds,
                "Engine completed reconciliation"
            );
        }
    }
}

/// Counts and logs the result of a step.
pub(super) fn carried(step: &Step, carried: Written, pass: Option<&mut Pass>) {
    let is_stale = carried == Written::Stale;
    let task = match step {
        Step::Planned { task, .. } => task,
        Step::Unmove { .. } => return,
    };
    let (places, withdraws) = (task.to.is_some(), task.from.is_some());
    let name = if is_stale { TASK_FAILURES } else { TASKS };
    counter!(name, "type" => PLACE).increment(places.into());
    counter!(name, "type" => WITHDRAW).increment(withdraws.into());
    let is_long = pass.as_ref().is_some_and(|pass| pass.is_long());
    if let Some(pass) = pass {
        match (is_stale, places, withdraws) {
            (true, _, _) => pass.stale += 1,
            (false, true, true) => pass.moved += 1,
            (false, true, false) => pass.placed += 1,
            (false, false, _) => pass.withdrawn += 1,
        }
    }
    if is_stale {
        tracing::debug!(?step, "stale step: deciding again");
        return;
    }
    if let Some(failure) = failure(&task.reason) {
        counter!(PASS_FAILURES, "type" => failure).increment(1);
    }
    log_task(task, is_long);
}

/// Why a unit had to leave, if no user ordered it.
fn failure(reason: &Reason) -> Option<&'static str> {
    match reason {
        Reason::MachineGone(_) => Some(MACHINE_AWAY),
        Reason::OtherMachine { .. }
        | Reason::Metadata(_)
        | Reason::NoPeer { .. }
        | Reason::Conflict { .. } => Some(RUN),
        Reason::Inactive
        | Reason::NotPlaced(_)
        | Reason::Drained(_)
        | Reason::Rebalanced
        | Reason::Replaced { .. } => None,
    }
}

/// Logs a step, in the older fleet's words where it had some.
fn log_task(task: &Task, is_long: bool) {
    let (unit, reason) = (task.unit.as_str(), task.reason.to_string());
    macro_rules! say {
        ($($field:tt)*) => {
            if is_long {
                tracing::debug!($($field)*)
            } else {
                tracing::info!($($field)*)
            }
        };
    }
    let [from, machine] = [&task.from, &task.to].map(|id| id.as_ref().map(MachineId::as_str));
    match (from, machine) {
        (Some(from), Some(machine)) => say!(unit, machine, from, reason, "unit moved"),
        (Some(from), None) => say!(unit, machine = from, reason, "unit unscheduled"),
        (None, machine) => say!(unit, machine, reason, "unit scheduled"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_logged_without_misleading_characters() {
        assert_eq!(
            shortened("/fleet/v3/want/a.service"),
            "/fleet/v3/want/a.service"
        );
        assert_eq!(shortened("a\u{1b}[31m\nb"), r"a\u{1b}[31m\nb");
        assert_eq!(
            shortened(&"k".repeat(5000)).chars().count(),
            KEY_CHARACTERS_MAX + 1
        );
    }
}
