//! What an agent asks of systemd: the few calls that bring a unit to its desired state, and word of what changes.
//!
//! There are two: [`DbusSystemd`](super::DbusSystemd), and the simulated one of the testkit.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};

/// A unit's state, in systemd's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemdState {
    /// `LoadState`: `loaded`, `not-found`, …
    pub load: String,
    /// `ActiveState`: `active`, `inactive`, `failed`, …
    pub active: String,
    /// `SubState`: `running`, `dead`, …
    pub sub: String,
    /// Whether a start is queued behind other units: the state is the one from before it.
    pub start_is_queued: bool,
}

impl SystemdState {
    /// Whether nothing of the unit runs or is about to stop.
    pub fn has_stopped(&self) -> bool {
        matches!(self.active.as_str(), "inactive" | "failed")
    }
}

/// What systemd signals of a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemdSignal {
    /// Its state has changed.
    Changed { unit: String },
    /// A start or restart that the agent has begun is not queued any more: systemd carries it out, or has ended it.
    Started { unit: String },
    /// systemd has given up a start or restart that the agent has begun, because a unit that it requires did not start.
    GaveUp { unit: String },
}

impl SystemdSignal {
    /// The unit that it is about.
    pub fn unit(&self) -> &str {
        let (Self::Changed { unit } | Self::Started { unit } | Self::GaveUp { unit }) = self;
        unit
    }
}

/// Where systemd has a unit of a name from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// There is no such unit.
    None,
    /// A file, links not followed.
    File(PathBuf),
    /// Something else, such as a mount that the kernel reports.
    Other,
}

/// Why a call failed, by what the agent can do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// systemd does not know the unit.
    #[error("no such unit")]
    NoSuchUnit,
    /// systemd refuses. Another unit may do better.
    #[error("{doing}: {message}")]
    Refused {
        /// Verb and object.
        doing: &'static str,
        message: String,
    },
    /// systemd cannot be reached: connect again.
    #[error("cannot {doing}: systemd is unreachable: {message}")]
    Unreachable {
        /// Verb and object.
        doing: &'static str,
        message: String,
    },
}

/// The service manager of a machine, or of a user.
pub trait Systemd: Send + Sync {
    /// Names this run of systemd. After another boot it is another one, which runs none of our units.
    fn instance(&self) -> impl Future<Output = Result<String, Error>> + Send;

    /// The states of units. Units that systemd does not know are `not-found`.
    fn states(
        &self,
        units: Vec<String>,
    ) -> impl Future<Output = Result<BTreeMap<String, SystemdState>, Error>> + Send;

    /// Where a unit comes from.
    fn origin(&self, unit: &str) -> impl Future<Output = Result<Origin, Error>> + Send;

    /// Makes a unit file known until the next boot. It counts after [`reload`](Self::reload).
    ///
    /// # Errors
    /// [`Error::Refused`] if something else is in its way.
    fn link(&self, file: &Path) -> impl Future<Output = Result<(), Error>> + Send;

    /// Does what the file's `[Install]` says, until the next boot.
    ///
    /// # Errors
    /// [`Error::Refused`] if it cannot be done, or `[Install]` says nothing.
    fn enable(&self, file: &Path) -> impl Future<Output = Result<(), Error>> + Send;

    /// Undoes [`link`](Self::link) and [`enable`](Self::enable). Fine if there is nothing to undo.
    fn disable(&self, unit: &str) -> impl Future<Output = Result<(), Error>> + Send;

    /// Forgets that a unit has failed. Fine if it has not.
    fn reset_failed(&self, unit: &str) -> impl Future<Output = Result<(), Error>> + Send;

    /// Reads all unit files again.
    fn reload(&self) -> impl Future<Output = Result<(), Error>> + Send;

    /// Begins to start a unit. How that ends is [signalled](Self::next_signal).
    fn start(&self, unit: &str) -> impl Future<Output = Result<(), Error>> + Send;

    /// Begins to restart a unit; one that does not run is started.
    fn restart(&self, unit: &str) -> impl Future<Output = Result<(), Error>> + Send;

    /// Begins to stop a unit. Fine if systemd does not know it.
    fn stop(&self, unit: &str) -> impl Future<Output = Result<(), Error>> + Send;

    /// Waits for the next signal, of units of fleet or of others. May be given up half-way.
    ///
    /// # Errors
    /// [`Error::Unreachable`]: no further one will come.
    fn next_signal(&mut self) -> impl Future<Output = Result<SystemdSignal, Error>> + Send;
}

/// How an agent gets to systemd.
pub trait Connect: Send + Sync + 'static {
    type Systemd: Systemd;

    /// A new connection.
    fn connect(&self) -> impl Future<Output = Result<Self::Systemd, Error>> + Send;
}
