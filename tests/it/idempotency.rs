//! Requests with an `Idempotency-Key`: one effect and one answer, whatever happens in between.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use hyperfleet_domain::entity_config;
use hyperfleet_service::app::Service;
use hyperfleet_storage::{ConnectionLifetime, Settings, Store};
use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::Connection as _;

use crate::faults::program::Program;
use crate::support::{
    ACME, ACME_WEB, Answer, BETA, Cut, Proxy, TestApi, TestDatabase, Walls, assert_sound, root,
    store_of, until,
};

const NONE: Value = Value::Null;
const CHANGES: &str = "SELECT count(*) FROM audit_entries";
const KEYS: &str = "SELECT count(*) FROM idempotency_keys";

async fn keyed(api: &TestApi, key: &str, method: &str, path: &str, body: &Value) -> Answer {
    let headers = [("idempotency-key", key)];
    api.send_with(&headers, method, path, body).await
}

fn cluster(name: &str) -> Value {
    json!({"kind": "Cluster", "name": name, "spec": {"a": 1}, "labels": {"b": "c"}})
}

/// The parts of a response that do not depend on its request.
fn comparable(answer: &Answer) -> (u16, Vec<u8>, Option<&str>, Option<&str>) {
    let headers = (answer.header("etag"), answer.header("content-type"));
    (answer.status, answer.bytes.clone(), headers.0, headers.1)
}

fn is_replayed(answer: &Answer) -> bool {
    answer.header("idempotency-replayed") == Some("true")
}

#[tokio::test]
async fn every_change_has_one_effect_and_one_answer() {
    let mut kinds = entity_config::built_in();
    kinds.push(root("WifConfig", "wifconfigs", &[]));
    let api = TestApi::spawn_with(&kinds).await;
    let made = keyed(&api, "post", "POST", "/clusters", &cluster("abc")).await;
    let path = format!("/clusters/{}", made.id());
    let read = api.get(&path).await;
    assert_eq!((made.status, &made.body), (201, &read.body));
    let wif = api.make("/wifconfigs", "WifConfig", "wif").await;
    let forced = format!("{path}/force-delete");
    let pool = json!({"kind": "NodePool", "name": "pool", "spec": {}});
    let mut first = vec![(("POST", "/clusters".to_owned(), cluster("abc")), made)];
    for (method, path, body, status) in [
        ("POST", format!("{path}/nodepools"), pool, 201),
        ("PATCH", path.clone(), json!({"spec": {"a": 2}}), 200),
        (
            "PATCH",
            path.clone(),
            json!({"spec": {"a": 2}, "labels": {}}),
            200,
        ),
        ("PATCH", path.clone(), json!({"references": {}}), 200),
        ("DELETE", path.clone(), NONE, 202),
        ("DELETE", wif, NONE, 202),
        ("POST", forced, json!({"reason": "x"}), 204),
    ] {
        let key = format!("key-{}", first.len());
        let answer = keyed(&api, &key, method, &path, &body).await;
        assert_eq!(
            (answer.status, is_replayed(&answer)),
            (status, false),
            "{}",
            answer.body
        );
        first.push(((method, path, body), answer));
    }
    assert_eq!(api.get(&path).await.status, 404);
    let changes = api.count(CHANGES).await;
    for _ in 0..2 {
        for (number, ((method, path, body), answer)) in first.iter().enumerate() {
            let key = if number == 0 {
                "post".to_owned()
            } else {
                format!("key-{number}")
            };
            let again = keyed(&api, &key, method, path, body).await;
            assert_eq!(comparable(&again), comparable(answer), "{method} {path}");
            assert!(is_replayed(&again));
        }
    }
    assert_eq!(api.count(CHANGES).await, changes);
    let mut direct = api.database.connect().await;
    assert_sound(&mut direct, &kinds).await;
}

