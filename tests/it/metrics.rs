//! What is counted, and how it is read. One recorder serves the process, other tests included:
//! kinds here are only of this file.
#![allow(clippy::float_cmp, reason = "counts are integers")]

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyperfleet::startup::{ApiMetrics, Build, KIT_METRICS, METRIC_TABLES, Metric, Metrics};
use hyperfleet_domain::entity_config::{self, EntityConfig};
use hyperfleet_service::app::Service;
use serde_json::{Value, json};

use crate::support::{Series, TestApi, TestClock, TestDatabase, root, store, sum, until};

const STARTED: &str = "hyperfleet_api_reconciliation_started_total";
const PENDING: &str = "hyperfleet_api_resource_pending_reconciliation";
const STUCK: &str = "hyperfleet_api_resource_pending_reconciliation_stuck";
const STUCK_SECONDS: &str = "hyperfleet_api_resource_pending_reconciliation_stuck_duration_seconds";
const DURATION_COUNT: &str = "hyperfleet_api_request_duration_seconds_count";
const ERRORS: &str = "hyperfleet_api_reconciliation_refresh_errors_total";
const TEN_MINUTES: Duration = Duration::from_mins(10);
const FINALIZED: &[(&str, &str)] = &[("Finalized", "True")];

fn metrics() -> ApiMetrics {
    let build = Build {
        component: "api",
        version: "1.2.3",
        commit: "abc",
        time: "now",
        compiler: "rustc 1.95.0",
    };
    ApiMetrics::new(Metrics::start(&build, METRIC_TABLES))
}

/// A server of one kind with one adapter, and of another that needs none.
async fn spawn(kind: &str, plural: &str) -> (TestApi, ApiMetrics, Service) {
    let metrics = metrics();
    let kinds = [
        root(kind, plural, &["dns"]),
        root(&format!("Free{kind}"), &format!("free{plural}"), &[]),
    ];
    let api = TestApi::spawn_with(&kinds).await;
    let service = service(&api, &kinds);
    (api, metrics, service)
}

fn service(api: &TestApi, kinds: &[EntityConfig]) -> Service {
    let registry = entity_config::registry(kinds).unwrap();
    Service::new(api.database.store(), Arc::new(registry), false)
}

async fn make(api: &TestApi, plural: &str, kind: &str, name: &str) -> String {
    api.make(&format!("/{plural}"), kind, name).await
}

