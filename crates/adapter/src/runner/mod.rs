//! Finds resources that need work, and runs the adapter for them.

mod known;
mod lists;
mod work;

use std::collections::HashMap;
use std::future::Future;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

use self::known::Known;
use self::lists::Listed;
use self::work::Done;
pub use self::work::{Adapter, Outcome, Work};
use super::api::{self, Api};
use super::queue::{Key, Queue};
use super::telemetry;

/// Pause before a resource is reconciled again after the service discarded its report.
const AFTER_DISCARD: Duration = Duration::from_secs(1);
/// Pages that wait to be taken in.
const PAGES_MAX: usize = 4;
/// How long after a wake a resource is reconciled: what happens shortly after one another is one piece of work.
const WAKE_DELAY: Duration = Duration::from_millis(50);
/// How long nothing is looked at when nothing is due.
const IDLE: Duration = Duration::from_hours(1);

/// What an adapter works on, and how.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The adapter's name in its reports.
    pub name: String,
    /// The kinds that it works on. A change of a resource is also one of all that it owns, where both kinds are named.
    pub kinds: Vec<Kind>,
    /// How many resources are worked on at a time.
    pub workers: usize,
    /// How often the API is asked for resources that are not reconciled.
    pub poll_interval: Duration,
    /// How often it is asked for all of them, and each is worked on.
    pub sweep_interval: Duration,
    /// A report that says what the last one said is sent again after that time: it is what shows that the adapter lives.
    pub report_interval: Duration,
    /// How long work that is under way may take when the adapter is to end.
    pub grace: Duration,
}

impl Settings {
    /// The usual: asked every five seconds for changes and every ten minutes for everything. 32 workers, because work
    /// waits for disks and networks, not for processors.
    pub fn new(name: impl Into<String>, kinds: Vec<Kind>) -> Self {
        Self {
            name: name.into(),
            kinds,
            workers: 32,
            poll_interval: Duration::from_secs(5),
            sweep_interval: Duration::from_mins(10),
            report_interval: Duration::from_mins(5),
            grace: Duration::from_secs(30),
        }
    }
}

/// A kind of resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Its name in paths, such as `clusters`.
    pub plural: String,
    /// Only resources that meet this search, in the language of the API.
    pub search: Option<String>,
}

impl Kind {
    /// All of a kind.
    pub fn new(plural: impl Into<String>) -> Self {
        Self {
            plural: plural.into(),
            search: None,
        }
    }
}

/// What all workers share.
struct Shared<A> {
    api: Api,
    settings: Settings,
    adapter: A,
}

/// An adapter that runs.
pub struct Runner<A> {
    shared: Arc<Shared<A>>,
    leads: watch::Receiver<bool>,
    queue: Queue,
    known: Known,
    /// Paths of resources whose current state has changed.
    wakes: mpsc::UnboundedReceiver<String>,
    workers: JoinSet<anyhow::Result<Done>>,
    /// Who works on what, and since when.
    under_way: HashMap<Id, (Key, Instant)>,
}

impl<A: Adapter> Runner<A> {
    /// One that is the only one of its name.
    pub fn new(api: Api, settings: Settings, adapter: A) -> Self {
        // Nobody ever says otherwise.
        Self::with_lease(api, settings, adapter, watch::channel(true).1)
    }

