//! Errors of the database, classified by what callers can do.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::io;

use deadpool::managed::PoolError;

use super::unconnectable::permanent_reason;

/// Primary keys whose numbers come from a sequence.
const NUMBERED: [&str; 2] = ["audit_pkey", "changes_pkey"];

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{constraint} is taken")]
    Duplicate {
        /// The constraint's name in the schema.
        constraint: String,
    },
    /// A sequence gives numbers that its table already has.
    #[error(
        "cannot {doing}: the table of {constraint} is ahead of its sequence, as after logical replication: \
         run SELECT begin_audit_era() on the database"
    )]
    SequenceBehind {
        doing: &'static str,
        /// The constraint's name in the schema.
        constraint: &'static str,
    },
    /// The database is unreachable or unavailable. A later attempt may succeed. The transaction has been rolled back,
    /// unless the connection was lost during the commit.
    #[error("cannot {doing}: the database is unavailable")]
    Unavailable {
        doing: &'static str,
        /// What the client or the server reports.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// Other transactions held row locks for longer than `lock_timeout`, or the queue of lock waits was full until the
    /// deadline. The transaction has been rolled back; a later attempt may succeed.
    #[error("cannot {doing}: another transaction holds a lock that it needs")]
    Contended {
        doing: &'static str,
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The database refuses the login permanently: a wrong password, or no such role or database. Nothing was done.
    #[error("the database refuses the login: {message}")]
    Refused { message: String },
    /// No connection is possible until an operator changes the settings, the password or the server's certificate.
    /// Nothing was done.
    #[error("cannot connect to the database: {reason}")]
    Unconnectable { reason: String },
    /// The statement exceeded its time, and not because it waited for others.
    #[error("cannot {doing}: it takes too long")]
    TooSlow { doing: &'static str },
    /// Another transaction holds a lock that a migration needs.
    #[error(
        "waited {seconds} s for a lock: another `migrate` is running, or a transaction was left open; \
         see pg_stat_activity, or allow more time with database.pool.advisory_lock_timeout"
    )]
    Locked {
        /// How long it was waited for.
        seconds: u64,
    },
    /// A stored value that this program could not have written.
    #[error("a stored {column} is impossible: {value}")]
    Corrupt { column: &'static str, value: String },
    /// Any other failure.
    #[error("cannot {doing}")]
    Failed {
        /// Verb and object: «insert a resource».
        doing: &'static str,
        #[source]
        source: sqlx::Error,
    },
}

impl Error {
    pub(super) fn no_connection(source: PoolError<sqlx::Error>) -> Self {
        if let PoolError::Backend(sqlx::Error::Database(error)) = &source
            && error.code().is_some_and(|code| is_refusal(&code))
        {
            return Self::Refused {
                message: error.message().to_owned(),
            };
        }
        if let PoolError::Backend(error) = &source
            && let Some(reason) = permanent_reason(error)
        {
            return Self::Unconnectable { reason };
        }
        Self::Unavailable {
            doing: "get a connection",
            // The pool adds nothing to what the driver reports.
            source: match source {
                PoolError::Backend(error) => Box::new(error),
                other => Box::new(other),
            },
        }
    }
}

/// Whether the server cancelled a statement at its timeout.
pub(super) fn is_timeout(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| code == "57014")
}

/// Whether a statement was cancelled because it waited too long for a lock.
pub(super) fn is_lock_timeout(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| code == "55P03")
}

/// The connection is open, but the server has not answered within the timeout of the statement. The connection counts
/// as lost, so that it is closed and never reused.
pub(super) fn silent() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(
        io::ErrorKind::TimedOut,
        "the server does not answer",
    ))
}

/// The deadline of the request passed before the timeout of its statement. The server may be healthy.
#[derive(Debug, thiserror::Error)]
#[error("the time of the request is up")]
struct Late;

pub(super) fn late() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, Late))
}

