//! Whether the service accepts requests and is ready for them.

use std::sync::Arc;

use tokio::sync::watch;

/// The default reason.
const NOT_READY: &str = "Application is not ready";
/// The reason during shutdown.
const SHUTTING_DOWN: &str = "Application is shutting down";

/// The gate of one process. Clones share it. It goes from starting to serving to stopping, and never back.
#[derive(Debug, Clone)]
pub struct Gate(Arc<watch::Sender<State>>);

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Why it is not ready, while it serves or starts.
    unready_reason: Option<String>,
    /// What it cannot do although it is ready.
    warning: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It cannot answer requests yet.
    Starting,
    Serving,
    /// It answers requests, but wants no new ones.
    Stopping,
}

/// The response of `/readyz`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    Ready,
    /// With the reason.
    NotReady(String),
    /// With the reason.
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
        Self(Arc::new(watch::Sender::new(State {
            phase,
            unready_reason: None,
            warning: None,
        })))
    }

    /// Accepts requests, unless the service is stopping.
    pub fn open(&self) {
        self.0.send_modify(|state| {
            if state.phase == Phase::Starting {
                state.phase = Phase::Serving;
            }
        });
    }

    /// Starts the shutdown. Requests that still arrive are answered.
    pub fn stop(&self) {
        self.0.send_modify(|state| state.phase = Phase::Stopping);
    }

    /// Waits for the start of the shutdown, for endless responses.
    pub async fn stopped(&self) {
        let mut states = self.0.subscribe();
        // Fails only without a gate.
        let _ = states
            .wait_for(|state| state.phase == Phase::Stopping)
            .await;
    }

    /// Sets why the service is not ready; `None` if nothing prevents it.
    pub fn set_unready_reason(&self, reason: Option<String>) {
        // Every endless response waits for a change of the state: a probe that finds nothing new must not wake them.
        self.0.send_if_modified(|state| {
            let is_new = state.unready_reason != reason;
            state.unready_reason = reason;
            is_new
        });
    }

    pub fn unready_reason(&self) -> Option<String> {
        self.0.borrow().unready_reason.clone()
    }

    /// Sets what the service cannot do although it is ready; `None` if it can do everything.
    pub fn set_warning(&self, warning: Option<&'static str>) {
        self.0.send_if_modified(|state| {
            let is_new = state.warning != warning;
            state.warning = warning;
            is_new
        });
    }

    pub fn warning(&self) -> Option<&'static str> {
        self.0.borrow().warning
    }

    pub fn phase(&self) -> Phase {
        self.0.borrow().phase
    }

    pub fn readiness(&self) -> Readiness {
        match (self.phase(), self.unready_reason()) {
            (Phase::Stopping, _) => Readiness::ShuttingDown(SHUTTING_DOWN),
            (Phase::Serving, None) => Readiness::Ready,
            (_, Some(reason)) => Readiness::NotReady(reason),
            (Phase::Starting, None) => Readiness::NotReady(NOT_READY.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiting_for_the_shutdown_ends_before_and_after_its_start() {
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
        gate.set_unready_reason(Some("no schema".to_owned()));
        assert_eq!(other.readiness(), not_ready("no schema"));
        gate.set_unready_reason(None);
        gate.open();
        assert_eq!(other.phase(), Phase::Serving);
        assert_eq!(other.readiness(), Readiness::Ready);
        other.set_unready_reason(Some("database unavailable".to_owned()));
        assert_eq!(gate.phase(), Phase::Serving);
        assert_eq!(gate.readiness(), not_ready("database unavailable"));
        other.stop();
        gate.open();
        assert_eq!(gate.phase(), Phase::Stopping);
        let over = Readiness::ShuttingDown("Application is shutting down");
        assert_eq!(gate.readiness(), over);
    }
}
