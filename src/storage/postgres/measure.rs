//! What statements cost, and how they fail: metrics, a span for each where traces are kept, a line
//! in the log for slow ones. Their texts are shown, never their values.

use std::time::{Duration, Instant};

use deadpool::managed::PoolError;
use sqlx::SqlStr;
use sqlx::error::ErrorKind;
use tracing::Span;
use tracing::field::Empty;

use super::error::{is_connection_lost, is_out_of_time};

const DURATION: &str = "hyperfleet_db_query_duration_seconds";
const ERRORS: &str = "hyperfleet_db_errors_total";
const WAIT: &str = "hyperfleet_db_connection_wait_seconds";

/// What takes longer is told.
const SLOW: Duration = Duration::from_millis(200);

/// What a statement does to which table.
type Sort = (&'static str, &'static str);

/// A statement that is on its way.
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

    /// Its answer is there, or it failed.
    pub(super) fn end(self, doing: &'static str, error: Option<&sqlx::Error>) {
        let elapsed = self.since.elapsed();
        let (operation, table) = sort(doing);
        metrics::histogram!(DURATION, "operation" => operation, "table" => table).record(elapsed);
        let fault = error.and_then(|error| fault(operation, error));
        if let Some(fault) = fault {
            metrics::counter!(ERRORS, "operation" => operation, "error_type" => fault).increment(1);
        }
        name(&self.span, operation, table, fault);
        self.tell(elapsed, doing);
    }

    fn tell(&self, elapsed: Duration, doing: &'static str) {
        let sql = self.sql.as_str();
        let duration_ms = elapsed.as_secs_f64() * 1e3;
        if elapsed > SLOW {
            let threshold_ms = SLOW.as_millis();
            tracing::warn!(target: "hyperfleet::sql", doing, sql, duration_ms, threshold_ms, "slow statement");
        } else {
            tracing::debug!(target: "hyperfleet::sql", doing, sql, duration_ms, "statement");
        }
    }
}

/// The span of a statement below the one that is entered. The log wants none of that target at this
/// level, so that it is made only where traces go somewhere.
fn span(sql: &str) -> Span {
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

/// The span of a statement that answers the request of `parent`, too.
pub(super) fn shared(parent: &Span, sql: &str, doing: &'static str) -> Span {
    let span = parent.in_scope(|| span(sql));
    if !span.is_disabled() {
        let (operation, table) = sort(doing);
        name(&span, operation, table, None);
    }
    span
}

fn name(span: &Span, operation: &'static str, table: &'static str, fault: Option<&'static str>) {
    if span.is_disabled() {
        return;
    }
    let verb = match operation {
        "create" => "INSERT",
        "query" => "SELECT",
        "update" => "UPDATE",
        "delete" => "DELETE",
        "begin" => "BEGIN",
        "commit" => "COMMIT",
        "rollback" => "ROLLBACK",
        _ => "SQL",
    };
    span.record("db.operation.name", verb);
    if table == UNKNOWN {
        span.record("otel.name", verb);
    } else {
        span.record("db.collection.name", table);
        span.record("otel.name", format!("{verb} {table}"));
    }
    if let Some(fault) = fault {
        span.record("error.type", fault);
        span.record("otel.status_code", "error");
    }
}

/// How long a connection took to be had, and why it could not be.
pub(super) fn waited(time: Duration, error: Option<&PoolError<sqlx::Error>>) {
    metrics::histogram!(WAIT).record(time);
    let fault = match error {
        None => return,
        Some(PoolError::Timeout(_)) => "timeout",
        Some(_) => "connection_error",
    };
    metrics::counter!(ERRORS, "operation" => "connect", "error_type" => fault).increment(1);
}

/// Shows every failure that can be counted, at 0.
pub(super) fn count_from_zero() {
    let statements = ["begin", "create", "delete", "query", "raw", "update"];
    let faults = [
        "connection_error",
        "constraint_violation",
        "other",
        "timeout",
    ];
    let of_statements = statements
        .iter()
        .flat_map(|operation| faults.iter().map(move |fault| (*operation, *fault)));
    let others = [
        ("commit", "commit_failed"),
        ("rollback", "rollback_failed"),
        ("connect", "connection_error"),
        ("connect", "timeout"),
    ];
    for (operation, fault) in of_statements.chain(others) {
        metrics::counter!(ERRORS, "operation" => operation, "error_type" => fault).absolute(0);
    }
}

/// The older service's names for what goes wrong; none where nothing does.
fn fault(operation: &str, error: &sqlx::Error) -> Option<&'static str> {
    let is_constraint = |error: &dyn sqlx::error::DatabaseError| {
        !matches!(error.kind(), ErrorKind::Other)
            || error.code().is_some_and(|code| code.starts_with("23"))
    };
    Some(match error {
        sqlx::Error::RowNotFound => return None,
        _ if operation == "commit" => "commit_failed",
        _ if operation == "rollback" => "rollback_failed",
        _ if is_connection_lost(error) => "connection_error",
        _ if is_out_of_time(error) => "timeout",
        sqlx::Error::Database(error) if is_constraint(&**error) => "constraint_violation",
        _ => "other",
    })
}

