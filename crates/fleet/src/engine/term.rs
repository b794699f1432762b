//! One term as leader. It is renewed beside the work, so that a long batch of writes cannot cost the lease.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::Engine;
use super::contact::Contact;
use super::outage::{Outages, Part};
use crate::keys::{KEPT_PER_LEASE, KeyStore};
use crate::registry::{Error, Leading, Registry};

/// A term that is renewed until this is dropped.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) leading: Leading,
    pub(super) contact: Contact,
    /// Until when it certainly lasts; `None` once it has ended.
    lasts: watch::Receiver<Option<Instant>>,
    keeper: AbortHandle,
}

impl Term {
    /// Renews a term that was acquired by a request at this time.
    pub(super) fn start<S: KeyStore>(
        engine: &Engine<S>,
        leading: Leading,
        asked_at: Instant,
    ) -> Self {
        let lease = engine.lease();
        let contact = Contact::begin(engine.settings.machine_lease);
        let (end_sender, lasts) = watch::channel(Some(asked_at + lease));
        let keeper = TermKeeper {
            registry: engine.fleet.registry.clone(),
            leading: leading.clone(),
            lease,
            contact: contact.clone(),
            outages: engine.outages.clone(),
            end_sender,
        };
        Self {
            leading,
            contact,
            lasts,
            keeper: tokio::spawn(keeper.run()).abort_handle(),
        }
    }

    /// Whether the term may have ended. A frozen process notices it here before any event arrives.
    pub(super) fn is_over(&self) -> bool {
        // Without its keeper the term is not renewed.
        let is_kept = self.lasts.has_changed().is_ok();
        let lasts = *self.lasts.borrow();
        !is_kept || lasts.is_none_or(|until| until <= Instant::now())
    }

    pub(super) async fn end(&self) {
        // A keeper that is gone ends the term, too.
        let _ = self.lasts.clone().wait_for(Option::is_none).await;
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

struct TermKeeper<S> {
    registry: Registry<S>,
    leading: Leading,
    lease: Duration,
    contact: Contact,
    outages: Outages,
    end_sender: watch::Sender<Option<Instant>>,
}

impl<S: KeyStore> TermKeeper<S> {
    async fn run(self) {
        let usual = (self.lease / KEPT_PER_LEASE).min(self.contact.pause_max());
        let mut pause = usual;
        loop {
            let Some(until) = *self.end_sender.borrow() else {
                return;
            };
            // Counted from before the request: the store started to count later.
            tokio::time::sleep_until(until.min(Instant::now() + pause)).await;
            let asked_at = Instant::now();
            let kept = self.registry.renew_leadership(&self.leading);
            pause = match tokio::time::timeout_at(until, kept).await {
                Ok(Ok(())) => {
                    self.contact.answered();
                    self.outages.is_well(Part::Lease);
                    self.end_sender.send_replace(Some(asked_at + self.lease));
                    usual
                }
                Ok(Err(error @ Error::Store(_))) if asked_at < until => {
                    self.outages.failed(Part::Lease, &error).min(usual)
                }
                Ok(Err(_)) | Err(_) => {
                    self.end_sender.send_replace(None);
                    return;
                }
            };
        }
    }
}
