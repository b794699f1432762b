//! What the statements of lists of an earlier moment have in common: the end of the page, and the states of its resources.

use sqlx::{Postgres, QueryBuilder};

use super::list::ListQuery;
use super::states::{STATE_COLUMNS, STATE_JOINS};

/// Adds the end of a statement: the states of a page with the total in each row, and in a row of its own if the page is empty.
///
/// `total` has one row with the column `count`, `page` the columns `id`, `kind`, `since` and `place`, by which it is sorted.
pub(super) fn push_states(
    query: &mut QueryBuilder<Postgres>,
    request: &ListQuery<'_>,
    total: &str,
    page: &str,
) {
    query.push(" SELECT ");
    if request.has_specs {
        query.push(STATE_COLUMNS.as_str());
    } else {
        let spec = "coalesce((SELECT l.spec FROM";
        query.push(STATE_COLUMNS.replace(spec, "coalesce('null'::jsonb, (SELECT l.spec FROM"));
    }
    query.push(format!(
        ", total.count, (SELECT at FROM changes_removed) FROM {total} total
         LEFT JOIN (SELECT id AS resource_id, kind, since, place FROM {page}) c ON true
         {STATE_JOINS} ORDER BY c.place"
    ));
}

/// Adds how many rows of a sorted list the page has, one more than it shows, and how many it skips.
pub(super) fn push_limit(query: &mut QueryBuilder<Postgres>, request: &ListQuery<'_>) {
    query.push(" LIMIT ").push(request.page.size + 1);
    if skipped(request) > 0 {
        query.push(" OFFSET ").push_bind(skipped(request));
    }
}

/// Number of rows before the page, of those from its position on.
pub(super) fn skipped(request: &ListQuery<'_>) -> i64 {
    match request.after {
        Some(_) => 0,
        None => request.page.offset(),
    }
}
