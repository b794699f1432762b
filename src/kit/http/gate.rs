//! Whether the service takes requests, and whether it says that it is ready for them.

use std::pin::pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// What is said while nothing more is known.
const NOT_READY: &str = "Application is not ready";
/// What is said once the service is told to end.
const SHUTTING_DOWN: &str = "Application is shutting down";

/// The gate of one process: every clone is the same one. It goes from starting to serving to
/// stopping, and never back.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    phase: AtomicU8,
    /// Why it is not ready although it serves, or not yet.
    fault: Mutex<Option<String>>,
    /// Told once it stops.
    stopped: Notify,
}

/// What a service does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It cannot answer requests yet.
    Starting,
    /// It answers them.
    Serving,
    /// It answers them, but wants no new ones.
    Stopping,
}

/// What `/readyz` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// Requests are welcome.
    Ready,
    /// They are not, for this reason.
    NotReady(String),
    /// They will not be any more, for this reason.
    ShuttingDown(&'static str),
}

impl Gate {
    /// The gate of a service that is starting.
    pub fn starting() -> Self {
        Self::of(Phase::Starting)
    }

    /// The gate of a service that needs no start.
    pub fn serving() -> Self {
        Self::of(Phase::Serving)
    }

    fn of(phase: Phase) -> Self {
        Self(Arc::new(Inner {
            phase: AtomicU8::new(phase as u8),
            fault: Mutex::new(None),
            stopped: Notify::new(),
        }))
    }

    /// Lets requests in; not once the service is stopping.
    pub fn open(&self) {
        let (from, to) = (Phase::Starting as u8, Phase::Serving as u8);
        let order = Ordering::AcqRel;
        // Fails only if it was open, or is stopping: both are to stay.
        let _ = (self.0.phase).compare_exchange(from, to, order, Ordering::Acquire);
    }

    /// Says that the service is to end. Requests that still come are answered.
    pub fn stop(&self) {
        self.0.phase.store(Phase::Stopping as u8, Ordering::Release);
        self.0.stopped.notify_waiters();
    }

    /// Waits until the service is to end. For answers that would go on for ever.
    pub async fn stopped(&self) {
        let mut stopped = pin!(self.0.stopped.notified());
        // From here on it is told, so that none falls between looking and waiting.
        stopped.as_mut().enable();
        if self.phase() != Phase::Stopping {
            stopped.await;
        }
    }

    /// Says why the service is not ready; `None` that nothing is in the way.
    pub fn set_fault(&self, fault: Option<String>) {
        *self.0.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }

    /// What is said to be in the way.
    pub fn fault(&self) -> Option<String> {
        let fault = self.0.fault.lock();
        fault.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the service does now.
    pub fn phase(&self) -> Phase {
        match self.0.phase.load(Ordering::Acquire) {
            0 => Phase::Starting,
            1 => Phase::Serving,
            _ => Phase::Stopping,
        }
    }

    /// What `/readyz` says now.
    pub fn readiness(&self) -> Readiness {
        match (self.phase(), self.fault()) {
            (Phase::Stopping, _) => Readiness::ShuttingDown(SHUTTING_DOWN),
            (Phase::Serving, None) => Readiness::Ready,
            (_, Some(fault)) => Readiness::NotReady(fault),
            (Phase::Starting, None) => Readiness::NotReady(NOT_READY.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_waits_for_the_end_is_told_before_and_after() {
        let gate = Gate::serving();
        let other = gate.clone();
        let waits = async {
            tokio::join!(gate.stopped(), gate.stopped());
        };
        let stop = async {
            tokio::task::yield_now().await;
            other.stop();
        };
        tokio::join!(waits, stop);
        gate.stopped().await;
    }

    #[test]
    fn it_opens_once_and_what_stops_it_counts_most() {
        let gate = Gate::starting();
        let other = gate.clone();
        let not_ready = |reason: &str| Readiness::NotReady(reason.to_owned());
        assert_eq!(gate.readiness(), not_ready("Application is not ready"));
        gate.set_fault(Some("no schema".to_owned()));
        assert_eq!(other.readiness(), not_ready("no schema"));
        gate.set_fault(None);
        gate.open();
        assert_eq!(other.phase(), Phase::Serving);
        assert_eq!(other.readiness(), Readiness::Ready);
        other.set_fault(Some("database unavailable".to_owned()));
        assert_eq!(gate.phase(), Phase::Serving);
        assert_eq!(gate.readiness(), not_ready("database unavailable"));
        other.stop();
        gate.open();
        assert_eq!(gate.phase(), Phase::Stopping);
        let over = Readiness::ShuttingDown("Application is shutting down");
        assert_eq!(gate.readiness(), over);
    }
}
