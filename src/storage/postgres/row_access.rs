//! How a request changes one row: over a connection of its own, or, while many requests change rows, by statements that
//! they share (`docs/decisions/0080-gathered-writes.md`).
//!
//! ```text
//!               few changes ─▶ Alone(Session)   a read, a guarded write
//! row_access() ─┤
//!               many ────────▶ Together         the same two by a Batcher: one statement, one commit for all that wait
//! ```
//!
//! What a shared statement leaves undone, each request does alone: after an error, after a lock that was not free, and
//! for what no batcher can do.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::Instant;

use super::batching::{BatchItem, Batcher, Unanswered};
use super::pool::{Pool, gathering_pool};
use super::saved_deletions::SaveDeleted;
use super::saved_reports::SaveReport;
use super::saved_resources::{InsertRoot, SavePatched};
use super::snapshots::{FindDeletable, FindSnapshot, FindWhole};
use super::{Created, Db, Error, ResourceScope, Session, Settings, Store, WholeResource, error};
use crate::domain::audit::{Change, ChangeOrigin};
use crate::domain::tenancy::TenantScope;
use crate::domain::{Condition, Report, Resource, ResourceSnapshot, ResourceState};

/// So many changes at once on one thread share statements. A shared statement takes longer than a single one: fewer
/// changes are faster side by side.
const GATHERED_FROM: usize = 3;

/// The batchers of one thread, which share a connection: a write follows its read on the same connection.
#[derive(Clone)]
pub(super) struct ChangeDesks {
    pool: Pool,
    snapshots: Batcher<FindSnapshot>,
    wholes: Batcher<FindWhole>,
    deletables: Batcher<FindDeletable>,
    reports: Batcher<SaveReport>,
    patches: Batcher<SavePatched>,
    deletions: Batcher<SaveDeleted>,
    roots: Batcher<InsertRoot>,
    /// Changes in progress, alone or together.
    changes: Arc<AtomicUsize>,
}

/// One request's access to one row.
pub enum RowAccess<'c> {
    /// Over a connection that no other request uses.
    Alone(Session, Option<ChangeInProgress>),
    /// Within a transaction of the request.
    Within(Db<'c>),
    Together(TogetherAccess),
}

/// Access by shared statements.
pub struct TogetherAccess {
    store: Store,
    batchers: ChangeDesks,
    _change: ChangeInProgress,
}

/// Counts a change until it is dropped.
pub struct ChangeInProgress(Arc<AtomicUsize>);

impl Drop for ChangeInProgress {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ChangeDesks {
    pub(super) fn new(settings: &Settings) -> Self {
        let pool = gathering_pool(settings);
        Self {
            snapshots: Batcher::new(pool.clone()),
            wholes: Batcher::new(pool.clone()),
            deletables: Batcher::new(pool.clone()),
            reports: Batcher::new(pool.clone()),
            patches: Batcher::new(pool.clone()),
            deletions: Batcher::new(pool.clone()),
            roots: Batcher::new(pool.clone()),
            pool,
            changes: Arc::default(),
        }
    }

    pub(super) fn pool(&self) -> Pool {
        self.pool.clone()
    }

    /// Counts a change, and whether it shares statements.
    fn begin(&self) -> (ChangeInProgress, bool) {
        let others = self.changes.fetch_add(1, Ordering::Relaxed);
        let change = ChangeInProgress(Arc::clone(&self.changes));
        (change, others + 1 >= GATHERED_FROM)
    }
}

impl Store {
    /// Access to one row, for a request that reads it and then changes it, or that inserts it.
    pub async fn row_access(&self) -> Result<RowAccess<'static>, Error> {
        let Some(batchers) = &self.batchers else {
            return Ok(RowAccess::Alone(self.session().await?, None));
        };
        let (change, is_shared) = batchers.begin();
        if !is_shared {
            return Ok(RowAccess::Alone(self.session().await?, Some(change)));
        }
        Ok(RowAccess::Together(TogetherAccess {
            store: self.clone(),
            batchers: batchers.clone(),
            _change: change,
        }))
    }
}

