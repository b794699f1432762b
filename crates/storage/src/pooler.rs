//! Recognizes a pooler that leads each transaction to another session of the server, such as `PgBouncer` with
//! `pool_mode = transaction`. Prepared statements, settings, locks and notifications belong to sessions.

use std::time::Duration;

use sqlx::Row as _;
use tokio::time::timeout;

use super::measure::SqlOperation::Raw;
use super::pool::{self, Link, Settings};
use super::{Db, Error};

/// The connections' name in `pg_stat_activity`.
const NAME: &str = "hyperfleet-api-pooler-check";
/// How often both connections are compared: others may use the pooler at the same time.
const ROUNDS: usize = 5;

/// Whether two open connections lead to one session of the server. `false` if there is no second connection.
///
/// # Errors
///
/// The database is unreachable, or does not answer.
pub(super) async fn shares_sessions(settings: &Settings) -> Result<bool, Error> {
    let time = Duration::from_secs(settings.acquire_seconds_max);
    let pair = timeout(time, async {
        let first = pool::connect(settings, NAME).await.ok()?;
        Some((first, pool::connect(settings, NAME).await.ok()?))
    });
    let Ok(Some((mut first, mut second))) = pair.await else {
        return Ok(false);
    };
    for _ in 0..ROUNDS {
        if session_of(&mut first).await? == session_of(&mut second).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The process that serves the session of a connection. Not a prepared statement, which such a pooler may not support.
async fn session_of(link: &mut Link) -> Result<i32, Error> {
    let mut db = Db { link };
    let result = sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(db.connection());
    let result = result.await.and_then(|row| row.try_get(0));
    db.complete(result, Raw, "ask for the session")
}