#[tokio::test]
async fn the_life_of_a_resource_is_counted_step_by_step() {
    let (api, metrics, _) = spawn("Tallied", "tallieds").await;
    let started = |is_delete: &str| {
        let labels = [("resource_type", "tallied"), ("is_delete", is_delete)];
        sum(&metrics.render(), STARTED, &labels)
    };
    let reports = |outcome: &str| {
        let labels = [("resource_type", "tallied"), ("outcome", outcome)];
        sum(&metrics.render(), "hyperfleet_api_reports_total", &labels)
    };
    let one = make(&api, "tallieds", "Tallied", "one").await;
    assert_eq!(started("false"), 1.0);
    assert_eq!(api.report(&one, "dns", 1, &[]).await.status, 201);
    assert_eq!(reports("accepted"), 1.0);
    // The very same again changes nothing, and something earlier even less.
    assert_eq!(api.report(&one, "dns", 1, &[]).await.status, 201);
    assert_eq!(reports("repeated"), 1.0);
    assert_eq!(api.report(&one, "dns", 9, &[]).await.status, 204);
    assert_eq!(reports("discarded_future_generation"), 1.0);
    let unreadable = api.put(&format!("{one}/statuses"), json!({})).await;
    assert_eq!(unreadable.status, 400);
    assert_eq!(reports("rejected"), 1.0);
    let lacking = json!({"adapter": "dns", "observed_generation": 1, "observed_time": api.clock.now(),
                         "conditions": [{"type": "Applied", "status": "True"}]});
    let lacking = api.put(&format!("{one}/statuses"), lacking).await;
    assert_eq!(lacking.status, 400, "{}", lacking.body);
    assert_eq!(reports("rejected"), 2.0);
    assert_eq!(started("false"), 1.0);

    api.clock.advance(1);
    let patched = api.patch(&one, json!({"spec": {"a": 1}})).await;
    assert_eq!(patched.status, 200, "{}", patched.body);
    assert_eq!(started("false"), 2.0, "no longer as wanted");
    let same = api.patch(&one, json!({"spec": {"a": 1}})).await;
    assert_eq!(same.status, 200);
    assert_eq!(started("false"), 2.0);
    api.clock.advance(1);
    assert_eq!(api.report(&one, "dns", 2, &[]).await.status, 201);
    assert_eq!(api.report(&one, "dns", 1, &[]).await.status, 204);
    assert_eq!(reports("discarded_stale_generation"), 1.0);

    api.deleted(&one).await;
    assert_eq!(started("true"), 1.0);
    api.clock.advance(1);
    assert_eq!(api.report(&one, "dns", 3, FINALIZED).await.status, 201);
    assert!(!api.has(&one).await);
    let removed = |name: &str| sum(&metrics.render(), name, &[("resource_type", "tallied")]);
    assert_eq!(removed("hyperfleet_api_hard_deletes_total"), 1.0);
    assert_eq!(reports("accepted"), 3.0);

    let two = make(&api, "tallieds", "Tallied", "two").await;
    api.deleted(&two).await;
    let reason = json!({"reason": "x"});
    let forced = api.post(&format!("{two}/force-delete"), reason).await;
    assert_eq!(forced.status, 204);
    assert_eq!(removed("hyperfleet_api_force_deletes_total"), 1.0);
    // It was not reconciled when its deletion began: nothing started then.
    assert_eq!((started("false"), started("true")), (3.0, 1.0));
    for action in ["create", "patch", "delete", "hard_delete", "force_delete"] {
        let name = "hyperfleet_api_audit_entries_total";
        let counted = sum(&metrics.render(), name, &[("action", action)]);
        assert!(counted >= 1.0, "{action}: {counted}");
    }
}

#[tokio::test]
async fn reports_of_adapters_not_required_are_counted() {
    let (api, metrics, _) = spawn("Misnamed", "misnameds").await;
    let unrequired = |kind: &str| {
        let name = "hyperfleet_api_unrequired_reports_total";
        sum(&metrics.render(), name, &[("resource_type", kind)])
    };
    let one = make(&api, "misnameds", "Misnamed", "one").await;
    for (adapter, generation, status, expected) in [
        ("dns", 1, 201, 0.0),
        ("dsn", 1, 201, 1.0),
        // Repeated: the answer does not depend on the name, and it counts, too.
        ("dsn", 1, 201, 2.0),
        // Discarded: nothing is stored.
        ("dsn", 9, 204, 2.0),
    ] {
        let answer = api.report(&one, adapter, generation, &[]).await;
        assert_eq!(answer.status, status, "{adapter}: {}", answer.body);
        assert_eq!(unrequired("misnamed"), expected, "{adapter}");
    }
    // Of a kind that requires none, no name is wrong.
    let free = make(&api, "freemisnameds", "FreeMisnamed", "one").await;
    assert_eq!(api.report(&free, "dsn", 1, &[]).await.status, 201);
    assert_eq!(unrequired("freemisnamed"), 0.0);
}

