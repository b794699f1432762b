//! Whether the service takes requests, and whether it says that it is ready for them.

use std::sync::Arc;

use tokio::sync::watch;

/// What is said while nothing more is known.
const NOT_READY: &str = "Application is not ready";
/// What is said once the service is told to end.
const SHUTTING_DOWN: &str = "Application is shutting down";

/// The gate of one process: every clone is the same one. It goes from starting to serving to
/// stopping, and never back.
#[derive(Debug, Clone)]
pub struct Gate(Arc<watch::Sender<State>>);

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Why it is not ready although it serves, or not yet.
    fault: Option<String>,
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
        let fault = None;
        Self(Arc::new(watch::Sender::new(State { phase, fault })))
    }

    /// Lets requests in; not once the service is stopping.
    pub fn open(&self) {
        self.0.send_modify(|state| {
            if state.phase == Phase::Starting {
                state.phase = Phase::Serving;
            }
        });
    }

    /// Says that the service is to end. Requests that still come are answered.
    pub fn stop(&self) {
        self.0.send_modify(|state| state.phase = Phase::Stopping);
    }

    /// Waits until the service is to end. For answers that would go on for ever.
    pub async fn stopped(&self) {
        let mut states = self.0.subscribe();
        // Fails only without a gate.
        let _ = states
            .wait_for(|state| state.phase == Phase::Stopping)
            .await;
    }

    /// Says why the service is not ready; `None` that nothing is in the way.
    pub fn set_fault(&self, fault: Option<String>) {
        self.0.send_if_modified(|state| {
            let is_new = state.fault != fault;
            state.fault = fault;
            is_new
        });
    }

    /// What is said to be in the way.
    pub fn fault(&self) -> Option<String> {
        self.0.borrow().fault.clone()
    }

    /// What the service does now.
    pub fn phase(&self) -> Phase {
        self.0.borrow().phase
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
