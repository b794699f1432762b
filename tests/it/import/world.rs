//! A database of the older service, and an empty one of this service.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use hyperfleet_domain::EntityRegistry;
use hyperfleet_domain::entity_config::{EntityConfig, built_in, registry};
use hyperfleet_import::{
    Databases, Error, ImportHooks, ImportProgress, ImportReport, ImportStep, PassOptions, import,
};
use serde_json::Value;
use sqlx::AssertSqlSafe;
use sqlx::postgres::PgConnection;

use crate::support::{TestApi, TestDatabase, child, linked, root, until};

const TABLES: &str = include_str!("../../fixtures/go-api.sql");

pub(super) struct World {
    pub(super) source: TestDatabase,
    pub(super) target: TestDatabase,
    pub(super) registry: EntityRegistry,
}

/// A pass in small batches.
pub(super) const PLAIN: PassOptions = PassOptions {
    is_dry_run: false,
    batch: 7,
};
pub(super) const DRY: PassOptions = PassOptions {
    is_dry_run: true,
    ..PLAIN
};

impl World {
    /// With the built-in kinds, and nothing in the source.
    pub(super) async fn empty() -> Self {
        Self::with_kinds(&built_in()).await
    }

    pub(super) async fn with_kinds(kinds: &[EntityConfig]) -> Self {
        let source = TestDatabase::create_empty().await;
        execute(&mut source.connect().await, TABLES).await;
        Self::of(
            source,
            TestDatabase::create().await,
            registry(kinds).unwrap(),
        )
    }

    /// Of databases that are there.
    pub(super) fn of(source: TestDatabase, target: TestDatabase, registry: EntityRegistry) -> Self {
        Self {
            source,
            target,
            registry,
        }
    }

    /// With clusters, of which each has three node pools.
    pub(super) async fn filled(clusters: usize) -> Self {
        let world = Self::empty().await;
        world.there(&format!("SELECT fill({clusters}, 3)")).await;
        world
    }

    /// Changes the source.
    pub(super) async fn there(&self, sql: &str) {
        execute(&mut self.source.connect().await, sql).await;
    }

    /// Changes this service's database.
    pub(super) async fn change_target(&self, sql: &str) {
        execute(&mut self.target.connect().await, sql).await;
    }

    /// The same without triggers: as damage would change a row, not as an operator would.
    pub(super) async fn damage_target(&self, sql: &str) {
        self.change_target(&format!("SET session_replication_role = replica; {sql}"))
            .await;
    }

    pub(super) async fn try_run(&self, options: PassOptions) -> Result<ImportReport, Error> {
        self.run_until(options, |_| false).await.0
    }

    pub(super) async fn run(&self, options: PassOptions) -> ImportReport {
        self.try_run(options).await.unwrap()
    }

