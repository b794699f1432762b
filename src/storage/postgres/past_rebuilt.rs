//! Lists of an earlier moment in any order: one statement that rebuilds what the filter and the order need of every resource
//! that changed since.

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use super::columns::{column, literal};
use super::keyset::push_after;
use super::list::{ListQuery, push_order, push_tenants};
use super::past_page::{push_limit, push_states};
use super::states::{STATE_JOINS, declared, whole};
use crate::domain::page::OrderField;
use crate::domain::{ListFilter, ResourceId};

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

pub(super) fn statement(request: &ListQuery<'_>, at: DateTime<Utc>) -> QueryBuilder<Postgres> {
    let kind = request.kind().map(literal);
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
    query.push("), page AS (SELECT *, row_number() OVER (");
    push_order(&mut query, &request.order, "");
    query.push(") AS place FROM shown");
    if let Some(position) = &request.after {
        query.push(" WHERE ");
        push_after(&mut query, position);
    }
    query.push(" ORDER BY place");
    push_limit(&mut query, request);
    query.push(")");
    push_states(
        &mut query,
        request,
        "(SELECT count(*) AS count FROM shown)",
        "page",
    );
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