/// The table of what is no single table's.
const UNKNOWN: &str = "unknown";

/// What statements do, by what they are said to be doing: the older service's names of operations.
fn sort(doing: &str) -> Sort {
    match doing {
        "find a resource"
        | "find a resource and its reports"
        | "find resources"
        | "list resources"
        | "lock a resource"
        | "lock a resource and its owners"
        | "lock the children of resources"
        | "lock the targets of references"
        | "look for a resource"
        | "read locked resources"
        | "read resources and what rules need"
        | "count unreconciled resources" => ("query", "resources"),
        "insert a resource" => ("create", "resources"),
        "save a patched resource" | "save the states of resources" => ("update", "resources"),
        "remove resources" => ("delete", "resources"),
        "find a report" | "list the reports of a resource" => ("query", "adapter_reports"),
        // With the conditions of its resource, in one statement.
        "save a report" => ("update", "adapter_reports"),
        "list referrers" => ("query", "resource_references"),
        "insert references" => ("create", "resource_references"),
        "remove references" | "drop references" => ("delete", "resource_references"),
        "list the audit trail" => ("query", "audit"),
        "write the audit trail" => ("create", "audit"),
        "remove expired audit entries" => ("delete", "audit"),
        "look for the schema" | "list the migrations" => ("query", "_sqlx_migrations"),
        "open a transaction" => ("begin", UNKNOWN),
        "commit" => ("commit", UNKNOWN),
        "roll back" => ("rollback", UNKNOWN),
        _ => ("raw", UNKNOWN),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// What settings of a session are changed with: no table's.
    const RAW: &[&str] = &[
        "lift the time limit",
        "restore the time limits",
        "apply the migrations",
        "open the audit trail for retention",
        "limit the time of a statement",
        "limit the wait for locks",
    ];

    /// What calls of `done`, `execute` and `close` say is being done: the last text of their line.
    fn texts() -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/storage/postgres");
        let mut texts = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("measure.rs") {
                continue;
            }
            let source = std::fs::read_to_string(path).unwrap();
            let calls = ["done(result", "execute(\"", "close(\""];
            let is_call = |line: &&str| calls.iter().any(|call| line.contains(call));
            let lines = source.lines().filter(is_call);
            texts.extend(lines.filter_map(|line| line.rsplit('"').nth(1).map(ToOwned::to_owned)));
        }
        texts
    }

    #[test]
    fn every_statement_is_counted_as_something() {
        let texts = texts();
        assert!(texts.len() > 25, "{texts:?}");
        for text in texts {
            let is_raw = sort(&text) == ("raw", UNKNOWN);
            assert_eq!(is_raw, RAW.contains(&text.as_str()), "{text}");
        }
    }

    #[test]
    fn faults_have_the_names_that_dashboards_know() {
        let io = || sqlx::Error::Io(std::io::Error::other("cut"));
        assert_eq!(fault("query", &io()), Some("connection_error"));
        assert_eq!(fault("commit", &io()), Some("commit_failed"));
        assert_eq!(fault("rollback", &io()), Some("rollback_failed"));
        assert_eq!(fault("query", &sqlx::Error::RowNotFound), None);
        let other = sqlx::Error::ColumnNotFound("x".to_owned());
        assert_eq!(fault("query", &other), Some("other"));
    }
}
