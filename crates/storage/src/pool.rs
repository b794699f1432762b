//! A pool of connections.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use deadpool::managed::{self, Metrics, RecycleError, RecycleResult};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use sqlx::ConnectOptions as _;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use tokio::time::{Instant, timeout, timeout_at};

use super::error::{late, silent};
use super::measure::Statement;

/// How long an answer may take beyond the time of its statement.
const SILENCE_MAX: Duration = Duration::from_secs(5);
/// How long a server that is well takes to send the error of a statement that it has ended.
const ANSWER_TIME: Duration = Duration::from_secs(1);
/// How long an attempt to connect stays the only one. A lost packet would delay it: another attempt asks the resolver
/// and the server again.
const ATTEMPT: Duration = Duration::from_secs(2);

/// Time within which the server notices that the client of a running statement is gone, and ends it.
pub(super) const GONE_NOTICED: Duration = Duration::from_secs(2);

/// What statements rely on, as startup options of every connection: they take precedence over settings of the role and
/// of the database.
const SESSION: [(&str, &str); 9] = [
    // A write that waits for a row lock goes on with the new row, instead of failing.
    ("default_transaction_isolation", "read committed"),
    // Each kind of change has its own wait for locks (`transactions`).
    ("lock_timeout", "0"),
    // An abandoned transaction must not keep its locks.
    ("idle_in_transaction_session_timeout", "60s"),
    // Idle connections are closed here, not under the next request.
    ("idle_session_timeout", "0"),
    // Notices cost time, and nothing reads them.
    ("client_min_messages", "warning"),
    // Searches return every match.
    ("gin_fuzzy_search_limit", "0"),
    // Literals are read in one way, and times and texts have one form.
    ("standard_conforming_strings", "on"),
    ("timezone", "UTC"),
    // The server compiles what it expects to take long. That takes it a second, longer than most of such statements.
    ("jit", "off"),
];

/// How connections are made, and their number. Must not be printed: `connect` contains the password.
#[derive(Clone)]
pub struct Settings {
    /// The server, the database and the user.
    pub connect: PgConnectOptions,
    pub connections_max: usize,
    /// How long a request waits for a connection, free or new.
    pub acquire_seconds_max: u64,
    /// Timeout of one statement; 0 for no limit.
    pub statement_milliseconds_max: u64,
    pub lifetime: ConnectionLifetime,
}

/// How long idle connections stay open. Default: all of them, forever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionLifetime {
    /// Maximum number of idle connections, over all threads.
    pub idle_max: Option<usize>,
    /// Idle time after which one is closed.
    pub idle_time: Option<Duration>,
    /// Age after which one is closed.
    pub lifetime: Option<Duration>,
}

/// One connection and its health.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) connection: PgConnection,
    pub(super) health: Health,
    pub(super) statement: Option<Statement>,
    /// Timeout of an answer; unset for none.
    pub(super) limit: Option<Duration>,
    /// Deadline of the request that uses it; unset for none.
    pub(super) deadline: Option<Instant>,
    /// Whether no statement was sent over it since it was taken.
    pub(super) is_unused: bool,
    /// Whether the last statement was sent twice.
    pub(super) is_repeated: bool,
    /// Whether any was, since it was taken.
    pub(super) was_repeated: bool,
    connector: Arc<Connector>,
}

impl Link {
    /// Deadline of the answer to a statement that is sent now, and the error of one that does not come until then.
    pub(super) fn answer_by(&self) -> Option<(Instant, fn() -> sqlx::Error)> {
        let now = Instant::now();
        let limit = self.limit.map(|limit| now + limit);
        let by = limit.into_iter().chain(self.deadline).min()?;
        // The server ends a statement at its timeout: only after that, and a second for the answer, it is silent.
        let is_silent = limit.is_some_and(|limit| by + SILENCE_MAX >= limit + ANSWER_TIME);
        Some((by, if is_silent { silent } else { late }))
    }

    /// Replaces a closed connection by a new one.
    pub(super) async fn renew(&mut self) -> Result<(), sqlx::Error> {
        let until = Instant::now() + self.connector.time;
        let until = self.deadline.map_or(until, |deadline| deadline.min(until));
        let connected = timeout_at(until, self.connector.connect()).await;
        self.connection = connected.unwrap_or(Err(sqlx::Error::PoolTimedOut))?;
        Ok(())
    }
}