#[tokio::test]
async fn a_dry_run_is_not_counted() {
    let (api, metrics, _) = spawn("Tried", "trieds").await;
    let one = make(&api, "trieds", "Tried", "one").await;
    let free = make(&api, "freetrieds", "FreeTried", "one").await;
    let two = make(&api, "trieds", "Tried", "two").await;
    api.deleted(&two).await;
    assert_eq!(api.report(&one, "dsn", 1, &[]).await.status, 201);
    let counted = || {
        let series = Series::read(&metrics.render()).into_iter();
        let ours = series.filter(|s| {
            let kind = s.labels.get("resource_type").map_or("", String::as_str);
            ["tried", "freetried"].contains(&kind) && s.name.ends_with("_total") && s.value > 0.0
        });
        let values = ours.map(|s| format!("{} {:?} {}", s.name, s.labels, s.value));
        values.collect::<BTreeSet<_>>()
    };
    let before = counted();
    assert!(before.len() >= 3, "{before:?}");
    let named = |name: &str| json!({"kind": "Tried", "name": name, "spec": {}});
    let report = |kind: &str| {
        json!({
            "adapter": "dsn", "observed_generation": 1, "observed_time": api.clock.now(),
            "conditions": [{"type": kind, "status": "True"}, {"type": "Applied", "status": "True"},
                           {"type": "Health", "status": "True"}],
        })
    };
    for (method, path, body, status) in [
        ("POST", "/trieds".to_owned(), named("three"), 201),
        ("PATCH", one.clone(), json!({"spec": {"a": 1}}), 200),
        ("DELETE", one.clone(), Value::Null, 202),
        ("DELETE", free, Value::Null, 202),
        (
            "POST",
            format!("{two}/force-delete"),
            json!({"reason": "x"}),
            200,
        ),
        ("PUT", format!("{one}/statuses"), report("Available"), 201),
        ("PUT", format!("{one}/statuses"), report("Other"), 400),
        ("PUT", format!("{one}/statuses"), json!({}), 400),
    ] {
        let path = format!("{path}?dryRun=true");
        let answer = api.send(method, &path, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
    }
    assert_eq!(counted(), before);
}

#[tokio::test]
async fn what_is_rolled_back_is_not_counted() {
    let (api, metrics, _) = spawn("Refused", "refuseds").await;
    make(&api, "refuseds", "Refused", "one").await;
    let body = json!({"kind": "Refused", "name": "one", "spec": {}});
    assert_eq!(api.post("/refuseds", body).await.status, 409);
    let labels = [("resource_type", "refused")];
    assert_eq!(sum(&metrics.render(), STARTED, &labels), 1.0);
    let errors = [
        ("operation", "create"),
        ("error_type", "constraint_violation"),
    ];
    let counted = sum(&metrics.render(), "hyperfleet_db_errors_total", &errors);
    assert!(counted >= 1.0, "{counted}");
}

#[tokio::test]
async fn pending_resources_are_counted_by_kind_and_state() {
    let (api, metrics, service) = spawn("Pending", "pendings").await;
    let now = || api.clock.now();
    let value = |name: &str, is_delete: &str| {
        let text = metrics.render();
        let labels = [("resource_type", "pending"), ("is_delete", is_delete)];
        let series = Series::read(&text).into_iter();
        let mut found = series.filter(|s| s.name == name && s.has(&labels));
        let value = found.next().map(|s| s.value);
        assert_eq!(found.next(), None, "twice: {name}");
        value
    };
    metrics.refresh(&service, now(), TEN_MINUTES).await.unwrap();
    assert_eq!(value(PENDING, "false"), None);

    let one = make(&api, "pendings", "Pending", "one").await;
    make(&api, "freependings", "FreePending", "free").await;
    api.clock.advance(300);
    let two = make(&api, "pendings", "Pending", "two").await;
    api.deleted(&two).await;
    api.clock.advance(360);
    metrics.refresh(&service, now(), TEN_MINUTES).await.unwrap();
    assert_eq!(value(PENDING, "false"), Some(1.0));
    assert_eq!(value(STUCK, "false"), Some(1.0));
    assert_eq!(value(STUCK_SECONDS, "false"), Some(660.0));
    assert_eq!(value(PENDING, "true"), Some(1.0));
    assert_eq!(value(STUCK, "true"), Some(0.0));
    assert_eq!(value(STUCK_SECONDS, "true"), Some(0.0));
    assert!(!metrics.render().contains("freepending\",is_delete"));

    assert_eq!(api.report(&one, "dns", 1, &[]).await.status, 201);
    metrics.refresh(&service, now(), TEN_MINUTES).await.unwrap();
    assert_eq!(value(PENDING, "false"), None, "there are none any more");
    assert_eq!(value(PENDING, "true"), Some(1.0));
}

#[tokio::test]
async fn pending_resources_are_counted_by_an_index_only_scan() {
    const SEED: &str = r"
        INSERT INTO resources (id, created_at, updated_at, generation, kind, name, created_by, updated_by,
                               conditions, spec)
        SELECT gen_random_uuid(), now(), now(), 1, 'Indexed', 'many-' || n, 'x', 'x',
               jsonb_build_array(jsonb_build_object('type', 'Reconciled', 'last_transition_time', '2026-01-01T00:00:00Z',
                   'status', CASE WHEN n % 100 = 0 THEN 'False' ELSE 'True' END)), '{}'
        FROM generate_series(1, 20000) n";
    let (api, metrics, service) = spawn("Indexed", "indexeds").await;
    let mut connection = api.database.connect().await;
    // What is not yet on disk is not marked as visible to all, and would be looked at.
    let durable = "SET synchronous_commit = on";
    for sql in [durable, SEED, "VACUUM ANALYZE resources"] {
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    }
    let mut counters = async || -> (i64, i64, i64) {
        let counters = "SELECT t.seq_scan, i.idx_scan, i.idx_tup_fetch
             FROM pg_stat_user_tables t JOIN pg_stat_user_indexes i USING (relid)
             WHERE i.indexrelname = 'resources_unreconciled'";
        let counters = sqlx::query_as(counters).fetch_one(&mut connection).await;
        counters.unwrap()
    };
    let before = counters().await;
    let mut after = before;
    until("the counters tell of the count", async || {
        let now = api.clock.now();
        metrics.refresh(&service, now, TEN_MINUTES).await.unwrap();
        after = counters().await;
        after.1 > before.1
    })
    .await;
    assert_eq!((after.0, after.2), (before.0, before.2), "rows were read");
    let labels = [("resource_type", "indexed"), ("is_delete", "false")];
    assert_eq!(sum(&metrics.render(), PENDING, &labels), 200.0);
}

/// Keeps the advice of the warnings of deletions that no list has included. Every test that leads to one reads them:
/// `tracing` asks once which threads want an event, and a thread without a reader would answer for all.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl Warnings {
    fn to_do(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// The field `to_do` of an event; empty without one.
#[derive(Default)]
struct ToDo(String);

impl tracing::field::Visit for ToDo {
    fn record_debug(&mut self, _: &tracing::field::Field, _: &dyn std::fmt::Debug) {}

    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        if field.name() == "to_do" {
            value.clone_into(&mut self.0);
        }
    }
}

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().ends_with("hidden_deletions")
    }

    fn event(&self, event: &tracing::Event<'_>) {
        assert_eq!(event.metadata().level(), &tracing::Level::WARN);
        let mut to_do = ToDo::default();
        event.record(&mut to_do);
        self.0.lock().unwrap().push(to_do.0);
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test]
async fn unlisted_deletions_are_reported_after_ten_minutes() {
    let kinds = [
        root("Unseen", "unseens", &["dns"]),
        root("Beside", "besides", &["dns"]),
    ];
    let database = TestDatabase::create().await;
    let registry = entity_config::registry(&kinds).unwrap();
    let service = Service::new(database.store(), Arc::new(registry), false);
    let clock = TestClock::at("2026-01-01T10:00:00Z");
    let api = TestApi::spawn_service(service.clone(), database, clock, |_| ());
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let metrics = metrics();
    let look = async || {
        let now = api.clock.now();
        metrics.refresh(&service, now, TEN_MINUTES).await.unwrap();
        let text = metrics.render();
        ["unseen", "beside"].map(|kind| {
            let labels = [("resource_type", kind)];
            sum(
                &text,
                "hyperfleet_api_finalizing_resources_unlisted",
                &labels,
            )
        })
    };
    for (plural, kind) in [("unseens", "Unseen"), ("besides", "Beside")] {
        let one = make(&api, plural, kind, "one").await;
        api.deleted(&one).await;
    }
    assert_eq!(look().await, [0.0, 0.0]);
    let list = async |path: &str| assert_eq!(api.get(path).await.status, 200, "{path}");
    // A list that leaves them out shows nothing of the deletion, and one of another kind not this one's.
    list("/unseens").await;
    list("/unseens?includeDeleted=false").await;
    list("/besides?includeDeleted=true").await;
    api.clock.advance(600);
    assert_eq!(look().await, [0.0, 0.0], "not for longer than ten minutes");
    assert!(warnings.to_do().is_empty());
    api.clock.advance(1);
    for _ in 0..3 {
        assert_eq!(look().await, [1.0, 0.0]);
    }
    let to_do = warnings.to_do();
    let [to_do] = &to_do[..] else {
        panic!("once for each kind: {to_do:?}");
    };
    for way in ["includeDeleted=true", "lists.include_deleted"] {
        assert!(to_do.contains(way), "no {way} in: {to_do}");
    }
    list("/resources?kind=Unseen&includeDeleted=true").await;
    assert_eq!(look().await, [0.0, 0.0]);
}

