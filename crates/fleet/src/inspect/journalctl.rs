//! Runs `journalctl`.

use std::io;
use std::process::Stdio;

use tokio::io::BufReader;
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::JoinHandle;

use super::shortened::read_limited;
use crate::agent::Bus;

pub(super) const JOURNALCTL: &str = "journalctl";
const MACHINE_ID: &str = "/etc/machine-id";
/// Most that is kept of its standard error, in bytes.
const WORDS_BYTES_MAX: u64 = 2 << 10;
const REFUSED_CURSOR: &str = "Failed to seek to cursor";

/// Why `journalctl` printed nothing, by what the caller can do.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error(transparent)]
    NotStarted(io::Error),
    /// The cursor is invalid.
    #[error("{0}")]
    RefusedCursor(String),
    #[error("journalctl failed: {0}")]
    Failed(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A running `journalctl`. Dropping this kills it.
#[derive(Debug)]
pub(super) struct Run {
    child: Child,
    pub(super) output: BufReader<ChildStdout>,
    /// Its standard error. Read continuously, because `journalctl` would block on a full pipe.
    words: JoinHandle<io::Result<Vec<u8>>>,
}

impl Run {
    /// # Errors
    /// [`Failure::NotStarted`].
    pub(super) fn start(program: &str, options: &[&str]) -> Result<Self, Failure> {
        let started = Command::new(program)
            .args(["--no-pager", "--quiet"])
            .args(options)
            .env("SYSTEMD_COLORS", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut child = started.map_err(Failure::NotStarted)?;
        let output = child.stdout.take().expect("it is piped");
        let words = child.stderr.take().expect("it is piped");
        Ok(Self {
            child,
            output: BufReader::new(output),
            words: tokio::spawn(read_limited(words, WORDS_BYTES_MAX)),
        })
    }

    /// Waits for its end, after all of its output was read.
    ///
    /// # Errors
    /// It failed.
    pub(super) async fn end(&mut self) -> Result<(), Failure> {
        let status = self.child.wait().await?;
        if status.success() {
            return Ok(());
        }
        let words = (&mut self.words).await.map_err(io::Error::other)??;
        let words = String::from_utf8_lossy(&words).trim().to_owned();
        Err(if words.contains(REFUSED_CURSOR) {
            Failure::RefusedCursor(words)
        } else {
            Failure::Failed(format!("{status}: {words}"))
        })
    }
}

/// The options of `journalctl` for new entries of this machine.
///
/// By itself `--follow` prints entries of the current boot only. In a container fleetd may see another boot id
/// than journald, and would see no entry. `--merge` prints entries of all boots, and also those of other
/// machines.
///
/// # Errors
/// The id of this machine could not be read.
pub(super) fn follow_options() -> io::Result<[String; 3]> {
    let id = std::fs::read_to_string(MACHINE_ID);
    let id = id.map_err(|error| io::Error::other(format!("read {MACHINE_ID}: {error}")))?;
    let this_machine = format!("_MACHINE_ID={}", id.trim());
    Ok(["--follow".to_owned(), "--merge".to_owned(), this_machine])
}

/// The option of `journalctl` that selects a unit.
pub(super) fn journal_of(bus: Bus, unit: &str) -> String {
    match bus {
        Bus::User => format!("--user-unit={unit}"),
        Bus::System => format!("--unit={unit}"),
    }
}
