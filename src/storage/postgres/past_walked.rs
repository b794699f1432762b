//! Lists of an earlier moment in an order that changes do not move, such as the newest first.
//!
//! Nearly all resources that were there then are there now, at the same place of the list. So the list of now is walked in its
//! index, without the resources that `moved` has: those that came, went, or were rewritten whole since. These are added as
//! they were. The total is the kept one of now, corrected by the same resources and those that were marked as deleted since.

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use super::columns::literal;
use super::keyset::push_after;
use super::list::{ListQuery, push_kept_total, push_order, push_tenants};
use super::past_list::{push_limit, push_states, skipped};
use crate::domain::ListFilter;
use crate::domain::page::OrderField;

/// A change by which a resource came, went, or was rewritten by a writer other than the service: the condition of the index
/// `changes_whole`.
const IS_WHOLE: &str = "(l.action = 'created' OR l.created_at IS NOT NULL)";
/// More than the clocks of two instances differ: a change of that time may come after one with a later time.
const CLOCKS_DIFFER_MAX: &str = "interval '1 minute'";

/// Whether no change of the service moves a resource within the list, or into and out of it, other than its creation, deletion
/// and removal.
pub(super) fn is_possible(request: &ListQuery<'_>) -> bool {
    let has_references = request
        .filters
        .iter()
        .any(|filter| matches!(filter, ListFilter::Reference { .. }));
    !has_references && request.order.keys().all(|(field, _)| is_constant(field))
}

fn is_constant(field: OrderField) -> bool {
    match field {
        OrderField::Id
        | OrderField::Name
        | OrderField::Kind
        | OrderField::OwnerId
        | OrderField::CreatedTime
        | OrderField::CreatedBy => true,
        OrderField::Generation
        | OrderField::UpdatedTime
        | OrderField::UpdatedBy
        | OrderField::DeletedTime
        | OrderField::DeletedBy => false,
    }
}

const COLUMNS: &str = "id, kind, name, owner_id, created_at, created_by";

pub(super) fn statement(request: &ListQuery<'_>, at: DateTime<Utc>) -> QueryBuilder<Postgres> {
    let walk = Walk { request, at };
    let mut query = QueryBuilder::new("WITH ");
    walk.push_moved(&mut query);
    query.push(", total AS (");
    walk.push_total(&mut query);
    query.push("), page AS (SELECT p.*, ");
    walk.push_since(&mut query, "p");
    query.push(" AS since FROM (SELECT *, row_number() OVER (");
    push_order(&mut query, &request.order, "");
    query.push(") AS place FROM (SELECT * FROM (");
    walk.push_unmoved_page(&mut query);
    query
        .push(") unmoved UNION ALL SELECT * FROM (SELECT ")
        .push(COLUMNS);
    query.push(" FROM moved WHERE is_there");
    walk.push_moved_filter(&mut query);
    walk.push_beginning(&mut query);
    query.push(") moved) listed ORDER BY place");
    push_limit(&mut query, request);
    query.push(") p)");
    push_states(&mut query, request, "total", "page");
    query
}

struct Walk<'a> {
    request: &'a ListQuery<'a>,
    at: DateTime<Utc>,
}

