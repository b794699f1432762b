//! Floods of slow searches: reports, reads and writes do not wait for them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hyperfleet_domain::entity_config;
use hyperfleet_storage::{ConnectionLifetime, Settings, Store};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::{assert_requests_succeed, until};
use crate::support::{Random, TestApi, TestDatabase};

/// How long a connection is waited for, and a turn among searches.
const WAIT: Duration = Duration::from_secs(2);
/// How long a search may run.
const SEARCH_TIME: Duration = Duration::from_secs(4);
const SEARCHERS: usize = 20;

/// A server with a few connections, one of which searches may hold, and six clusters with large specs. Gives the path
/// of one of them, too.
async fn spawn() -> (Arc<TestApi>, String) {
    let database = TestDatabase::create().await;
    let store = Store::new(Settings {
        connect: database.options(),
        connections_max: 4,
        acquire_seconds_max: WAIT.as_secs(),
        statement_milliseconds_max: 4_000,
        lifetime: ConnectionLifetime::default(),
    });
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let api = TestApi::spawn_on(registry, database, store, false);
    let spec = json!({"x": large_text()});
    let mut path = String::new();
    for number in 0..6 {
        let body = json!({"kind": "Cluster", "name": format!("big-{number}"), "spec": spec});
        let made = api.post("/clusters", body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        path = format!("/clusters/{}", made.id());
    }
    (Arc::new(api), path)
}

/// A text of 900,000 `a` and `b` without an order.
pub(super) fn large_text() -> String {
    let mut random = Random::seeded(1);
    let letters = (0..900_000).map(|_| if random.below(2) == 0 { 'a' } else { 'b' });
    letters.collect()
}

/// A pattern that has to be compared with every place of such a text, over some length. In URLs.
pub(super) fn slow_pattern() -> String {
    format!("%25a{}c%25", "_".repeat(205))
}

/// A search within every limit that reads each of the specs from its beginning to its end, many times.
fn slow_search() -> String {
    let test = |number: usize| format!("spec.x ilike '{}{number}'", slow_pattern());
    let tests: Vec<_> = (0..16).map(test).collect();
    format!("/clusters?fields=name&search={}", tests.join(" or ")).replace(' ', "%20")
}

/// Clients that search again and again; each gives the statuses that it was answered with.
fn flood(api: &Arc<TestApi>, is_over: &Arc<AtomicBool>) -> Vec<JoinHandle<BTreeSet<u16>>> {
    let search = slow_search();
    let clients = (0..SEARCHERS).map(|_| {
        let (api, is_over, search) = (api.clone(), is_over.clone(), search.clone());
        tokio::spawn(async move {
            let mut statuses = BTreeSet::new();
            while !is_over.load(Ordering::SeqCst) {
                statuses.insert(api.get(&search).await.status);
            }
            statuses
        })
    });
    clients.collect()
}

/// Searches that run in the database.
const RUNNING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND state = 'active' AND query LIKE 'WITH found%'";

#[tokio::test]
async fn a_flood_of_slow_searches_refuses_no_report() {
    let (api, cluster) = spawn().await;
    let is_over = Arc::new(AtomicBool::new(false));
    let searchers = flood(&api, &is_over);
    until("searches run", async || api.count(RUNNING).await > 0).await;
    let mut slowest = Duration::ZERO;
    for number in 0..6 {
        let since = Instant::now();
        assert_requests_succeed(&api, &cluster, number).await;
        slowest = slowest.max(since.elapsed());
        sleep(Duration::from_millis(200)).await;
    }
    is_over.store(true, Ordering::SeqCst);
    let mut statuses = BTreeSet::new();
    for searcher in searchers {
        statuses.extend(searcher.await.unwrap());
    }
    assert!(
        statuses.is_subset(&BTreeSet::from([200, 504])) && !statuses.is_empty(),
        "searches were answered {statuses:?}"
    );
    // Six requests, which wait for processors, but never until a search ends.
    assert!(slowest < 2 * SEARCH_TIME, "{slowest:?}");
}

#[tokio::test]
async fn searches_whose_clients_left_do_not_gather_in_the_database() {
    let (api, _) = spawn().await;
    let search = slow_search();
    let mut most = 0;
    for _ in 0..12 {
        let left = timeout(Duration::from_millis(200), api.get(&search)).await;
        assert!(left.is_err(), "the search is quick: {:?}", left.ok());
        most = most.max(api.count(RUNNING).await);
    }
    // One runs, and the server takes its time to notice that the client of another is gone.
    assert!((1..=3).contains(&most), "{most} searches ran at a time");
}
