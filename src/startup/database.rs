//! Builds the store from the settings.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use reqwest::Url;
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

use crate::config::{Database, SslMode};
use hyperfleet_server_kit::causes::chain;
use hyperfleet_server_kit::{files, tls};
use hyperfleet_storage::{ConnectionLifetime, Error, Probe, SchemaStatus, Settings, Store};

/// Schemes of a database URL. The driver accepts any scheme.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];
/// How long a request waits for a connection, in seconds.
const ACQUIRE_SECONDS_MAX: u64 = 5;
/// Largest file of authorities, in bytes.
const ROOTS_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// How often superfluous connections are closed.
const TRIM_PERIOD: Duration = Duration::from_secs(5);

/// The store that the settings describe. Connects to nothing yet.
pub(super) fn store(database: &Database) -> anyhow::Result<Store> {
    Ok(Store::new(connections(database)?))
}

/// How connections to it are made.
pub(super) fn connections(database: &Database) -> anyhow::Result<Settings> {
    Ok(Settings {
        connect: options(database)?,
        connections_max: database.pool.max_connections,
        acquire_seconds_max: ACQUIRE_SECONDS_MAX,
        statement_milliseconds_max: milliseconds(database.pool.request_timeout),
        lifetime: ConnectionLifetime {
            idle_max: Some(database.pool.max_idle_connections),
            idle_time: some(database.pool.conn_max_idle_time),
            lifetime: some(database.pool.conn_max_lifetime),
        },
    })
}

/// `None` for a zero duration, which means no limit.
fn some(time: Duration) -> Option<Duration> {
    (!time.is_zero()).then_some(time)
}

/// Closes superfluous connections periodically.
pub(super) async fn trim_forever(store: Store) {
    loop {
        tokio::time::sleep(TRIM_PERIOD).await;
        store.trim();
    }
}

/// Whole milliseconds, and at least one: only a zero duration means no limit.
fn milliseconds(time: Duration) -> u64 {
    let rounded = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    if time.is_zero() { 0 } else { rounded.max(1) }
}

/// Checks what needs no database.
///
/// # Errors
///
/// An error of its settings.
pub(super) fn check(database: &Database) -> anyhow::Result<()> {
    options(database)?;
    let roots = &database.ssl.root_cert_file;
    if !roots.as_os_str().is_empty() {
        let file = roots.display();
        let setting = "database.ssl.root_cert_file";
        let text = files::read(roots, ROOTS_BYTES_MAX)
            .with_context(|| format!("{setting}: cannot read {file}"))?;
        // The driver refuses the whole file if it cannot read one certificate, and does not say which.
        tls::authorities(&text).with_context(|| format!("{setting}: cannot use {file}"))?;
    }
    Ok(())
}

fn options(database: &Database) -> anyhow::Result<PgConnectOptions> {
    let options = match &database.url {
        Some(url) => by_url(url.expose())?,
        None => by_parts(database)?,
    };
    Ok(with_tls(options, database))
}

fn by_url(url: &str) -> anyhow::Result<PgConnectOptions> {
    let expected = "database.url is not of the form postgres://user:password@host:port/name";
    let after_scheme = SCHEMES.iter().find_map(|scheme| url.strip_prefix(scheme));
    let after_host = after_scheme.context(expected)?.split_once(['/', '?', '#']);
    // The rest of a password would count as a path or a parameter, which messages show.
    ensure!(
        !after_host.is_some_and(|(_, rest)| rest.contains('@')),
        "database.url has an @ after its host: in a password, write / as %2F, ? as %3F, # as %23 and @ as %40"
    );
    let url = url.parse::<Url>().context(expected)?;
    PgConnectOptions::from_url(&with_password(url)).context(expected)
}

