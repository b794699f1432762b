//! Finds resources that need work, and calls the adapter for them.

mod follow;
mod known;
mod lists;
mod news;
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

use self::follow::Following;
use self::known::{KnownResources, Todo};
use self::news::News;
use self::work::Done;
pub use self::work::{Adapter, ReconcileOutcome, Work};
use super::api::Api;
use super::election::{Candidate, Election};
use super::error::Error;
use super::queue::{Key, Queue};
use super::telemetry;

/// Pause before a resource is reconciled again after the service discarded its report.
const AFTER_DISCARD: Duration = Duration::from_secs(1);
/// Pause after a failed list or watch: the first, and the longest.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Pages and events that wait to be processed. While as many wait, no more are read.
const NEWS_MAX: usize = 4;
/// Delay between a wake and the work, so that changes in a row are handled together.
const WAKE_DELAY: Duration = Duration::from_millis(50);
/// Longest sleep without a due resource.
const IDLE: Duration = Duration::from_hours(1);

#[derive(Debug, Clone)]
pub struct Settings {
    /// The adapter's name in its reports.
    pub name: String,
    /// The kinds that it works on. A change of a resource also concerns the resources that it owns, if both
    /// kinds are listed.
    pub kinds: Vec<Kind>,
    /// How many resources are worked on in parallel.
    pub workers: usize,
    /// How often unreconciled resources are listed while no watch shows changes.
    pub poll_interval: Duration,
    /// How often all resources are listed and worked on, with and without a watch.
    pub sweep_interval: Duration,
    /// An unchanged report is sent again after this time, to show that the adapter is alive.
    pub report_interval: Duration,
    /// How long work in progress may take during shutdown.
    pub grace: Duration,
}

impl Settings {
    /// The defaults: changes as they happen or, from a service without watch, every five seconds; everything every
    /// ten minutes. No change is missed, so the sweep is for what no event shows: a result that was removed behind
    /// the adapter's back is restored within ten minutes. 32 workers, because work waits for disks and networks, not
    /// for processors.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Its name in paths, such as `clusters`.
    pub plural: String,
    /// Only resources that match this search, in the API's search language.
    pub search: Option<String>,
}

impl Kind {
    /// All resources of a kind.
    pub fn new(plural: impl Into<String>) -> Self {
        Self {
            plural: plural.into(),
            search: None,
        }
    }
}

/// State shared by all workers.
struct Shared<A> {
    api: Api,
    settings: Settings,
    adapter: A,
}

pub struct Runner<A> {
    shared: Arc<Shared<A>>,
    leads: watch::Receiver<bool>,
    /// Takes part in the election; `None` if the caller elects.
    candidate: Option<Arc<Candidate>>,
    queue: Queue,
    known: KnownResources,
    /// Paths of resources whose current state has changed.
    wakes: mpsc::UnboundedReceiver<String>,
    workers: JoinSet<anyhow::Result<Done>>,
    /// The resource of each worker, and since when.
    in_progress: HashMap<Id, (Key, Instant)>,
}

impl<A: Adapter> Runner<A> {
    /// For a single copy.
    pub fn new(api: Api, settings: Settings, adapter: A) -> Self {
        // The sender is dropped, so the value stays.
        Self::with_lease(api, settings, adapter, watch::channel(true).1)
    }

    /// One of several copies, of which the holder of a lease of the API works. The others wait, and list and watch
    /// nothing.
    ///
    /// A copy that loses the lease, or cannot renew it in time, begins no work from then on, and cancels work in progress
    /// at its next await. It releases the lease after a stop, when its last work has ended. Two copies may work
    /// simultaneously only if the process of one was paused, or if the database of the service was set back:
    /// [`Adapter::reconcile`] is written so that a second call changes nothing.
    pub fn elected(api: Api, settings: Settings, adapter: A, election: Election) -> Self {
        let candidate = Candidate::new(api.clone(), election);
        Self {
            candidate: Some(Arc::new(candidate)),
            ..Self::with_lease(api, settings, adapter, watch::channel(false).1)
        }
    }