#[tokio::test]
async fn a_new_instance_does_not_know_who_lists_deletions() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let (api, metrics, service) = spawn("Inherited", "inheriteds").await;
    let unlisted = || {
        let labels = [("resource_type", "inherited")];
        sum(
            &metrics.render(),
            "hyperfleet_api_finalizing_resources_unlisted",
            &labels,
        )
    };
    let one = make(&api, "inheriteds", "Inherited", "one").await;
    api.deleted(&one).await;
    api.clock.advance(3600);
    let now = || api.clock.now();
    metrics.refresh(&service, now(), TEN_MINUTES).await.unwrap();
    assert_eq!(unlisted(), 0.0);
    api.clock.advance(600);
    metrics.refresh(&service, now(), TEN_MINUTES).await.unwrap();
    assert_eq!(unlisted(), 1.0);
    assert_eq!(warnings.to_do().len(), 1);
    // Where lists include finalizing resources by default nothing is hidden.
    let registry = Arc::clone(service.registry());
    let open = Service::new(api.database.store(), registry, true);
    metrics.refresh(&open, now(), TEN_MINUTES).await.unwrap();
    assert_eq!(unlisted(), 0.0);
}

#[tokio::test]
async fn the_scrape_goes_on_without_the_database() {
    let (api, metrics, service) = spawn("Orphan", "orphans").await;
    make(&api, "orphans", "Orphan", "one").await;
    let now = api.clock.now();
    metrics.refresh(&service, now, TEN_MINUTES).await.unwrap();
    let nowhere = api.database.options().socket("/nowhere");
    let registry = Arc::clone(service.registry());
    let cut_off = Service::new(store(nowhere), registry, false);
    metrics.show(&cut_off);
    let before = sum(&metrics.render(), ERRORS, &[]);
    let failed = metrics.refresh(&cut_off, now, TEN_MINUTES).await;
    assert!(failed.is_err());
    let text = metrics.render();
    assert!(sum(&text, ERRORS, &[]) > before);
    let labels = [("resource_type", "orphan"), ("is_delete", "false")];
    assert_eq!(sum(&text, PENDING, &labels), 1.0, "as it was");
    let refreshed = "hyperfleet_api_reconciliation_refresh_timestamp_seconds";
    assert!(sum(&text, refreshed, &[]) > 0.0);
    assert_eq!(sum(&text, "hyperfleet_db_connections_open", &[]), 0.0);
    assert_eq!(sum(&text, "hyperfleet_db_connections_max", &[]), 4.0);
    assert!(text.contains("process_resident_memory_bytes"));
}

