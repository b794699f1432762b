//! Connections, kept between requests.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use deadpool::managed::{self, Metrics, RecycleError, RecycleResult};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tokio::time::{Instant, timeout, timeout_at};

use super::measure::Statement;

/// How long the answer to a statement may take beyond the statement's own time.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// How long an attempt to connect stays the only one. A packet that was lost is not waited for: another attempt asks
/// the resolver and the server again.
const ATTEMPT: Duration = Duration::from_secs(2);

/// Within which time the server notices that the client of a running statement is gone, and ends it.
pub(super) const GONE_NOTICED: Duration = Duration::from_secs(2);

/// How connections are made and how many there may be. Not to be printed: `connect` would show the
/// password.
#[derive(Clone)]
pub struct Settings {
    /// Where the database is and who we are there.
    pub connect: PgConnectOptions,
    /// Most connections at a time.
    pub connections_max: usize,
    /// How long a request waits for a free connection, or for a new one to be made.
    pub acquire_seconds_max: u64,
    /// How long one statement may take; 0 for no limit.
    pub statement_milliseconds_max: u64,
    /// For how long connections are kept.
    pub lifetime: ConnectionLifetime,
}

/// For how long connections are kept. The default is for ever, all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionLifetime {
    /// Most that are kept while nobody needs them, over all threads; 0 for none.
    pub idle_max: Option<usize>,
    /// How long one is kept while nobody needs it.
    pub idle_time: Option<Duration>,
    /// How old one may become.
    pub lifetime: Option<Duration>,
}

/// One connection, with what is known of its health.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) connection: PgConnection,
    pub(super) health: Health,
    /// What is on its way.
    pub(super) statement: Option<Statement>,
    /// How long an answer is waited for; unset for ever.
    pub(super) limit: Option<Duration>,
    /// Until when the request that uses it may wait; unset for ever.
    pub(super) deadline: Option<Instant>,
    /// Whether its user has not sent a statement yet.
    pub(super) is_unused: bool,
    /// Whether the last statement was sent twice.
    pub(super) is_repeated: bool,
    connector: Arc<Connector>,
}

impl Link {
    /// Until when the answer to a statement is waited for that is sent now.
    pub(super) fn answer_by(&self) -> Option<Instant> {
        let limit = self.limit.map(|limit| Instant::now() + limit);
        limit.into_iter().chain(self.deadline).min()
    }

    /// Puts a new connection in the place of one that was closed.
    pub(super) async fn renew(&mut self) -> Result<(), sqlx::Error> {
        let until = Instant::now() + self.connector.time;
        let until = self.deadline.map_or(until, |deadline| deadline.min(until));
        let connected = timeout_at(until, self.connector.connect()).await;
        self.connection = connected.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
        Ok(())
    }
}

/// How to connect. Not to be printed, as [`Settings`] are not.
struct Connector {
    options: PgConnectOptions,
    /// How long a new connection is waited for.
    time: Duration,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl Connector {
    /// Connects. The first attempt that succeeds decides, or the last one that fails; callers limit the time.
    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let mut attempts = FuturesUnordered::new();
        attempts.push(self.options.connect());
        loop {
            match timeout(ATTEMPT, attempts.next()).await {
                // An earlier one may still succeed: a server without room refuses the later ones.
                Ok(Some(Err(_))) if !attempts.is_empty() => {}
                Ok(Some(ended)) => return ended,
                // Beside the earlier ones: a server that is merely slow answers the first.
                _ => attempts.push(self.options.connect()),
            }
        }
    }
}

/// Whether a connection can be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    /// It can.
    Good,
    /// An answer is still on the wire, or a transaction open: it is closed, not kept.
    Busy,
    /// It failed: it is closed, and all others that idle, which most likely failed with it.
    Lost,
}

pub(super) type Pool = managed::Pool<Maker>;
pub(super) type Lease = managed::Object<Maker>;

/// Makes connections for the pool.
pub(super) struct Maker {
    connector: Arc<Connector>,
    limit: Option<Duration>,
    lifetime: Option<Duration>,
}

impl managed::Manager for Maker {
    type Type = Link;
    type Error = sqlx::Error;

