//! What each kind of request costs in the database. The table stands in `docs/internals/database.md`.
//!
//! A round trip is a message that the service waits for an answer to. Every number is exact: one
//! that changes is a decision.

use hyperfleet_domain::entity_config::{self, EntityConfig};
use serde_json::{Value, json};
use sqlx::PgConnection;

use crate::support::{
    ACME, Answer, JSON_PATCH, MERGE_PATCH, Proxy, Sent, TestApi, TestDatabase, Walls, root, ruled,
    store_of, tenancy,
};

const FINALIZED: &[(&str, &str)] = &[("Finalized", "True")];

type Headers = &'static [(&'static str, &'static str)];

/// A server whose one connection leads through a counting proxy.
struct Meter {
    api: TestApi,
    proxy: Proxy,
    names: u32,
}

impl Meter {
    async fn start() -> Self {
        Self::with_connections(1, None).await
    }

    /// As one of several tenants that do not see each other.
    async fn start_as(tenant: Headers) -> Self {
        Self::with_connections(1, Some(tenant)).await
    }

    async fn with_connections(connections_max: usize, tenant: Option<Headers>) -> Self {
        let mut entities = entity_config::built_in();
        entities.push(EntityConfig {
            kind: "WifConfig".to_owned(),
            plural: "wifconfigs".to_owned(),
            ..EntityConfig::default()
        });
        let rule = (
            "Seen",
            "size(statuses) > 0",
            "true",
            "toJson(statuses[0].data)",
        );
        entities.push(ruled(&[rule], root("Site", "sites", &["dns"])));
        let database = TestDatabase::create().await;
        let proxy = Proxy::start(database.options());
        let store = store_of(proxy.options(database.options()), connections_max);
        let registry = entity_config::registry(&entities).unwrap();
        let api = match tenant {
            None => TestApi::spawn_on(registry, database, store, false),
            Some(tenant) => {
                let rules = tenancy(Walls::Up);
                TestApi::spawn_for_tenants(registry, database, store, false, rules).speaking(tenant)
            }
        };
        Self {
            api,
            proxy,
            names: 0,
        }
    }

    /// A name that nothing has yet.
    fn name(&mut self) -> String {
        self.names += 1;
        format!("name-{}", self.names)
    }

    async fn cluster(&mut self) -> String {
        let name = self.name();
        self.api.cluster(&name).await
    }

    async fn nodepool(&mut self, cluster: &str) -> String {
        let name = self.name();
        self.api.nodepool(cluster, &name).await
    }

    /// A cluster with so many nodepools, all finalizing.
    async fn finalizing(&mut self, children: usize) -> (String, Vec<String>) {
        let cluster = self.cluster().await;
        let mut pools = Vec::new();
        for _ in 0..children {
            pools.push(self.nodepool(&cluster).await);
        }
        assert_eq!(self.api.delete(&cluster).await.status, 202);
        (cluster, pools)
    }

