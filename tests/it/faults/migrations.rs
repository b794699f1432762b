//! Migrations beside a service that is at work.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyperfleet::domain::entity_config;
use hyperfleet::storage::postgres::Error;
use sqlx::postgres::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};

use super::load::Load;
use super::program::Program;
use super::until;
use crate::support::{TestApi, TestDatabase};

/// The migration that these tests take back: an index, for which nobody may write while it is made.
const TAKEN_BACK: &str =
    "DROP INDEX audit_tenant; DELETE FROM _sqlx_migrations WHERE version = 20261121133002";
/// A transaction that has written to the trail and does not end.
const LEFT_OPEN: &str = "BEGIN; INSERT INTO audit_entries
    (at, actor, request_id, action, kind, resource_id, name, generation_after)
    VALUES (now(), 'a', 'r', 'create', 'Cluster', gen_random_uuid(), 'left-open', 1)";
/// Since when the migration waits for the trail; nothing while it lets others through.
const WAITS_SINCE: &str = "SELECT max(query_start) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%CREATE INDEX audit_tenant%'
      AND pid <> pg_backend_pid()";
const IS_THERE: &str = "SELECT to_regclass('audit_tenant') IS NOT NULL";

/// A service on a schema that lacks the migration, under load, and a transaction in the migration's way.
struct Scene {
    load: Arc<Load>,
    holder: PgConnection,
    looker: PgConnection,
}

impl Scene {
    async fn new() -> Self {
        let database = TestDatabase::create().await;
        let mut looker = database.connect().await;
        sqlx::raw_sql(TAKEN_BACK)
            .execute(&mut looker)
            .await
            .unwrap();
        let registry = entity_config::registry(&entity_config::built_in()).unwrap();
        let store = database.store();
        let mut holder = database.connect().await;
        sqlx::raw_sql(LEFT_OPEN).execute(&mut holder).await.unwrap();
        let api = TestApi::spawn_on(registry, database, store, false);
        Self {
            load: Arc::new(Load::on(api)),
            holder,
            looker,
        }
    }

    async fn ask<T>(&mut self, sql: &'static str) -> T
    where
        T: Send + Unpin + for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        let query = sqlx::query_scalar(sql);
        query.fetch_one(&mut self.looker).await.unwrap()
    }

    /// Waits until the migration stands in line anew.
    async fn until_it_waits_again(&mut self, before: Option<DateTime<Utc>>) -> DateTime<Utc> {
        let mut since = None;
        until("the migration waits for its lock", async || {
            since = self.ask::<Option<DateTime<Utc>>>(WAITS_SINCE).await;
            since > before
        })
        .await;
        since.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_cannot_have_its_lock_lets_requests_through_and_comes_through_itself() {
    let mut scene = Scene::new().await;
    let load = scene.load.clone();
    let writers = load.start();
    load.until_acknowledged(20).await;
    let url = load.api.database.url();
    let mut migration = Program::start(&["migrate", "--database-url", &url]);
    let mut before = None;
    for _ in 0..3 {
        // Writers stand behind it, and go on once it steps aside.
        before = Some(scene.until_it_waits_again(before).await);
        load.until_acknowledged(20).await;
    }
    assert!(!scene.ask::<bool>(IS_THERE).await);
    sqlx::raw_sql("COMMIT")
        .execute(&mut scene.holder)
        .await
        .unwrap();
    assert!(migration.ended().await.success(), "{}", migration.said());
    assert!(scene.ask::<bool>(IS_THERE).await);
    load.until_acknowledged(20).await;
    assert_eq!(load.refused(), 0);
    for known in load.end(writers).await {
        known.assert_there(&load.api).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_that_never_has_its_lock_says_why_and_leaves_everything_as_it_was() {
    let mut scene = Scene::new().await;
    let load = scene.load.clone();
    let writers = load.start();
    let since = Instant::now();
    let store = load.api.database.store();
    let refused = store.migrate(Duration::from_secs(1)).await.unwrap_err();
    assert!(
        matches!(refused, Error::Locked { seconds: 1 }),
        "{refused:?}"
    );
    let says = refused.to_string();
    for word in ["a transaction was left open", "pg_stat_activity"] {
        assert!(says.contains(word), "no {word} in: {says}");
    }
    assert!(
        since.elapsed() < Duration::from_secs(20),
        "{:?}",
        since.elapsed()
    );
    load.until_acknowledged(20).await;
    assert_eq!(load.refused(), 0);
    assert!(!scene.ask::<bool>(IS_THERE).await);
    // Nothing of it stands in the way of the next one, be it from the same store.
    sqlx::raw_sql("ROLLBACK")
        .execute(&mut scene.holder)
        .await
        .unwrap();
    let status = store.migrate(Duration::from_mins(1)).await.unwrap();
    assert_eq!(status.missing, 0);
    assert!(scene.ask::<bool>(IS_THERE).await);
    load.end(writers).await;
}

#[tokio::test]
async fn the_trail_has_one_name() {
    let database = TestDatabase::create().await;
    let mut connection = database.connect().await;
    let before = "DELETE FROM _sqlx_migrations WHERE version = 20261121170000;
                  CREATE VIEW audit AS SELECT sequence, at, name FROM audit_entries";
    sqlx::raw_sql(before)
        .execute(&mut connection)
        .await
        .unwrap();
    let run = async |args: &[&str]| Program::run(&database, args).await;
    let (code, said) = run(&["migrate", "status"]).await;
    assert_eq!(code, Some(3), "{said}");
    let missing = "missing  20261121170000 audit view drop";
    assert!(said.contains(missing), "{said}");
    let (code, said) = run(&["migrate"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("1 more than before"), "{said}");
    let (code, said) = run(&["migrate", "status"]).await;
    assert_eq!(code, Some(0), "{said}");
    let is_gone = sqlx::query_scalar::<_, bool>("SELECT to_regclass('audit') IS NULL");
    assert!(is_gone.fetch_one(&mut connection).await.unwrap());
}