fn by_parts(database: &Database) -> anyhow::Result<PgConnectOptions> {
    // It may be a URL with a password, which messages would show.
    let is_host = !database.host.contains('@');
    ensure!(
        is_host,
        "database.host has an @: a URL belongs in database.url"
    );
    Ok(PgConnectOptions::new_without_pgpass()
        .host(&database.host)
        .port(database.port)
        .database(&database.name)
        .username(&database.username)
        // Without a password the driver would use PGPASSWORD; an empty password is sent as none.
        .password(database.password.expose()))
}

/// Adds the TLS settings. If neither the URL nor the settings have a mode, the driver decides: TLS if the server has
/// it, without verifying its certificate.
fn with_tls(mut options: PgConnectOptions, database: &Database) -> PgConnectOptions {
    let ssl = &database.ssl;
    let unset = database.url.is_none().then_some(SslMode::Disable);
    if let Some(mode) = ssl.mode.or(unset) {
        options = options.ssl_mode(match mode {
            SslMode::Disable => PgSslMode::Disable,
            SslMode::Require => PgSslMode::Require,
            SslMode::VerifyCa => PgSslMode::VerifyCa,
            SslMode::VerifyFull => PgSslMode::VerifyFull,
        });
    }
    if !ssl.root_cert_file.as_os_str().is_empty() {
        options = options.ssl_root_cert(&ssl.root_cert_file);
    }
    options
}

/// Adds a password, possibly an empty one: without one the driver reads `~/.pgpass`.
fn with_password(mut url: Url) -> Url {
    let has_one = url.password().is_some() || url.query_pairs().any(|(name, _)| name == "password");
    if !has_one {
        url.query_pairs_mut().append_pair("password", "");
    }
    url
}

/// The configured database, without its password.
fn target(database: &Database) -> String {
    let Ok(options) = options(database) else {
        return "the database".to_owned();
    };
    let (host, port) = match options.get_socket() {
        Some(socket) => (socket.display().to_string(), String::new()),
        None => (
            options.get_host().to_owned(),
            format!(":{}", options.get_port()),
        ),
    };
    let (user, name) = (options.get_username(), options.get_database());
    format!(
        "the database \"{}\" at {host}{port} as user \"{user}\"",
        name.unwrap_or(user)
    )
}

/// Waits for the database's answer, as long as the settings allow; not if it refuses the login.
pub(super) async fn reach(probe: &mut Probe, database: &Database) -> anyhow::Result<SchemaStatus> {
    let mut attempts_left = database.pool.conn_retry_attempts;
    loop {
        match probe.status().await.map(|status| status.schema) {
            Err(error @ Error::Unavailable { .. }) if attempts_left > 0 => {
                attempts_left -= 1;
                let error = chain(&error);
                // Computed before the log line: it logs something itself, and a line must not begin in another one.
                let target = target(database);
                tracing::warn!(attempts_left, target, error, "waiting for the database");
                tokio::time::sleep(database.pool.conn_retry_interval).await;
            }
            other => {
                // Behind such a pooler anything may have failed.
                refuse_transaction_pooler(probe).await?;
                return other.with_context(|| {
                    format!(
                        "cannot use {}: check --database-url, or the --db-… flags",
                        target(database)
                    )
                });
            }
        }
    }
}

/// Waits for the database's answer like [`reach`], and refuses a schema that is older than this program.
pub(super) async fn require_schema(probe: &mut Probe, database: &Database) -> anyhow::Result<()> {
    let missing = reach(probe, database).await?.missing;
    if missing > 0 {
        bail!("the database lacks {missing} migrations: run `hyperfleet-api migrate` first");
    }
    Ok(())
}

