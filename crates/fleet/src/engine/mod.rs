//! The engine: the leader among all engines decides which unit runs where, and writes that to the registry.
//!
//! ```text
//! run ─▶ standby ──▶ term ──▶ lead ──▶ decider        what to do
//!           ▲        lease     │  │
//!           └── the term ends ─┘  └──▶ registry       every write guarded by the term's epoch
//! ```
//!
//! Leadership, batches and failures are described in `docs/internals/engine.md`.

mod contact;
mod decider;
mod lead;
mod outage;
mod standby;
mod telemetry;
mod term;

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;

use self::lead::End;
use self::outage::{Outages, Part};
pub use self::telemetry::{METRICS, count_from_zero};
use self::term::Term;
use crate::Fleet;
use crate::keys::{self, KeyStore, Revision};
use crate::registry::Error;
use hyperfleet_server_kit::clock::Clock;

/// Version of the rules between engines. An engine with a higher version deposes one with a lower version,
/// which never leads again.
pub const VERSION: u64 = 2;

/// Shortest interval: an engine that checked more often would do nothing else.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

#[derive(Debug, Clone)]
pub struct Settings {
    /// The machine that it runs on. Others see it as the leader's name.
    pub id: String,
    /// How long a lost leader keeps others from leading, in seconds. etcd's minimum is two.
    pub lease_seconds: u32,
    /// Time of machines' leases. At the start of a term, and after the store was silent, a missing machine has
    /// this long to return before it counts as gone.
    pub machine_lease: Duration,
    /// How often the engine checks everything without a cause, at most every 100 ms. Gauges are set then.
    pub interval: Duration,
}

/// An engine. Each machine may run one. The engines elect the leader among themselves.
#[derive(Debug)]
pub struct Engine<S: KeyStore> {
    fleet: Fleet<S>,
    settings: Settings,
    clock: Option<Clock>,
    outages: Outages,
}

/// Whether the engine must stop.
#[derive(Debug, Clone)]
struct Stopping(watch::Receiver<bool>);

impl Stopping {
    fn is_due(&self) -> bool {
        *self.0.borrow()
    }

    async fn due(&self) {
        // A dropped sender stops the engine, too.
        let _ = self.0.clone().wait_for(|is_due| *is_due).await;
    }
}

impl<S: KeyStore> Engine<S> {
    /// An engine that decides from the mirror of `fleet`, which the caller must [keep](Fleet::run_mirror).
    pub fn following(fleet: Fleet<S>, settings: Settings) -> Self {
        let settings = Settings {
            lease_seconds: settings.lease_seconds.max(1),
            interval: settings.interval.max(INTERVAL_MIN),
            ..settings
        };
        Self {
            fleet,
            settings,
            clock: None,
            outages: Outages::default(),
        }
    }

    /// Sets the clock for the metrics of when it began to lead and last decided. Nothing else uses it.
    pub fn with_clock(self, clock: Clock) -> Self {
        let clock = Some(clock);
        Self { clock, ..self }
    }

    /// Stands by, leads, and stands by again, until `until` ends. Then it resigns, so that another engine leads
    /// at once. It never fails: failures are logged and retried.
    ///
    /// Dropped, it stops at once and leaves its lease to expire.
    pub async fn run(self, until: impl Future<Output = ()>) {
        let (stop, stopping) = watch::channel(false);
        // Boxed because it is large, and callers hold it in their futures.
        let mut work = Box::pin(self.work(Stopping(stopping)));
        tokio::select! {
            () = &mut work => return,
            () = until => { stop.send_replace(true); }
        }
        work.await;
    }

    async fn work(&self, stopping: Stopping) {
        let mut logged = None;
        while !stopping.is_due() {
            match self.stand_by(&stopping, &mut logged).await {
                Ok(None) => return,
                Ok(Some(term)) => {
                    let end = self.lead(&term, &stopping).await;
                    self.leave(term, &end, &stopping).await;
                    if let End::Failed(error) = end {
                        self.back_off(Part::Work, &error, &stopping).await;
                    }
                }
                Err(error) => self.back_off(Part::Leadership, &error, &stopping).await,
            }
        }
    }

    /// Ends a term. A write with an unknown result may still arrive: it has no effect once the term has ended.
    /// So the engine continues only when the end of the term is certain.
    async fn leave(&self, term: Term, end: &End, stopping: &Stopping) {
        let leading = term.leading.clone();
        drop(term);
        self.outages.term_ended();
        telemetry::record_leadership_end();
        tracing::info!(epoch = leading.epoch, "Engine leadership ended: {end}");
        loop {
            let resigned = self.fleet.registry.resign(leading.clone());
            match tokio::time::timeout(self.lease(), resigned).await {
                Ok(Err(error @ Error::Store(keys::Error::Unavailable { .. }))) => {
                    self.back_off(Part::Leadership, &error, stopping).await;
                }
                // The lease expires by itself, or already has.
                Ok(Ok(()) | Err(_)) | Err(_) => return,
            }
            if stopping.is_due() {
                return;
            }
        }
    }

    /// Waits until the mirror is connected and has reached a revision, or the engine must stop.
    async fn mirror_reaches(&self, revision: Revision, stopping: &Stopping) -> Result<(), Error> {
        let reached = self.fleet.mirror.wait_for_revision(revision);
        let reached = tokio::time::timeout(self.lease(), reached);
        let is_there = tokio::select! {
            reached = reached => reached.is_ok(),
            // The caller stops as soon as this returns.
            () = stopping.due() => true,
        };
        if is_there {
            return Ok(());
        }
        Err(Error::Store(keys::Error::Unavailable {
            doing: "list all keys",
            source: "the mirror is not connected".into(),
        }))
    }

    async fn back_off(&self, part: Part, error: &Error, stopping: &Stopping) {
        let pause = self.outages.failed(part, error);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stopping.due() => {}
        }
    }
}
