//! Keeps the machine registered, independently of the agent's other work.
//!
//! An expired lease stops only units that must never run twice. The machine registers again and continues.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::disk::{SavedRegistration, StateFile};
use super::kept_registration::KeptRegistration;
use crate::keys::{self, KEPT_PER_LEASE, KeyStore};
use crate::registry::{Error, Key, MachineRecord, Registered, Registration, Registry};
use hyperfleet_server_kit::backoff::Backoff;
use hyperfleet_server_kit::causes::chain;

/// One keep-alive in this many also checks the machine's key, because an operator can delete it while the lease
/// lives.
const KEPT_PER_LOOK: u32 = 6;
/// After this part of a lease without an answer, units that must never run twice are stopped. The rest of the
/// lease is the time to stop them before other machines may start them.
const HELD_PARTS: (u32, u32) = (2, 3);
/// First and longest pause after a failed registration.
const PAUSE: Duration = Duration::from_millis(200);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Longest pause after a failed renewal.
const RENEWAL_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone)]
pub(super) struct MachineLease {
    /// `None` while the machine is not registered.
    pub(super) registration: Option<Registration>,
    held_until: Instant,
}

impl MachineLease {
    /// The state of an agent that starts. Units that must never run twice are not stopped before the agent
    /// could ask.
    pub(super) fn unknown(lease: Duration) -> Self {
        Self {
            registration: None,
            held_until: Instant::now() + lease / KEPT_PER_LEASE,
        }
    }

    /// Whether no other machine can have taken over this machine's units.
    pub(super) fn is_held(&self) -> bool {
        Instant::now() < self.held_until
    }

    /// When [`is_held`](Self::is_held) becomes false, if it is true.
    pub(super) fn ends_at(&self) -> Option<Instant> {
        self.is_held().then_some(self.held_until)
    }
}

/// Registers a machine and renews its lease.
pub(super) struct RegistrationKeeper<S> {
    pub(super) registry: Registry<S>,
    pub(super) id: String,
    pub(super) machine: watch::Receiver<MachineRecord>,
    /// Whether the agent is halted, which the machine's record says.
    pub(super) is_halted: watch::Receiver<bool>,
    pub(super) lease: Duration,
    /// The registration of the previous process.
    pub(super) before: Option<Registration>,
    /// Where the registration is stored for the next one.
    pub(super) state_file: StateFile,
    /// Where it is stored for the next boot.
    pub(super) kept: Option<KeptRegistration>,
    pub(super) lease_sender: watch::Sender<MachineLease>,
    /// Signals that a write found the registration void: its lease expired, or its key was deleted.
    pub(super) is_void: Arc<Notify>,
}

impl<S: KeyStore> RegistrationKeeper<S> {
    /// Runs until it is dropped.
    pub(super) async fn run(mut self) {
        if let Some(before) = self.before.take() {
            // A version that did not keep it may have registered.
            self.keep(&before);
            self.renew_until_void(before, false).await;
        }
        loop {
            let registration = self.register().await;
            self.renew_until_void(registration, true).await;
        }
    }

    /// The record of the machine, as it is now.
    fn record(&mut self) -> MachineRecord {
        MachineRecord {
            halted: *self.is_halted.borrow_and_update(),
            ..self.machine.borrow_and_update().clone()
        }
    }

    /// Stores a registration for the next boot.
    fn keep(&self, registration: &Registration) {
        if let Some(kept) = &self.kept {
            kept.keep(registration);
        }
    }

    /// Ends the registration of the machine's earlier boot, if it has not expired.
    async fn end_earlier_boot(&self) -> Result<(), Error> {
        let earlier = (self.kept.as_ref()).and_then(KeptRegistration::of_earlier_boot);
        match earlier {
            Some(earlier) => self.registry.end_lease(&earlier).await,
            None => Ok(()),
        }
    }

    async fn register(&mut self) -> Registration {
        let seconds = u32::try_from(self.lease.as_secs()).unwrap_or(u32::MAX);
        let mut backoff = Backoff::new(PAUSE, PAUSE_MAX);
        loop {
            let asked_at = Instant::now();
            let machine = self.record();
            let registry = &self.registry;
            let registering = async {
                self.end_earlier_boot().await?;
                registry
                    .register_machine(&self.id, &machine, seconds.max(1))
                    .await
            };
            let cause = match registering.await {
                Ok(Registered::As(registration)) => {
                    tracing::info!(machine = self.id, "machine registered");
                    let saved = SavedRegistration {
                        key: registry.name(&Key::Machine(self.id.clone())),
                        lease: self.lease,
                        registration: registration.clone(),
                    };
                    // Before anything else: an agent that is killed until then cannot resume it.
                    self.state_file.remember_registration(Some(saved));
                    self.keep(&registration);
                    self.record_renewal(&registration, asked_at);
                    return registration;
                }
                Ok(Registered::Taken) => {
                    "machine id in use: another machine has it, or the lease of an earlier agent has not expired"
                        .to_owned()
                }
                Err(error) => chain(&error),
            };
            if !backoff.is_failing() {
                tracing::warn!(
                    machine = self.id,
                    error = cause,
                    "machine not registered: retrying"
                );
            }
            sleep(backoff.next_pause()).await;
        }
    }

    /// Renews a registration until its lease expires or it is void.
    async fn renew_until_void(&mut self, registration: Registration, is_described: bool) {
        let usual = self.lease / KEPT_PER_LEASE;
        let retry_pause = usual.min(RENEWAL_PAUSE);
        let mut backoff = Backoff::new(retry_pause, retry_pause);
        let (mut next, mut is_described) = (Instant::now(), is_described);
        let mut count = 0;
        loop {
            tokio::select! {
                () = sleep_until(next) => {}
                // The signal may concern an earlier registration, so the key is checked now.
                () = self.is_void.notified() => count = 0,
                Ok(()) = self.machine.changed() => is_described = false,
                Ok(()) = self.is_halted.changed() => is_described = false,
            }
            let machine = self.record();
            let asked_at = Instant::now();
            let kept = async {
                self.registry.renew_machine(&registration).await?;
                if !is_described {
                    // The description has changed, or the registration was resumed and may be from other
                    // settings.
                    self.registry
                        .update_machine(&registration, &machine)
                        .await?;
                } else if count % KEPT_PER_LOOK == 0 {
                    self.registry.check_machine(&registration).await?;
                }
                Ok(())
            };
            let kept = timeout(usual, kept).await.unwrap_or_else(|elapsed| {
                Err(Error::Store(keys::Error::Unavailable {
                    doing: "keep the machine's lease",
                    source: Box::new(elapsed),
                }))
            });
            next = match kept {
                Ok(()) => {
                    is_described = true;
                    backoff.reset();
                    count += 1;
                    self.record_renewal(&registration, asked_at);
                    asked_at + usual
                }
                Err(Error::Unregistered) => {
                    tracing::warn!(machine = self.id, "machine deregistered");
                    break;
                }
                Err(error) => {
                    if !backoff.is_failing() {
                        let error = chain(&error);
                        tracing::warn!(error, "machine lease lost: units keep running");
                    }
                    Instant::now() + backoff.next_pause()
                }
            };
        }
        self.lease_sender
            .send_modify(|lease| lease.registration = None);
    }

    fn record_renewal(&self, registration: &Registration, asked_at: Instant) {
        let (parts, of) = HELD_PARTS;
        self.lease_sender.send_modify(|lease| {
            lease.registration = Some(registration.clone());
            lease.held_until = asked_at + self.lease * parts / of;
        });
    }
}
