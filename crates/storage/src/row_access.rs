//! How a request reads and changes one row: by statements that requests share, or within a transaction of its own. Both
//! run the same statements (`docs/decisions/0080-gathered-writes.md`).
//!
//! ```text
//! row_access() ───▶ Shared       a read, then a guarded write: each one statement, for all requests that wait for it
//! begin_change() ─▶ Transaction  the same two for one request, beside its other statements
//! ```
//!
//! What a shared statement leaves undone, each request does over a connection of its own: after an error, and after a lock
//! that was not free.

use std::io;
use std::time::Duration;

use tokio::time::Instant;

use super::batching::{BATCH_MAX, BatchError, BatchItem, BatchLimits, Batcher};
use super::insert_resources::InsertResource;
use super::pool::{Pool, gathering_pool};
use super::read_resources::ReadResource;
use super::reader::FindStored;
use super::save_reports::SaveReport;
use super::save_resources::SaveResource;
use super::{
    Created, Db, Error, ResourceScope, ResourceWithReports, Session, Settings, Store, error,
};
use hyperfleet_domain::audit::{Change, ChangeOrigin};
use hyperfleet_domain::tenancy::TenantScope;
use hyperfleet_domain::{
    Condition, Report, Resource, ResourceSnapshot, ResourceState, StoredResource,
};

/// Timeout of a new connection, if no connection for shared statements became free.
const CONNECT_TIME: Duration = Duration::from_secs(1);

/// The batchers of one thread.
#[derive(Clone)]
pub(super) struct Batchers {
    gets: Batcher<FindStored>,
    reads: Batcher<ReadResource>,
    inserts: Batcher<InsertResource>,
    saves: Batcher<SaveResource>,
    reports: Batcher<SaveReport>,
}

/// Connections for shared statements. Without any, every item has a statement of its own, on the common connections.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SharedConnections {
    /// For single resources that are read for an answer.
    pub(super) gets: usize,
    /// For changes of single resources, and what they read.
    pub(super) changes: usize,
}

/// One request's access to one row.
pub enum RowAccess<'c> {
    /// By statements that other requests share.
    Shared(Store),
    /// Within a transaction of the request.
    Transaction(Db<'c>),
}

impl SharedConnections {
    /// The part of so many connections.
    pub(super) fn of(connections: usize) -> Self {
        Self {
            // Of two, one must be left that no search holds: that is worth more than faster reads.
            gets: usize::from(connections > 2),
            changes: match connections {
                ..5 => 0,
                5..8 => 1,
                // Two changes are faster side by side than in one statement.
                _ => 2,
            },
        }
    }

    pub(super) fn count(self) -> usize {
        self.gets + self.changes
    }
}

impl Batchers {
    /// With the pools that they have beside `general`, the pool of these settings.
    pub(super) fn new(
        settings: &Settings,
        general: &Pool,
        connections: SharedConnections,
    ) -> (Self, Vec<Pool>) {
        let mut made = Vec::new();
        let mut pool_of = |count| {
            if count == 0 {
                // A shared statement that waits for a lock would make others wait there for as long.
                let limits = BatchLimits {
                    side_by_side: settings.connections_max,
                    items: 1,
                };
                return (general.clone(), limits);
            }
            let pool = gathering_pool(settings, count);
            made.push(pool.clone());
            let limits = BatchLimits {
                side_by_side: count,
                items: BATCH_MAX,
            };
            (pool, limits)
        };
        let (gets, changes) = (pool_of(connections.gets), pool_of(connections.changes));
        let batchers = Self {
            gets: Batcher::new(&gets),
            reads: Batcher::new(&changes),
            inserts: Batcher::new(&changes),
            saves: Batcher::new(&changes),
            reports: Batcher::new(&changes),
        };
        (batchers, made)
    }
}

impl Store {
    /// Access to one row, for a request that reads it and then changes it, or that inserts it.
    pub fn row_access(&self) -> RowAccess<'static> {
        RowAccess::Shared(self.clone())
    }

    /// One resource, if it exists. Outside any transaction.
    pub async fn find_resource(
        &self,
        scope: ResourceScope<'_>,
    ) -> Result<Option<StoredResource>, Error> {
        self.run_shared(&self.batchers.gets, || FindStored(scope.into()))
            .await
    }

    /// Runs a statement for an item, in a batch with others. If the batch fails, runs a statement for this item only.
    async fn run_shared<Q: BatchItem>(
        &self,
        batcher: &Batcher<Q>,
        item: impl Fn() -> Q,
    ) -> Result<Q::Answer, Error> {
        let mut until = self.connected_by();
        let mut is_unknown = false;
        match batcher.submit(item(), until, self.deadline).await {
            Ok(answer) => return Ok(answer),
            Err(BatchError::Refused(error)) => return Err(error),
            Err(BatchError::Late) => return Err(without_answer(Q::DOING, error::silent())),
            Err(BatchError::Lost) if !Q::IS_REPEATABLE => {
                return Err(without_answer(Q::DOING, connection_lost()));
            }
            // Both attempts together wait for a connection hardly longer than one; a new one takes a moment.
            Err(BatchError::NoConnection) => until = until.max(Instant::now() + CONNECT_TIME),
            Err(BatchError::Failed) => until = self.connected_by(),
            Err(BatchError::Lost) => {
                until = self.connected_by();
                is_unknown = true;
            }
        }
        let mut session = Session::of(&self.pool, until, self.deadline).await?;
        let item = item();
        let item = if is_unknown { item.repeated() } else { item };
        session.db().run(item).await
    }
}

