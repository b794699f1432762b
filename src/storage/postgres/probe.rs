//! A separate connection that asks for the state of the database. It takes none from requests, and works even when all
//! of theirs are in use.

use std::time::Duration;

use deadpool::managed::{PoolError, TimeoutType};
use tokio::time::timeout;

use super::pool::{self, Link, Settings};
use super::{DatabaseStatus, Db, Error, Migration, SchemaStatus};

/// The connection's name in `pg_stat_activity`.
const NAME: &str = "hyperfleet-api-probe";

/// One connection, made on demand and kept while it works.
pub struct Probe {
    settings: Settings,
    link: Option<Link>,
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
        let mut link = match self.link.take() {
            Some(link) => link,
            None => self.connect().await?,
        };
        let is_read_only = Db { link: &mut link }.is_read_only().await?;
        // A session keeps the default of the time at which it began: only a new one shows that writes are possible again.
        self.link = Some(link).filter(|_| !is_read_only);
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
        let mut link = match self.link.take() {
            Some(link) => link,
            None => self.connect().await?,
        };
        let migrations = Db { link: &mut link }.migrations().await?;
        self.link = Some(link);
        Ok(migrations)
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
