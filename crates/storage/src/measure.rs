//! Measures statements: metrics, a span for each if traces are exported, a log line for slow ones. Shows their texts,
//! never their values.

use std::time::{Duration, Instant};

use deadpool::managed::PoolError;
use sqlx::SqlStr;
use sqlx::error::ErrorKind;
use tracing::Span;
use tracing::field::Empty;

use super::error::{is_connection_lost, is_late, is_lock_timeout, is_timeout};

const DURATION: &str = "hyperfleet_db_query_duration_seconds";
const ERRORS: &str = "hyperfleet_db_errors_total";
const WAIT: &str = "hyperfleet_db_connection_wait_seconds";

/// Longer statements are logged as warnings.
const SLOW: Duration = Duration::from_millis(200);

/// What a statement does, and to which table: labels of metrics and names of spans.
#[derive(Debug, Clone, Copy)]
pub(super) enum SqlOperation {
    Create(SqlTable),
    Query(SqlTable),
    Update(SqlTable),
    Delete(SqlTable),
    /// Any of these for a large set of rows, as in imports: never logged as slow.
    Bulk(SqlTable),
    Begin,
    Commit,
    Rollback,
    /// Settings of the session, migrations.
    Raw,
}

#[derive(Debug, Clone, Copy, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub(super) enum SqlTable {
    Resources,
    AdapterReports,
    ResourceReferences,
    Audit,
    Changes,
    AuditPasses,
    IdempotencyKeys,
    Leases,
    #[strum(serialize = "_sqlx_migrations")]
    Migrations,
}

impl SqlOperation {
    /// The older service's name for it, the word of SQL, and the table.
    fn names(self) -> (&'static str, &'static str, Option<&'static str>) {
        match self {
            Self::Create(table) => ("create", "INSERT", Some(table.into_str())),
            Self::Query(table) => ("query", "SELECT", Some(table.into_str())),
            Self::Update(table) => ("update", "UPDATE", Some(table.into_str())),
            Self::Delete(table) => ("delete", "DELETE", Some(table.into_str())),
            Self::Bulk(table) => ("bulk", "SQL", Some(table.into_str())),
            Self::Begin => ("begin", "BEGIN", None),
            Self::Commit => ("commit", "COMMIT", None),
            Self::Rollback => ("rollback", "ROLLBACK", None),
            Self::Raw => ("raw", "SQL", None),
        }
    }
}

#[derive(Debug)]
pub(super) struct Statement {
    sql: SqlStr,
    since: Instant,
    span: Span,
}

impl Statement {
    pub(super) fn begin(sql: SqlStr) -> Self {
        let span = span(sql.as_str());
        Self {
            sql,
            since: Instant::now(),
            span,
        }
    }

    /// Records the end of the statement, with or without an error.
    pub(super) fn end(
        self,
        operation: SqlOperation,
        doing: &'static str,
        error: Option<&sqlx::Error>,
    ) {
        let elapsed = self.since.elapsed();
        let (label, _, table) = operation.names();
        let table = table.unwrap_or("unknown");
        metrics::histogram!(DURATION, "operation" => label, "table" => table).record(elapsed);
        let error_type = error.and_then(|error| error_type(operation, error));
        if let Some(error_type) = error_type {
            metrics::counter!(ERRORS, "operation" => label, "error_type" => error_type)
                .increment(1);
        }
        name(&self.span, operation, error_type);
        self.log(elapsed, operation, doing);
    }

    fn log(&self, elapsed: Duration, operation: SqlOperation, doing: &'static str) {
        let sql = self.sql.as_str();
        let duration_ms = elapsed.as_secs_f64() * 1e3;
        if elapsed > SLOW && !matches!(operation, SqlOperation::Bulk(_)) {
            let threshold_ms = SLOW.as_millis();
            tracing::warn!(target: "hyperfleet::sql", doing, sql, duration_ms, threshold_ms, "slow statement");
        } else {
            tracing::debug!(target: "hyperfleet::sql", doing, sql, duration_ms, "statement");
        }
    }
}

