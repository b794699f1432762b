//! The agent: brings the units that are placed on its machine to their desired state, through systemd, and
//! reports what became of them.
//!
//! ```text
//! registry ─▶ duties ─▶ order_watch ─┐
//!                                    ├─▶ tasks (fleet-model) ─▶ units, execute ─▶ systemd
//! disk, memory ─▶ units ─────────────┘                            │                   │ signals
//!                                                                 ▼                   ▼
//! registry ◀────────────── reporter ◀────────────────────────── states ◀──────────────┘
//! registry ◀────────────── membership, keeper: the machine's lease, beside all of it
//! ```
//!
//! `work` is the loop. It checks everything each time it wakes: after a change in the registry, after a signal of systemd, when
//! a failed unit is due for a retry, and once a minute. Without the registry it follows its last
//! orders. It stops only units with `Singleton=true`, when the lease was not renewed for two thirds of `agent_ttl`
//! (`docs/internals/agent.md`).

mod dbus;
mod disk;
mod duties;
mod keeper;
mod kept_registration;
mod leaving;
mod membership;
mod order_watch;
mod reporter;
mod signals;
mod systemd;
mod telemetry;
mod unit_backoff;
mod units;
mod work;

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

pub use self::dbus::{Bus, DbusSystemd};
pub use self::systemd::{Connect, Error, Origin, Systemd, SystemdSignal, SystemdState};
pub use self::telemetry::{METRICS, count_from_zero};
use self::work::Work;
use crate::Fleet;
use crate::keys::KeyStore;
use crate::mirror::Mirror;
use crate::registry::{MachineRecord, Registry};

#[derive(Debug, Clone)]
pub struct Settings {
    /// The machine's id.
    pub id: String,
    /// The machine's description. It may change while the agent runs.
    pub machine: watch::Receiver<MachineRecord>,
    /// Time to live of the machine's lease.
    pub lease: Duration,
    /// Folder of unit files, used by this agent alone.
    pub units_directory: PathBuf,
    /// With it, the machine registers immediately after a reboot. Without it, it waits until the lease of its earlier boot
    /// has expired.
    pub host: Option<Host>,
}

/// One boot of one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Identifies the hardware. Two running systems must never have the same.
    pub hardware: String,
    /// Identifies the boot.
    pub boot: String,
    /// Folder on a disk of the machine, where its registration is kept for the next boot.
    pub directory: PathBuf,
}

/// What happens to the units when an agent stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// They continue to run, and the machine's lease is left to expire: an agent that starts earlier resumes
    /// it.
    Running,
    /// They are stopped, and the machine leaves the cluster.
    Stopped,
    /// Like `Stopped`, after other machines run the units that can run elsewhere.
    Moved,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Whether the machine is a member of the cluster.
    pub is_registered: bool,
    /// How often it has registered.
    pub registrations: u32,
    /// Units of fleet on the machine.
    pub units: usize,
    /// Units that are not in their desired state because of a failure.
    pub failing: usize,
    /// Whether the agent does nothing until an operator orders it to resume.
    pub is_halted: bool,
}

pub struct Agent<S, C> {
    registry: Registry<S>,
    mirror: Arc<Mirror>,
    connect: C,
    settings: Settings,
    status: watch::Sender<Status>,
}

impl<S: KeyStore, C: Connect> Agent<S, C> {
    /// An agent on the registry of `fleet`, whose mirror the caller must [keep](Fleet::run_mirror).
    pub fn new(fleet: &Fleet<S>, connect: C, settings: Settings) -> Self {
        Self {
            registry: fleet.registry.clone(),
            mirror: Arc::clone(&fleet.mirror),
            connect,
            settings,
            status: watch::Sender::default(),
        }
    }

    /// Reports its status to an existing channel.
    pub fn with_status(self, status: watch::Sender<Status>) -> Self {
        Self { status, ..self }
    }

    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// Runs until `stop` ends. Operations in progress are completed first.
    ///
    /// # Errors
    /// The folder of unit files cannot be used.
    pub async fn run(self, stop: impl Future<Output = Leave> + Send) -> io::Result<()> {
        let (order, ordered) = watch::channel(None);
        let mut work = Work::begin(self, ordered)?;
        let ordering = async {
            order.send_replace(Some(stop.await));
            std::future::pending().await
        };
        let served = tokio::select! {
            served = work.serve() => served,
            never = ordering => never,
        };
        work.end(served).await;
        Ok(())
    }
}
