//! SIGUSR1: how it is, as one line of JSON on standard output, as the older fleetd did.

use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::BUILD;
use hyperfleet_fleet::EtcdFleet;
use hyperfleet_fleet::agent::Status;
use tokio::sync::watch;

/// Whether a line is on its way: who does not read them gets no more.
static IS_WRITING: AtomicBool = AtomicBool::new(false);

/// What does not change while it runs, and where the rest is found.
pub(super) struct Facts {
    pub(super) machine_id: String,
    pub(super) listeners: Vec<String>,
    pub(super) endpoints: Vec<String>,
    pub(super) fleet: EtcdFleet,
    /// `None` where no agent runs.
    pub(super) agent: Option<watch::Receiver<Status>>,
    pub(super) started_at: DateTime<Utc>,
}

/// Prints how it is. On a thread of its own: nobody may read it.
pub(super) fn describe(facts: &Facts, connections: usize) {
    if IS_WRITING.swap(true, Ordering::AcqRel) {
        tracing::warn!("the state before this one was not read yet: this one is left out");
        return;
    }
    let line = format!("{}\n", state(facts, connections));
    tokio::task::spawn_blocking(move || {
        let mut output = std::io::stdout().lock();
        // Nobody may be there to read it: that is no fault of ours.
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
