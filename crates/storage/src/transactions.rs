//! Transactions, and how changes take turns for rows that others hold.
//!
//! ```text
//! begin() ─────────────────▶ Tx   statements that wait for no lock, or may wait long
//! begin_change(First) ─────▶ Tx   a change: any connection, and 10 ms for each lock that others hold
//! begin_change(InLane) ────▶ Tx   the same change once more: a place in the lane, and 4 s for each lock
//! ```
//!
//! A row may be held for as long as the transaction of an operator is open. Without turns, changes of that row would wait with every
//! connection (`docs/decisions/0047-slow-lane.md`).

use super::measure::SqlOperation::{self, Begin, Commit, Rollback};
use super::pool::Health;
use super::{Db, Error, Session, Store};

/// Each is one message to the server. A cached plan must not scan a table because the table was small when the plan was
/// made.
const BEGIN_CHANGE: ByTurn = ByTurn {
    first: "BEGIN; SET LOCAL lock_timeout = '10ms'; \
            SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off",
    in_lane: "BEGIN; SET LOCAL lock_timeout = '4s'; \
              SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off",
};

/// One state of the database for several statements. The reader may stop between two of them for ten minutes.
const BEGIN_READING: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                             SET LOCAL idle_in_transaction_session_timeout = '10min'";

/// How a change waits for row locks. If a wait times out, the change fails with [`Error::Contended`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// With any connection, 10 ms for each lock: most changes hold a row for less.
    First,
    /// With a place in the lane of such changes ([`lane`](super::lane)), 4 s for each lock. That is less than a request waits
    /// for a connection: where all are in use, one that waits gets that of the change that gives up.
    InLane,
}

/// The statement that opens a transaction, for each turn.
struct ByTurn {
    first: &'static str,
    in_lane: &'static str,
}

/// One open transaction. Only [`Tx::finish`] with an `Ok` commits; dropping it rolls back immediately, because
/// its connection is closed.
#[must_use = "a transaction that is not finished did nothing"]
pub struct Tx {
    session: Session,
    is_open: bool,
}

impl Store {
    /// Opens a transaction (READ COMMITTED).
    pub async fn begin(&self) -> Result<Tx, Error> {
        Tx::open(self.session().await?, "BEGIN").await
    }

    /// Opens a transaction (READ COMMITTED) for a change. Its statements are planned once for each connection: with
    /// values, the server would plan for each set of ids, which takes longer than changing a few rows.
    pub async fn begin_change(&self, turn: Turn) -> Result<Tx, Error> {
        let (session, sql) = match turn {
            Turn::First => (self.session().await?, BEGIN_CHANGE.first),
            Turn::InLane => {
                let lane = &self.lanes.held_rows;
                let session = self.session_in(lane, self.deadline).await?;
                (session, BEGIN_CHANGE.in_lane)
            }
        };
        Tx::open(session, sql).await
    }

    /// Opens a transaction (REPEATABLE READ) that only reads: all its statements see the state of the first one.
    pub async fn begin_reading(&self) -> Result<Tx, Error> {
        Tx::open(self.session().await?, BEGIN_READING).await
    }
}

impl Tx {
    async fn open(session: Session, sql: &'static str) -> Result<Self, Error> {
        // Constructed before the first statement, which may fail after it has opened the transaction.
        let mut tx = Self {
            session,
            is_open: true,
        };
        tx.db().execute(sql, Begin, "open a transaction").await?;
        Ok(tx)
    }

    pub fn db(&mut self) -> Db<'_> {
        self.session.db()
    }

    /// Commits if `result` is `Ok`, rolls back otherwise.
    pub async fn finish<T, E: From<Error>>(mut self, result: Result<T, E>) -> Result<T, E> {
        match result {
            Ok(value) => {
                self.close("COMMIT", Commit, "commit").await?;
                Ok(value)
            }
            Err(error) => {
                // If this also fails, the connection is closed, with the same effect.
                let _ = self.close("ROLLBACK", Rollback, "roll back").await;
                Err(error)
            }
        }
    }

    /// Rolls back, whatever the transaction did.
    pub async fn roll_back(mut self) {
        // If this fails, the connection is closed, with the same effect.
        let _ = self.close("ROLLBACK", Rollback, "roll back").await;
    }

    async fn close(
        &mut self,
        sql: &'static str,
        operation: SqlOperation,
        doing: &'static str,
    ) -> Result<(), Error> {
        self.db().execute(sql, operation, doing).await?;
        self.is_open = false;
        Ok(())
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        let is_open = self.is_open;
        let link = self.db().link;
        if is_open && link.health == Health::Good {
            link.health = Health::Busy;
        }
    }
}