#[tokio::test]
async fn a_key_that_was_used_for_another_request_is_refused() {
    let api = TestApi::spawn().await;
    let made = keyed(&api, "\"a\"", "POST", "/clusters", &cluster("abc")).await;
    let path = format!("/clusters/{}", made.id());
    for (method, path, body) in [
        ("POST", "/clusters", cluster("abcd")),
        ("POST", "/clusters?x=y", cluster("abc")),
        ("POST", "/resources", cluster("abc")),
        ("PATCH", &path, json!({"spec": {}})),
        ("DELETE", &path, NONE),
    ] {
        let refused = keyed(&api, "a", method, path, &body).await;
        assert_eq!(
            refused.problem(),
            (422, "VAL-009"),
            "{method} {path}: {}",
            refused.body
        );
    }
    assert_eq!(api.count(CHANGES).await, 1);
    // The same request, with the key in its other form.
    let again = keyed(&api, "a", "POST", "/clusters", &cluster("abc")).await;
    assert!(is_replayed(&again) && again.bytes == made.bytes);
}

#[tokio::test]
async fn a_key_belongs_to_its_tenant() {
    let api = TestApi::spawn_for(&entity_config::built_in(), Walls::Up).await;
    let create = async |tenant| {
        let caller = api.speaking(tenant);
        keyed(&caller, "a", "POST", "/clusters", &cluster("abc")).await
    };
    let mut ids = Vec::new();
    for tenant in [ACME, ACME_WEB, BETA] {
        let made = create(tenant).await;
        assert_eq!(
            (made.status, is_replayed(&made)),
            (201, false),
            "{}",
            made.body
        );
        ids.push(made.id().to_owned());
    }
    for (tenant, id) in [ACME, ACME_WEB, BETA].into_iter().zip(&ids) {
        let again = create(tenant).await;
        assert!(is_replayed(&again) && again.id() == id);
    }
    ids.dedup();
    assert_eq!(ids.len(), 3);
}

#[tokio::test]
async fn a_refused_request_is_judged_again() {
    let api = TestApi::spawn().await;
    let taken = api.cluster("abc").await;
    let headers = [("idempotency-key", "a"), ("if-match", "\"g2\"")];
    let patch = json!({"spec": {"b": 2}});
    let refused = api.send_with(&headers, "PATCH", &taken, &patch).await;
    assert_eq!(refused.problem(), (412, "CNF-002"));
    let refused = keyed(&api, "b", "POST", "/clusters", &cluster("abc")).await;
    assert_eq!(refused.problem(), (409, "CNF-001"));
    assert_eq!(api.count(KEYS).await, 0);
    assert_eq!(
        api.patch(&taken, json!({"spec": {}, "labels": {"x": "y"}}))
            .await
            .status,
        200
    );
    let patched = api.send_with(&headers, "PATCH", &taken, &patch).await;
    assert_eq!((patched.status, is_replayed(&patched)), (200, false));
    // Its own change has moved the resource on, which a repetition does not mind.
    let again = api.send_with(&headers, "PATCH", &taken, &patch).await;
    assert_eq!(comparable(&again), comparable(&patched));
    api.deleted(&taken).await;
    let made = keyed(&api, "b", "POST", "/clusters", &cluster("abc")).await;
    assert_eq!((made.status, is_replayed(&made)), (201, false));
}

#[tokio::test]
async fn keys_that_cannot_be_read_are_named_and_reads_need_none() {
    let api = TestApi::spawn().await;
    let long = "x".repeat(256);
    for key in ["", "a b", "\"", &long] {
        let refused = keyed(&api, key, "POST", "/clusters", &cluster("abc")).await;
        assert_eq!(refused.problem(), (400, "VAL-000"), "{key:?}");
        assert_eq!(refused.body["errors"][0]["field"], "Idempotency-Key");
    }
    let read = keyed(&api, "a b", "GET", "/clusters", &NONE).await;
    assert_eq!((read.status, read.body["total"].as_i64()), (200, Some(0)));
}

