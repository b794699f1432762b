//! Signals that end the process, and signals that request something of it.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM and SIGINT, handled from the creation of this.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Installs the handlers.
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// A request to a running process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalRequest {
    /// SIGHUP: read the settings again.
    Reload,
    /// SIGUSR1: print the status.
    Describe,
}

/// SIGHUP and SIGUSR1, handled from the creation of this.
pub struct SignalRequests {
    hangup: Signal,
    user: Signal,
}

impl SignalRequests {
    /// Installs the handlers. Without them these signals end the process.
    pub fn catch() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            user: signal(SignalKind::user_defined1())?,
        })
    }

    /// Waits for the next request. Simultaneous requests of one kind are combined.
    pub async fn next(&mut self) -> SignalRequest {
        tokio::select! {
            _ = self.hangup.recv() => SignalRequest::Reload,
            _ = self.user.recv() => SignalRequest::Describe,
        }
    }
}
