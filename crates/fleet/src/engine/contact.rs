//! Whether a machine that is gone may be well all the same.
//!
//! A machine is there as long as its lease is kept. Agents keep theirs every third of its time, so a store that
//! answered us at least every half of it has not stood still for so long that a lease ran out unkept: a machine that
//! goes then is lost, and its units move at once. After a longer silence nobody can tell. etcd gives all leases their
//! whole time anew when it starts, or another of its servers leads. But one that was only frozen ends at once every
//! lease whose time has passed meanwhile, and what was sent to keep them comes too late: all machines are gone, and
//! all are well. Nor does a new leader know what was before its term.
//!
//! So after a silence, and when a term begins, machines have the time of one lease to register again. Until then
//! units stay placed on those that are not there: what was decided is not taken back, no agent is told to stop what
//! it runs (decision F5). A machine that was really lost meanwhile loses its units afterwards.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How often, in the time of a machine's lease, the store is asked for a sign of life at least: so that no silence is
/// of our own making.
const SIGNS_PER_LEASE: u32 = 4;
/// A silence of such a part of the time of a machine's lease may have cost leases.
const SILENCE_PART: u32 = 2;
/// The shortest time between two signs of life, however short leases are.
const SIGN_PAUSE_MIN: Duration = Duration::from_millis(250);

/// What a term knows of its contact with the store. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Contact {
    machine_lease: Duration,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// When the store last answered.
    answered: Instant,
    /// When it last did after a silence, or the term began.
    regained: Instant,
}

impl Contact {
    /// That of a term that begins, where machines are on leases of such a time.
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

    /// The store has answered, or told something. To be said before what it told is acted on.
    pub(super) fn answered(&self) {
        let now = Instant::now();
        let mut state = self.state();
        let silence = now - state.answered;
        state.answered = now;
        if self.is_silence(silence) {
            state.regained = now;
            tracing::info!(
                seconds = silence.as_secs_f64(),
                "the store was silent; machines that are gone have the time of a lease to come back"
            );
        }
    }

    /// Whether machines that are not there are to be taken for well.
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

    /// How long to wait at most before the store is asked for a sign of life.
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

    /// Answers come as often as a term asks for them.
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
    async fn where_nobody_comes_back_nobody_is_waited_for() {
        let contact = Contact::begin(Duration::ZERO);
        assert!(!contact.excuses_machines());
        advance(LEASE).await;
        contact.answered();
        assert!(!contact.excuses_machines());
        assert!(!contact.pause_max().is_zero());
    }
}