/// Two instances on one database.
async fn instances() -> [Arc<TestApi>; 2] {
    let database = TestDatabase::create().await;
    let options = database.options();
    [0, 1].map(|_| {
        let registry = entity_config::registry(&entity_config::built_in()).unwrap();
        let store = Store::new(Settings {
            connect: options.clone(),
            connections_max: 6,
            acquire_seconds_max: 60,
            statement_milliseconds_max: 60_000,
            lifetime: ConnectionLifetime::default(),
        });
        let database = TestDatabase::at(options.clone());
        Arc::new(TestApi::spawn_on(registry, database, store, false))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_repetitions_have_one_effect() {
    let apis = instances().await;
    let owner = apis[0].cluster("owner").await;
    let forced = format!("{owner}/force-delete");
    for round in 0..5 {
        let name = format!("name-{round}");
        let pool = json!({"kind": "NodePool", "name": name, "spec": {}});
        let change = json!({"spec": {"round": round}});
        for (method, path, body) in [
            ("POST", "/clusters".to_owned(), cluster(&name)),
            ("POST", format!("{owner}/nodepools"), pool),
            ("PATCH", owner.clone(), change),
        ] {
            one_effect(
                &apis,
                &format!("{method} {path} {round}"),
                (method, &path, &body),
            )
            .await;
        }
    }
    one_effect(&apis, "delete", ("DELETE", &owner, &NONE)).await;
    one_effect(&apis, "force", ("POST", &forced, &json!({"reason": "x"}))).await;
    let mut direct = apis[0].database.connect().await;
    assert_sound(&mut direct, &entity_config::built_in()).await;
}

async fn one_effect(apis: &[Arc<TestApi>; 2], key: &str, request: (&str, &str, &Value)) {
    let requests = CHANGES;
    let before = apis[0].count(requests).await;
    let key = format!("\"{key}\"");
    let (method, path, body) = request;
    let all = apis.iter().cycle().take(10);
    let answers = join_all(all.map(|api| keyed(api, &key, method, path, body))).await;
    let first: Vec<_> = answers
        .iter()
        .filter(|answer| !is_replayed(answer))
        .collect();
    assert_eq!(
        first.len(),
        1,
        "{key}: {:?}",
        answers.iter().map(|a| a.status).collect::<Vec<_>>()
    );
    assert!((200..300).contains(&first[0].status), "{}", first[0].body);
    assert!(
        answers
            .iter()
            .all(|answer| comparable(answer) == comparable(first[0]))
    );
    let changes = apis[0].count(requests).await - before;
    // A deletion is one change of each resource.
    assert!(
        changes == 1
            || (["DELETE"].contains(&method) || path.ends_with("force-delete")) && changes > 1
    );
}

#[tokio::test]
async fn a_request_whose_key_is_in_use_for_long_is_sent_away() {
    let api = TestApi::spawn().await;
    let mut other = api.database.connect().await;
    let sql = "BEGIN; INSERT INTO idempotency_keys (tenancy, caller, key, created_at, fingerprint)
               VALUES ('{}', 'system@hyperfleet.local', 'a', now(), '')";
    sqlx::raw_sql(sql).execute(&mut other).await.unwrap();
    let refused = keyed(&api, "a", "POST", "/clusters", &cluster("abc")).await;
    assert_eq!(refused.problem(), (409, "CNF-004"), "{}", refused.body);
    assert_eq!(refused.header("retry-after"), Some("1"));
    // It was rolled back: the next one is the first.
    other.close().await.unwrap();
    let made = keyed(&api, "a", "POST", "/clusters", &cluster("abc")).await;
    assert_eq!((made.status, is_replayed(&made)), (201, false));
}

#[tokio::test]
async fn a_key_is_free_again_after_its_time() {
    let api = TestApi::spawn().await;
    let first = keyed(&api, "a", "POST", "/clusters", &cluster("abc")).await;
    let day = i64::try_from(Service::KEY_RETENTION.as_secs()).unwrap();
    api.clock.advance(day);
    let again = keyed(&api, "a", "POST", "/clusters", &cluster("abc")).await;
    assert!(is_replayed(&again) && again.bytes == first.bytes);
    api.clock.advance(1);
    let other = keyed(&api, "a", "POST", "/clusters", &cluster("other")).await;
    assert_eq!(
        (other.status, is_replayed(&other)),
        (201, false),
        "{}",
        other.body
    );
    let again = keyed(&api, "a", "POST", "/clusters", &cluster("other")).await;
    assert!(is_replayed(&again) && again.bytes == other.bytes);
}

#[tokio::test]
async fn retention_removes_keys_after_their_time() {
    let api = TestApi::spawn().await;
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let service = Service::new(api.database.store(), Arc::new(registry), false)
        .with_key_retention(Duration::from_hours(1));
    for number in 0..3 {
        let body = cluster(&format!("name-{number}"));
        let made = keyed(&api, &number.to_string(), "POST", "/clusters", &body).await;
        assert_eq!(made.status, 201);
        api.clock.advance(1800);
    }
    // Claimed 5400, 3600 and 1800 seconds ago.
    assert_eq!(service.expire_keys(api.clock.now()).await.unwrap(), 1);
    assert_eq!(api.count(KEYS).await, 2);
    api.clock.advance(1801);
    assert_eq!(service.expire_keys(api.clock.now()).await.unwrap(), 2);
    assert_eq!(service.expire_keys(api.clock.now()).await.unwrap(), 0);
    assert_eq!(api.count("SELECT count(*) FROM resources").await, 3);
}

/// The connection to the database is lost in each round trip in turn: whatever the first answer is, a repetition
/// is answered as if nothing had happened, and there is one change.
#[tokio::test]
async fn a_repetition_finishes_what_a_lost_connection_left_open() {
    for cut in [Cut::Before, Cut::After] {
        let database = TestDatabase::create().await;
        let proxy = Proxy::start(database.options());
        let store = store_of(proxy.options(database.options()), 1);
        let registry = entity_config::registry(&entity_config::built_in()).unwrap();
        let api = TestApi::spawn_on(registry, database, store, false);
        let (mut number, mut replayed) = (0, 0);
        loop {
            number += 1;
            let (key, name) = (format!("key-{number}"), format!("name-{number}"));
            // Prepares the statements, so that every attempt takes the same round trips.
            let other = cluster(&format!("other-{number}"));
            let warm_up = keyed(
                &api,
                &format!("other-{number}"),
                "POST",
                "/clusters",
                &other,
            )
            .await;
            assert_eq!(warm_up.status, 201);
            let changes = api.count(CHANGES).await;
            proxy.reset(Some(cut(number)));
            let first = keyed(&api, &key, "POST", "/clusters", &cluster(&name)).await;
            let was_cut = proxy.cuts() > 0;
            proxy.reset(None);
            let again = keyed(&api, &key, "POST", "/clusters", &cluster(&name)).await;
            assert_eq!(again.status, 201, "{:?}: {}", cut(number), again.body);
            assert_eq!(again.body["name"], name);
            assert_eq!(api.count(CHANGES).await, changes + 1, "{:?}", cut(number));
            if !was_cut {
                assert!(is_replayed(&again) && again.bytes == first.bytes);
                break;
            }
            replayed += u32::from(is_replayed(&again) && first.status == 503);
        }
        // BEGIN, claim, change, answer, COMMIT.
        assert_eq!(number, 6);
        let expected = u32::from(matches!(cut(1), Cut::After(_)));
        assert_eq!(replayed, expected, "the commit whose answer was lost");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_service_repeats_its_committed_answer() {
    let database = TestDatabase::create().await;
    let mut program = Program::serve(&database);
    let api = program.serving(TestDatabase::at(database.options())).await;
    let body = cluster("abc").to_string();
    let request = format!(
        "POST /api/hyperfleet/v1/clusters HTTP/1.1\r\nHost: x\r\nIdempotency-Key: a\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let address = api.base.clone();
    let sent = tokio::spawn(async move {
        let address = address.strip_prefix("http://").unwrap();
        let (address, _) = address.split_once('/').unwrap();
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes())
            .await
            .unwrap();
        // Nobody reads the answer.
        stream
    });
    until("the change is committed", async || {
        api.count(KEYS).await == 1
    })
    .await;
    program.signal(Signal::KILL);
    program.ended().await;
    drop(sent.await.unwrap());
    let mut program = Program::serve(&database);
    let api = program.serving(database).await;
    let again = keyed(&api, "a", "POST", "/clusters", &cluster("abc")).await;
    assert_eq!(
        (again.status, is_replayed(&again)),
        (201, true),
        "{}",
        again.body
    );
    let read = api.get(&format!("/clusters/{}", again.id())).await;
    assert_eq!(read.body, again.body);
    assert_eq!(api.count(CHANGES).await, 1);
    program.signal(Signal::TERM);
    assert!(program.ended().await.success(), "{}", program.output());
}

#[tokio::test]
async fn a_large_response_is_stored_completely() {
    let api = TestApi::spawn().await;
    let mut body = cluster("large");
    body["spec"]["text"] = json!("x\u{e9}\u{1f600}".repeat(60_000));
    let made = keyed(&api, "a", "POST", "/clusters", &body).await;
    assert_eq!(made.status, 201);
    let again = keyed(&api, "a", "POST", "/clusters", &body).await;
    assert!(is_replayed(&again) && comparable(&again) == comparable(&made));
}
