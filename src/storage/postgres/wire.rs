//! The way of every statement to the database: as sqlx's own, but that its text is noted.

use std::io;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, unfold};
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArguments, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Describe, Either, Error, Execute, Executor, Postgres, SqlStr};
use tokio::time::{Instant, timeout, timeout_at};

use super::measure::Statement;
use super::pool::Link;

/// A connection for one statement.
#[derive(Debug)]
pub(super) struct Wire<'c>(pub(super) &'c mut Link);

/// A statement whose text was looked at, which sqlx allows only in exchange for the statement.
struct Noted {
    sql: SqlStr,
    arguments: Result<Option<PgArguments>, BoxDynError>,
    is_persistent: bool,
}

impl Wire<'_> {
    fn note<'q>(&mut self, mut query: impl Execute<'q, Postgres>) -> Noted {
        let is_persistent = query.persistent();
        let arguments = query.take_arguments();
        let sql = query.sql();
        self.0.statement = Some(Statement::begin(sql.clone()));
        Noted {
            sql,
            arguments,
            is_persistent,
        }
    }
}

type Answer = Result<Either<PgQueryResult, PgRow>, Error>;

/// The answers to a statement, all of which must have come in this time.
fn in_time(answers: BoxStream<'_, Answer>, limit: Duration) -> BoxStream<'_, Answer> {
    let state = Some((answers, Instant::now() + limit));
    Box::pin(unfold(state, |state| async {
        let (mut answers, deadline) = state?;
        match timeout_at(deadline, answers.next()).await {
            Ok(answer) => answer.map(|answer| (answer, Some((answers, deadline)))),
            Err(_) => Some((Err(silent()), None)),
        }
    }))
}

/// The connection is there, and nothing comes: no server that works takes longer than the statement
/// may. It counts as lost, so that it is closed, and not waited for again.
fn silent() -> Error {
    Error::Io(io::Error::new(
        io::ErrorKind::TimedOut,
        "the server does not answer",
    ))
}

impl Execute<'_, Postgres> for Noted {
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

impl<'c> Executor<'c> for Wire<'c> {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(
        mut self,
        query: E,
    ) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let query = self.note(query);
        let limit = self.0.limit;
        let answers = self.0.connection.fetch_many(query);
        match limit {
            None => answers,
            Some(limit) => in_time(answers, limit),
        }
    }

    fn fetch_optional<'e, 'q: 'e, E>(
        mut self,
        query: E,
    ) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let query = self.note(query);
        let limit = self.0.limit;
        let answer = self.0.connection.fetch_optional(query);
        match limit {
            None => answer,
            Some(limit) => Box::pin(async move {
                let answer = timeout(limit, answer).await;
                answer.unwrap_or_else(|_| Err(silent()))
            }),
        }
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        self.0.connection.prepare_with(sql, parameters)
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, Error>>
    where
        'c: 'e,
    {
        self.0.connection.describe(sql)
    }
}