pub(super) fn is_late(error: &sqlx::Error) -> bool {
    let sqlx::Error::Io(error) = error else {
        return false;
    };
    error
        .get_ref()
        .is_some_and(<dyn StdError + Send + Sync>::is::<Late>)
}

/// Adds the failed operation to errors of sqlx.
pub(super) trait Context<T> {
    /// Adds `doing`, a verb and its object, and classifies the error by what callers can do.
    fn context(self, doing: &'static str) -> Result<T, Error>;
}

impl<T> Context<T> for Result<T, sqlx::Error> {
    fn context(self, doing: &'static str) -> Result<T, Error> {
        self.map_err(|source| match &source {
            sqlx::Error::Database(db) if db.is_unique_violation() => {
                let constraint = db.constraint().unwrap_or("a unique constraint");
                match NUMBERED.into_iter().find(|known| *known == constraint) {
                    Some(constraint) => Error::SequenceBehind { doing, constraint },
                    None => Error::Duplicate {
                        constraint: constraint.to_owned(),
                    },
                }
            }
            _ if is_lock_timeout(&source) => Error::Contended {
                doing,
                source: Box::new(source),
            },
            _ if is_transient(&source) => Error::Unavailable {
                doing,
                source: Box::new(source),
            },
            _ => Error::Failed { doing, source },
        })
    }
}

/// `SQLSTATE`s of connections that stay impossible until an operator changes something: not authorized (class 28), no
/// such database.
fn is_refusal(code: &str) -> bool {
    code.starts_with("28") || code == "3D000"
}

/// Whether the same request may succeed later without any change.
fn is_transient(error: &sqlx::Error) -> bool {
    is_connection_lost(error)
        || is_late(error)
        || code(error).is_some_and(|code| is_transient_code(&code))
}

/// `SQLSTATE`s of a server that ends the session: by an administrator, a crash, while it starts or stops, and by its
/// timeouts for idle sessions, idle transactions and transactions.
const SESSION_ENDED: [&str; 6] = ["57P01", "57P02", "57P03", "57P05", "25P03", "25P04"];

fn code(error: &sqlx::Error) -> Option<Cow<'_, str>> {
    error.as_database_error()?.code()
}

/// Whether the connection is gone, and most likely all others to the same server; or leads to a server that must not
/// be written to, as after a failover.
pub(super) fn is_connection_lost(error: &sqlx::Error) -> bool {
    match error {
        _ if is_late(error) => false,
        // The last is sqlx's error for an answer that was cut off.
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(db) => db.code().is_some_and(|code| {
            code.starts_with("08") || SESSION_ENDED.contains(&&*code) || code == "25006"
        }),
        _ => false,
    }
}

/// Whether the connection was closed during a statement: not whether its server is silent, and not whether it must not
/// be written to.
pub(super) fn is_closed(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() != io::ErrorKind::TimedOut,
        _ => is_connection_lost(error) && code(error).is_none_or(|code| code != "25006"),
    }
}

/// `SQLSTATE` classes: connection lost (08), rolled back for another transaction (40), out of connections, memory or
/// disk (53), ended by an operator, starting up or over its time (57).
fn is_transient_code(code: &str) -> bool {
    matches!(code.get(..2), Some("08" | "40" | "53" | "57"))
        || SESSION_ENDED.contains(&code)
        || matches!(code, "55P03" | "25006")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transient_codes_are_distinguished_from_permanent_ones() {
        for (code, transient) in [
            ("57P01", true),  // ended by an administrator
            ("57P03", true),  // starting up
            ("57P05", true),  // idle for too long
            ("25P03", true),  // idle in a transaction for too long
            ("25P04", true),  // a transaction that takes too long
            ("57014", true),  // over its time
            ("53300", true),  // out of connections
            ("40P01", true),  // deadlock
            ("55P03", true),  // lock not available
            ("25006", true),  // a standby that will be promoted
            ("42P01", false), // no such table
            ("22P05", false), // a character that cannot be stored
            ("23503", false), // foreign key
            ("", false),
        ] {
            assert_eq!(is_transient_code(code), transient, "{code}");
        }
    }
}
