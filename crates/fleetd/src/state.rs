//! SIGUSR1: prints the status as one line of JSON on standard output, as the older fleetd did.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::BUILD;
use hyperfleet_fleet::EtcdFleet;
use hyperfleet_fleet::agent::Status;
use tokio::sync::watch;

/// Whether a line is being written: without a reader no further line is started.
static IS_WRITING: AtomicBool = AtomicBool::new(false);

/// Constant facts, and the sources of the rest.
pub(super) struct Facts {
    pub(super) machine_id: String,
    pub(super) listeners: Vec<String>,
    pub(super) endpoints: Vec<String>,
    pub(super) fleet: EtcdFleet,
    /// `None` without an agent.
    pub(super) agent: Option<watch::Receiver<Status>>,
    pub(super) started_at: DateTime<Utc>,
}

/// Prints the status. On a thread of its own, because standard output may block.
pub(super) fn describe(facts: &Facts, connections: usize) {
    if IS_WRITING.swap(true, Ordering::AcqRel) {
        tracing::warn!("status not printed: the previous one was not read yet");
        return;
    }
    let line = format!("{}\n", state(facts, connections));
    tokio::task::spawn_blocking(move || {
        let mut output = std::io::stdout().lock();
        // A missing reader is no error.
        let _ = output
            .write_all(line.as_bytes())
            .and_then(|()| output.flush());
        IS_WRITING.store(false, Ordering::Release);
    });
}

fn state(facts: &Facts, connections: usize) -> Value {
    let agent = facts.agent.as_ref().map(|status| {
        let status = status.borrow();
        json!({
            "registered": status.is_registered,
            "units": status.units,
            "failing": status.failing,
            "halted": status.is_halted,
        })
    });
    json!({
        "version": BUILD.version,
        "commit": BUILD.commit,
        "pid": std::process::id(),
        "startedAt": facts.started_at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
        "machineID": facts.machine_id,
        "listeners": facts.listeners,
        "connections": connections,
        "agent": agent,
        "etcd": {"servers": facts.endpoints, "connected": facts.fleet.is_connected()},
    })
}