    /// One of several copies, which works only while `leads` is `true`. When that ends, work in progress is
    /// cancelled at its next await.
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
            candidate: None,
            queue: Queue::default(),
            known: KnownResources::default(),
            wakes: mpsc::unbounded_channel().1,
            workers: JoinSet::new(),
            in_progress: HashMap::new(),
        }
    }

    /// Reconciles a resource soon after its path arrives, for adapters that notice changes of the current state
    /// themselves. Paths of resources that were not listed yet are ignored: a list includes them.
    pub fn with_wakes(self, wakes: mpsc::UnboundedReceiver<String>) -> Self {
        Self { wakes, ..self }
    }

    /// Works until `stop`, and then no longer than the grace period.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let Some(candidate) = self.candidate.clone() else {
            return self.run_while_leading(stop).await;
        };
        self.leads = candidate.leads();
        // A task of its own: renewals do not wait while a long list is processed. Dropped with this future.
        let mut election = JoinSet::new();
        let elected = Arc::clone(&candidate);
        election.spawn(async move { elected.run().await });
        self.run_while_leading(stop).await;
        election.shutdown().await;
        candidate.release().await;
    }

    async fn run_while_leading(&mut self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        loop {
            telemetry::leads(false);
            let stand_by = async {
                let is_leading = wait_for_value(&mut self.leads, true);
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
            tracing::info!(
                adapter = self.shared.settings.name,
                "adapter started working"
            );
            let mut leads = self.leads.clone();
            tokio::select! {
                () = &mut stop => break,
                () = wait_for_value(&mut leads, false) => {}
                () = self.work() => {}
            }
            tracing::warn!(
                adapter = self.shared.settings.name,
                "adapter standing by: another copy may work"
            );
            self.workers.shutdown().await;
            self.in_progress.clear();
            self.queue.clear();
            self.known = KnownResources::default();
        }
        self.finish_work().await;
    }

    /// Waits for work in progress, no longer than the grace period and only while this copy leads. Cancels the rest.
    async fn finish_work(&mut self) {
        let mut leads = self.leads.clone();
        let ended = timeout(self.shared.settings.grace, async {
            loop {
                tokio::select! {
                    done = self.workers.join_next_with_id() => match done {
                        Some(done) => self.complete(done),
                        None => return,
                    },
                    () = wait_for_value(&mut leads, false) => return,
                }
            }
        });
        let is_late = ended.await.is_err();
        let left = self.workers.len();
        self.workers.shutdown().await;
        if is_late {
            tracing::warn!(left, "work cancelled at the end of the grace period");
        }
    }

    async fn work(&mut self) {
        let (sender, mut news) = mpsc::channel(NEWS_MAX);
        // Dropped with this future: streams end at once.
        let mut finders = JoinSet::new();
        for kind in 0..self.shared.settings.kinds.len() {
            let (shared, sender) = (Arc::clone(&self.shared), sender.clone());
            finders.spawn(async move { find_forever(&shared, kind, &sender).await });
        }
        loop {
            self.start_due();
            let (waiting, working) = self.queue.count();
            telemetry::queue(waiting, working);
            let is_room = self.workers.len() < self.shared.settings.workers;
            let next_at = self.queue.next_at().filter(|_| is_room);
            let next_at = next_at.unwrap_or_else(|| Instant::now() + IDLE);
            tokio::select! {
                Some(news) = news.recv() => self.apply(news),
                Some(href) = self.wakes.recv() => self.wake(&href),
                Some(done) = self.workers.join_next_with_id() => self.complete(done),
                () = sleep_until(next_at) => {}
            }
        }
    }

    fn start_due(&mut self) {
        let until = self
            .candidate
            .as_ref()
            .map(|candidate| *candidate.until().borrow());
        while self.workers.len() < self.shared.settings.workers {
            // The end of the lease may not have been noticed yet.
            if until.is_some_and(|until| until <= Instant::now()) {
                return;
            }
            let now = Instant::now();
            let Some(key) = self.queue.take(now) else {
                return;
            };
            let (shared, last) = (Arc::clone(&self.shared), self.known.last_report(&key));
            let href = key.href.clone();
            let work = async move { work::work_on(&shared, &href, last).await };
            let id = self.workers.spawn(work).id();
            self.in_progress.insert(id, (key, now));
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

    fn apply(&mut self, news: News) {
        let now = Instant::now();
        for (key, todo) in self.known.apply(news) {
            match todo {
                Todo::Work { is_news } => self.queue.add(key, now, is_news),
                Todo::Nothing => self.queue.forget(&key),
            }
        }
    }

    fn complete(&mut self, done: Result<(Id, anyhow::Result<Done>), JoinError>) {
        let (id, done) = match done {
            Ok(done) => done,
            // The panic itself is logged with its location.
            Err(error) => (error.id(), Err(anyhow!("the work panicked"))),
        };
        let Some((key, since)) = self.in_progress.remove(&id) else {
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
            Ok(Done::Failed(report, error)) => {
                if let Some(report) = report {
                    self.known.reported(&key, *report);
                }
                self.failed(key, took, &error);
            }
            Err(error) => self.failed(key, took, &error),
        }
    }

    fn failed(&mut self, key: Key, took: Duration, error: &anyhow::Error) {
        let kind = &self.shared.settings.kinds[key.kind].plural;
        telemetry::reconciled(kind, "failed", took);
        let at_least = error.downcast_ref().and_then(Error::again_after);
        let (resource, error) = (&key.href, format!("{error:#}"));
        tracing::warn!(resource, error, "reconciliation failed: retrying");
        let at_least = at_least.unwrap_or_default();
        self.queue.failed(key, Instant::now(), jitter(), at_least);
    }
}

/// Finds the resources of a kind that need work, with a watch and with lists.
async fn find_forever<A>(shared: &Shared<A>, kind: usize, sender: &mpsc::Sender<News>) {
    let (following, followed) = watch::channel(Following::default());
    tokio::join!(
        lists::list_forever(shared, kind, followed, sender),
        follow::follow_forever(shared, kind, &following, sender),
    );
}

/// Waits for a value. If the sender is gone, the last value stays.
async fn wait_for_value(leads: &mut watch::Receiver<bool>, what: bool) {
    if leads.wait_for(|leads| *leads == what).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// A random number from 0 to 1.
#[allow(clippy::cast_precision_loss, reason = "it is as good a random number")]
fn jitter() -> f64 {
    // Every state has random keys.
    let random = RandomState::new().hash_one(0) >> 11;
    random as f64 / (1_u64 << 53) as f64
}