    /// One of several replicas, which works only while `leads` says `true`. Work that is under way when that ends is given
    /// up where it waits for something.
    pub fn with_lease(
        api: Api,
        settings: Settings,
        adapter: A,
        leads: watch::Receiver<bool>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                api,
                settings,
                adapter,
            }),
            leads,
            queue: Queue::default(),
            known: Known::default(),
            wakes: mpsc::unbounded_channel().1,
            workers: JoinSet::new(),
            under_way: HashMap::new(),
        }
    }

    /// Reconciles a resource soon after its path arrives: for adapters that notice themselves when the current state of
    /// a resource changes. Paths of resources that were not listed are passed over; a list brings them.
    pub fn with_wakes(self, wakes: mpsc::UnboundedReceiver<String>) -> Self {
        Self { wakes, ..self }
    }

    /// Works until `stop`, and then no longer than the grace period.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        loop {
            telemetry::leads(false);
            let stand_by = async {
                let is_leading = until_says(&mut self.leads, true);
                tokio::pin!(is_leading);
                loop {
                    tokio::select! {
                        () = &mut is_leading => break,
                        // With the lease everything is listed.
                        Some(_) = self.wakes.recv() => {}
                    }
                }
            };
            tokio::select! {
                () = &mut stop => return,
                () = stand_by => {}
            }
            telemetry::leads(true);
            tracing::info!(adapter = self.shared.settings.name, "the adapter works");
            let mut leads = self.leads.clone();
            tokio::select! {
                () = &mut stop => break,
                () = until_says(&mut leads, false) => {}
                () = self.work() => {}
            }
            tracing::warn!(adapter = self.shared.settings.name, "another replica works");
            self.workers.shutdown().await;
            self.under_way.clear();
            self.queue.clear();
            self.known = Known::default();
        }
        let left = self.workers.len();
        let ended = timeout(self.shared.settings.grace, async {
            while let Some(done) = self.workers.join_next_with_id().await {
                self.take_done(done);
            }
        });
        if ended.await.is_err() {
            tracing::warn!(left, "work was given up when the grace period ended");
        }
    }

    /// For ever.
    async fn work(&mut self) {
        let (tell, mut pages) = mpsc::channel(PAGES_MAX);
        let mut lists = JoinSet::new();
        for kind in 0..self.shared.settings.kinds.len() {
            let (shared, tell) = (Arc::clone(&self.shared), tell.clone());
            lists.spawn(async move { lists::keep(&shared, kind, &tell).await });
        }
        loop {
            self.start_due();
            let (waiting, working) = self.queue.count();
            telemetry::queue(waiting, working);
            let is_room = self.workers.len() < self.shared.settings.workers;
            let next_at = self.queue.next_at().filter(|_| is_room);
            let next_at = next_at.unwrap_or_else(|| Instant::now() + IDLE);
            tokio::select! {
                Some(listed) = pages.recv() => self.take_in(listed),
                Some(href) = self.wakes.recv() => self.wake(&href),
                Some(done) = self.workers.join_next_with_id() => self.take_done(done),
                () = sleep_until(next_at) => {}
            }
        }
    }

    fn start_due(&mut self) {
        while self.workers.len() < self.shared.settings.workers {
            let now = Instant::now();
            let Some(key) = self.queue.take(now) else {
                return;
            };
            let (shared, last) = (Arc::clone(&self.shared), self.known.last_report(&key));
            let href = key.href.clone();
            let work = async move { work::work_on(&shared, &href, last).await };
            let id = self.workers.spawn(work).id();
            self.under_way.insert(id, (key, now));
        }
    }

    fn wake(&mut self, href: &str) {
        for kind in 0..self.shared.settings.kinds.len() {
            let href = href.to_owned();
            let key = Key { kind, href };
            if self.known.has(&key) {
                self.queue.add(key, Instant::now() + WAKE_DELAY, true);
            }
        }
    }

    fn take_in(&mut self, listed: Listed) {
        let now = Instant::now();
        for (key, is_news) in self.known.take_in(listed) {
            self.queue.add(key, now, is_news);
        }
    }

    fn take_done(&mut self, done: Result<(Id, anyhow::Result<Done>), JoinError>) {
        let (id, done) = match done {
            Ok(done) => done,
            // The panic itself is a line of its own, with its place.
            Err(error) => (error.id(), Err(anyhow!("the work has panicked"))),
        };
        let Some((key, since)) = self.under_way.remove(&id) else {
            return;
        };
        let (now, took) = (Instant::now(), since.elapsed());
        let kind = &self.shared.settings.kinds[key.kind].plural;
        match done {
            Ok(Done::Gone) => {
                telemetry::reconciled(kind, "gone", took);
                self.known.forget(&key);
                self.queue.done(key, None);
            }
            Ok(Done::Discarded) => {
                telemetry::reconciled(kind, "discarded", took);
                self.queue.done(key, Some(now + AFTER_DISCARD));
            }
            Ok(Done::Reported(report, again)) => {
                telemetry::reconciled(kind, "reported", took);
                self.known.reported(&key, *report);
                self.queue.done(key, again.map(|again| now + again));
            }
            Ok(Done::Unchanged(again)) => {
                telemetry::reconciled(kind, "unchanged", took);
                self.queue.done(key, again.map(|again| now + again));
            }
            Err(error) => {
                telemetry::reconciled(kind, "failed", took);
                let at_least = error.downcast_ref().and_then(api::Error::again_after);
                let (resource, error) = (&key.href, format!("{error:#}"));
                tracing::warn!(resource, error, "reconciliation failed; it is retried");
                let at_least = at_least.unwrap_or_default();
                self.queue.failed(key, now, jitter(), at_least);
            }
        }
    }
}

/// Waits until it is so. What was said last holds, also when nobody is there any more to say something else.
async fn until_says(leads: &mut watch::Receiver<bool>, what: bool) {
    if leads.wait_for(|leads| *leads == what).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Any number from 0 to 1.
#[allow(clippy::cast_precision_loss, reason = "it is as good a random number")]
fn jitter() -> f64 {
    // Every state is made with keys of its own.
    let random = RandomState::new().hash_one(0) >> 11;
    random as f64 / (1_u64 << 53) as f64
}