/// The span of a statement below the entered one. Probes and background work have none: each of their statements would
/// be a trace of its own. The log ignores that target at this level, so that the span exists only for traces.
fn span(sql: &str) -> Span {
    if Span::current().is_none() {
        return Span::none();
    }
    tracing::info_span!(
        target: "hyperfleet::sql",
        "sql",
        otel.name = Empty,
        otel.kind = "client",
        otel.status_code = Empty,
        db.system = "postgresql",
        db.query.text = sql,
        db.operation.name = Empty,
        db.collection.name = Empty,
        error.type = Empty,
    )
}

/// The span of a statement that also answers the request of `parent`. Its text is in the span of the request that was
/// first.
pub(super) fn shared(parent: &Span, operation: SqlOperation) -> Span {
    let span = parent.in_scope(|| span("(shared with other requests)"));
    name(&span, operation, None);
    span
}

fn name(span: &Span, operation: SqlOperation, error_type: Option<&'static str>) {
    if span.is_disabled() {
        return;
    }
    let (_, verb, table) = operation.names();
    span.record("db.operation.name", verb);
    if let Some(table) = table {
        span.record("db.collection.name", table);
        span.record("otel.name", format!("{verb} {table}"));
    } else {
        span.record("otel.name", verb);
    }
    if let Some(error_type) = error_type {
        span.record("error.type", error_type);
        span.record("otel.status_code", "error");
    }
}

/// Records how long getting a connection took, and why it failed.
pub(super) fn waited(time: Duration, error: Option<&PoolError<sqlx::Error>>) {
    metrics::histogram!(WAIT).record(time);
    let error_type = match error {
        None => return,
        Some(PoolError::Timeout(_)) => "timeout",
        Some(_) => "connection_error",
    };
    metrics::counter!(ERRORS, "operation" => "connect", "error_type" => error_type).increment(1);
}

/// Creates the series of every failure with the value 0.
pub fn count_from_zero() {
    let statements = ["begin", "create", "delete", "query", "raw", "update"];
    let error_types = [
        "connection_error",
        "constraint_violation",
        "other",
        "timeout",
    ];
    let of_statements = statements.iter().flat_map(|operation| {
        error_types
            .iter()
            .map(move |error_type| (*operation, *error_type))
    });
    let others = [
        ("commit", "commit_failed"),
        ("rollback", "rollback_failed"),
        ("connect", "connection_error"),
        ("connect", "timeout"),
    ];
    for (operation, error_type) in of_statements.chain(others) {
        metrics::counter!(ERRORS, "operation" => operation, "error_type" => error_type).absolute(0);
    }
}

/// The names of errors in the Go HyperFleet API; `None` for results that are no errors.
fn error_type(operation: SqlOperation, error: &sqlx::Error) -> Option<&'static str> {
    let is_constraint = |error: &dyn sqlx::error::DatabaseError| {
        !matches!(error.kind(), ErrorKind::Other)
            || error.code().is_some_and(|code| code.starts_with("23"))
    };
    Some(match error {
        sqlx::Error::RowNotFound => return None,
        _ if matches!(operation, SqlOperation::Commit) => "commit_failed",
        _ if matches!(operation, SqlOperation::Rollback) => "rollback_failed",
        // A write that waits too long for a row lock is retried, and refused if all attempts fail: that is no error of
        // the database.
        _ if is_lock_timeout(error) => return None,
        _ if is_connection_lost(error) => "connection_error",
        _ if is_timeout(error) || is_late(error) => "timeout",
        sqlx::Error::Database(error) if is_constraint(&**error) => "constraint_violation",
        _ => "other",
    })
}

#[cfg(test)]
mod tests {
    use super::SqlOperation::{Commit, Query, Rollback};
    use super::SqlTable::Resources;
    use super::*;

    #[test]
    fn error_types_have_the_names_of_dashboards() {
        let io = || sqlx::Error::Io(std::io::Error::other("cut"));
        assert_eq!(
            error_type(Query(Resources), &io()),
            Some("connection_error")
        );
        assert_eq!(error_type(Commit, &io()), Some("commit_failed"));
        assert_eq!(error_type(Rollback, &io()), Some("rollback_failed"));
        assert_eq!(
            error_type(Query(Resources), &sqlx::Error::RowNotFound),
            None
        );
        let other = sqlx::Error::ColumnNotFound("x".to_owned());
        assert_eq!(error_type(Query(Resources), &other), Some("other"));
    }
}