/// Makes connections. Must not be printed, like [`Settings`].
struct Connector {
    options: PgConnectOptions,
    /// Timeout of a new connection.
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
                // An earlier one may still succeed: a server at its limit refuses the later ones.
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
    Good,
    /// An answer is still to come, or a transaction is open: the connection is closed, not returned to the pool.
    Busy,
    /// It failed: it is closed, with all other idle ones, which most likely failed with it.
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
            was_repeated: false,
            connector: Arc::clone(&self.connector),
        })
    }

    /// Asks the server nothing: that would cost each request a round trip. A connection that was closed while idle
    /// shows in the first statement of the next request, which is sent again ([`GuardedConnection`](super::guarded::GuardedConnection)), unless the
    /// probe has noticed before ([`Store::forget_idle`](super::Store::forget_idle)).
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
    managed::Manager::create(&maker(settings, name, &[])).await
}

/// The longest time of the answer to a statement, and of a request with all its statements; unset for none. The
/// server, if it is reachable, ends a statement before that.
pub(super) fn answer_time(settings: &Settings) -> Option<Duration> {
    let time = Duration::from_millis(settings.statement_milliseconds_max);
    (!time.is_zero()).then(|| time.saturating_add(SILENCE_MAX))
}

fn maker(settings: &Settings, name: &str, options: &[(&str, &str)]) -> Maker {
    let statement_timeout = format!("{}ms", settings.statement_milliseconds_max);
    let check_interval = format!("{}ms", GONE_NOTICED.as_millis());
    // Statements are logged by `measure`, with the request that they belong to.
    let quiet = settings.connect.clone().disable_statement_logging();
    let own = [
        ("statement_timeout", statement_timeout.as_str()),
        // A statement whose request was dropped must not wait on for others' locks.
        ("client_connection_check_interval", check_interval.as_str()),
    ];
    // Of an option that appears twice, the last value counts.
    let options = SESSION.iter().chain(&own).chain(options).copied();
    let connector = Connector {
        options: quiet.application_name(name).options(options),
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
    pool_of(settings, settings.connections_max, &[])
}

/// A pool for statements that answer several requests.
pub(super) fn gathering_pool(settings: &Settings, connections_max: usize) -> Pool {
    let options = [
        // The server would plan for each number of rows, which takes longer than to read or to write them.
        ("plan_cache_mode", "force_generic_plan"),
        ("enable_seqscan", "off"),
        // One request must not make the others wait for a lock. After this timeout each runs in a statement of its own.
        ("lock_timeout", "100ms"),
    ];
    pool_of(settings, connections_max, &options)
}

fn pool_of(settings: &Settings, connections_max: usize, options: &[(&str, &str)]) -> Pool {
    let wait = Duration::from_secs(settings.acquire_seconds_max);
    Pool::builder(maker(settings, "hyperfleet-api", options))
        .max_size(connections_max)
        .wait_timeout(Some(wait))
        .create_timeout(Some(wait))
        .recycle_timeout(Some(wait))
        // The connection used last is the one whose server process is still warm.
        .queue_mode(managed::QueueMode::Lifo)
        .runtime(deadpool::Runtime::Tokio1)
        .build()
        .unwrap_or_else(|error| unreachable!("a runtime is configured: {error}"))
}

/// Closes superfluous idle connections of these pools: those that are too old or were idle for too long, and of the
/// rest all but the `idle_max` that were used last, in whichever pool. A busy thread keeps what it uses; the settings
/// limit the total.
pub(super) fn trim(pools: &[Pool], limits: &ConnectionLifetime) {
    let used_at = |metrics: &Metrics| metrics.recycled.unwrap_or(metrics.created);
    let mut times = Vec::new();
    for pool in pools {
        pool.retain(|_, metrics| {
            let is_fresh = limits
                .idle_time
                .is_none_or(|time| metrics.last_used() <= time)
                && limits.lifetime.is_none_or(|time| metrics.age() <= time);
            if is_fresh {
                times.push(used_at(&metrics));
            }
            is_fresh
        });
    }
    let Some(idle_max) = limits.idle_max.filter(|most| *most < times.len()) else {
        return;
    };
    times.sort_unstable_by(|one, other| other.cmp(one));
    let last_retained = idle_max.checked_sub(1).and_then(|last| times.get(last));
    for pool in pools {
        pool.retain(|_, metrics| last_retained.is_some_and(|last| used_at(&metrics) >= *last));
    }
}
