use std::borrow::Cow;
use std::error::Error as StdError;
use std::io;

use deadpool::managed::PoolError;

/// What can go wrong between us and the database.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A unique constraint stands in the way.
    #[error("{constraint} is taken")]
    Duplicate {
        /// Which constraint, by its name in the schema.
        constraint: String,
    },
    /// The database cannot be reached or cannot serve right now. Trying again later may succeed;
    /// nothing of a transaction was kept, unless the connection was lost while it committed.
    #[error("cannot {doing}: the database is unavailable")]
    Unavailable {
        /// Verb and object.
        doing: &'static str,
        /// What the client or the server says.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The database lets us in neither now nor later: a wrong password, or no such role or
    /// database. Nothing was done.
    #[error("the database refuses us: {message}")]
    Refused {
        /// What it says.
        message: String,
    },
    /// The statement took longer than it may, and not because it had to wait for others.
    #[error("cannot {doing}: it takes too long")]
    TooSlow {
        /// Verb and object.
        doing: &'static str,
    },
    /// Somebody else holds what a migration needs, and does not let go of it.
    #[error(
        "waited {seconds} s for a lock: another `migrate` is under way, or a transaction was left open; \
         see pg_stat_activity, or give it more time with database.pool.advisory_lock_timeout"
    )]
    Locked {
        /// How long it was waited for.
        seconds: u64,
    },
    /// A stored value is not one that we could have written.
    #[error("a stored {column} is impossible: {value}")]
    Corrupt {
        /// Which column.
        column: &'static str,
        /// What stands there.
        value: String,
    },
    /// Anything else, with what was being done.
    #[error("cannot {doing}")]
    Failed {
        /// Verb and object: «insert a resource».
        doing: &'static str,
        /// What sqlx says.
        #[source]
        source: sqlx::Error,
    },
}

impl Error {
    /// Whether a row that others have written or removed stands in the way.
    pub fn is_conflict(&self) -> bool {
        match self {
            Self::Duplicate { .. } => true,
            Self::Failed { source, .. } => source
                .as_database_error()
                .is_some_and(sqlx::error::DatabaseError::is_foreign_key_violation),
            _ => false,
        }
    }

    /// A connection could not be had.
    pub(super) fn no_connection(source: PoolError<sqlx::Error>) -> Self {
        if let PoolError::Backend(sqlx::Error::Database(error)) = &source
            && error.code().is_some_and(|code| is_refusal(&code))
        {
            return Self::Refused {
                message: error.message().to_owned(),
            };
        }
        Self::Unavailable {
            doing: "get a connection",
            // The pool adds nothing to what the driver says.
            source: match source {
                PoolError::Backend(error) => Box::new(error),
                other => Box::new(other),
            },
        }
    }
}

/// Whether a statement was ended because its time was up.
pub(super) fn is_out_of_time(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| code == "57014")
}

/// Whether a statement was ended because it waited too long for a lock.
pub(super) fn is_lock_timeout(error: &sqlx::Error) -> bool {
    code(error).is_some_and(|code| code == "55P03")
}

/// Says what was being done when sqlx failed.
pub(super) trait Doing<T> {
    /// Attaches `doing`, a verb and its object, and sorts out what callers can act on.
    fn doing(self, doing: &'static str) -> Result<T, Error>;
}

impl<T> Doing<T> for Result<T, sqlx::Error> {
    fn doing(self, doing: &'static str) -> Result<T, Error> {
        self.map_err(|source| match &source {
            sqlx::Error::Database(db) if db.is_unique_violation() => Error::Duplicate {
                constraint: db.constraint().unwrap_or("a unique constraint").to_owned(),
            },
            _ if is_transient(&source) => Error::Unavailable {
                doing,
                source: Box::new(source),
            },
            _ => Error::Failed { doing, source },
        })
    }
}

/// `SQLSTATE`s of a connection that will not be had before somebody changes something: not
/// authorized (class 28), no such database.
fn is_refusal(code: &str) -> bool {
    code.starts_with("28") || code == "3D000"
}

/// Whether the same request may succeed later without anybody changing anything.
fn is_transient(error: &sqlx::Error) -> bool {
    is_connection_lost(error) || code(error).is_some_and(|code| is_transient_code(&code))
}

fn code(error: &sqlx::Error) -> Option<Cow<'_, str>> {
    error.as_database_error()?.code()
}

/// Whether the connection is gone, and with it, most likely, all others to the same server; or leads
/// to one that must not be written to, as after a failover.
pub(super) fn is_connection_lost(error: &sqlx::Error) -> bool {
    match error {
        // The last is what sqlx makes of an answer that was cut off.
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(db) => db.code().is_some_and(|code| {
            code.starts_with("08") || matches!(&*code, "57P01" | "57P02" | "57P03" | "25006")
        }),
        _ => false,
    }
}

/// Whether the connection was closed while a statement was on its way: not whether its server is silent, and not
/// whether it must not be written to.
pub(super) fn is_closed(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(error) => error.kind() != io::ErrorKind::TimedOut,
        _ => is_connection_lost(error) && code(error).is_none_or(|code| code != "25006"),
    }
}

/// `SQLSTATE` classes: connection lost (08), rolled back for another transaction (40), out of
/// connections, memory or disk (53), ended by an operator, starting up or over its time (57).
fn is_transient_code(code: &str) -> bool {
    matches!(code.get(..2), Some("08" | "40" | "53" | "57")) || code == "55P03" || code == "25006"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_pass_are_told_from_those_that_stay() {
        for (code, transient) in [
            ("57P01", true),  // ended by an administrator
            ("57P03", true),  // starting up
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