/// Refuses a database behind a pooler that leads each transaction to another session: requests would fail by chance.
async fn refuse_transaction_pooler(probe: &Probe) -> anyhow::Result<()> {
    if probe.shares_sessions().await? {
        bail!(
            "a pooler leads each transaction to another session of PostgreSQL, but sessions keep prepared statements \
             and settings: use session pooling (PgBouncer: pool_mode = session), or connect to PostgreSQL directly"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use sqlx::ConnectOptions as _;

    use super::*;

    /// What connections are made with: the mode, and whether authorities are named.
    fn tls(url: Option<&str>, mode: Option<SslMode>, roots: &str) -> (PgSslMode, bool) {
        let mut database = Database {
            url: url.map(|url| url.to_owned().into()),
            ..crate::config::Settings::default().database
        };
        database.ssl.mode = mode;
        database.ssl.root_cert_file = roots.into();
        let options = options(&database).unwrap();
        let has_roots = options.to_url_lossy().query().unwrap().contains("ca.pem");
        (options.get_ssl_mode(), has_roots)
    }

    #[test]
    fn tls_is_as_the_settings_or_the_url_say() {
        let url = Some("postgres://u@h/n");
        let full = Some(SslMode::VerifyFull);
        for ((url, mode, roots), (expected, has_roots)) in [
            ((None, None, ""), (PgSslMode::Disable, false)),
            ((None, full, "ca.pem"), (PgSslMode::VerifyFull, true)),
            ((url, None, ""), (PgSslMode::Prefer, false)),
            ((url, full, "ca.pem"), (PgSslMode::VerifyFull, true)),
            (
                (url, Some(SslMode::Disable), ""),
                (PgSslMode::Disable, false),
            ),
            (
                (Some("postgres://u@h/n?sslmode=verify-ca"), None, "ca.pem"),
                (PgSslMode::VerifyCa, true),
            ),
        ] {
            let (found, found_roots) = tls(url, mode, roots);
            let is_expected = std::mem::discriminant(&found) == std::mem::discriminant(&expected);
            assert!(is_expected, "{url:?} {mode:?}: {found:?}");
            assert_eq!(found_roots, has_roots, "{url:?} {mode:?}");
        }
    }

    #[test]
    fn the_password_of_a_url_is_its_own_or_empty() {
        for (url, password) in [
            ("postgres://u@h/n", Some("")),
            ("postgres://u:@h/n?sslmode=disable", Some("")),
            ("postgres://u:p%20w@h/n", Some("p w")),
            ("postgres://u@h/n?password=q", Some("q")),
            ("postgres://u:p@h/n?password=", Some("")),
            ("postgres:///n?host=%2Frun", Some("")),
        ] {
            let url = with_password(url.parse().unwrap());
            let options = PgConnectOptions::from_url(&url).unwrap();
            let printed = format!("{options:?}");
            let expected = format!("password: {password:?}");
            assert!(printed.contains(&expected), "{url}: {printed}");
        }
    }

    #[test]
    fn urls_that_would_show_their_password_are_refused_without_it() {
        for url in [
            "postgres://app:s3cr?et@db/hyperfleet",
            "postgres://u:12/s3cret@h/n",
            "postgres://u:12#s3cret@h/n",
            "mysql://u:s3cret@h/n",
            "s3cret",
        ] {
            let database = Database {
                url: Some(url.to_owned().into()),
                ..crate::config::Settings::default().database
            };
            let error = format!("{:#}", options(&database).unwrap_err());
            assert!(error.starts_with("database.url "), "{url}: {error}");
            assert!(!error.contains("s3cr"), "{url}: {error}");
        }
        let mut database = crate::config::Settings::default().database;
        database.host = "postgres://u:s3cret@h/n".to_owned();
        let error = options(&database).unwrap_err().to_string();
        assert!(!error.contains("s3cr"), "{error}");
    }

    #[test]
    fn only_no_time_at_all_is_no_limit() {
        for (time, limit) in [
            (Duration::ZERO, 0),
            (Duration::from_nanos(1), 1),
            (Duration::from_micros(2500), 2),
            (Duration::from_millis(500), 500),
            (Duration::from_secs(30), 30_000),
            (Duration::MAX, u64::MAX),
        ] {
            assert_eq!(milliseconds(time), limit, "{time:?}");
        }
    }
}
