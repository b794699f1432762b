//! Which migrations the database has, and which this program needs.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::measure::SqlOperation::{Query, Raw};
use super::measure::SqlTable::Migrations;
use super::pool::Health;
use super::{Db, Error, MIGRATOR, Store};

/// How long a migration waits for another one, where nothing sensible is said.
const LOCK_TIME: Duration = Duration::from_mins(5);
/// How long a migration that could not have its lock lets others through.
const PAUSE: Duration = Duration::from_millis(500);
/// `SQLSTATE` of a lock that was waited for long enough.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// What of the schema a database has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaStatus {
    /// Migrations that were applied.
    pub applied: usize,
    /// Migrations that this program needs and the database lacks.
    pub missing: usize,
    /// Migrations that the database has and this program does not know: it is older.
    pub unknown: usize,
}

/// One migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// Its number, by which they are ordered.
    pub version: i64,
    /// What it is about.
    pub description: String,
    /// Who knows it.
    pub state: MigrationState,
}

/// Who knows a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MigrationState {
    /// The program and the database.
    Applied,
    /// The program alone.
    Missing,
    /// The database alone: a newer program applied it.
    Unknown,
}

impl SchemaStatus {
    /// Counts migrations.
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

    async fn applied_migrations(&mut self) -> Result<Vec<(i64, String)>, Error> {
        let table = "SELECT to_regclass('_sqlx_migrations') IS NOT NULL";
        let result = sqlx::query_scalar::<_, bool>(table)
            .fetch_one(self.wire())
            .await;
        if !self.complete(result, Query(Migrations), "look for the schema")? {
            return Ok(Vec::new());
        }
        let versions = "SELECT version, description FROM _sqlx_migrations WHERE success";
        let result = sqlx::query_as(versions).fetch_all(self.wire()).await;
        self.complete(result, Query(Migrations), "list the migrations")
    }
}

impl Store {
    /// Applies the migrations that are missing, under a lock: two that start at once do not
    /// disturb each other. A schema that is newer than this program is left as it is. Waits so
    /// long at most for any lock, five minutes where less than a second is given. Gives how many
    /// migrations are applied now.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] if another one, or a transaction that is left open, takes too long.
    pub async fn migrate(&self, lock_time: Duration) -> Result<SchemaStatus, Error> {
        let lock_time = if lock_time < Duration::from_secs(1) {
            LOCK_TIME
        } else {
            lock_time
        };
        let mut session = self.session().await?;
        let mut db = session.db();
        // A migration may take as long as it needs, but not wait for long: whoever comes after it waits
        // with it. It lets them through and tries again.
        db.execute("SET statement_timeout = 0", Raw, "lift the time limit")
            .await?;
        db.execute("SET lock_timeout = '2s'", Raw, "limit the wait for locks")
            .await?;
        // Every run asks for the table of migrations `IF NOT EXISTS`, which the server notes each time.
        let quiet = "SET client_min_messages = warning";
        db.execute(quiet, Raw, "silence notices").await?;
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
            // A run that failed before has kept the lock of all migrations.
            "SELECT pg_advisory_unlock_all();
             RESET statement_timeout; RESET lock_timeout; RESET client_min_messages",
            Raw,
            "restore the settings",
        )
        .await?;
        Ok(SchemaStatus::of(&migrations?))
    }
}

/// The error, unless it is that a lock could not be had.
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
