//! One term as leader: kept alive beside the work, so that no batch of writes, however long, costs the lease.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::Engine;
use super::contact::Contact;
use super::outage::{Outages, Part};
use crate::keys::{KEPT_PER_LEASE, KeyStore};
use crate::registry::{Error, Leading, Registry};

/// A term that is kept until this is dropped.
#[derive(Debug)]
pub(super) struct Term {
    pub(super) leading: Leading,
    pub(super) contact: Contact,
    /// Until when it lasts for sure; none once it has ended.
    lasts: watch::Receiver<Option<Instant>>,
    keeper: AbortHandle,
}

impl Term {
    /// Keeps a term that an engine has asked for at that time.
    pub(super) fn keep<S: KeyStore>(
        engine: &Engine<S>,
        leading: Leading,
        asked_at: Instant,
    ) -> Self {
        let lease = engine.lease();
        let contact = Contact::begin(engine.settings.machine_lease);
        let (tell, lasts) = watch::channel(Some(asked_at + lease));
        let keeper = Keeper {
            registry: engine.fleet.registry.clone(),
            leading: leading.clone(),
            lease,
            contact: contact.clone(),
            outages: engine.outages.clone(),
            tell,
        };
        Self {
            leading,
            contact,
            lasts,
            keeper: tokio::spawn(keeper.keep()).abort_handle(),
        }
    }

    /// Whether the term may have ended. A process that was frozen finds it so before anybody has told it.
    pub(super) fn is_over(&self) -> bool {
        // Without its keeper it is not kept any more.
        let is_kept = self.lasts.has_changed().is_ok();
        let lasts = *self.lasts.borrow();
        !is_kept || lasts.is_none_or(|until| until <= Instant::now())
    }

    /// Waits for its end.
    pub(super) async fn end(&self) {
        // Its keeper being gone is an end, too.
        let _ = self.lasts.clone().wait_for(Option::is_none).await;
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

struct Keeper<S> {
    registry: Registry<S>,
    leading: Leading,
    lease: Duration,
    contact: Contact,
    outages: Outages,
    tell: watch::Sender<Option<Instant>>,
}

impl<S: KeyStore> Keeper<S> {
    async fn keep(self) {
        let usual = (self.lease / KEPT_PER_LEASE).min(self.contact.pause_max());
        let mut pause = usual;
        loop {
            let Some(until) = *self.tell.borrow() else {
                return;
            };
            // What lasts is counted from before it was asked for: the store has counted from later.
            tokio::time::sleep_until(until.min(Instant::now() + pause)).await;
            let asked_at = Instant::now();
            let kept = self.registry.keep_leading(&self.leading);
            pause = match tokio::time::timeout_at(until, kept).await {
                Ok(Ok(())) => {
                    self.contact.answered();
                    self.outages.is_well(Part::Lease);
                    self.tell.send_replace(Some(asked_at + self.lease));
                    usual
                }
                Ok(Err(error @ Error::Store(_))) if asked_at < until => {
                    self.outages.failed(Part::Lease, &error).min(usual)
                }
                Ok(Err(_)) | Err(_) => {
                    self.tell.send_replace(None);
                    return;
                }
            };
        }
    }
}