    /// What one request costs, once its statements are prepared.
    async fn cost(&self, method: &str, path: &str, body: Value, status: u16) -> Sent {
        self.proxy.reset(None);
        let answer: Answer = self.api.send(method, path, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        self.proxy.sent()
    }

    /// The same for a request with a header.
    async fn cost_with(
        &self,
        header: (&str, &str),
        (method, path): (&str, &str),
        body: &Value,
        status: u16,
    ) -> Sent {
        self.proxy.reset(None);
        let answer = self.api.send_with(&[header], method, path, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        self.proxy.sent()
    }

    async fn cost_of_report(
        &self,
        path: &str,
        adapter: &str,
        generation: i32,
        statuses: &[(&str, &str)],
        status: u16,
    ) -> Sent {
        self.proxy.reset(None);
        let answer = self.api.report(path, adapter, generation, statuses).await;
        assert_eq!(answer.status, status, "{}", answer.body);
        self.proxy.sent()
    }
}

/// Single statements, each its own transaction, one round trip each.
#[track_caller]
fn assert_single(what: &str, sent: Sent, count: u32) {
    let expected = Sent {
        round_trips: count,
        statements: count,
        simple: 0,
        prepared: 0,
    };
    assert_eq!(sent, expected, "{what}");
    println!("| {what} | {count} | {count} |");
}

/// One transaction: `BEGIN`, so many statements, `COMMIT`, perhaps after a look without one.
#[track_caller]
fn assert_transaction(what: &str, sent: Sent, before: u32, count: u32) {
    let expected = Sent {
        round_trips: before + count + 2,
        statements: before + count + 2,
        simple: 2,
        prepared: 0,
    };
    assert_eq!(sent, expected, "{what}");
    println!("| {what} | {} | BEGIN … COMMIT |", before + count + 2);
}

#[tokio::test]
async fn reads_are_one_statement() {
    let mut meter = Meter::start().await;
    let cluster = meter.cluster().await;
    let pool = meter.nodepool(&cluster).await;
    let id = |path: &str| path.rsplit('/').next().unwrap().to_owned();
    assert_eq!(meter.api.report(&cluster, "dns", 1, &[]).await.status, 201);
    let none = "01890000-0000-7000-8000-000000000000";
    let empty = meter.cluster().await;
    for (what, path, status, count) in [
        ("GET a cluster", cluster.clone(), 200, 1),
        ("GET a nodepool, nested", pool.clone(), 200, 1),
        (
            "GET a nodepool, flat",
            format!("/nodepools/{}", id(&pool)),
            200,
            1,
        ),
        (
            "GET a resource",
            format!("/resources/{}", id(&pool)),
            200,
            1,
        ),
        ("GET nothing, flat", format!("/clusters/{none}"), 404, 1),
        (
            "GET nothing, nested",
            format!("{cluster}/nodepools/{none}"),
            404,
            2,
        ),
        ("GET what is no id", "/clusters/none".to_owned(), 404, 0),
        ("GET a list", "/clusters?size=100".to_owned(), 200, 1),
        (
            "GET a list, with finalizing ones",
            "/clusters?includeDeleted=true".to_owned(),
            200,
            1,
        ),
        ("GET a list of every kind", "/resources".to_owned(), 200, 1),
        ("GET a list, nested", format!("{cluster}/nodepools"), 200, 1),
        (
            "GET an empty list, nested",
            format!("{empty}/nodepools"),
            200,
            2,
        ),
        (
            "GET a list of nobody's",
            format!("/clusters/{none}/nodepools"),
            404,
            2,
        ),
        ("GET the reports", format!("{cluster}/statuses"), 200, 1),
        ("GET no reports", format!("{pool}/statuses"), 200, 1),
        ("GET the trail", "/audit".to_owned(), 200, 1),
        (
            "GET the trail of one resource",
            format!("/audit?resource_id={}", id(&pool)),
            200,
            1,
        ),
        (
            "GET the trail behind a position",
            "/audit?after=start".to_owned(),
            200,
            1,
        ),
        (
            "GET the end of the trail",
            "/audit?page=100000".to_owned(),
            200,
            1,
        ),
    ] {
        meter.cost("GET", &path, Value::Null, status).await;
        let sent = meter.cost("GET", &path, Value::Null, status).await;
        assert_single(what, sent, count);
    }
}

#[tokio::test]
async fn an_explanation_is_one_statement() {
    let mut meter = Meter::start().await;
    let cluster = meter.cluster().await;
    let pool = meter.nodepool(&cluster).await;
    let none = "01890000-0000-7000-8000-000000000000";
    let site = meter.api.make("/sites", "Site", "site").await;
    assert_eq!(meter.api.report(&site, "dns", 1, &[]).await.status, 201);
    for (what, path, status, count) in [
        ("GET an explanation", format!("{cluster}/explain"), 200, 1),
        (
            "GET an explanation, nested",
            format!("{pool}/explain"),
            200,
            1,
        ),
        (
            "GET an explanation of nothing, flat",
            format!("/clusters/{none}/explain"),
            404,
            1,
        ),
        (
            "GET an explanation of nothing, nested",
            format!("{cluster}/nodepools/{none}/explain"),
            404,
            2,
        ),
        (
            "GET an explanation of what is no id",
            "/clusters/none/explain".to_owned(),
            404,
            0,
        ),
        (
            "GET an explanation, with rules",
            format!("{site}/explain"),
            200,
            1,
        ),
    ] {
        meter.cost("GET", &path, Value::Null, status).await;
        let sent = meter.cost("GET", &path, Value::Null, status).await;
        assert_single(what, sent, count);
    }
}

#[tokio::test]
async fn a_request_for_a_lease_is_one_statement() {
    let meter = Meter::start().await;
    let body = |holder: &str| json!({"holder": holder, "duration_seconds": 60});
    let (path, release) = ("/leases/dns", "/leases/dns?holder=a");
    for (what, method, path, body, status) in [
        ("PUT a lease", "PUT", path, body("a"), 200),
        ("PUT a lease of another holder", "PUT", path, body("b"), 409),
        ("GET a lease", "GET", path, Value::Null, 200),
        ("DELETE a lease", "DELETE", release, Value::Null, 404),
    ] {
        // A deletion succeeds once: the measured one finds nothing.
        let first = if method == "DELETE" { 204 } else { status };
        meter.cost(method, path, body.clone(), first).await;
        let sent = meter.cost(method, path, body, status).await;
        assert_single(what, sent, 1);
    }
}

#[tokio::test]
async fn the_past_is_one_statement() {
    let mut meter = Meter::start().await;
    let cluster = meter.cluster().await;
    let (gone, _) = meter.finalizing(0).await;
    let forced = json!({"reason": "test"});
    let path = format!("{gone}/force-delete");
    assert_eq!(meter.api.post(&path, forced).await.status, 204);
    let there = "at=2026-01-01T10:00:00Z";
    for (what, path, status, count) in [
        ("GET at a time", format!("{cluster}?{there}"), 200, 1),
        (
            "GET a generation",
            format!("{cluster}?generation=1"),
            200,
            1,
        ),
        (
            "GET a generation that is not there",
            format!("{cluster}?generation=9"),
            404,
            1,
        ),
        ("GET the history", format!("{cluster}/history"), 200, 1),
        ("GET the events", format!("{cluster}/events"), 200, 1),
        (
            "GET the events of a removed one",
            format!("{gone}/events"),
            200,
            2,
        ),
        ("GET a removed one", gone.clone(), 404, 1),
        (
            "GET a removed one, with what is left",
            format!("{gone}?includeDeleted=true"),
            410,
            2,
        ),
        (
            "GET with includeDeleted",
            format!("{cluster}?includeDeleted=true"),
            200,
            1,
        ),
    ] {
        meter.cost("GET", &path, Value::Null, status).await;
        let sent = meter.cost("GET", &path, Value::Null, status).await;
        assert_single(what, sent, count);
    }
    // Planned for its values.
    let path = format!("/clusters?{there}");
    let sent = meter.cost("GET", &path, Value::Null, 200).await;
    let counts = (sent.round_trips, sent.statements, sent.prepared);
    assert_eq!(counts, (2, 1, 1), "GET {path}");
}

/// With one connection reads of single resources have none of their own to share.
#[tokio::test]
async fn a_single_batched_read_is_one_statement() {
    let mut meter = Meter::with_connections(4, None).await;
    let cluster = meter.cluster().await;
    let pool = meter.nodepool(&cluster).await;
    for path in [cluster, pool] {
        meter.cost("GET", &path, Value::Null, 200).await;
        let sent = meter.cost("GET", &path, Value::Null, 200).await;
        assert_single("GET by id, shared", sent, 1);
    }
}

#[tokio::test]
async fn a_page_costs_the_same_whatever_it_holds() {
    let mut meter = Meter::start().await;
    let cluster = meter.cluster().await;
    for _ in 0..30 {
        meter.nodepool(&cluster).await;
    }
    for path in [
        format!("{cluster}/nodepools?size=1"),
        format!("{cluster}/nodepools?size=30"),
    ] {
        meter.cost("GET", &path, Value::Null, 200).await;
        let sent = meter.cost("GET", &path, Value::Null, 200).await;
        assert_single("GET a page, whatever its size", sent, 1);
    }
}

#[tokio::test]
async fn a_search_leaves_no_prepared_statement() {
    let mut meter = Meter::start().await;
    meter.cluster().await;
    for number in 0..3 {
        // Each is another statement, and prepared again. If it were cached, the second time would not prepare it.
        let search = vec!["generation%3D1"; number + 1].join("%20and%20");
        let path = format!("/clusters?search={search}");
        for time in ["first", "second"] {
            let sent = meter.cost("GET", &path, Value::Null, 200).await;
            let counts = (sent.round_trips, sent.statements, sent.prepared);
            assert_eq!(counts, (2, 1, 1), "{path}, {time}");
        }
    }
}

#[tokio::test]
async fn reports_are_a_read_and_a_guarded_statement() {
    let mut meter = Meter::start().await;
    let cluster = meter.cluster().await;
    for round in 0..3 {
        // The first report of all, and each change of a status, is recorded as a change of the resource.
        meter.api.clock.advance(1);
        let unavailable = [("Available", "False")];
        let recorded = meter
            .cost_of_report(&cluster, "validation", 1, &unavailable, 201)
            .await;
        meter.api.clock.advance(1);
        let changed = meter
            .cost_of_report(&cluster, "validation", 1, &[], 201)
            .await;
        meter.api.clock.advance(1);
        let accepted = meter.cost_of_report(&cluster, "dns", 1, &[], 201).await;
        let repeated = meter.cost_of_report(&cluster, "dns", 1, &[], 201).await;
        let early = meter.cost_of_report(&cluster, "dns", 7, &[], 204).await;
        let unknown = [("Available", "Unknown")];
        meter.api.clock.advance(1);
        let discarded = meter
            .cost_of_report(&cluster, "dns", 1, &unknown, 204)
            .await;
        let body = json!({"adapter": "dns", "observed_generation": 1, "conditions": []});
        let refused = meter
            .cost("PUT", &format!("{cluster}/statuses"), body, 400)
            .await;
        if round == 2 {
            assert_single("PUT an accepted report", accepted, 2);
            assert_single("PUT a report that changes a status", recorded, 2);
            assert_single("PUT a report that changes it back", changed, 2);
            assert_single("PUT a repeated report", repeated, 2);
            assert_single("PUT a report of the future", early, 1);
            assert_single("PUT a discarded report", discarded, 1);
            assert_single("PUT a report that lacks conditions", refused, 1);
        }
    }
}

#[tokio::test]
async fn creates_are_one_statement() {
    let mut meter = Meter::start().await;
    let owner = meter.cluster().await;
    let list = format!("{owner}/nodepools");
    for round in 0..2 {
        let body = json!({"kind": "Cluster", "name": meter.name(), "spec": {"a": 1}, "labels": {"b": "c"}});
        let root = meter.cost("POST", "/clusters", body.clone(), 201).await;
        let taken = meter.cost("POST", "/clusters", body, 409).await;
        let body = json!({"kind": "NodePool", "name": meter.name(), "spec": {}});
        let child = meter.cost("POST", &list, body, 201).await;
        let refused = meter.cost("POST", "/clusters", json!({}), 400).await;
        if round == 1 {
            assert_single("POST a cluster", root, 1);
            assert_single("POST a name that is taken", taken, 1);
            assert_single("POST a nodepool", child, 1);
            assert_single("POST what is not valid", refused, 0);
        }
    }
}

#[tokio::test]
async fn patches_look_before_they_write() {
    let mut meter = Meter::start().await;
    let cluster = meter.cluster().await;
    let wif = json!({"kind": "WifConfig", "name": "wif", "spec": {}});
    let wif = format!(
        "/wifconfigs/{}",
        meter.api.post("/wifconfigs", wif).await.id()
    );
    for round in 0..2 {
        let body = json!({"spec": {"round": round}});
        let changed = meter.cost("PATCH", &cluster, body.clone(), 200).await;
        let same = meter.cost("PATCH", &cluster, body.clone(), 200).await;
        let simple = meter.cost("PATCH", &wif, body, 200).await;
        let body = json!({"references": {}});
        let linked = meter.cost("PATCH", &cluster, body, 200).await;
        let merge = ("content-type", MERGE_PATCH);
        let body = json!({"spec": {"merged": round}});
        let request = ("PATCH", &*cluster);
        let merged = meter.cost_with(merge, request, &body, 200).await;
        let unmerged = meter.cost_with(merge, request, &body, 200).await;
        let body = json!({"references": {"none": null}});
        let unlinked = meter.cost_with(merge, request, &body, 200).await;
        let operations = ("content-type", JSON_PATCH);
        let body = json!([{"op": "add", "path": "/labels/round", "value": format!("{round}")}]);
        let operated = meter.cost_with(operations, request, &body, 200).await;
        if round == 1 {
            assert_single("merge patch that changes nothing", unmerged, 1);
            assert_single("merge patch", merged, 2);
            assert_transaction("merge patch of the same references", unlinked, 0, 3);
            assert_single("JSON patch", operated, 2);
            assert_single("PATCH that changes nothing", same, 1);
            assert_single("PATCH a cluster", changed, 2);
            assert_single("PATCH of a kind without adapters", simple, 2);
            assert_transaction("PATCH references", linked, 0, 6);
        }
    }
}

#[tokio::test]
async fn deletes_cost_the_same_whatever_they_take_along() {
    let mut meter = Meter::start().await;
    for (children, is_measured) in [(1, false), (1, true), (100, true)] {
        let cluster = meter.cluster().await;
        for _ in 0..children {
            meter.nodepool(&cluster).await;
        }
        let deleted = meter.cost("DELETE", &cluster, Value::Null, 202).await;
        let again = meter.cost("DELETE", &cluster, Value::Null, 202).await;
        let path = format!("{cluster}/force-delete");
        let forced = meter.cost("POST", &path, json!({"reason": "x"}), 204).await;
        if is_measured {
            assert_transaction(&format!("DELETE a cluster with {children}"), deleted, 1, 4);
            assert_transaction(&format!("DELETE it again, with {children}"), again, 1, 3);
            assert_transaction(&format!("force-delete with {children}"), forced, 0, 4);
        }
    }
}

#[tokio::test]
async fn a_delete_without_dependents_takes_two_statements() {
    let mut meter = Meter::start().await;
    for round in 0..2 {
        let cluster = meter.cluster().await;
        let deleted = meter.cost("DELETE", &cluster, Value::Null, 202).await;
        let again = meter.cost("DELETE", &cluster, Value::Null, 202).await;
        let owner = meter.cluster().await;
        let pool = meter.nodepool(&owner).await;
        let child = meter.cost("DELETE", &pool, Value::Null, 202).await;
        if round == 1 {
            assert_single("DELETE a cluster without node pools", deleted, 2);
            assert_single("DELETE it again", again, 1);
            assert_single("DELETE a node pool", child, 2);
        }
    }
}

#[tokio::test]
async fn a_dry_run_is_a_transaction_that_is_rolled_back() {
    let mut meter = Meter::start().await;
    let cluster = meter.cluster().await;
    meter.nodepool(&cluster).await;
    let (going, _) = meter.finalizing(1).await;
    for round in 0..2 {
        let body = json!({"kind": "Cluster", "name": meter.name(), "spec": {}});
        let created = meter.cost("POST", "/clusters?dryRun=true", body, 201).await;
        let path = format!("{cluster}?dryRun=true");
        let body = json!({"spec": {"a": 1}});
        let patched = meter.cost("PATCH", &path, body, 200).await;
        let deleted = meter.cost("DELETE", &path, Value::Null, 202).await;
        let path = format!("{going}/force-delete?dryRun=true");
        let forced = meter.cost("POST", &path, json!({"reason": "x"}), 200).await;
        let path = format!("{cluster}/statuses?dryRun=true");
        let report = json!({
            "adapter": "dns", "observed_generation": 1, "observed_time": meter.api.clock.now(),
            "conditions": [{"type": "Available", "status": "True"}, {"type": "Applied", "status": "True"},
                           {"type": "Health", "status": "True"}],
        });
        let reported = meter.cost("PUT", &path, report, 201).await;
        if round == 1 {
            assert_transaction("dry run of POST", created, 0, 1);
            assert_transaction("dry run of PATCH", patched, 0, 3);
            assert_transaction("dry run of DELETE", deleted, 0, 5);
            assert_transaction("dry run of a force-delete", forced, 0, 4);
            assert_transaction("dry run of a report", reported, 0, 3);
        }
    }
}

#[tokio::test]
async fn preconditions_cost_no_statement() {
    let mut meter = Meter::start().await;
    for round in 0..2 {
        let cluster = meter.cluster().await;
        let (first, other) = (("if-match", "\"g1\""), ("if-match", "\"g9\""));
        let known = ("if-none-match", "\"g1\"");
        let body = json!({"spec": {"round": round}});
        let read = meter
            .cost_with(known, ("GET", &cluster), &Value::Null, 304)
            .await;
        let refused = meter
            .cost_with(other, ("PATCH", &cluster), &body, 412)
            .await;
        let patched = meter
            .cost_with(first, ("PATCH", &cluster), &body, 200)
            .await;
        let kept = meter
            .cost_with(other, ("DELETE", &cluster), &Value::Null, 412)
            .await;
        let second = ("if-match", "\"g2.r2\"");
        let deleted = meter
            .cost_with(second, ("DELETE", &cluster), &Value::Null, 202)
            .await;
        if round == 1 {
            assert_single("GET of what is known", read, 1);
            assert_single("PATCH of another state", refused, 1);
            assert_single("PATCH of this state", patched, 2);
            assert_single("DELETE of another state", kept, 1);
            assert_single("DELETE of this state", deleted, 2);
        }
    }
}

#[tokio::test]
async fn a_request_with_a_key_is_one_transaction() {
    let mut meter = Meter::start().await;
    for round in 0..2 {
        let cluster = meter.cluster().await;
        let body = json!({"kind": "Cluster", "name": meter.name(), "spec": {}});
        let change = json!({"spec": {"round": round}});
        let keys = ["post", "patch", "delete"].map(|name| format!("{name}-{round}"));
        let [post, patch, delete] = keys.each_ref().map(|key| ("idempotency-key", key.as_str()));
        let requests = [
            (post, ("POST", "/clusters"), &body, 201),
            (patch, ("PATCH", &*cluster), &change, 200),
            (delete, ("DELETE", &*cluster), &Value::Null, 202),
        ];
        for ((header, request, body, status), count) in requests.into_iter().zip([3, 5, 7]) {
            let first = meter.cost_with(header, request, body, status).await;
            let again = meter.cost_with(header, request, body, status).await;
            if round == 1 {
                assert_transaction(&format!("{request:?} with a key"), first, 0, count);
                assert_transaction(&format!("{request:?} repeated"), again, 0, 2);
            }
        }
    }
}

/// A meter whose changes of resources note in `plans` how often their session has planned each statement: no other session
/// sees that.
async fn with_plans(connections: usize) -> (Meter, PgConnection) {
    let meter = Meter::with_connections(connections, None).await;
    let mut direct = meter.api.database.connect().await;
    let note = "CREATE TABLE plans (statement text, custom_plans bigint, generic_plans bigint);
         CREATE FUNCTION note_plans() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             INSERT INTO plans SELECT statement, custom_plans, generic_plans FROM pg_prepared_statements;
             RETURN NULL;
         END $$;
         CREATE TRIGGER note_plans AFTER UPDATE ON resources
             FOR EACH STATEMENT EXECUTE FUNCTION note_plans()";
    sqlx::raw_sql(note).execute(&mut direct).await.unwrap();
    (meter, direct)
}

#[tokio::test]
async fn statements_of_deletes_are_planned_once() {
    // Of eight, some are only for changes.
    let (mut meter, mut direct) = with_plans(8).await;
    for _ in 0..3 {
        let (cluster, _) = meter.finalizing(2).await;
        assert_eq!(meter.api.delete(&cluster).await.status, 202);
    }
    let sets = "SELECT count(DISTINCT statement), coalesce(sum(custom_plans), 0)::bigint FROM plans
         WHERE statement LIKE '%unnest(%' OR statement LIKE '%= ANY(%'";
    let (statements, planned_with_values): (i64, i64) =
        sqlx::query_as(sets).fetch_one(&mut direct).await.unwrap();
    assert!(statements >= 3, "{statements}");
    assert_eq!(planned_with_values, 0);
}

#[tokio::test]
async fn deletes_without_dependents_are_planned_at_most_five_times() {
    let (mut meter, mut direct) = with_plans(1).await;
    for _ in 0..40 {
        meter.finalizing(0).await;
    }
    // The server plans the first five executions for their values, to compare.
    let often =
        "SELECT max(custom_plans) FROM plans WHERE statement NOT LIKE '%INSERT INTO resources %'
         GROUP BY statement HAVING max(custom_plans + generic_plans) > 10";
    let often: Vec<i64> = sqlx::query_scalar(often)
        .fetch_all(&mut direct)
        .await
        .unwrap();
    assert!(
        often.len() >= 2,
        "the read and the guarded statement: {often:?}"
    );
    assert!(often.iter().all(|custom| *custom <= 5), "{often:?}");
}

#[tokio::test]
async fn a_deletion_that_waits_for_nothing_is_one_transaction() {
    let mut meter = Meter::start().await;
    for round in 0..2 {
        let body = json!({"kind": "WifConfig", "name": meter.name(), "spec": {}});
        let wif = format!(
            "/wifconfigs/{}",
            meter.api.post("/wifconfigs", body).await.id()
        );
        let deleted = meter.cost("DELETE", &wif, Value::Null, 202).await;
        if round == 1 {
            assert_transaction("DELETE of a kind without adapters", deleted, 1, 3);
        }
    }
}

#[tokio::test]
async fn rules_cost_no_statement() {
    let mut meter = Meter::start().await;
    for round in 0..2 {
        meter.api.clock.advance(1);
        let body = json!({"kind": "Site", "name": meter.name(), "spec": {}});
        let created = meter.cost("POST", "/sites", body, 201).await;
        let name = meter.name();
        let site = meter.api.make("/sites", "Site", &name).await;
        let accepted = meter.cost_of_report(&site, "dns", 1, &[], 201).await;
        let id = site.rsplit('/').next().unwrap();
        let any = format!("/resources/{id}");
        meter.api.clock.advance(1);
        let by_id = meter.cost_of_report(&any, "dns", 1, &[], 201).await;
        let body = json!({"spec": {"round": round}});
        let patched = meter.cost("PATCH", &site, body, 200).await;
        let deleted = meter.cost("DELETE", &site, Value::Null, 202).await;
        let last = meter.cost_of_report(&site, "dns", 3, FINALIZED, 201).await;
        assert_eq!(meter.api.get(&site).await.status, 404);
        if round == 1 {
            assert_single("POST of a kind with rules", created, 1);
            assert_single("PUT an accepted report, with rules", accepted, 2);
            assert_single("the same below /resources", by_id, 2);
            assert_single("PATCH of a kind with rules", patched, 2);
            assert_single("DELETE of a kind with rules", deleted, 2);
            assert_transaction("PUT the last Finalized, with rules", last, 1, 3);
        }
    }
}

#[tokio::test]
async fn last_words_are_a_look_and_one_transaction() {
    let mut meter = Meter::start().await;
    for round in 0..2 {
        let cluster = meter.cluster().await;
        let pool = meter.nodepool(&cluster).await;
        assert_eq!(meter.api.delete(&pool).await.status, 202);
        meter
            .cost_of_report(&pool, "validation", 2, FINALIZED, 201)
            .await;
        let alone = meter
            .cost_of_report(&pool, "hypershift", 2, FINALIZED, 201)
            .await;

        let (cluster, pools) = meter.finalizing(1).await;
        for adapter in ["validation", "dns", "pullsecret", "hypershift"] {
            meter
                .cost_of_report(&cluster, adapter, 2, FINALIZED, 201)
                .await;
        }
        meter
            .cost_of_report(&pools[0], "validation", 2, FINALIZED, 201)
            .await;
        let family = meter
            .cost_of_report(&pools[0], "hypershift", 2, FINALIZED, 201)
            .await;
        assert_eq!(meter.api.get(&cluster).await.status, 404);
        if round == 1 {
            assert_transaction("PUT the last Finalized of a nodepool", alone, 1, 3);
            assert_transaction("PUT the last Finalized of a whole family", family, 1, 3);
        }
    }
}

/// Tenants that do not see each other cost what everybody does.
#[tokio::test]
async fn walls_between_tenants_cost_no_statement() {
    let mut meter = Meter::start_as(ACME).await;
    let cluster = meter.cluster().await;
    let pool = meter.nodepool(&cluster).await;
    let none = "01890000-0000-7000-8000-000000000000";
    for (what, path, status, count) in [
        ("GET a cluster, as a tenant", cluster.clone(), 200, 1),
        ("GET a nodepool, nested, as a tenant", pool.clone(), 200, 1),
        (
            "GET nothing, as a tenant",
            format!("/clusters/{none}"),
            404,
            1,
        ),
        (
            "GET a list, as a tenant",
            "/clusters?size=100".to_owned(),
            200,
            1,
        ),
        (
            "GET a list, nested, as a tenant",
            format!("{cluster}/nodepools"),
            200,
            1,
        ),
        (
            "GET the reports, as a tenant",
            format!("{pool}/statuses"),
            200,
            1,
        ),
        (
            "GET an explanation, as a tenant",
            format!("{pool}/explain"),
            200,
            1,
        ),
        ("GET the trail, as a tenant", "/audit".to_owned(), 200, 1),
    ] {
        meter.cost("GET", &path, Value::Null, status).await;
        let sent = meter.cost("GET", &path, Value::Null, status).await;
        assert_single(what, sent, count);
    }
    for round in 0..2 {
        meter.api.clock.advance(1);
        let body = json!({"kind": "NodePool", "name": meter.name(), "spec": {}});
        let list = format!("{cluster}/nodepools");
        let created = meter.cost("POST", &list, body, 201).await;
        let accepted = meter.cost_of_report(&pool, "dns", 1, &[], 201).await;
        let body = json!({"labels": {"round": round.to_string()}});
        let patched = meter.cost("PATCH", &cluster, body, 200).await;
        let other = meter.cluster().await;
        meter.nodepool(&other).await;
        let deleted = meter.cost("DELETE", &other, Value::Null, 202).await;
        if round == 1 {
            assert_single("POST a nodepool, as a tenant", created, 1);
            assert_single("PUT an accepted report, as a tenant", accepted, 2);
            assert_single("PATCH a cluster, as a tenant", patched, 2);
            assert_transaction("DELETE a cluster, as a tenant", deleted, 1, 4);
        }
    }
    meter.api = meter.api.speaking(&[]);
    for (method, path) in [("GET", &cluster), ("DELETE", &cluster)] {
        let refused = meter.cost(method, path, Value::Null, 403).await;
        assert_single("a request without a tenant", refused, 0);
    }
}
