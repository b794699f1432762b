//! SIGHUP: the settings are read again, what can be taken is taken, and the rest is named. Nothing else stops meanwhile,
//! and what cannot be used leaves everything as it is: the older fleetd lost itself here (fleet.md §5.1).

use std::path::PathBuf;
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::listen::Doors;
use super::plan::Plan;
use crate::settings::{self, Loaded};
use hyperfleet_server_kit::telemetry;

/// How long the settings may take to be read: what is named as their file may never end.
const READ_TIME_MAX: Duration = Duration::from_secs(10);

/// The settings while it runs.
pub(super) struct Running {
    /// The file that was named.
    pub(super) file: Option<PathBuf>,
    /// What counts, but for what a reload has taken.
    pub(super) started: Loaded,
    /// What was last read.
    pub(super) latest: Loaded,
    pub(super) doors: Doors,
    /// A reading that took too long, and may go on for ever.
    pub(super) stuck: Option<JoinHandle<Read>>,
}

/// What was read, with what is odd about it.
type Read = anyhow::Result<(Loaded, Vec<String>)>;

impl Running {
    /// Reads the settings again, and takes what can be taken.
    pub(super) async fn reload(&mut self) {
        if self
            .stuck
            .as_ref()
            .is_some_and(|stuck| !stuck.is_finished())
        {
            // Each would keep a thread.
            tracing::error!("the settings stay as they were: they are still being read");
            return;
        }
        let (file, doors) = (self.file.clone(), self.doors.clone());
        let mut reading = spawn_blocking(move || {
            let loaded = settings::load(file.as_deref());
            let plan = Plan::of(&loaded, &doors);
            plan.map(|plan| (loaded, plan.notes))
        });
        let fault = match timeout(READ_TIME_MAX, &mut reading).await {
            Ok(Ok(Ok((loaded, notes)))) => return self.take(loaded, &notes),
            Ok(Ok(Err(fault))) => format!("{fault:#}"),
            Ok(Err(panicked)) => panicked.to_string(),
            Err(_) => {
                self.stuck = Some(reading);
                "they take too long to be read".to_owned()
            }
        };
        tracing::error!("the settings stay as they were: {fault}");
    }

    fn take(&mut self, loaded: Loaded, notes: &[String]) {
        for note in loaded.notes.iter().chain(notes) {
            tracing::warn!("{note}");
        }
        let taken = loaded.changed_since(&self.latest).at_once.join(", ");
        let settings = loaded.summary();
        tracing::info!(settings, taken, "the settings were read again");
        let waiting = loaded.changed_since(&self.started).at_a_start;
        if !waiting.is_empty() {
            let keys = waiting.join(", ");
            tracing::warn!("these changes count after a restart: {keys}");
        }
        // Last: what is told of a reload is told as before.
        let level = loaded.settings.logging.level;
        let is_new = level != self.latest.settings.logging.level;
        if is_new && !telemetry::set_level(level) {
            tracing::warn!("log_level does not count: RUST_LOG does");
        }
        self.latest = loaded;
    }
}
