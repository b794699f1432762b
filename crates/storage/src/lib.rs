//! Resources, reports and the audit trail in PostgreSQL.
//!
//! ```text
//! Store ── session() ──▶ Session   one statement at a time, each its own transaction
//!   ├─ slow_session() ─▶ Session   the same for searches: at most half of the connections
//!   └──── begin() ─────▶ Tx        several statements, committed only by finish(Ok)
//!                          both give Db: every statement is a method of it, in the file of its table
//! ```
//!
//! Most requests are a single statement, or a read and one guarded statement, which compares `resources.revision` with
//! the one that was read: no lock is held between two round trips. Changes of several rows lock them first, owners
//! before children and rows of one level by id, so that no two transactions wait for each other
//! (`docs/decisions/0028-compare-and-set.md`, `docs/decisions/0029-lock-order.md`).
//!
//! A statement for something that a client names takes a [`ResourceScope`] or a
//! [`TenantScope`](hyperfleet_domain::tenancy::TenantScope): rows outside it do not exist for the caller. All other
//! statements use rows that these have found.

mod audit;
mod audit_passes;
mod batching;
mod changes;
mod columns;
mod condition_columns;
mod error;
mod family;
mod guarded;
mod history;
mod idempotency;
mod insert_resources;
mod keyset;
mod lane;
mod leases;
mod list;
mod measure;
mod past_list;
mod pool;
mod pooler;
mod probe;
mod read_resources;
mod reader;
mod remove_resources;
mod reports;
mod resources;
mod row;
mod row_access;
mod save_reports;
mod save_resources;
mod schema;
mod scope;
mod search;
mod surroundings;
mod transactions;
mod unconnectable;
mod unreconciled;

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deadpool::managed::{PoolError, TimeoutType};
use sqlx::migrate::Migrator;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

pub use audit_passes::{SealingState, TrailEnd};
pub use changes::{ChangeFeed, ChangesRead, ChangesSlice};
pub use error::Error;
pub use family::LockedLineage;
pub use history::{RecordedChanges, RecordedGenerations};
pub use idempotency::ClaimedKey;
pub use insert_resources::Created;
pub use list::{ListQuery, TrailRows};
pub use measure::count_from_zero;
pub use past_list::PastListing;
pub use pool::{ConnectionLifetime, Settings};
pub use probe::Probe;
pub use read_resources::{LockedSnapshots, ResourceWithReports, SurroundedResource};
pub use row_access::RowAccess;
pub use schema::{DatabaseStatus, Migration, MigrationState, SchemaStatus};
pub use scope::{LockedRow, ResourceScope};
pub use transactions::{Turn, Tx};
pub use unreconciled::Unreconciled;

use error::{Context as _, is_connection_lost, is_late, is_timeout};
use guarded::GuardedConnection;
use hyperfleet_domain::ResourceId;
use lane::{Lane, LanePermit, Lanes};
use measure::SqlOperation::{self, Begin};
use pool::{Health, Lease, Link, Pool};
use row_access::{Batchers, SharedConnections};

/// The schema, embedded so that the binary and the tests apply the same one.
static MIGRATOR: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrator = sqlx::migrate!("../../migrations");
    // After a step back to an older program the schema is newer than that program, which is safe: every migration
    // leaves the program before it working.
    migrator.set_ignore_missing(true);
    migrator
});

/// A handle on the database. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    pool: Pool,
    /// For reads and changes of single rows, which share statements.
    batchers: Batchers,
    lanes: Arc<Lanes>,
    settings: Arc<Settings>,
    /// Deadline of the request that it serves; unset for none.
    deadline: Option<Instant>,
    /// The pools of the first store and of all its shares: they are counted, trimmed and closed together.
    pools: Arc<Mutex<Vec<Pool>>>,
}

/// A connection for single statements. If it is dropped with an answer still to come, it is closed.
pub struct Session {
    lease: Option<Lease>,
    /// The place in a lane. Returned after the connection, so that the next request finds one.
    permit: Option<LanePermit>,
}

/// A connection to run statements on, inside or outside a transaction.
pub struct Db<'c> {
    link: &'c mut Link,
}

/// How connections are used, at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Connections {
    pub open: usize,
    pub in_use: usize,
    /// Number that requests may use at most.
    pub max: usize,
    /// Requests waiting for one.
    pub waiting: usize,
    /// Searches and other long lists that wait because the limit for them is reached.
    pub searches_waiting: usize,
    /// Writes that wait for a row lock and exceed the limit of connections for such writes.
    pub changes_waiting: usize,
}

