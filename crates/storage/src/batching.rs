//! Gathers reads or changes that arrive at the same time, each an item of a batch: one statement does all of them.
//!
//! ```text
//! request ─▶ item ─┐
//! request ─▶ item ─┼─▶ one statement at a time ─▶ to each its own answer
//! request ─▶ item ─┘
//! ```
//!
//! A single item is sent immediately, and so is a second one beside it, if there is a connection for it: two are faster
//! side by side. Items that arrive meanwhile share the next statement: the busier the service, the more requests share a
//! round trip and a commit. Every answer is as current as the answer of a separate statement, because the statement
//! begins after the item was submitted.

use std::collections::VecDeque;
use std::error::Error as StdError;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use tracing::{Instrument as _, Span};

use super::measure::{self, SqlOperation};
use super::pool::{Health, Pool};
use super::{Db, Error, Session};

/// Items in one statement at most, if any share it.
pub(super) const BATCH_MAX: usize = 32;

/// Bytes in one statement at most, unless a single item has more. Limits the memory of a batch of large ones.
const BATCH_BYTES_MAX: usize = 1 << 20;

/// Something that one statement can do together with others of its sort.
pub(super) trait BatchItem: Sized + Send + Sync + 'static {
    type Answer: Send + 'static;

    /// What the statement does, for the spans of the requests that share it.
    const OPERATION: SqlOperation;
    /// Verb and object, for errors.
    const DOING: &'static str;
    /// Whether the statement is idempotent.
    const IS_REPEATABLE: bool = false;

    /// Bytes that the item adds to the statement, about.
    fn bytes(&self) -> usize {
        0
    }

    /// The same item, after a statement with it whose result is unknown.
    #[must_use]
    fn repeated(self) -> Self {
        self
    }

    /// Answers each item, in their order. On an error, no item has had an effect, unless the connection is
    /// lost.
    fn answer(
        db: &mut Db<'_>,
        items: &[Self],
    ) -> impl Future<Output = Result<Vec<Self::Answer>, Error>> + Send;
}

/// Why an item has no answer.
#[derive(Debug)]
pub(super) enum BatchError {
    /// There was no connection in time. The item had no effect.
    NoConnection,
    /// The statement failed, and had no other item. The item had no effect.
    Refused(Error),
    /// The statement failed, perhaps because of another request's item. The item had no effect.
    Failed,
    /// The connection was lost. Whether the item had an effect is unknown.
    Lost,
    /// The request's deadline passed. Whether the item had an effect is unknown.
    Late,
}

/// How statements of one sort use their pool.
#[derive(Debug, Clone, Copy)]
pub(super) struct BatchLimits {
    /// Statements with a single item that run at the same time, at most.
    pub(super) side_by_side: usize,
    /// Items in one statement at most.
    pub(super) items: usize,
}

/// Where items of one sort wait for the next statement. Cheap to clone.
pub(super) struct Batcher<Q: BatchItem> {
    /// The connections that statements use, including the connections of other batchers.
    pool: Pool,
    limits: BatchLimits,
    queue: Arc<Mutex<Queue<Q>>>,
}

struct Queue<Q: BatchItem> {
    /// Tasks that answer.
    tasks: usize,
    /// Those of them whose statement has several items.
    gathering: usize,
    waiting: VecDeque<Waiting<Q>>,
    /// Number of items submitted.
    submitted: u64,
}

struct Waiting<Q: BatchItem> {
    /// Counts the items of the batcher.
    number: u64,
    item: Q,
    /// How long to wait for a connection.
    until: Instant,
    answer: oneshot::Sender<Result<Q::Answer, BatchError>>,
    span: Span,
}

impl<Q: BatchItem> Batcher<Q> {
    pub(super) fn new((pool, limits): &(Pool, BatchLimits)) -> Self {
        let queue = Queue {
            tasks: 0,
            gathering: 0,
            waiting: VecDeque::new(),
            submitted: 0,
        };
        Self {
            pool: pool.clone(),
            limits: *limits,
            queue: Arc::new(Mutex::new(queue)),
        }
    }

    /// Submits an item. The begin of its statement is awaited until `until`, the answer until the deadline. An item
    /// whose request leaves before the statement begins is not part of it.
    pub(super) async fn submit(
        &self,
        item: Q,
        until: Instant,
        deadline: Option<Instant>,
    ) -> Result<Q::Answer, BatchError> {
        let (answer, mut answered) = oneshot::channel();
        let (needs_task, number) = {
            let mut queue = self.queue();
            queue.submitted += 1;
            let number = queue.submitted;
            queue.waiting.push_back(Waiting {
                number,
                item,
                until,
                answer,
                span: Span::current(),
            });
            let needs_task = queue.needs_task(self.limits);
            queue.tasks += usize::from(needs_task);
            (needs_task, number)
        };
        if needs_task {
            // In a task of its own: a client that leaves must not cancel the others' answers.
            tokio::spawn(self.clone().answer_all());
        }
        // The statement before may wait for a server that is silent: other connections may be better.
        match timeout_at(until, &mut answered).await {
            Ok(answered) => return answered.unwrap_or(Err(BatchError::Lost)),
            Err(_) if self.withdraw(number) => return Err(BatchError::NoConnection),
            Err(_) => {}
        }
        let answered = match deadline {
            None => answered.await,
            // Requests that gather may wait for each other.
            Some(deadline) => match timeout_at(deadline, answered).await {
                Ok(answered) => answered,
                Err(_) => return Err(BatchError::Late),
            },
        };
        // The task panicked, or the program ends.
        answered.unwrap_or(Err(BatchError::Lost))
    }

