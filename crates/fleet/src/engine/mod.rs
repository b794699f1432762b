//! The engine: the one of all that leads decides which unit runs where, and writes it down.
//!
//! ```text
//! run ─▶ standby ──▶ term ──▶ lead ──▶ decider        what is to be done, and why
//!           ▲        lease     │  │
//!           └── the term ends ─┘  └──▶ registry       every write guarded by the term's epoch
//! ```
//!
//! `docs/internals/engine.md` tells how leaders change, how batches are cut and what becomes of failures.

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
use crate::keys::{self, KeyStore};
use crate::registry::Error;
use hyperfleet_server_kit::clock::Clock;

/// The version of what engines do with one another: one of a higher version deposes one of a lower, which then never
/// leads again.
pub const VERSION: u64 = 2;

/// An engine that looks at itself more often does nothing else.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// What an engine is told when it is made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The machine that it runs on; others see by it who leads.
    pub id: String,
    /// How long a leader that is lost goes on to keep others from leading, in seconds. etcd makes it two at least.
    pub lease_seconds: u32,
    /// How long the leases of machines last. As long they have to come back before a machine that is not there
    /// counts as gone, where it may be well: in a new term, and after the store was silent.
    pub machine_lease: Duration,
    /// How often it looks at itself without cause, at most every 100 ms: reasons are renewed and gauges set then.
    pub interval: Duration,
}

/// An engine. Each machine may run one; which of them leads they settle among themselves.
#[derive(Debug)]
pub struct Engine<S: KeyStore> {
    fleet: Fleet<S>,
    settings: Settings,
    clock: Option<Clock>,
    outages: Outages,
}

/// Whether the engine is to stop.
#[derive(Debug, Clone)]
struct Stopping(watch::Receiver<bool>);

impl Stopping {
    fn is_due(&self) -> bool {
        *self.0.borrow()
    }

    async fn due(&self) {
        // Who would have said so is gone: so is the engine.
        let _ = self.0.clone().wait_for(|is_due| *is_due).await;
    }
}

impl<S: KeyStore> Engine<S> {
    /// An engine that decides by the mirror of the fleet that users of this process see, which somebody has to
    /// [keep](Fleet::keep_mirror).
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

    /// Gives it the time, for metrics that say since when it leads and when it last decided; for nothing else.
    pub fn with_clock(self, clock: Clock) -> Self {
        let clock = Some(clock);
        Self { clock, ..self }
    }

    /// Stands by, leads, and stands by again, until `until` ends; then it resigns, so that another leads at once.
    /// It never fails: what goes wrong is told in the log and tried again.
    ///
    /// Dropped, it stops at once and leaves its lease to run out.
    pub async fn run(self, until: impl Future<Output = ()>) {
        let (stop, stopping) = watch::channel(false);
        // In a box of its own: it is large, and callers hold it in their futures.
        let mut work = Box::pin(self.work(Stopping(stopping)));
        tokio::select! {
            () = &mut work => return,
            () = until => { stop.send_replace(true); }
        }
        work.await;
    }

    async fn work(&self, stopping: Stopping) {
        let mut told = None;
        while !stopping.is_due() {
            match self.stand_by(&stopping, &mut told).await {
                Ok(None) => return,
                Ok(Some(term)) => {
                    let end = self.lead(&term, &stopping).await;
                    self.leave(term, &end, &stopping).await;
                    if let End::Failed(error) = end {
                        self.rest(Part::Work, &error, &stopping).await;
                    }
                }
                Err(error) => self.rest(Part::Leadership, &error, &stopping).await,
            }
        }
    }

    /// Ends a term, whatever has ended the work in it. Where a write was given up half-way it may still come: with
    /// the term it comes to nothing. So nobody goes on before the term is known to have ended.
    async fn leave(&self, term: Term, end: &End, stopping: &Stopping) {
        let leading = term.leading.clone();
        drop(term);
        self.outages.term_ended();
        telemetry::leads_no_more();
        tracing::info!(epoch = leading.epoch, "Engine leadership ended: {end}");
        loop {
            let resigned = self.fleet.registry.resign(leading.clone());
            match tokio::time::timeout(self.lease(), resigned).await {
                Ok(Err(error @ Error::Store(keys::Error::Unavailable { .. }))) => {
                    self.rest(Part::Leadership, &error, stopping).await;
                }
                // Its lease runs out by itself, or had already.
                Ok(Ok(()) | Err(_)) | Err(_) => return,
            }
            if stopping.is_due() {
                return;
            }
        }
    }

    /// Waits after a failure.
    async fn rest(&self, part: Part, error: &Error, stopping: &Stopping) {
        let pause = self.outages.failed(part, error);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stopping.due() => {}
        }
    }
}
