//! What `crates/adapter` promises to adapters, on the real service.

mod elections;
mod following;

mod outages;
mod replicas;
mod starters;
mod stub;
mod work;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hyperfleet_adapter::{
    Adapter, Api, Finding, Kind, ReconcileOutcome, Report, Runner, Settings, Token, Work,
};
use hyperfleet_server_kit::clock::Clock;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::support::{TestApi, root, until};

/// The name of the adapter, which is required of the kind.
const NAME: &str = "tested";

/// What an adapter was called with: path, generation, whether it was deleted, the owner's generation.
type Call = (String, i64, bool, Option<i64>);

/// What an adapter answers.
type Answer = dyn Fn(&Work) -> anyhow::Result<ReconcileOutcome> + Send + Sync;

/// An adapter that notes its calls.
#[derive(Clone)]
struct Noting {
    seen: Arc<Mutex<Seen>>,
    answer: Arc<Answer>,
    /// How long it works.
    pause: Duration,
}

#[derive(Default)]
struct Seen {
    calls: Vec<Call>,
    under_way: BTreeMap<String, u32>,
    /// How many were worked on at a time.
    most: usize,
    has_overlapped: bool,
    /// When its first call began.
    begun_at: Option<Instant>,
    /// When calls were cancelled.
    dropped: Vec<Instant>,
}

/// Notes that a call was cancelled, unless it has ended.
struct CancelGuard<'a> {
    adapter: &'a Noting,
    has_ended: bool,
}

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.adapter.seen(|seen| seen.dropped.push(Instant::now()));
        }
    }
}

impl Noting {
    /// One that finds all well.
    fn content() -> Self {
        Self::answering(|work| Ok(ReconcileOutcome::reported(well(work))))
    }

    fn answering(
        answer: impl Fn(&Work) -> anyhow::Result<ReconcileOutcome> + Send + Sync + 'static,
    ) -> Self {
        Self {
            seen: Arc::default(),
            answer: Arc::new(answer),
            pause: Duration::ZERO,
        }
    }

    fn slow(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    fn seen<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn calls(&self) -> Vec<Call> {
        self.seen(|seen| seen.calls.clone())
    }

    fn calls_of(&self, path: &str) -> usize {
        let calls = self.calls();
        calls.iter().filter(|call| call.0.ends_with(path)).count()
    }
}

impl Adapter for Noting {
    async fn reconcile(&self, work: Work) -> anyhow::Result<ReconcileOutcome> {
        let href = work.resource.href.clone();
        let owner = work.owner.as_ref().map(|owner| owner.generation);
        let call = (
            href.clone(),
            work.resource.generation,
            work.resource.is_deleted(),
            owner,
        );
        self.seen(|seen| {
            seen.calls.push(call);
            seen.begun_at.get_or_insert_with(Instant::now);
            *seen.under_way.entry(href.clone()).or_default() += 1;
            seen.has_overlapped |= seen.under_way[&href] > 1;
            seen.most = seen.most.max(seen.under_way.len());
        });
        let mut guard = CancelGuard {
            adapter: self,
            has_ended: false,
        };
        tokio::time::sleep(self.pause).await;
        guard.has_ended = true;
        let answer = (self.answer)(&work);
        self.seen(|seen| seen.under_way.remove(&href));
        answer
    }
}

/// All is well, and nothing is left of what is deleted.
fn well(work: &Work) -> Report {
    if work.resource.is_deleted() {
        Report::finalized("Forgotten", "nothing is left")
    } else {
        Report::new(Finding::yes("There", "it is there"))
    }
}

/// Everything at once, so that tests need not wait.
fn quick(kinds: &[&str]) -> Settings {
    Settings {
        poll_interval: Duration::from_millis(50),
        grace: Duration::from_secs(5),
        ..Settings::new(NAME, kinds.iter().copied().map(Kind::new).collect())
    }
}

/// An adapter that runs.
struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(runner: Runner<Noting>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(runner.run(async {
            let _ = stopped.await;
        }));
        Self { stop, task }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap();
    }
}

fn api_of(api: &TestApi) -> Api {
    Api::new(&api.base, Token::None).unwrap()
}

fn start(api: &TestApi, settings: Settings, adapter: &Noting) -> Running {
    Running::start(Runner::new(api_of(api), settings, adapter.clone()))
}

/// The service with kinds that require only this adapter, with the wall clock: reports say when they were made.
async fn service() -> TestApi {
    let owned = root("Wheel", "wheels", &[NAME]);
    let kinds = [
        root("Cart", "carts", &[NAME]),
        crate::support::child("Cart", "cascade", owned),
    ];
    let api = TestApi::spawn_with(&kinds).await;
    api.clock.set(Clock::system().now());
    api
}

/// Whether a resource is reconciled.
async fn is_reconciled(api: &TestApi, path: &str) -> bool {
    let found = api.get(path).await;
    let conditions = found.body["status"]["conditions"].as_array().cloned();
    let of = |kind: &str| {
        let conditions = conditions.iter().flatten();
        conditions
            .filter(|condition| condition["type"] == kind)
            .any(|condition| condition["status"] == "True")
    };
    of("Reconciled")
}

/// A cart, and a wheel of it, that the adapter has reconciled.
async fn cart_and_wheel(api: &TestApi) -> (String, String) {
    let cart = api.make("/carts", "Cart", "cart").await;
    until_reconciled(api, &cart).await;
    let wheel = api.make(&format!("{cart}/wheels"), "Wheel", "wheel").await;
    until_reconciled(api, &wheel).await;
    (cart, wheel)
}

async fn until_reconciled(api: &TestApi, path: &str) {
    until("it is reconciled", async || is_reconciled(api, path).await).await;
}
