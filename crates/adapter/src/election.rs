//! Elects one of several copies of an adapter, by a lease of the API.
//!
//! ```text
//!            the lease is free                    a third of its duration later
//! waiting ─────────────────────▶ working: renewed ────────────────────────────▶ renewed ▶ …
//!    ▲                              │
//!    └──────────────────────────────┘
//!      another holder has it, or no renewal for four fifths of its duration
//! ```
//!
//! Another copy can acquire the lease when the service's clock has counted the whole duration since the last renewal.
//! This copy counts from before it sent that renewal, on a monotonic clock, and stops a fifth of the duration earlier.

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::api::Api;
use super::error::Error;

/// Default duration of a lease, in seconds.
const SECONDS: u32 = 15;
/// Longest pause between attempts to acquire or renew the lease.
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(2);
/// Timeout of the release of the lease. If it fails, the lease expires.
const RELEASE_TIME: Duration = Duration::from_secs(5);

/// The lease that the copies of an adapter compete for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Election {
    /// Name of the lease, the same for all copies: up to 63 lower-case letters, digits and hyphens.
    pub lease: String,
    /// Name of this copy. If two copies had the same name, both would work.
    pub holder: String,
    /// Duration of the lease in seconds, 1 to 3600: how long the other copies wait for one that has crashed.
    pub seconds: u32,
}

impl Election {
    /// An election for a lease of 15 seconds. The holder is the name of the host and a random number, so each process
    /// is a copy of its own.
    pub fn new(lease: impl Into<String>) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = host.trim().get(..200).unwrap_or(host.trim());
        // Every state has random keys.
        let random = RandomState::new().hash_one(0);
        Self {
            lease: lease.into(),
            holder: format!("{host}-{random:016x}"),
            seconds: SECONDS,
        }
    }
}

/// A copy that takes part in the election.
pub(crate) struct Candidate {
    api: Api,
    election: Election,
    /// Until when this copy may work; a time in the past if it does not hold the lease.
    until: watch::Sender<Instant>,
    leads: watch::Sender<bool>,
    /// Locked while a request for the lease is in progress.
    asking: Arc<Mutex<()>>,
}

/// What was logged last.
#[derive(PartialEq, Eq)]
enum Logged {
    Nothing,
    Held,
    Failing,
}

impl Candidate {
    pub(crate) fn new(api: Api, election: Election) -> Self {
        Self {
            api,
            election,
            until: watch::channel(Instant::now()).0,
            leads: watch::channel(false).0,
            asking: Arc::default(),
        }
    }

    /// Whether this copy works.
    pub(crate) fn leads(&self) -> watch::Receiver<bool> {
        self.leads.subscribe()
    }

    /// Until when this copy may begin work.
    pub(crate) fn until(&self) -> watch::Receiver<Instant> {
        self.until.subscribe()
    }

    /// Takes part in the election forever.
    pub(crate) async fn run(&self) {
        loop {
            self.acquire().await;
            tracing::info!(lease = self.election.lease, "lease acquired");
            self.leads.send_replace(true);
            self.hold().await;
            self.leads.send_replace(false);
            tracing::warn!(lease = self.election.lease, "lease lost");
            // So that the runner notices, even if this copy acquires the lease again.
            sleep(self.pause()).await;
        }
    }

    /// Releases the lease, if this copy holds it, or may have got it by a request that is still in progress.
    pub(crate) async fn release(&self) {
        self.leads.send_replace(false);
        self.until.send_replace(Instant::now());
        let Election { lease, holder, .. } = &self.election;
        let released = timeout(RELEASE_TIME, async {
            let _none_in_progress = self.asking.lock().await;
            self.api.release(lease, holder).await
        });
        if !matches!(released.await, Ok(Ok(()))) {
            tracing::info!(lease, "releasing the lease failed: it will expire");
        }
    }

    /// Waits until this copy holds the lease.
    async fn acquire(&self) {
        let mut logged = Logged::Nothing;
        loop {
            match self.ask(Instant::now() + self.duration()).await {
                Some(Ok(true)) => return,
                Some(Ok(false)) if logged != Logged::Held => {
                    tracing::info!(
                        lease = self.election.lease,
                        "another copy holds the lease: waiting"
                    );
                    logged = Logged::Held;
                }
                Some(Err(error)) if logged != Logged::Failing => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(
                        lease = self.election.lease,
                        error,
                        "acquiring the lease failed: retrying"
                    );
                    logged = Logged::Failing;
                }
                _ => {}
            }
            sleep(self.pause()).await;
        }
    }

    /// Renews the lease until another holder has it, or this copy may no longer work.
    async fn hold(&self) {
        let renewal = self.duration() / 3;
        let mut renew_at = Instant::now() + renewal;
        loop {
            let until = *self.until.borrow();
            if renew_at >= until {
                sleep_until(until).await;
                return;
            }
            sleep_until(renew_at).await;
            renew_at = Instant::now()
                + match self.ask(until).await {
                    Some(Ok(true)) => renewal,
                    Some(Err(error)) => {
                        tracing::debug!(%error, "renewing the lease failed: retrying");
                        self.pause()
                    }
                    Some(Ok(false)) | None => return,
                };
        }
    }

    /// Asks for the lease; whether this copy holds it. `None` if there is no answer until the deadline.
    async fn ask(&self, by: Instant) -> Option<Result<bool, Error>> {
        let asked_at = Instant::now();
        let (api, election) = (self.api.clone(), self.election.clone());
        let asking = Arc::clone(&self.asking).lock_owned().await;
        // In a task of its own: the service carries out a request even if its client has stopped waiting, and the
        // lease must not be released before that.
        let asked = tokio::spawn(async move {
            let Election {
                lease,
                holder,
                seconds,
            } = &election;
            let held = timeout_at(by, api.acquire(lease, holder, *seconds)).await;
            drop(asking);
            held
        });
        let held = asked.await.ok()?.ok()?;
        let until = match &held {
            Ok(true) => asked_at + self.duration() * 4 / 5,
            Ok(false) => asked_at,
            Err(_) => return Some(held),
        };
        self.until.send_replace(until);
        Some(held)
    }

    fn duration(&self) -> Duration {
        Duration::from_secs(self.election.seconds.into())
    }

    /// The pause between two attempts.
    fn pause(&self) -> Duration {
        (self.duration() / 5).min(RETRY_PAUSE_MAX)
    }
}
