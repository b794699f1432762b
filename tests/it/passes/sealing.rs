//! Sealing behind the writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use super::{PASSES, Sealed, instance};
use crate::faults::program::Program;
use crate::support::{ACME, BETA, SYSTEM, TestApi, TestDatabase, until};
use hyperfleet_audit::FaultKind::Entries;

/// An entry of an open transaction.
const LATE: &str = "INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name, generation_after)
    VALUES ('2026-01-01T09:00:00Z', 'a', 'r', 'create', 'Cluster', gen_random_uuid(), 'late', 1)";

async fn execute(connection: &mut sqlx::PgConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(connection).await.expect(sql);
}

/// Three instances seal while tenants write: the chain is one sequence, and has every entry once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_instances_seal_one_chain() {
    let sealed = Sealed::spawn().await;
    let done = Arc::new(AtomicBool::new(false));
    let sealers: Vec<_> = (0..3)
        .map(|_| {
            let (service, done) = (instance(&sealed.api.database), done.clone());
            let now = sealed.now();
            tokio::spawn(async move {
                let mut passes = 0;
                while !done.load(Ordering::Relaxed) {
                    let pass = service.seal_audit(now).await.unwrap();
                    passes += usize::from(pass.is_some_and(|count| count > 0));
                    tokio::task::yield_now().await;
                }
                passes
            })
        })
        .collect();
    let write = async |tenant| {
        let api = sealed.api.speaking(tenant);
        for number in 0..15 {
            let cluster = api.cluster(&format!("cluster-{number}")).await;
            api.deleted(&cluster).await;
        }
    };
    tokio::join!(write(ACME), write(BETA));
    until("everything is sealed", async || {
        let tail = sealed.service.unsealed_tail(sealed.now()).await.unwrap();
        tail.age.is_none()
    })
    .await;
    done.store(true, Ordering::Relaxed);
    let mut passes = 0;
    for sealer in sealers {
        passes += sealer.await.unwrap();
    }
    assert!(passes > 0);
    let report = sealed.verify().await;
    assert_eq!(report.faults, []);
    assert_eq!(report.entries, 60);
    let last = report.last.unwrap().pass.number;
    assert_eq!(usize::try_from(last), Ok(passes));
}

#[tokio::test]
async fn an_open_transaction_holds_back_only_the_tail() {
    let sealed = Sealed::spawn().await;
    let acme = sealed.api.speaking(ACME);
    acme.cluster("early").await;
    sealed.seal().await;
    let mut slow = sealed.api.database.connect().await;
    execute(&mut slow, "BEGIN").await;
    execute(&mut slow, LATE).await;
    acme.cluster("quick").await;
    assert_eq!(sealed.pass().await, 0);
    let report = sealed.verify().await;
    assert_eq!(report.faults, []);
    assert_eq!(report.unsealed.entries, 1);
    sealed.api.clock.advance(7);
    let tail = sealed.service.unsealed_tail(sealed.now()).await.unwrap();
    assert_eq!(tail.age, Some(chrono::TimeDelta::seconds(7)));
    execute(&mut slow, "COMMIT").await;
    sealed.seal().await;
    let report = sealed.verify().await;
    assert_eq!(report.faults, []);
    assert_eq!(report.entries, 3);
}

/// The position is beside the entries, and readers may compare the two.
#[tokio::test]
async fn answers_say_how_far_the_trail_is_sealed() {
    let sealed = Sealed::spawn().await;
    let (acme, system) = (sealed.api.speaking(ACME), sealed.api.speaking(SYSTEM));
    acme.cluster("one").await;
    for query in ["", "?after=start", "?size=1&kind=None"] {
        let list = acme.get(&format!("/audit{query}")).await;
        assert_eq!(list.body["sealed"], "start", "{query}: {}", list.body);
    }
    sealed.seal().await;
    let list = system.get("/audit?after=start").await;
    assert_eq!(list.body["sealed"], list.body["position"], "{}", list.body);
    assert_ne!(list.body["sealed"], "start");
    acme.cluster("two").await;
    let later = system.get("/audit").await;
    assert_eq!(later.body["sealed"], list.body["sealed"], "{}", later.body);
}

/// A pass is one transaction: what it had done before a crash is gone, and another instance does it again.
#[tokio::test]
async fn a_pass_that_is_cut_off_leaves_nothing() {
    let sealed = Sealed::spawn().await;
    sealed.api.speaking(ACME).cluster("one").await;
    until("it is stable", async || {
        let list = sealed.api.speaking(SYSTEM).get("/audit").await;
        list.body["position"] != "start"
    })
    .await;
    let mut holder = sealed.api.database.connect().await;
    execute(&mut holder, "BEGIN").await;
    execute(&mut holder, "LOCK TABLE audit_passes IN SHARE MODE").await;
    let (service, now) = (instance(&sealed.api.database), sealed.now());
    let crashing = tokio::spawn(async move { service.seal_audit(now).await.map(drop) });
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'INSERT INTO audit_passes%'";
    until("the pass waits", async || {
        sealed.api.count(waiting).await == 1
    })
    .await;
    let busy = sealed.service.seal_audit(sealed.now()).await.unwrap();
    assert_eq!(busy, None);
    crashing.abort();
    assert!(crashing.await.unwrap_err().is_cancelled());
    execute(&mut holder, "COMMIT").await;
    let open = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND query LIKE 'INSERT INTO audit_passes%' AND state <> 'idle'";
    until("its connection is closed", async || {
        sealed.api.count(open).await == 0
    })
    .await;
    assert_eq!(sealed.api.count(PASSES).await, 0);
    sealed.seal().await;
    assert_eq!(sealed.api.count(PASSES).await, 2);
    assert_eq!(sealed.faults().await, []);
}

