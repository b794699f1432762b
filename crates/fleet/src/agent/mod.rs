//! The agent: brings the units that are placed on its machine to their desired state, through systemd, and reports what
//! became of them.
//!
//! ```text
//! registry ─▶ duties ─▶ orders ─┐
//!                               ├─▶ tasks (fleet-model) ─▶ units, execute ─▶ systemd
//! disk, memory ─▶ units ────────┘                            │                   │ signals
//!                                                            ▼                   ▼
//! registry ◀────────────── reports ◀───────────────────── states ◀───────────────┘
//! registry ◀────────────── keeper      the machine's lease, beside all of it
//! ```
//!
//! `work` looks at everything each time it wakes: after a change in the registry, after a signal of systemd, when a unit
//! that failed is to be tried again, and once a minute. Without the registry it goes on with what it last knew; it stops
//! nothing for that. `docs/internals/agent.md` tells the rest.

mod dbus;
mod disk;
mod duties;
mod hand_over;
mod keeper;
mod offline;
mod signals;
mod systemd;
mod telemetry;
mod troubles;
mod units;
mod work;

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;

pub use self::dbus::{Bus, DbusSystemd};
pub use self::systemd::{Connect, Error, Origin, Systemd, SystemdSignal, SystemdState};
pub use self::telemetry::{METRICS, count_from_zero};
use self::work::Work;
use crate::keys::KeyStore;
use crate::registry::{Machine, Registry};

/// Settings of an agent.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The id of its machine.
    pub id: String,
    /// What the machine says of itself. It may change while the agent runs.
    pub machine: watch::Receiver<Machine>,
    /// How long the machine's lease lives.
    pub lease: Duration,
    /// The folder of unit files; it is the agent's own.
    pub units_directory: PathBuf,
    /// Where duties are kept over a reboot, to be taken up without etcd; `None`: they are not.
    pub offline_directory: Option<PathBuf>,
}

/// What becomes of the units when an agent ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// They go on, and the machine's lease lives its time: an agent that starts before that finds all as it was.
    Running,
    /// They are stopped, and the machine leaves the cluster.
    Stopped,
    /// The same, once other machines run those that can run elsewhere.
    Moved,
}

/// How an agent is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Whether its machine is a member of the cluster.
    pub is_registered: bool,
    /// How often it has become one.
    pub registrations: u32,
    /// Units of fleet on the machine.
    pub units: usize,
    /// Units that are not as desired, because something failed.
    pub failing: usize,
    /// Whether nothing is done until an operator says resume.
    pub is_halted: bool,
}

/// An agent of a machine.
pub struct Agent<S, C> {
    registry: Registry<S>,
    connect: C,
    settings: Settings,
    status: watch::Sender<Status>,
}

impl<S: KeyStore, C: Connect> Agent<S, C> {
    pub fn new(registry: Registry<S>, connect: C, settings: Settings) -> Self {
        Self {
            registry,
            connect,
            settings,
            status: watch::Sender::default(),
        }
    }

    /// The same, and says how it is where others look already.
    pub fn with_status(self, status: watch::Sender<Status>) -> Self {
        Self { status, ..self }
    }

    /// How it is, from now on.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// Works until it is told to end, and how. What is under way is finished first.
    ///
    /// # Errors
    /// The folder of unit files cannot be used.
    pub async fn run(self, stop: impl Future<Output = Leave> + Send) -> io::Result<()> {
        let (tell, told) = watch::channel(None);
        let mut work = Work::begin(self, told)?;
        let telling = async {
            tell.send_replace(Some(stop.await));
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = work.serve() => {}
            () = telling => {}
        }
        work.end().await;
        Ok(())
    }
}