    /// Takes an item back, unless its statement has begun or waits for a connection.
    fn withdraw(&self, number: u64) -> bool {
        let mut queue = self.queue();
        let place = queue.waiting.iter().position(|w| w.number == number);
        place.is_some_and(|place| queue.waiting.remove(place).is_some())
    }

    fn queue(&self) -> MutexGuard<'_, Queue<Q>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn answer_all(self) {
        let mut batch = self.queue().next_batch(self.limits);
        while !batch.is_empty() {
            let is_gathering = batch.len() > 1;
            // If this panics, the items are dropped with it.
            let _ = AssertUnwindSafe(self.answer(batch)).catch_unwind().await;
            let mut queue = self.queue();
            queue.gathering -= usize::from(is_gathering);
            batch = queue.next_batch(self.limits);
        }
    }

    /// Refuses the waiting items together with this batch: each of them would run into the same timeout.
    fn send_away(&self, batch: Vec<Waiting<Q>>) {
        let waiting = std::mem::take(&mut self.queue().waiting);
        for waiting in batch.into_iter().chain(waiting) {
            // The request may have left.
            let _ = waiting.answer.send(Err(BatchError::NoConnection));
        }
    }

    async fn answer(&self, mut batch: Vec<Waiting<Q>>) {
        // The request with the earliest deadline has waited longest.
        let until = batch.iter().map(|waiting| waiting.until).min();
        let until = until.unwrap_or_else(Instant::now);
        let Ok(mut session) = Session::of(&self.pool, until, None).await else {
            self.send_away(batch);
            return;
        };
        // An abandoned request must have no effect.
        batch.retain(|waiting| !waiting.answer.is_closed());
        let Some(first) = batch.first() else {
            return;
        };
        // The log and the trace of the statement belong to the first request.
        let span = first.span.clone();
        let others = batch.iter().skip(1);
        let shared: Vec<_> = others
            .map(|waiting| measure::shared(&waiting.span, Q::OPERATION))
            .collect();
        let (items, requests): (Vec<_>, Vec<_>) = batch
            .into_iter()
            .map(|waiting| (waiting.item, waiting.answer))
            .unzip();
        let mut db = session.db();
        let answers = Q::answer(&mut db, &items).instrument(span).await;
        // A statement that was sent twice may have succeeded the first time and failed the second time.
        let is_lost = db.link.health == Health::Lost || db.link.was_repeated;
        drop(shared);
        // The requests' next statements need the connection.
        drop(session);
        // The requests may have left.
        let answers = match answers {
            Ok(answers) => answers,
            Err(error) => {
                refuse(requests, error, is_lost);
                return;
            }
        };
        for (request, answer) in requests.into_iter().zip(answers) {
            let _ = request.send(Ok(answer));
        }
    }
}

impl<Q: BatchItem> Queue<Q> {
    /// Whether an item that has just joined the queue gets a task of its own.
    fn needs_task(&self, limits: BatchLimits) -> bool {
        let is_first = self.waiting.len() == 1 && self.gathering == 0 || limits.items == 1;
        self.tasks == 0 || is_first && self.tasks < limits.side_by_side
    }

    /// The items of the next statement of a task; none if the task ends. It also ends if another one gathers: that one
    /// takes what waits.
    fn next_batch(&mut self, limits: BatchLimits) -> Vec<Waiting<Q>> {
        let mut batch = Vec::new();
        let mut bytes = 0;
        while batch.len() < limits.items && self.gathering == 0 {
            let Some(next) = self.waiting.front() else {
                break;
            };
            bytes += next.item.bytes();
            if bytes > BATCH_BYTES_MAX && !batch.is_empty() {
                break;
            }
            batch.extend(self.waiting.pop_front());
        }
        self.gathering += usize::from(batch.len() > 1);
        self.tasks -= usize::from(batch.is_empty());
        batch
    }
}

impl<Q: BatchItem> Clone for Batcher<Q> {
    fn clone(&self) -> Self {
        Self {
            pool: self.pool.clone(),
            limits: self.limits,
            queue: Arc::clone(&self.queue),
        }
    }
}

/// Answers the requests of a statement that failed.
fn refuse<T>(
    mut requests: Vec<oneshot::Sender<Result<T, BatchError>>>,
    error: Error,
    is_lost: bool,
) {
    // A lock is waited for longer by a request that makes no other one wait.
    let is_final = !is_lost && !matches!(error, Error::Contended { .. });
    if is_final && requests.len() == 1 {
        if let Some(request) = requests.pop() {
            let _ = request.send(Err(BatchError::Refused(error)));
        }
        return;
    }
    tracing::warn!(
        error = &error as &dyn StdError,
        requests = requests.len(),
        "shared statement failed"
    );
    for request in requests {
        let why = if is_lost {
            BatchError::Lost
        } else {
            BatchError::Failed
        };
        let _ = request.send(Err(why));
    }
}

/// The answers in the order of the items, from rows that name the item's place, counted from 1. An item
/// without a row has none.
pub(super) fn by_place<T>(
    count: usize,
    rows: impl IntoIterator<Item = (i64, T)>,
) -> Vec<Option<T>> {
    let mut answers: Vec<_> = std::iter::repeat_with(|| None).take(count).collect();
    for (place, answer) in rows {
        let place = usize::try_from(place - 1).ok();
        if let Some(slot) = place.and_then(|place| answers.get_mut(place)) {
            *slot = Some(answer);
        }
    }
    answers
}

/// One column of a set of rows, as a parameter of a statement.
pub(super) fn column<'r, R, T>(rows: &'r [R], value: impl Fn(&'r R) -> T) -> Vec<T> {
    rows.iter().map(value).collect()
}