impl Store {
    /// Makes a handle. Connects to nothing yet.
    pub fn new(settings: Settings) -> Self {
        let pool = pool::pool(&settings);
        let (batchers, _) = Batchers::new(&settings, &pool, SharedConnections::default());
        Self {
            pools: Arc::new(Mutex::new(vec![pool.clone()])),
            pool,
            batchers,
            lanes: Arc::new(Lanes::new(settings.connections_max)),
            settings: Arc::new(settings),
            deadline: None,
        }
    }

    /// The same database, with its own connections: one of `shares` equal parts of what the settings allow, at least
    /// one. For threads that answer requests: a connection that stays on one thread wakes no other thread for its
    /// answers.
    ///
    /// | connections | for [`Store::find_resource`] | for changes that share statements | for everything | of these for slow statements, at most |
    /// | ---: | ---: | ---: | ---: | ---: |
    /// | 1 | 0 | 0 | 1 | 1 |
    /// | 2 | 0 | 0 | 2 | 1 |
    /// | 3 | 1 | 0 | 2 | 1 |
    /// | 5 | 1 | 1 | 3 | 1 |
    /// | 7 | 1 | 1 | 5 | 2 |
    /// | 8 | 1 | 2 | 5 | 2 |
    pub fn share(&self, shares: usize) -> Self {
        let connections = (self.settings.connections_max / shares.max(1)).max(1);
        let for_sets = SharedConnections::of(connections);
        let general = connections - for_sets.count();
        let settings = Settings {
            connections_max: general,
            ..Settings::clone(&self.settings)
        };
        let pool = pool::pool(&settings);
        let (batchers, shared_pools) = Batchers::new(&settings, &pool, for_sets);
        let mut pools = self.pools();
        pools.push(pool.clone());
        pools.extend(shared_pools);
        drop(pools);
        Self {
            pool,
            batchers,
            lanes: Arc::new(self.lanes.share(general)),
            settings: Arc::new(settings),
            deadline: None,
            pools: Arc::clone(&self.pools),
        }
    }

    /// The same store for one request that begins now: everything it does ends by one deadline, the longest time of
    /// the answer to one statement from now.
    #[must_use]
    pub fn for_request(self) -> Self {
        Self {
            deadline: pool::answer_time(&self.settings).map(|time| Instant::now() + time),
            ..self
        }
    }

    fn pools(&self) -> MutexGuard<'_, Vec<Pool>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection of its own for the reader of changes. Connects to nothing yet.
    pub fn change_feed(&self) -> ChangeFeed {
        ChangeFeed::new(Settings::clone(&self.settings))
    }

    /// Whether the request that it serves has time left.
    pub fn has_time(&self) -> bool {
        self.deadline
            .is_none_or(|deadline| Instant::now() < deadline)
    }

    pub async fn session(&self) -> Result<Session, Error> {
        Session::of(&self.pool, self.connected_by(), self.deadline).await
    }

    /// A connection for a statement whose time depends on the client's choice and on the amount of stored data. Waits
    /// for a place in the lane first ([`lane`]), then for the connection.
    pub async fn slow_session(&self) -> Result<Session, Error> {
        let mut session = self.session_in(&self.lanes.searches, None).await?;
        // The waits do not count against the statement: its own time must be up first, which is answered 504, before
        // the server counts as silent.
        let answer_time = pool::answer_time(&self.settings).filter(|_| self.deadline.is_some());
        session.db().link.deadline = answer_time.map(|time| Instant::now() + time);
        Ok(session)
    }

    /// A connection with a place in a lane.
    async fn session_in(&self, lane: &Lane, deadline: Option<Instant>) -> Result<Session, Error> {
        let permit = lane.enter(self.connected_by()).await?;
        let session = Session::of(&self.pool, self.connected_by(), deadline).await;
        let mut session = session.inspect_err(|_| lane.send_away())?;
        session.permit = Some(permit);
        Ok(session)
    }

    /// How long to wait for a connection from now.
    fn connected_by(&self) -> Instant {
        let until = Instant::now() + Duration::from_secs(self.settings.acquire_seconds_max);
        self.deadline.map_or(until, |deadline| deadline.min(until))
    }

    /// The use of all connections, including the connections of shares.
    pub fn connections(&self) -> Connections {
        let mut sum = Connections {
            max: self.settings.connections_max,
            searches_waiting: self.lanes.searches.waiting(),
            changes_waiting: self.lanes.held_rows.waiting(),
            ..Connections::default()
        };
        for status in self.pools().iter().map(Pool::status) {
            sum.open += status.size;
            sum.in_use += status.size.saturating_sub(status.available);
            sum.waiting += status.waiting;
        }
        sum
    }

    /// Closes superfluous idle connections, also of shares.
    pub fn trim(&self) {
        pool::trim(&self.pools(), &self.settings.lifetime);
    }