#[tokio::test]
async fn whatever_is_sent_the_series_stay_as_many() {
    let (api, metrics, _) = spawn("Hostile", "hostiles").await;
    let methods = ["GET", "POST", "PROPFIND", "hostile", "HOSTILE-X", "DELETE"];
    let round = async |number: usize| {
        for (index, method) in methods.iter().enumerate() {
            let id = format!("hostile{number}x{index}");
            for path in [
                format!("/{id}"),
                format!("/hostiles/{id}"),
                format!("/hostiles/{id}/statuses"),
                format!("/hostiles?search={id}"),
                format!("/../{id}/%2e%2e/%00?{id}"),
            ] {
                let url = format!("{}{path}", api.base);
                let request = api.client.request(method.parse().unwrap(), url);
                let request = request
                    .header("x-request-id", &id)
                    .header("user-agent", &id);
                let request = request.header(format!("x-{id}"), &id);
                assert!(request.send().await.unwrap().status().as_u16() < 500);
            }
        }
    };
    let ours = || {
        let text = metrics.render();
        assert!(!text.contains("hostile0x"), "an id became a label");
        let is_ours = |s: &Series| {
            let path = s.labels.get("path").map_or("", String::as_str);
            path == "/-" || path.contains("/hostiles")
        };
        let series = Series::read(&text).into_iter().filter(is_ours);
        series.map(|s| (s.name, s.labels)).collect::<BTreeSet<_>>()
    };
    round(0).await;
    let first = ours();
    assert!(!first.is_empty());
    let methods: BTreeSet<_> = first
        .iter()
        .map(|(_, labels)| labels["method"].clone())
        .collect();
    let known = [
        "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "OTHER",
    ];
    assert!(
        methods.iter().all(|m| known.contains(&m.as_str())),
        "{methods:?}"
    );
    for number in 1..100 {
        round(number).await;
    }
    let last = ours();
    let new: Vec<_> = last.difference(&first).collect();
    // Other tests send what leads nowhere, too, by other methods.
    let new: Vec<_> = new.iter().filter(|(_, l)| l["path"] != "/-").collect();
    assert!(new.is_empty(), "{new:?}");
}

