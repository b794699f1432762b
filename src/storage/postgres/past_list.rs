//! Lists of an earlier moment: one statement that rebuilds what the filter and the order need of every resource that changed
//! since, and whole states for the page alone.

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder, Row as _};

use super::columns::{column, literal};
use super::error::is_timeout;
use super::keyset::push_after;
use super::list::{ListQuery, push_order, push_tenants, read_resources};
use super::measure::SqlOperation::{Query, Raw};
use super::measure::SqlTable::Changes;
use super::row::COLUMNS_COUNT;
use super::states::{STATE_COLUMNS, STATE_JOINS, declared, whole};
use super::{Db, Error};
use crate::domain::page::{Listing, OrderField};
use crate::domain::position::RowPosition;
use crate::domain::{ListFilter, ResourceId, StoredResource};

/// A page of a list as it was at a moment.
#[derive(Debug)]
pub struct PastListing {
    pub listing: Listing<StoredResource>,
    /// The time from which on all changes are stored; unset if all are.
    pub kept_since: Option<DateTime<Utc>>,
}

/// What a filter and an order read of a state, and how a state before a change has it.
fn known(field: OrderField) -> Option<String> {
    let name = column(field);
    match field {
        OrderField::Id | OrderField::Kind => None,
        OrderField::Name
        | OrderField::OwnerId
        | OrderField::CreatedTime
        | OrderField::CreatedBy => Some(whole(name)),
        OrderField::Generation
        | OrderField::UpdatedTime
        | OrderField::UpdatedBy
        | OrderField::DeletedTime
        | OrderField::DeletedBy => Some(declared(name)),
    }
}

const FIELDS: [OrderField; 9] = [
    OrderField::Name,
    OrderField::OwnerId,
    OrderField::CreatedTime,
    OrderField::CreatedBy,
    OrderField::Generation,
    OrderField::UpdatedTime,
    OrderField::UpdatedBy,
    OrderField::DeletedTime,
    OrderField::DeletedBy,
];

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
        let is_too_slow = result.as_ref().is_err_and(is_timeout);
        let rows = self.complete(result, Query(Changes), "list resources of a moment");
        if is_too_slow {
            return Err(Error::TooSlow {
                doing: "list resources of a moment",
            });
        }
        let rows = rows?;
        let size = request.page.size as usize;
        let is_last = rows.len() <= size;
        let kept = rows.first().map(|row| row.try_get(COLUMNS_COUNT + 1));
        let kept = self.complete(kept.transpose(), Raw, "read the start of the history")?;
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
            kept_since: kept.flatten(),
        })
    }
}

fn statement(request: &ListQuery<'_>, at: DateTime<Utc>) -> QueryBuilder<Postgres> {
    let kind = request.filters.iter().find_map(|filter| match filter {
        ListFilter::Kind(kind) => Some(literal(kind)),
        _ => None,
    });
    let mut query = QueryBuilder::new(
        "WITH later AS MATERIALIZED (
             SELECT DISTINCT ON (resource_id) resource_id, kind, position AS since, action FROM changes WHERE at > ",
    );
    query.push_bind(at);
    if let Some(kind) = &kind {
        query.push(" AND kind = ").push(kind);
    }
    query.push(
        " ORDER BY resource_id, position), shown AS MATERIALIZED (SELECT * FROM (SELECT id, kind",
    );
    for field in FIELDS {
        query.push(", ").push(column(field));
    }
    // Those that have not changed since, and those that have, as they were.
    query.push(
        ", tenancy, NULL::bigint AS since FROM resources p
         WHERE NOT EXISTS (SELECT FROM later l WHERE l.resource_id = p.id)",
    );
    if let Some(kind) = &kind {
        query.push(" AND kind = ").push(kind);
    }
    query.push(" UNION ALL SELECT c.resource_id, c.kind");
    for value in FIELDS.iter().filter_map(|field| known(*field)) {
        query.push(", ").push(value);
    }
    query
        .push(", ")
        .push(whole("tenancy"))
        .push(", c.since FROM later c ")
        .push(STATE_JOINS)
        .push("WHERE c.action <> 'created') then_there WHERE true");
    push_filter(&mut query, request);
    query.push(") SELECT ");
    if request.has_specs {
        query.push(STATE_COLUMNS.as_str());
    } else {
        let spec = "coalesce((SELECT l.spec FROM";
        query.push(STATE_COLUMNS.replace(spec, "coalesce('null'::jsonb, (SELECT l.spec FROM"));
    }
    query.push(
        ", total.count, (SELECT at FROM changes_removed) FROM (SELECT count(*) AS count FROM shown) total
         LEFT JOIN (SELECT id AS resource_id, kind, since, row_number() OVER (",
    );
    push_order(&mut query, &request.order, "");
    query.push(") AS place FROM shown");
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
    query
        .push(") c ON true ")
        .push(STATE_JOINS)
        .push("ORDER BY c.place");
    query
}

/// The filters of the list, on states of the moment.
fn push_filter(query: &mut QueryBuilder<Postgres>, request: &ListQuery<'_>) {
    push_tenants(query, request.tenants);
    if let Some(owner) = request.owner {
        query.push(" AND owner_id = ").push_bind(owner.as_uuid());
    }
    for filter in &request.filters {
        match filter {
            // Searches are refused before. The kind is part of both halves.
            ListFilter::Kind(_) | ListFilter::Search(_) | ListFilter::IncludeDeleted(true) => {}
            ListFilter::IncludeDeleted(false) => {
                query.push(" AND deleted_at IS NULL");
            }
            ListFilter::Reference { ref_type, target } => push_reference(query, ref_type, *target),
        }
    }
}

/// References are stored in a table for the present, and as a value of changes for earlier states.
fn push_reference(query: &mut QueryBuilder<Postgres>, ref_type: &str, target: Option<ResourceId>) {
    let Some(target) = target else {
        query.push(" AND false");
        return;
    };
    query.push(
        " AND coalesce((SELECT l.links FROM changes l WHERE l.resource_id = then_there.id
                        AND l.position >= then_there.since AND l.generation IS NOT NULL AND l.links IS NOT NULL
                        ORDER BY l.position LIMIT 1),
                       (SELECT jsonb_agg(jsonb_build_object('type', ref_type, 'id', target_id))
                        FROM resource_references WHERE source_id = then_there.id))
              @> jsonb_build_array(jsonb_build_object('type', ",
    );
    query.push_bind(ref_type.to_owned());
    query.push("::text, 'id', ").push_bind(target.as_uuid());
    query.push("::uuid))");
}
