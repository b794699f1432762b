//! Sends every statement to the database, like sqlx, but records its text, limits its time, and may send it again if
//! its connection was closed.
//!
//! A connection that the server closed while it was idle looks open until a statement is sent over it, which fails. If
//! that is the first statement of a request, the request has had no effect yet. The statement is then sent again over
//! another connection, if a repetition is harmless.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, unfold};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Describe, Either, Error, Execute, Executor, Postgres, SqlStr};
use tokio::time::{Instant, timeout_at};

use super::error::is_closed;
use super::measure::Statement;
use super::pool::Link;

/// A statement that fails later than this is not sent again: a closed connection fails immediately, and a longer
/// statement was ended for a reason.
const REPEATED_WITHIN: Duration = Duration::from_secs(2);

/// A connection for one statement.
#[derive(Debug)]
pub(super) struct GuardedConnection<'c> {
    pub(super) link: &'c mut Link,
    /// Whether the statement is sent once more if its connection is closed.
    pub(super) is_repeatable: bool,
}

/// A statement whose text was read, which sqlx allows only in exchange for the statement.
struct Inspected {
    sql: SqlStr,
    arguments: Result<Option<PgArguments>, BoxDynError>,
    is_persistent: bool,
}

impl GuardedConnection<'_> {
    fn inspect<'q>(&mut self, mut query: impl Execute<'q, Postgres>) -> Inspected {
        let is_persistent = query.persistent();
        let arguments = query.take_arguments();
        let sql = query.sql();
        self.link.statement = Some(Statement::begin(sql.clone()));
        Inspected {
            sql,
            arguments,
            is_persistent,
        }
    }
}

type Answer = Result<Either<PgQueryResult, PgRow>, Error>;

/// The answers to a statement, all of which must arrive in time.
fn send(link: &mut Link, statement: Inspected) -> BoxStream<'_, Answer> {
    let deadline = link.answer_by();
    let answers = link.connection.fetch_many(statement);
    match deadline {
        None => answers,
        Some((deadline, timeout_error)) => in_time(answers, deadline, timeout_error),
    }
}

fn in_time(
    answers: BoxStream<'_, Answer>,
    deadline: Instant,
    timeout_error: fn() -> Error,
) -> BoxStream<'_, Answer> {
    Box::pin(unfold(Some(answers), move |answers| async move {
        let mut answers = answers?;
        match timeout_at(deadline, answers.next()).await {
            Ok(answer) => answer.map(|answer| (answer, Some(answers))),
            Err(_) => Some((Err(timeout_error()), None)),
        }
    }))
}

/// The answers to a statement, up to the first error. If that is a closed connection, the statement is sent once more,
/// over a new one.
async fn gather(link: &mut Link, statement: Inspected) -> Vec<Answer> {
    let copy = statement.copy();
    let since = Instant::now();
    let answers = until_error(send(link, statement)).await;
    let (Some(copy), Some(Err(error))) = (copy, answers.last()) else {
        return answers;
    };
    let shows_at_once = since.elapsed() < REPEATED_WITHIN;
    // Without a new connection, the first error says more.
    if !is_closed(error) || !shows_at_once || link.renew().await.is_err() {
        return answers;
    }
    tracing::info!(target: "hyperfleet::sql", %error, "connection closed: repeating the statement");
    link.is_repeated = true;
    link.was_repeated = true;
    until_error(send(link, copy)).await
}

async fn until_error(mut answers: BoxStream<'_, Answer>) -> Vec<Answer> {
    let mut all = Vec::new();
    while let Some(answer) = answers.next().await {
        let is_error = answer.is_err();
        all.push(answer);
        if is_error {
            break;
        }
    }
    all
}

impl Inspected {
    /// The same statement, unless its arguments could not be written.
    fn copy(&self) -> Option<Self> {
        let arguments = self.arguments.as_ref().ok()?;
        Some(Self {
            sql: self.sql.clone(),
            arguments: Ok(arguments.clone()),
            is_persistent: self.is_persistent,
        })
    }
}

impl Execute<'_, Postgres> for Inspected {
    fn sql(self) -> SqlStr {
        self.sql
    }

    fn statement(&self) -> Option<&PgStatement> {
        None
    }

    fn take_arguments(&mut self) -> Result<Option<PgArguments>, BoxDynError> {
        std::mem::replace(&mut self.arguments, Ok(None))
    }

    fn persistent(&self) -> bool {
        self.is_persistent
    }
}

impl<'c> Executor<'c> for GuardedConnection<'c> {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        mut self,
        query: E,
    ) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let statement = self.inspect(query);
        let Self {
            link,
            is_repeatable,
        } = self;
        if !is_repeatable {
            return send(link, statement);
        }
        let answers = async move { stream::iter(gather(link, statement).await) };
        stream::once(answers).flatten().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let mut answers = self.fetch_many(query);
        Box::pin(async move {
            // All answers: an error may follow the row.
            let mut found = None;
            while let Some(answer) = answers.next().await {
                if let Either::Right(row) = answer? {
                    found.get_or_insert(row);
                }
            }
            Ok(found)
        })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        self.link.connection.prepare_with(sql, parameters)
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, Error>>
    where
        'c: 'e,
    {
        self.link.connection.describe(sql)
    }
}