#[tokio::test]
async fn the_database_refuses_to_change_passes() {
    let sealed = Sealed::filled().await;
    let before = sealed.api.count(PASSES).await;
    let mut connection = sealed.api.database.connect().await;
    for sql in [
        "UPDATE audit_passes SET hash = previous",
        "UPDATE audit_passes SET newest_at = now()",
        "DELETE FROM audit_passes",
        "TRUNCATE audit_passes",
        // Not even retention rewrites them.
        "SET hyperfleet.audit_retention = 'on'; UPDATE audit_passes SET hash = previous",
        "SET hyperfleet.audit_retention = 'on'; TRUNCATE audit_passes",
    ] {
        let result = sqlx::raw_sql(sql).execute(&mut connection);
        let error = result.await.expect_err(sql).to_string();
        assert!(error.contains("append-only"), "{sql}: {error}");
    }
    assert_eq!(sealed.api.count(PASSES).await, before);
}

/// As after a dump was restored on another server: new entries get places among the sealed ones.
#[tokio::test]
async fn a_trail_that_was_set_back_is_noticed_until_a_new_era_begins() {
    let sealed = Sealed::spawn().await;
    let acme = sealed.api.speaking(ACME);
    let mut connection = sealed.api.database.connect().await;
    execute(&mut connection, "SELECT begin_audit_era()").await;
    acme.cluster("one").await;
    sealed.seal().await;
    let is_set_back = async || {
        let tail = sealed.service.unsealed_tail(sealed.now()).await.unwrap();
        tail.is_set_back
    };
    assert!(!is_set_back().await);
    execute(
        &mut connection,
        "CREATE OR REPLACE FUNCTION audit_era() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS 'SELECT 0::bigint'",
    )
    .await;
    assert!(is_set_back().await);
    acme.cluster("lost").await;
    assert_eq!(sealed.pass().await, 0);
    let faults = sealed.faults().await;
    assert_eq!(faults, [(Entries, Some(1))]);
    execute(&mut connection, "SELECT pg_sleep(1.1), begin_audit_era()").await;
    assert!(!is_set_back().await);
    acme.cluster("two").await;
    sealed.seal().await;
    assert_eq!(sealed.faults().await, [(Entries, Some(1))]);
}

/// Entries of a database that has never sealed: in passes of limited size.
#[tokio::test]
async fn a_long_trail_is_sealed_in_passes() {
    let sealed = Sealed::spawn().await;
    let mut connection = sealed.api.database.connect().await;
    execute(
        &mut connection,
        "INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name, generation_after, tenancy)
         SELECT timestamptz '2026-01-01' + n * interval '1 second', 'a', 'r', 'create', 'Cluster', gen_random_uuid(), 'n', 1,
                jsonb_build_object('org', (n % 7)::text) FROM generate_series(1, 5100) n",
    )
    .await;
    let mut sizes = Vec::new();
    until("everything is sealed", async || {
        let count = sealed.pass().await;
        sizes.extend(Some(count).filter(|count| *count > 0));
        sizes.iter().sum::<usize>() == 5_100
    })
    .await;
    assert_eq!(sizes, [5_000, 100]);
    let report = sealed.verify().await;
    assert_eq!(report.faults, []);
    assert_eq!((report.entries, report.unsealed.entries), (5_100, 0));
}

/// The program seals by itself, and shows how far it is.
#[tokio::test]
async fn a_running_service_seals_within_seconds() {
    let database = TestDatabase::create().await;
    let mut program = Program::serve(&database);
    let metrics = program.address("metrics").await;
    let api: TestApi = program.serving(database).await;
    api.cluster("one").await;
    let mut body = Value::Null;
    until("it is sealed", async || {
        body = api.get("/audit?after=start").await.body;
        body["sealed"] != "start" && body["sealed"] == body["position"]
    })
    .await;
    let gauge = async || {
        let text = api
            .client
            .get(format!("http://{metrics}/metrics"))
            .send()
            .await;
        let text = text.unwrap().text().await.unwrap();
        let name = "hyperfleet_api_audit_unsealed_seconds";
        let line = text
            .lines()
            .find(|line| line.starts_with(name))
            .map(str::to_owned);
        line.unwrap_or_default()
    };
    let shows_none = async || gauge().await.ends_with(" 0");
    until("the gauge is 0", shows_none).await;
    let mut slow = api.database.connect().await;
    execute(&mut slow, "BEGIN").await;
    execute(&mut slow, LATE).await;
    api.cluster("two").await;
    let shows_age = async || {
        let line = gauge().await;
        let age = line
            .rsplit(' ')
            .next()
            .and_then(|age| age.parse::<f64>().ok());
        age.is_some_and(|age| age > 1.0)
    };
    until("the gauge shows the tail", shows_age).await;
    drop(slow);
    until("the gauge is 0 again", shows_none).await;
}
