//! What ends the process, and what is asked of it while it runs.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT, from the moment on that they are caught.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Catches them from now on.
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// What is asked of a process that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// SIGHUP: take what the settings say now.
    Reload,
    /// SIGUSR1: say how things are.
    Describe,
}

/// SIGHUP and SIGUSR1, from the moment on that they are caught.
pub struct Wishes {
    hangup: Signal,
    user: Signal,
}

impl Wishes {
    /// Catches them from now on: until then they end the process.
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            user: signal(SignalKind::user_defined1())?,
        })
    }

    /// Waits for the next one. Several of a sort that come together are one.
    pub async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.hangup.recv() => Wish::Reload,
            _ = self.user.recv() => Wish::Describe,
        }
    }
}