/// Runs one statement of [`Db`] for whichever access there is, `$together` first if it is shared. `None` of that sends
/// the request on its own way.
macro_rules! alone_or {
    ($access:ident, $together:expr, |$db:ident| $alone:expr) => {
        match $access {
            RowAccess::Alone(session, _) => {
                let mut $db = session.db();
                $alone
            }
            RowAccess::Within($db) => $alone,
            RowAccess::Together(together) => {
                let answer: Option<_> = $together(together).await?;
                if let Some(answer) = answer {
                    return Ok(answer);
                }
                let mut session = together.store.session().await?;
                let mut $db = session.db();
                $alone
            }
        }
    };
}

impl RowAccess<'_> {
    /// As [`Db::find_snapshot`].
    pub async fn find_snapshot(
        &mut self,
        scope: ResourceScope<'_>,
        kinds_with_rules: &[String],
    ) -> Result<Option<ResourceSnapshot>, Error> {
        let together = async |access: &TogetherAccess| {
            let item = wanted(scope, kinds_with_rules);
            access.read(&access.batchers.snapshots, item).await
        };
        alone_or!(self, together, |db| db
            .find_snapshot(scope, kinds_with_rules)
            .await)
    }

    /// As [`Db::find_whole`].
    pub async fn find_whole(
        &mut self,
        scope: ResourceScope<'_>,
        kinds_with_rules: &[String],
    ) -> Result<Option<WholeResource>, Error> {
        let together = async |access: &TogetherAccess| {
            let item = FindWhole(wanted(scope, kinds_with_rules));
            access.read(&access.batchers.wholes, item).await
        };
        alone_or!(self, together, |db| db
            .find_whole(scope, kinds_with_rules)
            .await)
    }

    /// As [`Db::find_deletable`].
    pub async fn find_deletable(
        &mut self,
        scope: ResourceScope<'_>,
        kinds_with_rules: &[String],
    ) -> Result<Option<WholeResource>, Error> {
        let together = async |access: &TogetherAccess| {
            let item = FindDeletable(wanted(scope, kinds_with_rules));
            access.read(&access.batchers.deletables, item).await
        };
        alone_or!(self, together, |db| db
            .find_deletable(scope, kinds_with_rules)
            .await)
    }

    /// As [`Db::save_report`].
    pub async fn save_report(
        &mut self,
        before: &ResourceState,
        conditions: &[Condition],
        report: &Report,
        origin: &ChangeOrigin,
    ) -> Result<bool, Error> {
        let together = async |access: &TogetherAccess| {
            let item = SaveReport::new(before, conditions, report, origin);
            access
                .write(&access.batchers.reports, item, "save a report")
                .await
        };
        alone_or!(self, together, |db| db
            .save_report(before, conditions, report, origin)
            .await)
    }

    /// As [`Db::save_patched`].
    pub async fn save_patched(
        &mut self,
        before: &Resource,
        after: &Resource,
        origin: &ChangeOrigin,
    ) -> Result<bool, Error> {
        let together = async |access: &TogetherAccess| {
            if before.references != after.references {
                return Ok(None);
            }
            let item = SavePatched::new(before, after, origin);
            let doing = "save a patched resource";
            access.write(&access.batchers.patches, item, doing).await
        };
        alone_or!(self, together, |db| db
            .save_patched(before, after, origin)
            .await)
    }

    /// As [`Db::save_deleted`].
    pub async fn save_deleted(
        &mut self,
        before: &ResourceState,
        after: &ResourceState,
        change: &Change,
        origin: &ChangeOrigin,
    ) -> Result<bool, Error> {
        let together = async |access: &TogetherAccess| {
            let item = SaveDeleted::new(before, after, change, origin);
            let doing = "save a deleted resource";
            access.write(&access.batchers.deletions, item, doing).await
        };
        alone_or!(self, together, |db| db
            .save_deleted(before, after, change, origin)
            .await)
    }

    /// As [`Db::insert_resource`].
    pub async fn insert_resource(
        &mut self,
        tenants: &TenantScope,
        resource: &Resource,
        parent_kind: Option<&str>,
        origin: &ChangeOrigin,
    ) -> Result<Created, Error> {
        let RowAccess::Together(access) = self else {
            return alone_or!(
                self,
                async |_: &TogetherAccess| Ok::<_, Error>(None),
                |db| db
                    .insert_resource(tenants, resource, parent_kind, origin)
                    .await
            );
        };
        let state = &resource.state;
        if state.owner.is_none() {
            let item = InsertRoot::new(resource, origin);
            let batcher = &access.batchers.roots;
            match access.submit(batcher, item).await {
                Ok(()) => return Ok(Created::Yes),
                Err(why @ Unanswered::Late) => {
                    return Err(without_answer("insert a resource", why));
                }
                // Another resource of the statement may be the one whose name is taken.
                Err(Unanswered::NoConnection | Unanswered::Failed | Unanswered::Lost) => {}
            }
        }
        let mut session = access.store.session().await?;
        let mut db = session.db();
        let created = db
            .insert_resource(tenants, resource, parent_kind, origin)
            .await;
        // The shared statement may have been carried out without an answer. No other request makes this id.
        if matches!(created, Err(Error::Duplicate { .. }))
            && db.has_resource(tenants, &state.kind, state.id).await?
        {
            return Ok(Created::Yes);
        }
        created
    }

    /// As [`Db::find_report`].
    pub async fn find_report(
        &mut self,
        state: &ResourceState,
        adapter: &str,
    ) -> Result<Option<Report>, Error> {
        let alone = async |_: &TogetherAccess| Ok::<_, Error>(None);
        alone_or!(self, alone, |db| db.find_report(state, adapter).await)
    }

    /// The request's own connection; `None` if it shares statements.
    pub fn db(&mut self) -> Option<Db<'_>> {
        match self {
            Self::Alone(session, _) => Some(session.db()),
            Self::Within(db) => Some(Db { link: db.link }),
            Self::Together(_) => None,
        }
    }
}

