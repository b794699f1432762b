//! SIGHUP: reads the settings again, applies those that can change at run time, and names the rest. Nothing
//! stops meanwhile, and unusable settings change nothing; the older fleetd failed here.

use std::path::PathBuf;
use std::time::Duration;

use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use super::listen::Doors;
use super::plan::Plan;
use crate::settings::{self, Loaded};
use hyperfleet_server_kit::telemetry;

/// How long reading the settings may take: the file may be a pipe that never ends.
const READ_TIME_MAX: Duration = Duration::from_secs(10);

/// The settings of the running process.
pub(super) struct Running {
    /// The file on the command line.
    pub(super) file: Option<PathBuf>,
    /// The settings in effect.
    pub(super) started: Loaded,
    /// The settings that were last read.
    pub(super) latest: Loaded,
    pub(super) doors: Doors,
    /// A read that exceeded its time, and may never end.
    pub(super) stuck: Option<JoinHandle<Read>>,
}

/// Settings with their warnings.
type Read = anyhow::Result<(Loaded, Vec<String>)>;

impl Running {
    /// Reads the settings again and applies what can change.
    pub(super) async fn reload(&mut self) {
        if self
            .stuck
            .as_ref()
            .is_some_and(|stuck| !stuck.is_finished())
        {
            // Each attempt would occupy another thread.
            tracing::error!("settings unchanged: the previous reload is still reading them");
            return;
        }
        let (file, doors) = (self.file.clone(), self.doors.clone());
        let mut reading = spawn_blocking(move || {
            let loaded = settings::load(file.as_deref())?;
            let plan = Plan::of(&loaded, &doors)?;
            Ok((loaded, plan.notes))
        });
        let fault = match timeout(READ_TIME_MAX, &mut reading).await {
            Ok(Ok(Ok((loaded, notes)))) => return self.apply(loaded, &notes),
            Ok(Ok(Err(fault))) => format!("{fault:#}"),
            Ok(Err(panicked)) => panicked.to_string(),
            Err(_) => {
                self.stuck = Some(reading);
                "reading them takes too long".to_owned()
            }
        };
        tracing::error!(fault, "settings unchanged");
    }

    fn apply(&mut self, loaded: Loaded, notes: &[String]) {
        for note in loaded.notes.iter().chain(notes) {
            tracing::warn!("{note}");
        }
        let taken = loaded.changed_since(&self.latest).at_once.join(", ");
        let settings = loaded.summary();
        tracing::info!(settings, taken, "settings reloaded");
        let waiting = loaded.changed_since(&self.started).at_a_start;
        if !waiting.is_empty() {
            let keys = waiting.join(", ");
            tracing::warn!(keys, "changed settings need a restart");
        }
        // Last, so that messages of the reload itself appear at the earlier level.
        let level = loaded.settings.logging.level;
        let is_new = level != self.latest.settings.logging.level;
        if is_new && !telemetry::set_level(level) {
            tracing::warn!("log_level is ignored: RUST_LOG overrides it");
        }
        self.latest = loaded;
    }
}
