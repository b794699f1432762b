//! A separate connection that asks for the state of the database. It takes none from requests, and works even when all
//! of theirs are in use.

use std::time::Duration;

use deadpool::managed::{PoolError, TimeoutType};
use tokio::time::{Instant, timeout};

use super::pool::{self, Link, Settings};
use super::pooler;
use super::{DatabaseStatus, Db, Error, Migration, SchemaStatus};

/// Maximum age of a connection. A session retains the settings that its role and database had when it began, such as
/// read-only mode.
const AGE_MAX: Duration = Duration::from_mins(1);
/// The connection's name in `pg_stat_activity`.
const NAME: &str = "hyperfleet-api-probe";

/// One connection, opened on demand and reused while it works.
pub struct Probe {
    settings: Settings,
    /// With the time at which it was made.
    link: Option<(Link, Instant)>,
}

impl Probe {
    /// Connects to nothing yet.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            link: None,
        }
    }

    /// The status of the database. If it is cancelled half-way, the next call starts with a new connection.
    ///
    /// # Errors
    ///
    /// The database is unreachable, refuses the login, or does not answer.
    pub async fn status(&mut self) -> Result<DatabaseStatus, Error> {
        let schema = SchemaStatus::of(&self.migrations().await?);
        let (mut link, since) = self.take_link().await?;
        let is_read_only = Db { link: &mut link }.is_read_only().await?;
        // Otherwise the next answer would not show that writes are possible again.
        self.link = Some((link, since)).filter(|_| !is_read_only);
        Ok(DatabaseStatus {
            schema,
            is_read_only,
        })
    }

    /// Every migration that the program or the database knows, in their order.
    ///
    /// # Errors
    ///
    /// As for [`Probe::status`].
    pub async fn migrations(&mut self) -> Result<Vec<Migration>, Error> {
        let (mut link, since) = self.take_link().await?;
        let migrations = Db { link: &mut link }.migrations().await?;
        self.link = Some((link, since));
        Ok(migrations)
    }

    /// Whether a pooler leads two connections to one session of the server; `false` if there is no second connection.
    ///
    /// # Errors
    ///
    /// The database does not answer.
    pub async fn shares_sessions(&self) -> Result<bool, Error> {
        pooler::shares_sessions(&self.settings).await
    }

    async fn take_link(&mut self) -> Result<(Link, Instant), Error> {
        match self.link.take() {
            Some((link, since)) if since.elapsed() < AGE_MAX => Ok((link, since)),
            _ => Ok((self.connect().await?, Instant::now())),
        }
    }

    async fn connect(&self) -> Result<Link, Error> {
        let time = Duration::from_secs(self.settings.acquire_seconds_max);
        let connected = timeout(time, pool::connect(&self.settings, NAME)).await;
        let connected = connected.map_or(Err(PoolError::Timeout(TimeoutType::Create)), |link| {
            link.map_err(PoolError::Backend)
        });
        connected.map_err(Error::no_connection)
    }
}