#[tokio::test]
async fn requests_to_the_metadata_are_not_counted() {
    let (api, metrics, _) = spawn("Uncounted", "uncounteds").await;
    let root = format!("http://{}/api/hyperfleet", api.address());
    for (method, path, status) in [
        ("GET", "", 200),
        ("HEAD", "", 200),
        ("DELETE", "", 405),
        ("GET", "/v1/openapi", 200),
    ] {
        let url = format!("{root}{path}");
        let request = api.client.request(method.parse().unwrap(), url);
        assert_eq!(
            request.send().await.unwrap().status(),
            status,
            "{method} {path}"
        );
    }
    let text = metrics.render();
    let counted = |path: &str| {
        let path = [("path", path)];
        let counters = ["hyperfleet_api_requests_total", DURATION_COUNT];
        counters.map(|name| sum(&text, name, &path) > 0.0)
    };
    assert_eq!(counted("/api/hyperfleet/v1/openapi"), [true, true]);
    assert_eq!(counted("/api/hyperfleet"), [false, false]);
}

/// What the older service's dashboard asks for, panel by panel, and its two alerts.
const ASKED: &[(&str, &[&str])] = &[
    ("hyperfleet_api_requests_total", &["code"]),
    (
        "hyperfleet_api_build_info",
        &["component", "version", "commit", "go_version"],
    ),
    (
        "hyperfleet_api_request_duration_seconds_bucket",
        &["le", "method", "path", "code"],
    ),
    ("hyperfleet_api_request_duration_seconds_sum", &["path"]),
    ("hyperfleet_api_request_duration_seconds_count", &["path"]),
    ("hyperfleet_api_requests_total", &["path", "method"]),
    (
        "hyperfleet_api_reconciliation_started_total",
        &["resource_type", "is_delete"],
    ),
    (PENDING, &["resource_type", "is_delete"]),
    (STUCK, &["resource_type", "is_delete"]),
    (STUCK_SECONDS, &["resource_type", "is_delete"]),
    (
        "hyperfleet_db_query_duration_seconds_bucket",
        &["le", "operation", "table"],
    ),
    ("hyperfleet_db_errors_total", &["operation", "error_type"]),
    ("hyperfleet_db_connections_open", &["component", "version"]),
    (
        "hyperfleet_db_connections_in_use",
        &["component", "version"],
    ),
];