impl Db<'_> {
    /// Runs a statement for one item.
    pub(super) async fn run<Q: BatchItem>(&mut self, item: Q) -> Result<Q::Answer, Error> {
        let mut answers = Q::answer(self, &[item]).await?;
        let Some(answer) = answers.pop() else {
            unreachable!("each item has an answer")
        };
        Ok(answer)
    }
}

impl RowAccess<'_> {
    async fn run<Q: BatchItem>(
        &mut self,
        batcher: impl Fn(&Batchers) -> &Batcher<Q>,
        item: impl Fn() -> Q,
    ) -> Result<Q::Answer, Error> {
        match self {
            Self::Shared(store) => store.run_shared(batcher(&store.batchers), item).await,
            Self::Transaction(db) => db.run(item()).await,
        }
    }

    /// The snapshot of one resource, if it exists.
    pub async fn find_snapshot(
        &mut self,
        scope: ResourceScope<'_>,
        kinds_with_rules: &[String],
    ) -> Result<Option<ResourceSnapshot>, Error> {
        let item = || ReadResource::snapshot(scope, kinds_with_rules);
        let found = self.run(|batchers| &batchers.reads, item).await?;
        Ok(found.map(|row| row.snapshot(kinds_with_rules)))
    }

    /// One resource with its snapshot, if it exists, without checking for dependents.
    pub async fn find_with_reports(
        &mut self,
        scope: ResourceScope<'_>,
        kinds_with_rules: &[String],
    ) -> Result<Option<ResourceWithReports>, Error> {
        let item = || ReadResource::resource(scope, kinds_with_rules);
        let found = self.run(|batchers| &batchers.reads, item).await?;
        Ok(found.map(|row| row.with_reports(kinds_with_rules)))
    }

    /// The same, with whether it has dependents.
    pub async fn find_deletable(
        &mut self,
        scope: ResourceScope<'_>,
        kinds_with_rules: &[String],
    ) -> Result<Option<ResourceWithReports>, Error> {
        let item = || ReadResource::deletable(scope, kinds_with_rules);
        let found = self.run(|batchers| &batchers.reads, item).await?;
        Ok(found.map(|row| row.with_reports(kinds_with_rules)))
    }

    /// Saves an accepted report with the resulting conditions, unless the resource has changed since `before` or another
    /// transaction holds its row; true if saved. Also records the change of the resource, if there is one to record.
    pub async fn save_report(
        &mut self,
        before: &ResourceState,
        conditions: &[Condition],
        report: &Report,
        origin: &ChangeOrigin,
    ) -> Result<bool, Error> {
        let item = || SaveReport::new(before, conditions, report, origin);
        self.run(|batchers| &batchers.reports, item).await
    }

    /// Saves a patch with its audit entry and its change, unless the row has changed since `before` or another
    /// transaction holds it; true if saved. References are replaced separately.
    pub async fn save_patched(
        &mut self,
        before: &Resource,
        after: &Resource,
        origin: &ChangeOrigin,
    ) -> Result<bool, Error> {
        let item = || SaveResource::patched(before, after, origin);
        self.run(|batchers| &batchers.saves, item).await
    }

    /// Saves that a resource is finalizing, with its audit entry, unless the row has changed since `before`, another
    /// transaction holds it, or the resource has dependents; true if saved.
    pub async fn save_deleted(
        &mut self,
        before: &ResourceState,
        after: &ResourceState,
        change: &Change,
        origin: &ChangeOrigin,
    ) -> Result<bool, Error> {
        let item = || SaveResource::deleted(before, after, change, origin);
        self.run(|batchers| &batchers.saves, item).await
    }

    /// The stored report of one adapter on an existing resource.
    pub async fn find_report(
        &mut self,
        state: &ResourceState,
        adapter: &str,
    ) -> Result<Option<Report>, Error> {
        match self {
            Self::Transaction(db) => db.find_report(state, adapter).await,
            Self::Shared(store) => {
                let mut session = store.session().await?;
                session.db().find_report(state, adapter).await
            }
        }
    }

    /// Adds a resource with its audit entry, as [`InsertResource`].
    pub async fn insert_resource(
        &mut self,
        tenants: &TenantScope,
        resource: &Resource,
        parent_kind: Option<&str>,
        origin: &ChangeOrigin,
    ) -> Result<Created, Error> {
        let item = || InsertResource::new(tenants, resource, parent_kind, origin);
        self.run(|batchers| &batchers.inserts, item).await
    }
}

/// The error of a statement whose answer did not come.
fn without_answer(doing: &'static str, source: sqlx::Error) -> Error {
    Error::Unavailable {
        doing,
        source: Box::new(source),
    }
}

fn connection_lost() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(
        io::ErrorKind::ConnectionAborted,
        "the connection was lost",
    ))
}
