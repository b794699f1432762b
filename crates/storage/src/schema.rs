//! The migrations of the database, and the migrations that this program needs.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::measure::SqlOperation::{Query, Raw};
use super::measure::SqlTable::Migrations;
use super::pool::Health;
use super::{Db, Error, MIGRATOR, Store};

/// Default time that a migration waits for another one.
const LOCK_TIME: Duration = Duration::from_mins(5);
/// How long a migration that did not get its lock lets others through.
const PAUSE: Duration = Duration::from_millis(500);
/// `SQLSTATE` of a lock that was not available in time.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// What a probe finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseStatus {
    pub schema: SchemaStatus,
    /// Whether the server refuses writes: it is a standby, or read-only by its settings.
    pub is_read_only: bool,
}

/// The migrations of a database, counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaStatus {
    pub applied: usize,
    /// Migrations that this program needs and the database lacks.
    pub missing: usize,
    /// Migrations that the database has and this program does not know: the program is older.
    pub unknown: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// Its number, by which they are ordered.
    pub version: i64,
    pub description: String,
    /// Whether the program and the database know it.
    pub state: MigrationState,
}

/// Whether the program and the database know a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MigrationState {
    Applied,
    /// Only the program.
    Missing,
    /// Only the database: a newer program applied it.
    Unknown,
}

impl SchemaStatus {
    pub fn of(migrations: &[Migration]) -> Self {
        let count = |state| migrations.iter().filter(|m| m.state == state).count();
        let unknown = count(MigrationState::Unknown);
        Self {
            applied: count(MigrationState::Applied) + unknown,
            missing: count(MigrationState::Missing),
            unknown,
        }
    }
}

impl Db<'_> {
    /// Every migration that the program or the database knows, in their order.
    pub async fn migrations(&mut self) -> Result<Vec<Migration>, Error> {
        let needed = MIGRATOR
            .iter()
            .filter(|m| !m.migration_type.is_down_migration());
        let missing = needed.map(|m| Migration {
            version: m.version,
            description: m.description.to_string(),
            state: MigrationState::Missing,
        });
        let mut known: BTreeMap<_, _> = missing.map(|m| (m.version, m)).collect();
        for (version, description) in self.applied_migrations().await? {
            let known = known.entry(version);
            let applied = known.and_modify(|m| m.state = MigrationState::Applied);
            applied.or_insert(Migration {
                version,
                description,
                state: MigrationState::Unknown,
            });
        }
        Ok(known.into_values().collect())
    }

    /// Whether the server refuses writes of this session.
    pub(super) async fn is_read_only(&mut self) -> Result<bool, Error> {
        let setting = "SELECT current_setting('transaction_read_only')::boolean";
        let result = sqlx::query_scalar(setting)
            .fetch_one(self.connection())
            .await;
        self.complete(result, Raw, "ask whether the database is read-only")
    }

    async fn applied_migrations(&mut self) -> Result<Vec<(i64, String)>, Error> {
        let table = "SELECT to_regclass('_sqlx_migrations') IS NOT NULL";
        let result = sqlx::query_scalar::<_, bool>(table)
            .fetch_one(self.connection())
            .await;
        if !self.complete(result, Query(Migrations), "look for the schema")? {
            return Ok(Vec::new());
        }
        let versions = "SELECT version, description FROM _sqlx_migrations WHERE success";
        let result = sqlx::query_as(versions).fetch_all(self.connection()).await;
        self.complete(result, Query(Migrations), "list the migrations")
    }
}

impl Store {
    /// Applies the missing migrations, under a lock: a second program waits for the first. Does not change a schema
    /// that is newer than this program. Waits at most `lock_time` for any lock, or five minutes if that is less than a
    /// second. Returns the number of applied migrations.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] if another `migrate`, or a transaction that is left open, takes too long.
    pub async fn migrate(&self, lock_time: Duration) -> Result<SchemaStatus, Error> {
        let lock_time = if lock_time < Duration::from_secs(1) {
            LOCK_TIME
        } else {
            lock_time
        };
        let mut session = self.session().await?;
        let mut db = session.db();
        // A migration may take as long as it needs, but must not wait for long: statements after it wait with it. It
        // lets them through and tries again.
        db.execute("SET statement_timeout = 0", Raw, "lift the time limit")
            .await?;
        db.execute("SET lock_timeout = '2s'", Raw, "limit the wait for locks")
            .await?;
        let deadline = Instant::now() + lock_time;
        loop {
            // Many statements, none of which is counted by itself.
            db.link.health = Health::Busy;
            let connection = &mut db.link.connection;
            let result = MIGRATOR.run(connection).await.map_err(sqlx::Error::from);
            let result = db
                .complete(result, Raw, "apply the migrations")
                .map_err(|error| locked(error, lock_time));
            match result {
                Err(Error::Locked { .. }) if Instant::now() < deadline => sleep(PAUSE).await,
                Ok(()) => break,
                Err(error) => {
                    // With the lock of all migrations, which a failed run keeps.
                    db.link.health = Health::Busy;
                    return Err(error);
                }
            }
        }
        let migrations = db.migrations().await;
        db.execute(
            // An earlier failed run still holds the lock of all migrations.
            "SELECT pg_advisory_unlock_all();
             RESET statement_timeout; RESET lock_timeout",
            Raw,
            "restore the settings",
        )
        .await?;
        Ok(SchemaStatus::of(&migrations?))
    }
}

/// Converts the error of a lock that was not available.
fn locked(error: Error, time: Duration) -> Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(next) = cause {
        let database = next.downcast_ref::<sqlx::Error>();
        let code = database.and_then(|e| e.as_database_error()?.code());
        if code.is_some_and(|code| code == LOCK_NOT_AVAILABLE) {
            return Error::Locked {
                seconds: time.as_secs(),
            };
        }
        cause = next.source();
    }
    error
}
