//! The release before and this one, on one database: a rolling upgrade, the way back, and the upgrade again, while
//! clients go on. `make test-upgrade` builds the release before (`scripts/previous-release`).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyperfleet_domain::entity_config;
use hyperfleet_server_kit::clock::Clock;
use serde_json::{Value, json};
use sqlx::migrate::Migrator;
use sqlx::postgres::PgConnection;

use super::balancer::{Balanced, haproxy};
use super::load::Load;
use super::program::{CURRENT, Program};
use super::until;
use crate::support::{Problem as _, TestApi, TestDatabase, assert_sound};

/// How many clients play whole lives of clusters.
const LIVES: usize = 2;
/// What comes with a release that does not exist yet, so that programs serve from a newer schema while none is written.
const NEXT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/next-release");

/// The program of the release before; none if its databases are not upgraded to this one.
fn previous() -> Option<PathBuf> {
    let records = std::fs::read_to_string("packaging/releases").unwrap();
    if records.lines().last() == Some("baseline") {
        println!(
            "SKIPPED: the migrations began again after the previous release (packaging/releases)"
        );
        return None;
    }
    let programs = std::env::var_os("PREVIOUS_RELEASE").map(PathBuf::from);
    if programs.is_none() {
        println!("SKIPPED: PREVIOUS_RELEASE names no folder of programs: make test-upgrade");
    }
    Some(programs?.join("hyperfleet-api"))
}

/// Runs `migrate` of a program, which must succeed; gives what it says.
async fn migrate(executable: &Path, database: &TestDatabase, command: &[&str]) -> String {
    let url = database.url();
    let args = [&["migrate"], command, &["--database-url", &url]].concat();
    let mut program = Program::start_of(executable, &args, &[]);
    let status = program.ended().await;
    assert!(status.success(), "{}", program.output());
    program.output()
}

/// Every migration of the database, with all its columns.
async fn applied(connection: &mut PgConnection) -> Value {
    let query = "SELECT jsonb_agg(to_jsonb(m) ORDER BY version) FROM _sqlx_migrations m";
    let query = sqlx::query_scalar(query);
    query.fetch_one(connection).await.unwrap()
}

