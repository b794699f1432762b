//! Changes reach an adapter by a watch, and by polls where there is no watch.

use std::time::Duration;

use hyperfleet_adapter::{Api, Runner, Settings, Token};
use hyperfleet_domain::entity_config::EntityConfig;
use hyperfleet_server_kit::clock::Clock;
use rustix::process::Signal;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::stub::{Stub, WatchAnswer, cart};
use super::{Noting, Running, quick, start};
use crate::faults::program::Program;
use crate::support::{TestApi, TestDatabase, root, until};

/// Lists only what has to be listed.
fn patient() -> Settings {
    Settings {
        poll_interval: Duration::from_hours(1),
        sweep_interval: Duration::from_hours(24),
        ..quick(&["carts"])
    }
}

/// A kind that requires no adapter: its resources are always reconciled, so that polls never show a change.
fn kinds() -> [EntityConfig; 1] {
    [root("Cart", "carts", &[])]
}

async fn service(tasks: &mut JoinSet<()>) -> TestApi {
    let api = TestApi::spawn_watchable(&kinds(), tasks).await;
    api.clock.set(Clock::system().now());
    api
}

/// The generations of a resource that the adapter was called with.
fn generations(adapter: &Noting, path: &str) -> Vec<i64> {
    let calls = adapter.calls();
    let calls = calls.iter().filter(|call| call.0.ends_with(path));
    calls.map(|call| call.1).collect()
}

async fn until_seen(adapter: &Noting, path: &str, generation: i64) {
    until(&format!("generation {generation} is seen"), async || {
        generations(adapter, path).contains(&generation)
    })
    .await;
}

async fn change(api: &TestApi, path: &str) -> i64 {
    let spec = json!({"spec": {"change": uuid::Uuid::now_v7().to_string()}});
    let changed = api.patch(path, spec).await;
    assert_eq!(changed.status, 200, "{}", changed.body);
    changed.body["generation"].as_i64().unwrap()
}

/// Changes a resource until a change can only have arrived by a watch: everything is listed twice at most, after the
/// start of the adapter and after that of the watch.
async fn until_following(api: &TestApi, adapter: &Noting, path: &str) {
    for _ in 0..5 {
        let generation = change(api, path).await;
        until_seen(adapter, path, generation).await;
    }
}

#[tokio::test]
async fn changes_arrive_without_a_poll() {
    let mut tasks = JoinSet::new();
    let api = service(&mut tasks).await;
    let adapter = Noting::content();
    let running = start(&api, patient(), &adapter);
    let first = api.make("/carts", "Cart", "first").await;
    until_following(&api, &adapter, &first).await;
    let second = api.make("/carts", "Cart", "second").await;
    until_seen(&adapter, &second, 1).await;
    api.delete(&first).await;
    // Removed at once, because nothing has to be waited for.
    assert!(!api.has(&first).await);
    assert_eq!(generations(&adapter, &second), [1]);
    let stopped = timeout(Duration::from_secs(2), running.stop()).await;
    stopped.expect("the end does not wait for the next event");
}

#[tokio::test]
async fn changes_during_the_work_are_seen_together_afterwards() {
    let mut tasks = JoinSet::new();
    let api = service(&mut tasks).await;
    let adapter = Noting::content().slow(Duration::from_secs(1));
    let running = start(&api, patient(), &adapter);
    let cart = api.make("/carts", "Cart", "cart").await;
    until_following(&api, &adapter, &cart).await;
    let before = generations(&adapter, &cart).len();
    // Each call takes longer than several changes.
    let mut last = 0;
    for _ in 0..20 {
        last = change(&api, &cart).await;
    }
    until_seen(&adapter, &cart, last).await;
    let later = generations(&adapter, &cart).len() - before;
    assert!(later < 10, "{later} calls for 20 changes");
    running.stop().await;
    assert!(!adapter.seen(|seen| seen.has_overlapped));
}

/// What happens to the database while the service is away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    /// A restore: earlier positions are gone.
    Restore,
}

#[tokio::test]
async fn a_restart_of_the_service_loses_nothing() {
    survives(Meanwhile::Nothing).await;
}

#[tokio::test]
async fn a_position_that_is_gone_loses_nothing() {
    survives(Meanwhile::Restore).await;
}

