//! The agent's metrics and log lines.

use metrics::{counter, gauge};

use super::Status;
use hyperfleet_fleet_model::agent::{AgentTask, TaskReason};
use hyperfleet_server_kit::telemetry::MetricKind::{Counter, Gauge};
use hyperfleet_server_kit::telemetry::{Metric, MetricTable};

const REGISTERED: &str = "fleet_agent_registered";
const UNITS: &str = "fleet_agent_units";
const UNITS_FAILING: &str = "fleet_agent_units_failing";
const HALTED: &str = "fleet_agent_halted";
const TASKS: &str = "fleet_agent_task_count_total";
const TASK_FAILURES: &str = "fleet_agent_task_failure_count_total";

#[rustfmt::skip]
pub const METRICS: MetricTable = &[
    Metric::new(REGISTERED, Gauge, &[],
        "Whether this machine is a member of the cluster: 1 or 0."),
    Metric::new(UNITS, Gauge, &[],
        "Units of fleet on this machine."),
    Metric::new(UNITS_FAILING, Gauge, &[],
        "Units that the agent cannot bring to their desired state."),
    Metric::new(HALTED, Gauge, &[],
        "Whether this agent is halted because the registry went back in time, until an operator runs fleetctl resume: 1 or 0."),
    Metric::new(TASKS, Counter, &["type"],
        "Completed tasks: unload, load, reload, stop, start, restart."),
    Metric::new(TASK_FAILURES, Counter, &["type"],
        "Failed tasks. They are retried."),
];

/// Creates every series at 0, so that the first event is visible as growth.
pub fn count_from_zero() {
    for name in [TASKS, TASK_FAILURES] {
        for kind in ["unload", "load", "reload", "stop", "start", "restart"] {
            counter!(name, "type" => kind).absolute(0);
        }
    }
    show(&Status::default());
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(super) fn show(status: &Status) {
    gauge!(REGISTERED).set(if status.is_registered { 1.0 } else { 0.0 });
    gauge!(HALTED).set(if status.is_halted { 1.0 } else { 0.0 });
    gauge!(UNITS).set(status.units as f64);
    gauge!(UNITS_FAILING).set(status.failing as f64);
}

/// Records a completed task.
pub(super) fn task_completed(task: &AgentTask, reason: TaskReason) {
    counter!(TASKS, "type" => kind(task)).increment(1);
    let reason = reason.to_string();
    match task {
        AgentTask::Unload(unit) => tracing::info!(unit, reason, "unit unloaded"),
        AgentTask::Load(unit) => tracing::info!(unit, reason, "unit loaded"),
        AgentTask::Stop(unit) => tracing::info!(unit, reason, "unit stopping"),
        AgentTask::Start(unit) => tracing::info!(unit, reason, "unit starting"),
        AgentTask::Restart(unit) => tracing::info!(unit, reason, "unit restarting"),
        AgentTask::Reload => tracing::debug!(reason, "unit files reloaded"),
    }
}

pub(super) fn failed(task: &AgentTask) {
    counter!(TASK_FAILURES, "type" => kind(task)).increment(1);
}

fn kind(task: &AgentTask) -> &'static str {
    match task {
        AgentTask::Unload(_) => "unload",
        AgentTask::Load(_) => "load",
        AgentTask::Reload => "reload",
        AgentTask::Stop(_) => "stop",
        AgentTask::Start(_) => "start",
        AgentTask::Restart(_) => "restart",
    }
}
