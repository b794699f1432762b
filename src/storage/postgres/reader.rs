//! Combines concurrent reads of single resources in one statement.
//!
//! ```text
//! GET ─▶ asked ─┐
//! GET ─▶ asked ─┼─▶ one statement at a time ─▶ to each its own answer
//! GET ─▶ asked ─┘
//! ```
//!
//! A single read is sent immediately. Reads that arrive while a statement is in progress share the next statement: the
//! busier the service, the more reads share a round trip. Every answer is as current as that of a separate statement,
//! because the statement begins after the read was requested.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use futures_util::FutureExt as _;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, Row as _};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tracing::{Instrument as _, Span};
use uuid::Uuid;

use super::error::Doing as _;
use super::measure::SqlOperation::Query;
use super::measure::SqlTable::Resources;
use super::pool::{self, Pool};
use super::row::{COLUMNS, COLUMNS_COUNT, StoredRow};
use super::{Error, ResourceScope, Session, Settings, measure};
use crate::domain::{StoredResource, Tenancy};

/// Resources in one statement at most; limits the memory of a batch of large ones.
const BATCH_MAX: usize = 32;

/// Consists of constants only.
static SQL: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {COLUMNS}, wanted.place
         FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::jsonb[])
              WITH ORDINALITY wanted (id, kind, owner_id, tenancy, place)
         JOIN resources r ON r.id = wanted.id
         WHERE (wanted.kind IS NULL OR r.kind = wanted.kind)
           AND (wanted.owner_id IS NULL OR r.owner_id = wanted.owner_id)
           AND (wanted.tenancy IS NULL OR r.tenancy = wanted.tenancy
                AND (wanted.owner_id IS NULL OR has_tenancy(wanted.owner_id, wanted.tenancy)))"
    )
});

/// A separate connection for reads of single resources.
#[derive(Clone)]
pub(super) struct Reader {
    pool: Pool,
    desk: Arc<Mutex<Desk>>,
}

#[derive(Default)]
struct Desk {
    /// Whether a task is answering; a request that finds it unset starts one.
    is_busy: bool,
    waiting: Vec<PendingRead>,
}

struct PendingRead {
    kind: Option<String>,
    owner: Option<Uuid>,
    tenancy: Option<Json<Tenancy>>,
    id: Uuid,
    /// How long to wait for a connection.
    until: Instant,
    answer: oneshot::Sender<Result<Option<StoredResource>, Unanswered>>,
    span: Span,
}

/// Why the reader has no answer. Another connection may have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// There was no connection in time.
    NoConnection,
    /// The statement failed, perhaps for another request's question.
    Failed,
}

impl Reader {
    pub(super) fn new(settings: &Settings) -> Self {
        // The server would plan for each number of ids, which takes longer than reading.
        let connect = settings.connect.clone().options([
            ("plan_cache_mode", "force_generic_plan"),
            ("enable_seqscan", "off"),
        ]);
        let settings = Settings {
            connect,
            connections_max: 1,
            ..settings.clone()
        };
        Self {
            pool: pool::pool(&settings),
            desk: Arc::default(),
        }
    }

    /// One resource, if it exists. A connection is awaited until `until`, the answer until the deadline.
    pub(super) async fn find(
        &self,
        scope: ResourceScope<'_>,
        until: Instant,
        deadline: Option<Instant>,
    ) -> Result<Option<StoredResource>, Unanswered> {
        let (answer, answered) = oneshot::channel();
        let asked = PendingRead {
            kind: scope.kind.map(ToOwned::to_owned),
            owner: scope.owner_uuid(),
            tenancy: scope.tenants.tenancy().cloned().map(Json),
            id: scope.id.as_uuid(),
            until,
            answer,
            span: Span::current(),
        };
        let was_busy = {
            let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
            desk.waiting.push(asked);
            std::mem::replace(&mut desk.is_busy, true)
        };
        if !was_busy {
            // In a task of its own: a client that leaves must not cancel the others' answers.
            tokio::spawn(self.clone().answer_all());
        }
        let answered = match deadline {
            None => Ok(answered.await),
            // Requests that gather may wait for each other.
            Some(deadline) => timeout_at(deadline, answered).await,
        };
        answered.map_or(Err(Unanswered::Failed), |answered| {
            answered.unwrap_or(Err(Unanswered::Failed))
        })
    }

    pub(super) fn pool(&self) -> Pool {
        self.pool.clone()
    }

    async fn answer_all(self) {
        while let Some(batch) = self.next_batch() {
            // If this fails, the questions are dropped: their requests ask elsewhere. The statement's log and trace
            // are those of the first request.
            let span = batch
                .first()
                .map_or_else(Span::none, |asked| asked.span.clone());
            let answer = self.answer(batch).instrument(span);
            let _ = AssertUnwindSafe(answer).catch_unwind().await;
        }
    }

    fn next_batch(&self) -> Option<Vec<PendingRead>> {
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        let count = desk.waiting.len().min(BATCH_MAX);
        desk.is_busy = count > 0;
        desk.is_busy.then(|| desk.waiting.drain(..count).collect())
    }

    /// Refuses the waiting requests together with those of this batch: each would wait in vain in turn.
    fn send_away(&self, batch: Vec<PendingRead>) {
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        for asked in batch.into_iter().chain(desk.waiting.drain(..)) {
            // The request may have left.
            let _ = asked.answer.send(Err(Unanswered::NoConnection));
        }
    }

    async fn answer(&self, batch: Vec<PendingRead>) -> Result<(), Error> {
        // The request with the earliest deadline has waited longest.
        let until = batch.iter().map(|asked| asked.until).min();
        let until = until.unwrap_or_else(Instant::now);
        let mut session = match Session::of(&self.pool, until, None).await {
            Ok(session) => session,
            Err(error) => {
                self.send_away(batch);
                return Err(error);
            }
        };
        let mut db = session.db();
        let query = sqlx::query(AssertSqlSafe(SQL.as_str()));
        let ids: Vec<_> = batch.iter().map(|a| a.id).collect();
        let kinds: Vec<_> = batch.iter().map(|a| a.kind.as_deref()).collect();
        let owners: Vec<_> = batch.iter().map(|a| a.owner).collect();
        let tenancies: Vec<_> = batch.iter().map(|a| a.tenancy.as_ref()).collect();
        let query = query.bind(ids).bind(kinds).bind(owners).bind(tenancies);
        let others = batch.iter().skip(1);
        let shared = others.map(|a| measure::shared(&a.span, &SQL, Query(Resources)));
        let shared: Vec<_> = shared.collect();
        let result = query.fetch_all(db.repeatable_wire()).await;
        let rows = db.complete(result, Query(Resources), "find resources")?;
        drop(shared);
        let mut batch: Vec<_> = batch.into_iter().map(Some).collect();
        for row in &rows {
            let index: i64 = row.try_get(COLUMNS_COUNT).doing("read a place")?;
            let index = usize::try_from(index - 1).ok();
            let asked = index.and_then(|index| batch.get_mut(index)?.take());
            let row = StoredRow::read(row).doing("read a resource")?;
            if let Some(asked) = asked {
                // The request may have left.
                let _ = asked.answer.send(Ok(Some(row.into())));
            }
        }
        for asked in batch.into_iter().flatten() {
            let _ = asked.answer.send(Ok(None));
        }
        Ok(())
    }
}