    async fn create(&self) -> Result<Link, sqlx::Error> {
        let connection = self.connector.connect().await?;
        Ok(Link {
            connection,
            health: Health::Good,
            statement: None,
            limit: self.limit,
            deadline: None,
            is_unused: false,
            is_repeated: false,
            connector: Arc::clone(&self.connector),
        })
    }

    /// Asks the server nothing: that would cost each request a round trip. A connection that was closed while idle shows
    /// in the first statement of the next request, which is sent again ([`Wire`](super::wire::Wire)), unless the probe
    /// has noticed before ([`Store::forget_idle`](super::Store::forget_idle)).
    async fn recycle(&self, _: &mut Link, metrics: &Metrics) -> RecycleResult<sqlx::Error> {
        match self.lifetime {
            Some(lifetime) if metrics.age() > lifetime => {
                Err(RecycleError::message("it is too old"))
            }
            _ => Ok(()),
        }
    }
}

/// Makes one connection, outside any pool, under a name of its own.
pub(super) async fn connect(settings: &Settings, name: &str) -> Result<Link, sqlx::Error> {
    managed::Manager::create(&maker(settings, name)).await
}

/// How long the answer to a statement may take, and to a request with all its statements; unset for ever. The server
/// ends a statement before that, if it is there.
pub(super) fn answer_time(settings: &Settings) -> Option<Duration> {
    let time = Duration::from_millis(settings.statement_milliseconds_max);
    (!time.is_zero()).then(|| time.saturating_add(SILENCE_MAX))
}

fn maker(settings: &Settings, name: &str) -> Maker {
    let statement_timeout = format!("{}ms", settings.statement_milliseconds_max);
    let check_interval = format!("{}ms", GONE_NOTICED.as_millis());
    // Statements are logged by `measure`, with the request that they belong to.
    let quiet = settings.connect.clone().disable_statement_logging();
    let options = quiet.application_name(name).options([
        ("statement_timeout", statement_timeout.as_str()),
        // A transaction that nobody goes on with must not hold its locks.
        ("idle_in_transaction_session_timeout", "60s"),
        // Nor must a statement whose request was dropped, while it waits for others' locks.
        ("client_connection_check_interval", check_interval.as_str()),
        // Times and texts come in one form whatever the server is set to.
        ("timezone", "UTC"),
    ]);
    let connector = Connector {
        options,
        time: Duration::from_secs(settings.acquire_seconds_max),
    };
    Maker {
        connector: Arc::new(connector),
        limit: answer_time(settings),
        lifetime: settings.lifetime.lifetime,
    }
}

/// Makes the pool. Connects to nothing yet.
pub(super) fn pool(settings: &Settings) -> Pool {
    let wait = Duration::from_secs(settings.acquire_seconds_max);
    Pool::builder(maker(settings, "hyperfleet-api"))
        .max_size(settings.connections_max)
        .wait_timeout(Some(wait))
        .create_timeout(Some(wait))
        .recycle_timeout(Some(wait))
        // The connection used last is the one whose server process is still warm.
        .queue_mode(managed::QueueMode::Lifo)
        .runtime(deadpool::Runtime::Tokio1)
        .build()
        .unwrap_or_else(|error| unreachable!("a runtime is given: {error}"))
}

/// Closes idle connections of these pools that need not be kept: what is too old, or was not used
/// for too long, and of the rest all but the `idle_max` that were used last, whichever pool they are
/// in. A busy thread keeps what it uses, and all of them as many as the settings say.
pub(super) fn trim(pools: &[Pool], lifetime: &ConnectionLifetime) {
    let used_at = |metrics: &Metrics| metrics.recycled.unwrap_or(metrics.created);
    let mut times = Vec::new();
    for pool in pools {
        pool.retain(|_, metrics| {
            let is_fresh = keep
                .idle_time
                .is_none_or(|time| metrics.last_used() <= time)
                && keep.lifetime.is_none_or(|time| metrics.age() <= time);
            if is_fresh {
                times.push(used_at(&metrics));
            }
            is_fresh
        });
    }
    let Some(idle_max) = keep.idle_max.filter(|most| *most < times.len()) else {
        return;
    };
    times.sort_unstable_by(|one, other| other.cmp(one));
    let last_kept = idle_max.checked_sub(1).and_then(|last| times.get(last));
    for pool in pools {
        pool.retain(|_, metrics| last_kept.is_some_and(|last| used_at(&metrics) >= *last));
    }
}
