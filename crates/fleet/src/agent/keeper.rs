//! Keeps the machine registered, whatever else the agent does meanwhile.
//!
//! A lease that has run out stops nothing: the machine is registered again, and goes on. Only units that must never run
//! twice depend on it.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::keys::KeyStore;
use crate::registry::{Error, Machine, Registered, Registration, Registry};
use hyperfleet_server_kit::causes::chain;

/// How often a lease is kept in the time for which it lives.
const KEPT_PER_LEASE: u32 = 3;
/// After this part of a lease without a sign of life, units that must never run twice have to stop: the rest is for
/// stopping them before others may start them.
const SURE_PARTS: (u32, u32) = (2, 3);
/// How long to wait after a failure, at first and at most.
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// What is known of the machine's registration.
#[derive(Debug, Clone)]
pub(super) struct Membership {
    /// `None` until the machine is registered.
    pub(super) registration: Option<Registration>,
    /// Until when no other machine takes over its units for sure.
    sure_until: Option<Instant>,
}

impl Membership {
    /// That of an agent that starts. Units that must never run twice are not stopped before it could ask.
    pub(super) fn unknown(lease: Duration) -> Self {
        Self {
            registration: None,
            sure_until: Some(Instant::now() + lease / KEPT_PER_LEASE),
        }
    }

    /// Whether it is sure that no other machine takes over units of this one.
    pub(super) fn is_sure(&self) -> bool {
        self.sure_until.is_some_and(|until| Instant::now() < until)
    }

    /// When that ends, if it has not ended.
    pub(super) fn ends_at(&self) -> Option<Instant> {
        self.sure_until.filter(|until| Instant::now() < *until)
    }
}

/// Registers a machine and keeps it so.
pub(super) struct Keeper<S> {
    pub(super) registry: Registry<S>,
    pub(super) id: String,
    pub(super) machine: Machine,
    pub(super) lease: Duration,
    pub(super) tell: watch::Sender<Membership>,
}

impl<S: KeyStore> Keeper<S> {
    /// Until it is dropped. `before` is a registration that was kept by the process before.
    pub(super) async fn keep(self, before: Option<Registration>) {
        let mut before = before;
        loop {
            let registration = match before.take() {
                Some(registration) => registration,
                None => self.register().await,
            };
            self.keep_one(registration).await;
        }
    }

    async fn register(&self) -> Registration {
        let seconds = u32::try_from(self.lease.as_secs())
            .unwrap_or(u32::MAX)
            .max(1);
        let (mut pause, mut is_taken) = (PAUSE, false);
        loop {
            let asked_at = Instant::now();
            let registered = self
                .registry
                .register_machine(&self.id, &self.machine, seconds);
            match registered.await {
                Ok(Registered::As(registration)) => {
                    tracing::info!(machine = self.id, "the machine is registered");
                    self.is_kept(&registration, asked_at);
                    return registration;
                }
                Ok(Registered::Taken) if !is_taken => {
                    is_taken = true;
                    tracing::warn!(
                        machine = self.id,
                        "another machine has this id, or the lease of a former agent runs: waiting until it ends"
                    );
                }
                Ok(Registered::Taken) => {}
                Err(error) => {
                    tracing::warn!(error = chain(&error), "the machine cannot be registered");
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    /// Keeps a registration until its lease has run out.
    async fn keep_one(&self, registration: Registration) {
        let usual = self.lease / KEPT_PER_LEASE;
        let mut next = Instant::now();
        loop {
            sleep_until(next).await;
            let asked_at = Instant::now();
            next = match self.registry.keep_machine(&registration).await {
                Ok(()) => {
                    self.is_kept(&registration, asked_at);
                    asked_at + usual
                }
                Err(Error::Unregistered) => {
                    tracing::warn!(machine = self.id, "the lease of the machine has run out");
                    self.tell
                        .send_modify(|membership| membership.registration = None);
                    return;
                }
                Err(error) => {
                    tracing::warn!(
                        error = chain(&error),
                        "the lease of the machine was not kept"
                    );
                    Instant::now() + usual.min(PAUSE * 5)
                }
            };
        }
    }

    fn is_kept(&self, registration: &Registration, asked_at: Instant) {
        let (parts, of) = SURE_PARTS;
        self.tell.send_modify(|membership| {
            membership.registration = Some(registration.clone());
            membership.sure_until = Some(asked_at + self.lease * parts / of);
        });
    }
}