impl Walk<'_> {
    /// The resources with a whole change since, as they were; without `is_there` if they did not exist. Those that came since,
    /// perhaps nearly all, need no other change of theirs.
    fn push_moved(&self, query: &mut QueryBuilder<Postgres>) {
        query.push(
            "first AS MATERIALIZED (
             SELECT DISTINCT ON (l.resource_id) l.resource_id AS id, l.kind, l.action = 'created' AND l.at > ",
        );
        query
            .push_bind(self.at)
            .push(" AS is_new FROM changes l WHERE ");
        query.push(IS_WHOLE).push(" AND l.at > ");
        query.push_bind(self.at).push("::timestamptz - ");
        query.push(CLOCKS_DIFFER_MAX);
        self.push_kind(query);
        query.push(
            " ORDER BY l.resource_id, l.position), moved AS MATERIALIZED (
             SELECT id, kind, false AS is_there, NULL AS name, NULL::uuid AS owner_id, NULL::timestamptz AS created_at,
                    NULL AS created_by, NULL::jsonb AS tenancy, NULL::timestamptz AS deleted_at
             FROM first WHERE is_new
             UNION ALL
             SELECT c.id, c.kind, w.action <> 'created', w.name, w.owner_id, w.created_at, w.created_by, w.tenancy, d.deleted_at
             FROM first c CROSS JOIN LATERAL (SELECT ",
        );
        self.push_since(query, "c");
        query.push(
            " AS since OFFSET 0) s
             CROSS JOIN LATERAL (SELECT l.* FROM changes l WHERE l.resource_id = c.id AND l.position >= s.since AND ",
        );
        query.push(IS_WHOLE).push(
            " ORDER BY l.position LIMIT 1) w
             LEFT JOIN LATERAL (SELECT l.deleted_at FROM changes l WHERE l.resource_id = c.id AND l.position >= s.since
                                AND l.generation IS NOT NULL ORDER BY l.position LIMIT 1) d ON true
             WHERE NOT c.is_new)",
        );
    }

    /// The first change of a resource after the moment, in the order of positions: the state then is the one before it.
    fn push_since(&self, query: &mut QueryBuilder<Postgres>, resource: &str) {
        query.push("(SELECT l.position FROM changes l WHERE l.resource_id = ");
        query.push(resource).push(".id AND l.at > ");
        query
            .push_bind(self.at)
            .push(" ORDER BY l.position LIMIT 1)");
    }

    /// The present resources that `moved` does not have, as many as the page may need. The walk begins where they can begin: no
    /// resource existed before its time of creation.
    ///
    /// A list by creation is read from an index, and the changes of each resource are looked up on the way: `OFFSET 0` keeps
    /// that from being planned as a join over all changes. Any other list is sorted as a whole, without all of `moved`.
    fn push_unmoved_page(&self, query: &mut QueryBuilder<Postgres>) {
        query.push("SELECT ").push(COLUMNS);
        query.push(" FROM resources p WHERE NOT EXISTS (");
        if self.request.order.is_by_creation() {
            self.push_whole_change(query);
            query.push(" OFFSET 0");
        } else {
            query.push("SELECT FROM moved m WHERE m.id = p.id");
        }
        query.push(") AND created_at <= ");
        query.push_bind(self.at).push("::timestamptz + ");
        query.push(CLOCKS_DIFFER_MAX);
        self.push_kind(query);
        self.push_owner(query);
        if !self.has_deleted() {
            query.push(" AND (deleted_at IS NULL OR ");
            self.push_deleted_later(query);
            query.push(")");
        }
        self.push_beginning(query);
    }

    /// A whole change of a present resource since.
    fn push_whole_change(&self, query: &mut QueryBuilder<Postgres>) {
        query.push("SELECT FROM changes l WHERE l.resource_id = p.id AND ");
        query.push(IS_WHOLE).push(" AND l.position >= ");
        self.push_since(query, "p");
    }

    /// Whether a resource that is finalizing now was not deleted then: its first declared change since replaced no time of
    /// deletion.
    fn push_deleted_later(&self, query: &mut QueryBuilder<Postgres>) {
        query.push(
            "(SELECT l.deleted_at IS NULL FROM changes l WHERE l.resource_id = p.id AND l.generation IS NOT NULL
              AND l.position >= ",
        );
        self.push_since(query, "p");
        query.push(" ORDER BY l.position LIMIT 1)");
    }

    /// The kept total of now, without those of `moved` as they are, and with them as they were; and with those that were
    /// marked as deleted since.
    fn push_total(&self, query: &mut QueryBuilder<Postgres>) {
        query.push("SELECT (");
        if self.request.owner.is_some() {
            query.push("SELECT count(*) FROM resources WHERE true");
            self.push_present_filter(query);
        } else {
            push_kept_total(query, self.request);
        }
        query.push(") - (SELECT count(*) FROM resources WHERE id IN (SELECT m.id FROM moved m)");
        self.push_present_filter(query);
        query.push(") + (SELECT count(*) FROM moved WHERE is_there");
        self.push_moved_filter(query);
        query.push(")");
        if !self.has_deleted() {
            query.push(" + (SELECT count(*) FROM resources p WHERE deleted_at IS NOT NULL");
            self.push_kind(query);
            self.push_owner(query);
            query.push(" AND NOT EXISTS (");
            self.push_whole_change(query);
            query.push(") AND ");
            self.push_deleted_later(query);
            query.push(")");
        }
        query.push(" AS count");
    }

    /// The rows from which the page is taken: from its position on, as many as it may need.
    fn push_beginning(&self, query: &mut QueryBuilder<Postgres>) {
        if let Some(position) = &self.request.after {
            query.push(" AND ");
            push_after(query, position);
        }
        push_order(query, &self.request.order, "");
        let rows = i64::from(self.request.page.size) + 1 + skipped(self.request);
        query.push(" LIMIT ").push(rows);
    }

    fn push_present_filter(&self, query: &mut QueryBuilder<Postgres>) {
        self.push_kind(query);
        self.push_moved_filter(query);
    }

    /// The filter on the states of one moment. All of `moved` are of the kind.
    fn push_moved_filter(&self, query: &mut QueryBuilder<Postgres>) {
        self.push_owner(query);
        if !self.has_deleted() {
            query.push(" AND deleted_at IS NULL");
        }
    }

    fn push_kind(&self, query: &mut QueryBuilder<Postgres>) {
        for filter in &self.request.filters {
            if let ListFilter::Kind(kind) = filter {
                query.push(" AND kind = ").push(literal(kind));
            }
        }
    }

    fn push_owner(&self, query: &mut QueryBuilder<Postgres>) {
        push_tenants(query, self.request.tenants);
        if let Some(owner) = self.request.owner {
            query.push(" AND owner_id = ").push_bind(owner.as_uuid());
        }
    }

    fn has_deleted(&self) -> bool {
        !self
            .request
            .filters
            .contains(&ListFilter::IncludeDeleted(false))
    }
}
