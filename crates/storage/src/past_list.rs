//! Lists as of an earlier time, in one statement.
//!
//! Resources that have not changed since are read from `resources`, the others from the last change before that time.
//! The cost grows with the number of resources in the collection, and with the number of all changes since. Complete
//! states are read only for the page.

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder, Row as _};

use super::columns::{column, literal};
use super::keyset::push_after;
use super::list::{ListQuery, push_order, push_tenants, read_resources};
use super::measure::SqlOperation::{Query, Raw};
use super::measure::SqlTable::Changes;
use super::row::{COLUMNS_COUNT, state_columns};
use super::{Db, Error};
use hyperfleet_domain::page::{Listing, OrderField};
use hyperfleet_domain::position::RowPosition;
use hyperfleet_domain::{ListFilter, ResourceId, StoredResource};

/// A page of a list as it was at a moment.
#[derive(Debug)]
pub struct PastListing {
    pub listing: Listing<StoredResource>,
    /// The time from which on all changes are stored; unset if all are.
    pub stored_since: Option<DateTime<Utc>>,
}

impl Db<'_> {
    /// One page of a list as it was at `at`, with the exact total of all pages. Searches are not supported.
    pub async fn list_past(
        &mut self,
        request: &ListQuery<'_>,
        at: DateTime<Utc>,
    ) -> Result<PastListing, Error> {
        let mut query = statement(request, at);
        // Planned for its moment: it may be a minute or a month ago.
        let query = query.build().persistent(false);
        let result = query.fetch_all(self.repeatable_connection()).await;
        let rows = self.complete_slow(result, Query(Changes), "list resources of a moment")?;
        let size = request.page.size as usize;
        let is_last = rows.len() <= size;
        let start = rows.first().map(|row| row.try_get(COLUMNS_COUNT + 1));
        let start = self.complete(start.transpose(), Raw, "read the start of the history")?;
        let (total, items) = self.complete(read_resources(rows, size), Raw, "read a page")?;
        let last = items.last().filter(|_| !is_last);
        let next = last.map(|last| RowPosition::of(&request.order, last));
        Ok(PastListing {
            listing: Listing {
                page: request.page,
                items,
                total,
                next,
            },
            stored_since: start.flatten(),
        })
    }
}

/// Where the references of a state are stored.
#[derive(Clone, Copy)]
enum ReferenceSource {
    /// In a table, for the present.
    Table,
    /// In the column `links`.
    Links,
}

/// What filters and orders read.
fn key_columns() -> String {
    let fields = [
        OrderField::Id,
        OrderField::Kind,
        OrderField::Name,
        OrderField::OwnerId,
        OrderField::Generation,
        OrderField::CreatedTime,
        OrderField::CreatedBy,
        OrderField::UpdatedTime,
        OrderField::UpdatedBy,
        OrderField::DeletedTime,
        OrderField::DeletedBy,
    ];
    fields.map(column).join(", ")
}

fn statement(request: &ListQuery<'_>, at: DateTime<Utc>) -> QueryBuilder<Postgres> {
    let columns = key_columns();
    let mut query = QueryBuilder::new(
        "WITH later AS MATERIALIZED (
             SELECT resource_id, min(position) AS first FROM changes WHERE at > ",
    );
    query.push_bind(at);
    query.push(format!(
        " GROUP BY resource_id), found AS MATERIALIZED (
             SELECT {columns}, NULL::bigint AS position FROM resources r
             WHERE NOT EXISTS (SELECT FROM later l WHERE l.resource_id = r.id)"
    ));
    push_filter(&mut query, request, ReferenceSource::Table);
    query.push(format!(
        " UNION ALL SELECT {columns}, position FROM (
             SELECT s.* FROM later l CROSS JOIN LATERAL (
                 SELECT c.position, c.action FROM changes c
                 WHERE c.resource_id = l.resource_id AND c.position < l.first ORDER BY c.position DESC LIMIT 1) c
             CROSS JOIN LATERAL (SELECT {columns}, position, tenancy, links FROM resource_states s
                                 WHERE s.position = c.position) s
             WHERE c.action <> 'removed'"
    ));
    query.push(") s WHERE true");
    push_filter(&mut query, request, ReferenceSource::Links);
    query.push("), page AS (SELECT id, position, row_number() OVER (");
    push_order(&mut query, &request.order, "");
    query.push(") AS place FROM found");
    if let Some(position) = &request.after {
        query.push(" WHERE ");
        push_after(&mut query, position);
    }
    query
        .push(" ORDER BY place LIMIT ")
        .push(request.page.size + 1);
    if request.after.is_none() && request.page.offset() > 0 {
        query.push(" OFFSET ").push_bind(request.page.offset());
    }
    query.push(format!(
        ") SELECT {}, total.count, (SELECT at FROM changes_removed)
         FROM (SELECT count(*) AS count FROM found) total LEFT JOIN (
             SELECT place, coalesce(p.position, (
                 SELECT c.position FROM changes c WHERE c.resource_id = p.id ORDER BY c.position DESC LIMIT 1)) AS position
             FROM page p) p ON true
         LEFT JOIN resource_states s ON s.position = p.position ORDER BY p.place",
        state_columns("s", request.has_specs)
    ));
    query
}

fn push_filter(
    query: &mut QueryBuilder<Postgres>,
    request: &ListQuery<'_>,
    source: ReferenceSource,
) {
    push_tenants(query, request.tenants);
    if let Some(owner) = request.owner {
        query.push(" AND owner_id = ").push_bind(owner.as_uuid());
    }
    for filter in &request.filters {
        match filter {
            ListFilter::Kind(kind) => {
                query.push(" AND kind = ").push(literal(kind));
            }
            // Searches are refused before.
            ListFilter::Search(_) | ListFilter::IncludeDeleted(true) => {}
            ListFilter::IncludeDeleted(false) => {
                query.push(" AND deleted_at IS NULL");
            }
            ListFilter::Reference { ref_type, target } => {
                push_reference(query, ref_type, *target, source);
            }
        }
    }
}

fn push_reference(
    query: &mut QueryBuilder<Postgres>,
    ref_type: &str,
    target: Option<ResourceId>,
    source: ReferenceSource,
) {
    let target = target.map(ResourceId::as_uuid);
    let (begin, middle, end) = match source {
        ReferenceSource::Table => (
            " AND id IN (SELECT source_id FROM resource_references WHERE ref_type = ",
            " AND target_id = ",
            ")",
        ),
        ReferenceSource::Links => (
            " AND links @> jsonb_build_array(jsonb_build_object('type', ",
            "::text, 'id', ",
            "::uuid))",
        ),
    };
    query.push(begin).push_bind(ref_type.to_owned());
    query.push(middle).push_bind(target).push(end);
}
