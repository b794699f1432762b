//! The calls to systemd that bring a unit to its desired state, and the signals of its changes.
//!
//! There are two implementations: [`DbusSystemd`](super::DbusSystemd), and the simulated one of the testkit.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};

/// A unit's state as systemd names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemdState {
    /// `LoadState`: `loaded`, `not-found`, …
    pub load: String,
    /// `ActiveState`: `active`, `inactive`, `failed`, …
    pub active: String,
    /// `SubState`: `running`, `dead`, …
    pub sub: String,
    /// Whether a start is queued behind other units: the other fields are from before it.
    pub start_is_queued: bool,
}

impl SystemdState {
    /// Whether the unit neither runs nor is stopping.
    pub fn has_stopped(&self) -> bool {
        matches!(self.active.as_str(), "inactive" | "failed")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SystemdSignal {
    /// Its state has changed.
    Changed { unit: String },
    /// A start or restart that the agent requested left the queue: systemd carries it out, or has finished it.
    Started { unit: String },
    /// A start or restart that the agent requested was refused or has failed. The unit's state shows which of both.
    NotStarted {
        unit: String,
        /// The result of systemd's job: `dependency`, `failed`, `assert`, …
        result: String,
    },
}

impl SystemdSignal {
    pub fn unit(&self) -> &str {
        let (Self::Changed { unit } | Self::Started { unit } | Self::NotStarted { unit, .. }) =
            self;
        unit
    }
}

/// Where systemd found a unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// There is no such unit, or only one that systemd makes of its name, such as a slice without a file.
    None,
    /// A file; links are not followed.
    File(PathBuf),
    /// Something else, such as a mount that the kernel reports.
    Other,
}

/// Why a call failed, by what the agent can do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// systemd does not know the unit.
    #[error("no such unit: {message}")]
    NoSuchUnit {
        /// Names it: the unit of the call, or one that it requires.
        message: String,
    },
    /// systemd refuses this unit. Calls for other units may succeed.
    #[error("{doing}: {message}")]
    Refused {
        /// Verb and object.
        doing: &'static str,
        message: String,
    },
    /// systemd is unreachable: connect again.
    #[error("cannot {doing}: systemd is unreachable: {message}")]
    Unreachable {
        /// Verb and object.
        doing: &'static str,
        message: String,
    },
}

/// The service manager of a machine or of a user.
pub trait Systemd: Send + Sync {
    /// Identifies this run of systemd. Another run has started none of our units.
    fn instance(&self) -> impl Future<Output = Result<String, Error>> + Send;

    /// The states of units. Units that systemd does not know are `not-found`.
    fn states(
        &self,
        units: Vec<String>,
    ) -> impl Future<Output = Result<BTreeMap<String, SystemdState>, Error>> + Send;

    /// Units that this unit triggers, such as the service of a timer, and that are not loaded.
    fn missing_triggered(
        &self,
        unit: &str,
    ) -> impl Future<Output = Result<Vec<String>, Error>> + Send;

    /// Why a failed unit has failed, such as `exit-code`; empty if systemd does not say.
    ///
    /// # Errors
    /// [`Error::Unreachable`].
    fn result(&self, unit: &str) -> impl Future<Output = Result<String, Error>> + Send;

    /// Identifies the present run of a unit: another start makes another one.
    fn invocation(&self, unit: &str) -> impl Future<Output = Result<Vec<u8>, Error>> + Send;

    /// Where a unit comes from.
    fn origin(&self, unit: &str) -> impl Future<Output = Result<Origin, Error>> + Send;

    /// Makes a unit file known until the next boot. It takes effect with [`reload`](Self::reload).
    ///
    /// # Errors
    /// [`Error::Refused`] if a unit of that name is there.
    fn link(&self, file: &Path) -> impl Future<Output = Result<(), Error>> + Send;

    /// Enables the unit by the file's `[Install]` section, until the next boot.
    ///
    /// # Errors
    /// [`Error::Refused`] if that fails, or `[Install]` is empty.
    fn enable(&self, file: &Path) -> impl Future<Output = Result<(), Error>> + Send;

    /// Undoes [`link`](Self::link) and [`enable`](Self::enable), if they were done.
    fn disable(&self, unit: &str) -> impl Future<Output = Result<(), Error>> + Send;

    /// Resets the failed state of a unit, if it is failed.
    fn reset_failed(&self, unit: &str) -> impl Future<Output = Result<(), Error>> + Send;

    fn reload(&self) -> impl Future<Output = Result<(), Error>> + Send;

    /// Requests the start of a unit. Its result is [signalled](Self::next_signal).
    fn start(&self, unit: &str) -> impl Future<Output = Result<(), Error>> + Send;

    /// Requests the restart of a unit. A stopped unit is started.
    fn restart(&self, unit: &str) -> impl Future<Output = Result<(), Error>> + Send;

    /// Requests the stop of a unit. Succeeds if systemd does not know it.
    fn stop(&self, unit: &str) -> impl Future<Output = Result<(), Error>> + Send;

    /// Waits for the next signal, also of units that are not fleet's. Cancel-safe.
    ///
    /// # Errors
    /// [`Error::Unreachable`]: no further signal will come.
    fn next_signal(&mut self) -> impl Future<Output = Result<SystemdSignal, Error>> + Send;
}

/// Connects to systemd.
pub trait Connect: Send + Sync + 'static {
    type Systemd: Systemd;

    fn connect(&self) -> impl Future<Output = Result<Self::Systemd, Error>> + Send;
}