impl TogetherAccess {
    async fn submit<Q: BatchItem>(
        &self,
        batcher: &Batcher<Q>,
        item: Q,
    ) -> Result<Q::Answer, Unanswered> {
        let until: Instant = self.store.connected_by();
        batcher.submit(item, until, self.store.deadline).await
    }

    /// `None` if the request must read alone.
    async fn read<Q: BatchItem>(
        &self,
        batcher: &Batcher<Q>,
        item: Q,
    ) -> Result<Option<Q::Answer>, Error> {
        match self.submit(batcher, item).await {
            Ok(answer) => Ok(Some(answer)),
            Err(Unanswered::Late) => Err(without_answer("read a resource", Unanswered::Late)),
            Err(Unanswered::NoConnection | Unanswered::Failed | Unanswered::Lost) => Ok(None),
        }
    }

    /// `None` if nothing was written, and the request must write alone.
    async fn write<Q: BatchItem>(
        &self,
        batcher: &Batcher<Q>,
        item: Q,
        doing: &'static str,
    ) -> Result<Option<Q::Answer>, Error> {
        match self.submit(batcher, item).await {
            Ok(answer) => Ok(Some(answer)),
            Err(Unanswered::NoConnection | Unanswered::Failed) => Ok(None),
            Err(why @ (Unanswered::Lost | Unanswered::Late)) => Err(without_answer(doing, why)),
        }
    }
}

/// The error of a statement whose answer did not come.
fn without_answer(doing: &'static str, why: Unanswered) -> Error {
    let source = match why {
        Unanswered::Late => error::silent(),
        _ => sqlx::Error::Io(io::Error::new(
            io::ErrorKind::ConnectionAborted,
            "the connection was lost",
        )),
    };
    Error::Unavailable {
        doing,
        source: Box::new(source),
    }
}

fn wanted(scope: ResourceScope<'_>, kinds_with_rules: &[String]) -> FindSnapshot {
    FindSnapshot {
        wanted: scope.into(),
        kinds_with_rules: kinds_with_rules.to_vec(),
    }
}