#[tokio::test]
async fn the_older_dashboard_and_alerts_find_what_they_ask_for() {
    let (api, metrics, service) = spawn("Drawn", "drawns").await;
    metrics.show(&service);
    make(&api, "drawns", "Drawn", "one").await;
    let body = json!({"kind": "Drawn", "name": "one", "spec": {}});
    assert_eq!(api.post("/drawns", body).await.status, 409);
    api.clock.advance(3600);
    let now = api.clock.now();
    metrics.refresh(&service, now, TEN_MINUTES).await.unwrap();
    let text = metrics.render();
    let series = Series::read(&text);
    for (name, labels) in ASKED {
        let found = series.iter().filter(|s| s.name == *name);
        let has = |s: &&Series| labels.iter().all(|l| s.labels.contains_key(*l));
        assert!(found.clone().next().is_some(), "no {name} in\n{text}");
        assert!(found.clone().all(|s| has(&s)), "{name} without {labels:?}");
    }
    let post = [
        ("method", "POST"),
        ("path", "/api/hyperfleet/v1/drawns"),
        ("code", "201"),
        ("component", "api"),
    ];
    assert_eq!(sum(&text, "hyperfleet_api_requests_total", &post), 1.0);
    let mut bounds: Vec<_> = series
        .iter()
        .filter(|s| s.name == "hyperfleet_api_request_duration_seconds_bucket" && s.has(&post))
        .map(|s| s.labels["le"].clone())
        .collect();
    bounds.sort_by(|a, b| a.parse::<f64>().unwrap().total_cmp(&b.parse().unwrap()));
    let expected = [
        "0.005", "0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "10", "+Inf",
    ];
    assert_eq!(bounds, expected);
}

fn all() -> impl Iterator<Item = &'static Metric> {
    METRIC_TABLES.iter().copied().flatten().chain(KIT_METRICS)
}

#[tokio::test]
async fn every_series_has_the_documented_labels() {
    let (api, metrics, service) = spawn("Described", "describeds").await;
    metrics.show(&service);
    let one = make(&api, "describeds", "Described", "one").await;
    assert_eq!(api.report(&one, "dns", 1, &[]).await.status, 201);
    let now = api.clock.now();
    metrics.refresh(&service, now, TEN_MINUTES).await.unwrap();
    let text = metrics.render();
    for series in Series::read(&text) {
        let suffixes = ["_bucket", "_sum", "_count"];
        let base = suffixes.iter().find_map(|s| series.name.strip_suffix(s));
        let of = |name: &str| all().find(|metric| metric.name == name);
        let known = of(&series.name).or_else(|| base.and_then(of));
        let Some(Metric { name, labels, .. }) = known else {
            // Agents that other tests run in this process are counted, too.
            let is_foreign = ["process_", "fleet_"].map(|begin| series.name.starts_with(begin));
            assert!(is_foreign.contains(&true), "{series:?}");
            continue;
        };
        assert!(text.contains(&format!("# HELP {name} ")), "{name}");
        let mut expected: BTreeSet<&str> = labels.iter().copied().collect();
        expected.extend(["component", "version"]);
        if series.name.ends_with("_bucket") {
            expected.insert("le");
        }
        let has: BTreeSet<&str> = series.labels.keys().map(String::as_str).collect();
        assert_eq!(has, expected, "{name}");
    }
}
