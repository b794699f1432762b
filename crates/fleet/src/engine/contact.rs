//! Whether a machine that disappeared may be healthy.
//!
//! A machine is a member while its lease is renewed. Agents renew it every third of its length. If the store has
//! answered this engine at least every half of that length, it was never silent long enough for a lease to expire
//! unrenewed. A machine that disappears then is lost, and its units move immediately.
//!
//! After a longer silence, a machine that disappears may be healthy. etcd restarts all leases with their full length
//! when it starts or its leader changes. But an etcd that was only frozen immediately expires every lease whose time
//! has passed, and the renewals come too late: all machines disappear although all are healthy. A new leader does not
//! know what happened before its term either.
//!
//! So after a silence, and at the start of a term, machines have the time of one lease to register again. Until
//! then units stay placed on missing machines, because losing etcd must never stop a healthy unit. A machine
//! that was really lost loses its units afterwards.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The store is asked for a sign of life at least this often during a machine's lease, so that silence is never
/// our own doing.
const SIGNS_PER_LEASE: u32 = 4;
/// A silence of this part of a machine's lease may have expired leases.
const SILENCE_PART: u32 = 2;
/// Shortest time between two signs of life.
const SIGN_PAUSE_MIN: Duration = Duration::from_millis(250);

/// A term's contact with the store. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Contact {
    machine_lease: Duration,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    answered: Instant,
    /// Start of the term, or the first answer after the last silence.
    regained: Instant,
}

impl Contact {
    /// The contact at the start of a term. `machine_lease` is the time of machines' leases.
    pub(super) fn begin(machine_lease: Duration) -> Self {
        let now = Instant::now();
        let state = State {
            answered: now,
            regained: now,
        };
        Self {
            machine_lease,
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_silence(&self, time: Duration) -> bool {
        !self.machine_lease.is_zero() && time >= self.machine_lease / SILENCE_PART
    }

    /// The store has answered or sent an event. Call this before acting on it.
    pub(super) fn answered(&self) {
        let now = Instant::now();
        let mut state = self.state();
        let silence = now - state.answered;
        state.answered = now;
        if self.is_silence(silence) {
            state.regained = now;
            tracing::info!(
                seconds = silence.as_secs_f64(),
                "etcd was silent: missing machines have one lease to return"
            );
        }
    }

    /// Whether missing machines count as healthy.
    pub(super) fn excuses_machines(&self) -> bool {
        let state = self.state();
        let is_silent = self.is_silence(state.answered.elapsed());
        let since = if is_silent {
            Duration::ZERO
        } else {
            state.regained.elapsed()
        };
        since < self.machine_lease
    }

    /// Longest pause before the store is asked for a sign of life.
    pub(super) fn pause_max(&self) -> Duration {
        (self.machine_lease / SIGNS_PER_LEASE).max(SIGN_PAUSE_MIN)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    const LEASE: Duration = Duration::from_secs(30);
    const ALMOST: Duration = Duration::from_secs(29);
    const SECOND: Duration = Duration::from_secs(1);

    /// Answers arrive as often as a term asks for them.
    async fn pass(contact: &Contact, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            advance(contact.pause_max().min(until - Instant::now())).await;
            contact.answered();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_term_waits_for_machines_as_long_as_their_leases_last() {
        let contact = Contact::begin(LEASE);
        pass(&contact, ALMOST).await;
        assert!(contact.excuses_machines());
        pass(&contact, SECOND).await;
        assert!(!contact.excuses_machines());
        pass(&contact, LEASE * 10).await;
        assert!(!contact.excuses_machines(), "answers are no silence");
    }

    #[tokio::test(start_paused = true)]
    async fn so_it_does_during_a_silence_and_after_its_end() {
        let contact = Contact::begin(LEASE);
        pass(&contact, LEASE).await;
        advance(ALMOST / 2).await;
        assert!(!contact.excuses_machines(), "no lease has run out unkept");
        advance(SECOND / 2).await;
        assert!(contact.excuses_machines());
        advance(LEASE * 10).await;
        assert!(contact.excuses_machines(), "however long it is");
        contact.answered();
        pass(&contact, ALMOST).await;
        assert!(contact.excuses_machines());
        pass(&contact, SECOND).await;
        assert!(!contact.excuses_machines());
    }

    #[tokio::test(start_paused = true)]
    async fn machines_that_need_not_return_are_not_waited_for() {
        let contact = Contact::begin(Duration::ZERO);
        assert!(!contact.excuses_machines());
        advance(LEASE).await;
        contact.answered();
        assert!(!contact.excuses_machines());
        assert!(!contact.pause_max().is_zero());
    }
}