    /// A run that is stopped as soon as `is_enough`. Also returns its progress reports.
    pub(super) async fn run_until(
        &self,
        options: PassOptions,
        is_enough: impl Fn(ImportProgress) -> bool + Sync,
    ) -> (Result<ImportReport, Error>, Vec<ImportProgress>) {
        let (stop, reported) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let observe = |progress| {
            reported.lock().unwrap().push(progress);
            if is_enough(progress) {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let hooks = ImportHooks {
            observe: &observe,
            stop: &stop,
        };
        let databases = Databases {
            source: self.source.options(),
            target: self.target.options(),
        };
        let report = import(&databases, &self.registry, options, hooks).await;
        (report, reported.into_inner().unwrap())
    }

    /// A run that is stopped after so many resources.
    pub(super) async fn run_in_part(&self, resources: usize) -> ImportReport {
        let is_enough = |p: ImportProgress| p.step == ImportStep::Import && p.done >= resources;
        let (report, _) = self.run_until(PLAIN, is_enough).await;
        let report = report.unwrap();
        assert!(report.interrupted);
        report
    }

    /// Serves what is imported.
    pub(super) fn serve(self) -> TestApi {
        let store = self.target.store();
        TestApi::spawn_on(self.registry, self.target, store, false)
    }

    /// Waits until something waits for a lock in this service's database.
    pub(super) async fn until_blocked(&self) {
        let waiting = "SELECT count(*) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'";
        until("it waits for a lock", async || {
            self.target_value(waiting).await != 0
        })
        .await;
    }

    /// One value from the source.
    pub(super) async fn source_value(&self, sql: &str) -> Value {
        ask(&mut self.source.connect().await, sql).await
    }

    /// One value from this service's database.
    pub(super) async fn target_value(&self, sql: &str) -> Value {
        ask(&mut self.target.connect().await, sql).await
    }
}

/// Clusters that refer to WIF configurations, and files below these.
fn linked_kinds() -> Vec<EntityConfig> {
    vec![
        linked(
            &[("wif", "WifConfig", 0, 0)],
            root("Cluster", "clusters", &["dns"]),
        ),
        root("WifConfig", "wifconfigs", &[]),
        child("WifConfig", "cascade", root("File", "files", &[])),
    ]
}

/// Two WIF configurations; clusters 1 to 6 refer to the first, and 1 and 2 to the second as well.
pub(super) async fn linked_world() -> World {
    let world = World::with_kinds(&linked_kinds()).await;
    world.there("SELECT fill(6, 0)").await;
    world
        .there(
            "INSERT INTO resources (id, kind, name, created_by, updated_by, spec)
        SELECT '01990000-0009-7000-8000-00000000000' || n, 'WifConfig', 'wif-' || n, 'a', 'b', '{}'
        FROM generate_series(1, 2) n",
        )
        .await;
    world.there("INSERT INTO resource_references
        SELECT c.id, 'wif', w.id, 'WifConfig' FROM resources c, resources w
        WHERE c.kind = 'Cluster' AND w.kind = 'WifConfig' AND (w.name = 'wif-1' OR c.name IN ('cluster-1', 'cluster-2'))").await;
    world
}

/// Waits for a change of one of the databases in a function that is not async, while a run is in progress.
pub(super) fn wait_for(change: impl Future<Output = ()> + Send) {
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(change);
    };
    std::thread::scope(|scope| scope.spawn(work).join().unwrap());
}

async fn execute(connection: &mut PgConnection, sql: &str) {
    let sql = AssertSqlSafe(sql.to_owned());
    sqlx::raw_sql(sql).execute(connection).await.unwrap();
}

async fn ask(connection: &mut PgConnection, sql: &str) -> Value {
    let sql = AssertSqlSafe(format!("SELECT coalesce(to_jsonb(({sql})), 'null')"));
    sqlx::query_scalar(sql).fetch_one(connection).await.unwrap()
}

/// The codes of what a pass found, each with how many.
pub(super) fn finding_counts(report: &ImportReport) -> Vec<(&'static str, usize)> {
    report
        .findings
        .iter()
        .map(|(code, count)| (*code, *count))
        .collect()
}

/// Added, removed, and those that were here before: changed and unchanged.
pub(super) fn tally(report: &ImportReport) -> [usize; 3] {
    [
        report.added,
        report.removed,
        report.changed + report.unchanged,
    ]
}

/// Equal, differing, not compared because of refused parts. The digests are equal unless a resource differs.
pub(super) fn verified(report: &ImportReport) -> [usize; 3] {
    let verification = &report.verification;
    let is_equal = verification.source_digest == verification.target_digest;
    assert_eq!(is_equal, verification.differing == 0, "{verification:?}");
    [
        verification.equal,
        verification.differing,
        verification.incomplete,
    ]
}

/// Everything that the import owns in this service's database, with revisions, as one text.
pub(super) async fn state(world: &World) -> Value {
    let rows = "SELECT jsonb_build_array(
        (SELECT jsonb_agg(to_jsonb(r) ORDER BY r.id) FROM resources r),
        (SELECT jsonb_agg(to_jsonb(a) ORDER BY a.resource_id, a.adapter) FROM adapter_reports a),
        (SELECT jsonb_agg(to_jsonb(f) ORDER BY f.source_id, f.target_id) FROM resource_references f),
        (SELECT jsonb_agg(to_jsonb(i) ORDER BY i.id) FROM imported_resources i),
        (SELECT count(*) FROM changes))";
    world.target_value(rows).await
}

/// The id of the cluster of a number that `fill` makes.
pub(super) fn cluster_id(number: usize) -> String {
    format!("01990000-0000-7000-8000-{number:012x}")
}

/// The id of the node pool of a number that `fill` makes.
pub(super) fn pool_id(number: usize) -> String {
    format!("01990000-0001-7000-8000-{number:012x}")
}