/// Applies the migrations of a release to come, with the short waits for locks of `migrate`.
async fn migrate_to_next(connection: &mut PgConnection) {
    let mut migrator = Migrator::new(Path::new(NEXT)).await.unwrap();
    migrator.set_ignore_missing(true);
    let limit = sqlx::raw_sql("SET lock_timeout = '2s'").execute(&mut *connection);
    limit.await.unwrap();
    until("the next release's migrations are applied", async || {
        migrator.run(&mut *connection).await.is_ok()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn releases_take_turns_on_one_database_and_nothing_is_lost() {
    let Some(previous) = previous() else { return };
    let Some(haproxy) = haproxy() else { return };
    let current = Path::new(CURRENT);
    let database = TestDatabase::create_empty().await;
    let at = TestDatabase::at(database.options());
    let mut direct = database.connect().await;

    migrate(&previous, &at, &[]).await;
    let mut balanced = Balanced::start(&haproxy, &previous, database).await;
    let load = Arc::new(Load::on(balanced.api()));
    let clients = load.start_with_readers();
    let is_over = Arc::new(AtomicBool::new(false));
    let lives: Vec<_> = (0..LIVES)
        .map(|client| tokio::spawn(live_repeatedly(load.clone(), client, is_over.clone())))
        .collect();
    load.until_acknowledged(100).await;

    // The schema moves below the release before, which goes on, and leaves the schema alone.
    migrate(current, &at, &[]).await;
    load.until_acknowledged(100).await;
    migrate_to_next(&mut direct).await;
    load.until_acknowledged(100).await;
    let before = applied(&mut direct).await;
    let said = migrate(&previous, &at, &[]).await;
    assert!(said.contains("newer than this program"), "{said}");
    migrate(&previous, &at, &["status"]).await;
    assert_eq!(applied(&mut direct).await, before);

    for executable in [current, &previous, current] {
        for number in 0..2 {
            load.until_acknowledged(50).await;
            balanced.replace(number, executable).await;
        }
        // All of it by one release.
        load.until_acknowledged(100).await;
    }

    is_over.store(true, Ordering::SeqCst);
    let mut whole = 0;
    for life in lives {
        whole += life.await.unwrap();
    }
    let known = load.end(clients).await;
    assert_eq!(load.refused(), 0);
    assert!(
        load.reads() > 100 && known.len() > 40 && whole > 10,
        "{}, {}, {whole}",
        load.reads(),
        known.len()
    );
    println!(
        "{} reads, {} clusters written, {whole} whole lives, {} writes acknowledged",
        load.reads(),
        known.len(),
        load.acknowledged()
    );
    for known in known {
        known.assert_there(&load.api).await;
    }
    assert_sound(&mut direct, &entity_config::built_in()).await;
}

/// Lives one after the other; gives how many.
async fn live_repeatedly(load: Arc<Load>, client: usize, is_over: Arc<AtomicBool>) -> usize {
    let mut count = 0;
    while !is_over.load(Ordering::SeqCst) {
        // Reports of a time long ago are refused.
        load.api.clock.set(Clock::system().now());
        live(&load.api, &format!("life{client}-{count}")).await;
        count += 1;
    }
    count
}

/// The life of a cluster with a node pool. The proxy gives each request to the next instance: what one release writes,
/// the other reads, judges and aggregates.
async fn live(api: &TestApi, name: &str) {
    let built_in = entity_config::built_in();
    let adapters = |kind: &str| {
        let entity = built_in.iter().find(|entity| entity.kind == kind);
        entity.unwrap().required_adapters.clone()
    };
    let cluster = api.cluster(name).await;
    let pool = api.nodepool(&cluster, "pool").await;
    for (path, kind) in [(&cluster, "Cluster"), (&pool, "NodePool")] {
        assert_reconciled(api, path, "False").await;
        for adapter in adapters(kind) {
            assert_accepted(api, path, &adapter, 1, "True").await;
        }
        assert_reconciled(api, path, "True").await;
    }
    let changed = api.patch(&cluster, json!({"spec": {"size": 2}})).await;
    assert_eq!(changed.body["generation"], 2, "{}", changed.body);
    assert_reconciled(api, &cluster, "False").await;
    for adapter in adapters("Cluster") {
        assert_accepted(api, &cluster, &adapter, 2, "True").await;
    }
    assert_reconciled(api, &cluster, "True").await;
    // Each of the instances knows it.
    for _ in 0..2 {
        let search = format!("/clusters?search=name%3D%27{name}%27");
        assert_eq!(api.get(&search).await.body["total"], 1, "{name}");
    }
    api.deleted(&cluster).await;
    for (path, kind, generation) in [(&pool, "NodePool", 2), (&cluster, "Cluster", 3)] {
        let adapters = adapters(kind);
        let adapters: Vec<_> = adapters.iter().map(String::as_str).collect();
        api.finalize(path, &adapters, generation).await;
        let gone = api.get(path).await;
        assert_eq!((gone.status, gone.code()), (404, "NTF-001"), "{path}");
    }
}

async fn assert_accepted(api: &TestApi, path: &str, adapter: &str, generation: i32, status: &str) {
    let statuses = [("Available", status)];
    let answer = api.report(path, adapter, generation, &statuses).await;
    assert_eq!(answer.status, 201, "{path} {adapter}: {}", answer.body);
}

async fn assert_reconciled(api: &TestApi, path: &str, status: &str) {
    let found = api.get(path).await;
    let conditions = found.body["status"]["conditions"].as_array();
    let mut conditions = conditions
        .unwrap_or_else(|| panic!("{}", found.body))
        .iter();
    let reconciled = conditions.find(|condition| condition["type"] == "Reconciled");
    let reconciled = reconciled.unwrap_or_else(|| panic!("{}", found.body));
    assert_eq!(reconciled["status"], status, "{}", found.body);
    assert_eq!(
        reconciled["observed_generation"], found.body["generation"],
        "{}",
        found.body
    );
}
