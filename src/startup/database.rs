//! From settings to a store.

use anyhow::{Context as _, bail};
use sqlx::postgres::{PgConnectOptions, PgSslMode};

use crate::config::{Database, SslMode};
use crate::storage::postgres::{Error, SchemaStatus, Settings, Store};

/// How long a request waits for a connection, in seconds.
const ACQUIRE_SECONDS_MAX: u64 = 5;

/// The store that the settings describe. Connects to nothing yet.
pub(super) fn store(database: &Database) -> anyhow::Result<Store> {
    Ok(Store::new(Settings {
        connect: options(database)?,
        connections_max: database.pool.max_connections,
        acquire_seconds_max: ACQUIRE_SECONDS_MAX,
        statement_seconds_max: database.pool.request_timeout.as_secs(),
    }))
}

fn options(database: &Database) -> anyhow::Result<PgConnectOptions> {
    if let Some(url) = &database.url {
        let expected =
            "the database URL is not of the form postgres://user:password@host:port/name";
        // The parser takes any scheme, and connects to somewhere all the same.
        if !["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| url.starts_with(scheme))
        {
            bail!(expected);
        }
        return url.parse::<PgConnectOptions>().context(expected);
    }
    let mode = match database.ssl.mode {
        SslMode::Disable => PgSslMode::Disable,
        SslMode::Require => PgSslMode::Require,
        SslMode::VerifyCa => PgSslMode::VerifyCa,
        SslMode::VerifyFull => PgSslMode::VerifyFull,
    };
    let mut options = PgConnectOptions::new_without_pgpass()
        .host(&database.host)
        .port(database.port)
        .database(&database.name)
        .username(&database.username)
        .ssl_mode(mode);
    if !database.password.is_empty() {
        options = options.password(&database.password);
    }
    if let Some(file) = &database.ssl.root_cert_file {
        options = options.ssl_root_cert(file);
    }
    Ok(options)
}

/// Waits until the database answers, as long as the settings say.
pub(super) async fn reach(store: &Store, database: &Database) -> anyhow::Result<SchemaStatus> {
    let mut attempts_left = database.pool.conn_retry_attempts;
    loop {
        let status = async { store.session().await?.db().schema_status().await }.await;
        match status {
            Err(error @ Error::Unavailable { .. }) if attempts_left > 0 => {
                attempts_left -= 1;
                let error = anyhow::Error::from(error);
                tracing::warn!(attempts_left, "waiting for the database: {error:#}");
                tokio::time::sleep(database.pool.conn_retry_interval).await;
            }
            other => return other.context("cannot reach the database"),
        }
    }
}