    /// Closes all idle connections, also of shares: their server has ended, and each would cost a request
    /// its answer. Later requests make new ones.
    pub fn forget_idle(&self) {
        for pool in self.pools().iter() {
            pool.retain(|_, _| false);
        }
    }

    /// Closes the idle connections of this store, but not of its shares: connections of a peak are no longer needed
    /// beside them.
    pub fn close_idle(&self) {
        self.pool.retain(|_, _| false);
    }

    /// Closes every idle connection, also of shares. This store and its shares then have no connections.
    pub fn close(&self) {
        self.pools().iter().for_each(Pool::close);
    }
}

impl Session {
    /// A connection of the pool, awaited until `until`; a free one is returned even later. Its answers are awaited
    /// until the deadline.
    async fn of(pool: &Pool, until: Instant, deadline: Option<Instant>) -> Result<Self, Error> {
        let since = Instant::now();
        // The pool's own limits apply to each step, and steps follow one another.
        let lease = timeout_at(until, pool.get()).await;
        let lease = lease.unwrap_or(Err(PoolError::Timeout(TimeoutType::Wait)));
        measure::waited(since.elapsed(), lease.as_ref().err());
        let mut lease = lease.map_err(Error::no_connection)?;
        lease.deadline = deadline;
        lease.is_unused = true;
        lease.was_repeated = false;
        Ok(Self {
            lease: Some(lease),
            permit: None,
        })
    }

    pub fn db(&mut self) -> Db<'_> {
        let Some(lease) = &mut self.lease else {
            unreachable!("only drop takes the lease");
        };
        Db { link: lease }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let Some(lease) = self.lease.take() else {
            return;
        };
        match lease.health {
            Health::Good => {}
            Health::Busy => {
                drop(Lease::take(lease));
                if let Some(permit) = self.permit.take() {
                    permit.leave_later();
                }
            }
            Health::Lost => {
                if let Some(pool) = Lease::pool(&lease) {
                    pool.retain(|_, _| false);
                }
                drop(Lease::take(lease));
            }
        }
    }
}

impl Db<'_> {
    /// The connection, for one statement whose result must go through [`Db::complete`].
    fn connection(&mut self) -> GuardedConnection<'_> {
        self.guarded(false)
    }

    /// The same for an idempotent statement: if it is the first of its request, it is retried on a new connection when
    /// the server has closed the pooled one.
    fn repeatable_connection(&mut self) -> GuardedConnection<'_> {
        self.guarded(self.link.is_unused)
    }

    fn guarded(&mut self, is_repeatable: bool) -> GuardedConnection<'_> {
        if self.link.health == Health::Good {
            self.link.health = Health::Busy;
        }
        self.link.is_unused = false;
        self.link.is_repeated = false;
        GuardedConnection {
            link: self.link,
            is_repeatable,
        }
    }

    /// Takes the result of a statement: the answer is complete, and the connection can be used for another one unless
    /// it failed.
    fn complete<T>(
        &mut self,
        result: Result<T, sqlx::Error>,
        operation: SqlOperation,
        doing: &'static str,
    ) -> Result<T, Error> {
        self.link.health = match &result {
            // For good: on a server that must not be written to, a `ROLLBACK` succeeds.
            _ if self.link.health == Health::Lost => Health::Lost,
            Err(error) if is_connection_lost(error) => Health::Lost,
            Err(error) if is_late(error) => Health::Busy,
            _ => Health::Good,
        };
        // Unset if only a part of an earlier answer was read.
        if let Some(statement) = self.link.statement.take() {
            statement.end(operation, doing, result.as_ref().err());
        }
        result.context(doing)
    }

    /// The same for a statement that waits for no locks: if the server cancels it, the statement itself was too slow.
    fn complete_slow<T>(
        &mut self,
        result: Result<T, sqlx::Error>,
        operation: SqlOperation,
        doing: &'static str,
    ) -> Result<T, Error> {
        let is_too_slow = result.as_ref().is_err_and(is_timeout);
        let completed = self.complete(result, operation, doing);
        if is_too_slow {
            return Err(Error::TooSlow { doing });
        }
        completed
    }

    async fn execute(
        &mut self,
        sql: &'static str,
        operation: SqlOperation,
        doing: &'static str,
    ) -> Result<(), Error> {
        let connection = match operation {
            Begin => self.repeatable_connection(),
            _ => self.connection(),
        };
        let result = sqlx::raw_sql(sql).execute(connection).await;
        self.complete(result.map(drop), operation, doing)
    }
}

fn uuids(ids: impl Iterator<Item = ResourceId>) -> Vec<Uuid> {
    ids.map(ResourceId::as_uuid).collect()
}