async fn survives(meanwhile: Meanwhile) {
    let database = TestDatabase::create().await;
    let kinds_of_program = "[{kind: Cart, plural: carts, required_adapters: []}]";
    let settings = format!(
        "{{health: {{port: 0, shutdown_delay: 0s}}, metrics: {{port: 0}}, entities: {kinds_of_program}}}"
    );
    let mut program = Program::serve_with(&database, &settings, &[]);
    let api = program.serving(TestDatabase::at(database.options())).await;
    let address = api.base.trim_start_matches("http://").to_owned();
    let port = address.split([':', '/']).nth(1).unwrap();
    let adapter = Noting::content();
    let client = Api::new(&api.base, Token::None).unwrap();
    let running = Running::start(Runner::new(client, patient(), adapter.clone()));
    let cart = api.make("/carts", "Cart", "cart").await;
    until_following(&api, &adapter, &cart).await;
    program.signal(Signal::TERM);
    program.ended().await;
    let mut tasks = JoinSet::new();
    let other = TestDatabase::at(database.options());
    let other = TestApi::spawn_watchable_on(other, &kinds(), &mut tasks);
    other.clock.set(Clock::system().now());
    let missed = change(&other, &cart).await;
    if meanwhile == Meanwhile::Restore {
        let mut connection = database.connect().await;
        let restored = sqlx::raw_sql("SELECT begin_audit_era()");
        restored.execute(&mut connection).await.unwrap();
    }
    let mut program = Program::serve_with(&database, &settings, &["--server-port", port]);
    let api = program.serving(TestDatabase::at(database.options())).await;
    until_seen(&adapter, &cart, missed).await;
    until_following(&api, &adapter, &cart).await;
    running.stop().await;
    program.signal(Signal::KILL);
    program.ended().await;
}

#[tokio::test]
async fn a_service_without_watch_is_polled() {
    for answer in [WatchAnswer::List, WatchAnswer::Refusal(400)] {
        let stub = Stub::start(vec![answer.clone()]);
        let adapter = Noting::content();
        let runner = Runner::new(stub.api(), quick(&["carts"]), adapter.clone());
        let running = Running::start(runner);
        for generation in 1..=3 {
            until_seen(&adapter, "/carts/1", generation).await;
            stub.change();
        }
        let asked = stub.watches().len();
        assert_eq!(asked, 1, "it is not asked again at once: {answer:?}");
        running.stop().await;
    }
}

#[tokio::test]
async fn a_watch_resumes_or_starts_over() {
    let bookmark = |position: &str| json!({"type": "BOOKMARK", "position": position});
    let expired = json!({"code": "HYPERFLEET-AUT-003", "detail": "expired", "status": 401});
    let changed = json!({"type": "MODIFIED", "object": cart(7), "position": "0-2"});
    let stub = Stub::start(vec![
        WatchAnswer::EndingEvents(vec![
            bookmark("0-1"),
            changed,
            json!({"type": "ERROR", "object": expired}),
        ]),
        WatchAnswer::EndingEvents(vec![bookmark("0-3")]),
        WatchAnswer::Refusal(410),
        WatchAnswer::Events(vec![bookmark("1-1")]),
    ]);
    let adapter = Noting::content();
    let running = Running::start(Runner::new(stub.api(), patient(), adapter));
    until("the fourth watch goes on", async || {
        stub.watches().len() == 4
    })
    .await;
    let watches = stub.watches();
    let positions = watches.iter().map(|query| {
        let position = query.split("position=").nth(1);
        position.unwrap_or_default()
    });
    assert_eq!(positions.collect::<Vec<_>>(), ["", "0-2", "0-3", ""]);
    until("everything is listed for the second time", async || {
        let lists = stub.lists();
        lists
            .iter()
            .filter(|query| !query.contains("search="))
            .count()
            == 2
    })
    .await;
    let stopped = timeout(Duration::from_secs(2), running.stop()).await;
    stopped.expect("the end does not wait for the next event");
    let fields = "fields=id%2Ckind%2Cname%2Chref%2Cgeneration%2Cdeleted_time%2Cowner_references";
    for query in watches {
        assert!(
            query.contains(fields) && query.contains("includeDeleted=true"),
            "{query}"
        );
    }
}
