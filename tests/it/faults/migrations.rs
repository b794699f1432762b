//! Migrations while a service serves requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hyperfleet_domain::entity_config;
use hyperfleet_storage::Error;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;
use sqlx::types::chrono::{DateTime, Utc};

use super::load::Load;
use super::program::Program;
use super::until;
use crate::support::{TestApi, TestDatabase};

/// The migration that these tests revert. It makes indexes, and nobody can write while it does.
const VERSION: i64 = 20_261_127_200_001;
const FILE: &str = include_str!("../../../migrations/20261127200001_search_indexes.sql");
/// An open transaction with a writer's lock on the table. The migration has to wait for it.
const OPEN_TRANSACTION: &str = "BEGIN; LOCK TABLE resources IN ROW EXCLUSIVE MODE";
/// Start of the migration's current attempt; null while it lets writers through.
const WAITS_SINCE: &str = "SELECT max(query_start) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%CREATE INDEX%'
      AND pid <> pg_backend_pid()";
const IS_APPLIED: &str = "SELECT to_regclass('resources_unreconciled') IS NOT NULL";

/// Drops the indexes of the migration, and its row.
async fn revert(connection: &mut PgConnection) {
    let name = |line: &'static str| line.strip_prefix("CREATE INDEX ")?.split(' ').next();
    let indexes: Vec<_> = FILE.lines().filter_map(name).collect();
    let sql = format!(
        "DROP INDEX {}; DELETE FROM _sqlx_migrations WHERE version = {VERSION}",
        indexes.join(", ")
    );
    let reverted = sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await;
    reverted.unwrap();
}

/// A service under load, on a schema without the migration, and a transaction that blocks the migration.
struct Scene {
    load: Arc<Load>,
    holder: PgConnection,
    looker: PgConnection,
}

impl Scene {
    async fn new() -> Self {
        let database = TestDatabase::create().await;
        let mut looker = database.connect().await;
        revert(&mut looker).await;
        let registry = entity_config::registry(&entity_config::built_in()).unwrap();
        let store = database.store();
        let mut holder = database.connect().await;
        sqlx::raw_sql(OPEN_TRANSACTION)
            .execute(&mut holder)
            .await
            .unwrap();
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

    /// Waits until the migration tries again.
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
async fn a_migration_that_waits_for_its_lock_blocks_no_request() {
    let mut scene = Scene::new().await;
    let load = scene.load.clone();
    let writers = load.start();
    load.until_acknowledged(20).await;
    let url = load.api.database.url();
    let mut migration = Program::start(&["migrate", "--database-url", &url]);
    let mut before = None;
    for _ in 0..3 {
        // Writers wait behind it until it gives up the lock.
        before = Some(scene.until_it_waits_again(before).await);
        load.until_acknowledged(20).await;
    }
    assert!(!scene.ask::<bool>(IS_APPLIED).await);
    sqlx::raw_sql("COMMIT")
        .execute(&mut scene.holder)
        .await
        .unwrap();
    assert!(migration.ended().await.success(), "{}", migration.output());
    let said = migration.output();
    assert!(said.contains("1 more than before"), "{said}");
    assert!(scene.ask::<bool>(IS_APPLIED).await);
    load.until_acknowledged(20).await;
    assert_eq!(load.refused(), 0);
    for known in load.end(writers).await {
        known.assert_there(&load.api).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_migration_without_its_lock_fails_and_changes_nothing() {
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
    assert!(!scene.ask::<bool>(IS_APPLIED).await);
    // The next attempt of the same store succeeds.
    sqlx::raw_sql("ROLLBACK")
        .execute(&mut scene.holder)
        .await
        .unwrap();
    let status = store.migrate(Duration::from_mins(1)).await.unwrap();
    assert_eq!(status.missing, 0);
    assert!(scene.ask::<bool>(IS_APPLIED).await);
    load.end(writers).await;
}

#[tokio::test]
async fn a_migration_of_a_schema_that_is_there_is_quiet() {
    let database = TestDatabase::create().await;
    let url = database.url();
    let mut program = Program::start_with(&["migrate", "--database-url", &url], &[]);
    assert!(program.ended().await.success(), "{}", program.output());
    assert!(
        !program.output().contains("skipping"),
        "{}",
        program.output()
    );
}
