//! The tables of the older service, and the columns that the import reads.

use std::collections::HashSet;

use sqlx::postgres::PgConnection;

use crate::storage::postgres::Error;
use crate::storage::postgres::error::Doing as _;

const COLUMNS: &[(&str, &[&str])] = &[
    (
        "resources",
        &[
            "id",
            "created_time",
            "updated_time",
            "deleted_time",
            "kind",
            "name",
            "href",
            "created_by",
            "updated_by",
            "deleted_by",
            "owner_id",
            "spec",
            "generation",
            "tenancy",
        ],
    ),
    ("resource_labels", &["resource_id", "key", "value"]),
    (
        "resource_conditions",
        &[
            "resource_id",
            "type",
            "status",
            "reason",
            "message",
            "observed_generation",
            "created_time",
            "last_updated_time",
            "last_transition_time",
        ],
    ),
    (
        "resource_references",
        &["source_id", "ref_type", "target_id", "target_kind"],
    ),
    (
        "adapter_statuses",
        &[
            "resource_type",
            "resource_id",
            "adapter",
            "observed_generation",
            "created_time",
            "last_report_time",
            "conditions",
            "data",
            "metadata",
        ],
    ),
];

const FOUND: &str = "SELECT c.relname::text, a.attname::text
     FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
     WHERE pg_table_is_visible(c.oid) AND a.attnum > 0 AND NOT a.attisdropped";

/// The columns that a database lacks, each with its table.
pub(super) async fn missing(connection: &mut PgConnection) -> Result<Vec<String>, Error> {
    let found = sqlx::query_as::<_, (String, String)>(FOUND).fetch_all(connection);
    let found = found.await.doing("look for the older service's tables")?;
    let found: HashSet<_> = found.into_iter().collect();
    let needed = COLUMNS.iter();
    let needed = needed.flat_map(|(table, columns)| columns.iter().map(move |c| (*table, *c)));
    let missing = needed.filter(|(t, c)| !found.contains(&((*t).to_owned(), (*c).to_owned())));
    Ok(missing
        .map(|(table, column)| format!("{table}.{column}"))
        .collect())
}
