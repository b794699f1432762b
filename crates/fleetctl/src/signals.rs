//! Signals that end fleetctl: Ctrl-C, SIGTERM, and SIGHUP of a closed terminal.

use std::io;
use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit status after a signal is this plus its number.
const SIGNALLED: u8 = 128;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Hangup = 1,
    Interrupt = 2,
    Pipe = 13,
    Terminate = 15,
}

impl From<Ending> for ExitCode {
    fn from(ending: Ending) -> Self {
        Self::from(SIGNALLED + ending as u8)
    }
}

/// Signals from the creation of this.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` below `nohup`, which ignores it.
    hangup: Option<Signal>,
}

impl Signals {
    /// # Errors
    /// The system refuses to report signals.
    pub(crate) fn new() -> io::Result<Self> {
        let hangup = || signal(SignalKind::hangup());
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: (!ignores_hangup()).then(hangup).transpose()?,
        })
    }

    pub(crate) async fn next(&mut self) -> Ending {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Ending::Interrupt,
            _ = self.terminate.recv() => Ending::Terminate,
            _ = hangup => Ending::Hangup,
        }
    }
}

/// Whether the parent process ignores SIGHUP. A handler would undo that.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    is_hangup_in(status.lines().find_map(|line| line.strip_prefix("SigIgn:")))
}

/// Whether a mask of signals includes SIGHUP, the first one.
fn is_hangup_in(mask: Option<&str>) -> bool {
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_of_signals_are_read() {
        assert!(is_hangup_in(Some("\t0000000000001001")));
        assert!(!is_hangup_in(Some("\t0000000000001000")));
        assert!(!is_hangup_in(None));
    }
}
