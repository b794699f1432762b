//! Lists of an earlier moment in an order that changes do not move, such as the newest first.
//!
//! Nearly all resources that were there then are there now, at the same place of the list. So the list of now is read, by creation
//! in its index and otherwise sorted as a whole, without the resources that `differing` has: those that came, went, or were rewritten whole since. These are added as
//! they were. The total is the kept one of now, corrected by the same resources and those that were marked as deleted since.

use chrono::{DateTime, Utc};
use sqlx::{Postgres, QueryBuilder};

use super::columns::literal;
use super::keyset::push_after;
use super::list::{ListQuery, push_kept_total, push_order, push_tenants};
use super::past_page::{push_limit, push_states, skipped};
use crate::domain::ListFilter;
use crate::domain::page::OrderField;

/// A change by which a resource came, went, or was rewritten by a writer other than the service: the condition of the index
/// `changes_whole`.
const IS_WHOLE: &str = "(l.action = 'created' OR l.created_at IS NOT NULL)";
/// How far a change may be dated before the one that it follows: clocks of instances differ, and the time of a change is that at
/// which its request began, and not when it got its turn.
const TIMES_DIFFER_MAX: &str = "interval '2 hours'";

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

/// How the resources that `differing` has are left out.
#[derive(Clone, Copy)]
enum LeftOut {
    /// By the changes of each one.
    ByLookup,
    /// By reading `differing`.
    ByList,
}

const COLUMNS: &str = "id, kind, name, owner_id, created_at, created_by";

pub(super) fn statement(request: &ListQuery<'_>, at: DateTime<Utc>) -> QueryBuilder<Postgres> {
    let walk = Walk { request, at };
    let mut query = QueryBuilder::new("WITH ");
    walk.push_differing(&mut query);
    query.push(", total AS (");
    walk.push_total(&mut query);
    query.push("), page AS (SELECT p.*, ");
    walk.push_since(&mut query, "p");
    query.push(" AS since FROM (SELECT *, row_number() OVER (");
    push_order(&mut query, &request.order, "");
    query.push(") AS place FROM (SELECT * FROM (");
    walk.push_unmoved_pages(&mut query);
    query
        .push(") unmoved UNION ALL SELECT * FROM (SELECT ")
        .push(COLUMNS);
    query.push(" FROM differing WHERE is_there");
    walk.push_differing_filter(&mut query);
    walk.push_position(&mut query);
    walk.push_first_rows(&mut query);
    query.push(") differing) listed ORDER BY place");
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
    /// The resources with a whole change since, as they were; without `is_there` if they did not exist, or were of another kind.
    /// Those that came since, perhaps nearly all, need no other change of theirs.
    fn push_differing(&self, query: &mut QueryBuilder<Postgres>) {
        query.push(
            "first AS MATERIALIZED (
             SELECT DISTINCT ON (l.resource_id) l.resource_id AS id, l.kind, l.action = 'created' AND l.at > ",
        );
        query
            .push_bind(self.at)
            .push(" AS is_new FROM changes l WHERE ");
        query.push(IS_WHOLE).push(" AND l.at > ");
        self.push_earliest(query);
        self.push_no_earlier_creation(query);
        // What was of the kind then may have been removed, and its id used again.
        if let Some(kind) = self.request.kind() {
            let kind = literal(kind);
            query.push(format!(" AND (l.kind = {kind} OR l.action <> 'created')"));
        }
        query.push(
            " ORDER BY l.resource_id, l.position), differing AS MATERIALIZED (
             SELECT id, kind, false AS is_there, NULL AS name, NULL::uuid AS owner_id, NULL::timestamptz AS created_at,
                    NULL AS created_by, NULL::jsonb AS tenancy, NULL::timestamptz AS deleted_at
             FROM first WHERE is_new
             UNION ALL
             SELECT c.id, w.kind, w.action <> 'created'",
        );
        if let Some(kind) = self.request.kind() {
            query.push(" AND w.kind = ").push(literal(kind));
        }
        query.push(
            ", w.name, w.owner_id, w.created_at, w.created_by, w.tenancy, d.deleted_at
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

    /// The earliest date of a change whose position is after the moment.
    fn push_earliest(&self, query: &mut QueryBuilder<Postgres>) {
        query.push_bind(self.at).push("::timestamptz - ");
        query.push(TIMES_DIFFER_MAX);
    }

    /// Without creations that are dated before the moment, perhaps nearly all of them: only one that uses an id again comes after
    /// another change of its resource.
    fn push_no_earlier_creation(&self, query: &mut QueryBuilder<Postgres>) {
        query.push(" AND (l.action <> 'created' OR l.at > ");
        query.push_bind(self.at).push(")");
    }

    /// The first change of a resource after the moment, in the order of positions: the state then is the one before it.
    ///
    /// `IS TRUE` keeps the index of times out: it would be read whole for each resource.
    fn push_since(&self, query: &mut QueryBuilder<Postgres>, resource: &str) {
        query.push("(SELECT l.position FROM changes l WHERE l.resource_id = ");
        query.push(resource).push(".id AND (l.at > ");
        query
            .push_bind(self.at)
            .push(") IS TRUE ORDER BY l.position LIMIT 1)");
    }

    /// The present resources that `differing` does not have, as many as the page may need.
    ///
    /// A list by creation is read from an index, and the changes of each resource are looked up on the way. Of those with a later
    /// time of creation nearly all came since: these would be looked up in vain, perhaps a million of them before the first one
    /// that is listed. So the few others among them, which another program made, are read apart, like any list that has to be
    /// sorted as a whole: without all of `differing`.
    fn push_unmoved_pages(&self, query: &mut QueryBuilder<Postgres>) {
        if !self.request.order.is_by_creation() {
            return self.push_unmoved_page(query, LeftOut::ByList, "");
        }
        query.push("SELECT * FROM (");
        self.push_unmoved_page(query, LeftOut::ByLookup, " AND created_at <= ");
        query.push(") earlier UNION ALL SELECT * FROM (");
        self.push_unmoved_page(query, LeftOut::ByList, " AND created_at > ");
        query.push(") later");
    }

    fn push_unmoved_page(
        &self,
        query: &mut QueryBuilder<Postgres>,
        left_out: LeftOut,
        created: &str,
    ) {
        // Where `OFFSET 0` stands, the database may not plan for the few rows of the page: it would look for each row through
        // the whole list, in the hope that it soon has them. Nor may it make a lookup a join over all changes.
        match left_out {
            LeftOut::ByLookup => {
                query.push("SELECT ").push(COLUMNS);
                query.push(" FROM resources p WHERE NOT EXISTS (");
                self.push_whole_change(query);
                query.push(" OFFSET 0)");
            }
            LeftOut::ByList => {
                query.push("SELECT * FROM (SELECT ").push(COLUMNS);
                query.push(" FROM resources p WHERE NOT EXISTS (SELECT FROM differing m WHERE m.id = p.id)");
            }
        }
        if !created.is_empty() {
            query.push(created).push_bind(self.at);
        }
        self.push_kind(query);
        self.push_owner(query);
        if !self.request.has_deleted() {
            query.push(" AND (deleted_at IS NULL OR ");
            self.push_deleted_later(query);
            query.push(")");
        }
        self.push_position(query);
        if let LeftOut::ByList = left_out {
            query.push(" OFFSET 0) unsorted");
        }
        self.push_first_rows(query);
    }

    /// A whole change of a present resource since, like those of `differing`, of any kind.
    fn push_whole_change(&self, query: &mut QueryBuilder<Postgres>) {
        query.push("SELECT FROM changes l WHERE l.resource_id = p.id AND ");
        query.push(IS_WHOLE).push(" AND (l.at > ");
        self.push_earliest(query);
        query.push(") IS TRUE");
        self.push_no_earlier_creation(query);
        query.push(" AND l.position >= ");
        self.push_since(query, "p");
    }

    /// Whether a resource that is finalizing now was not deleted then: its first declared change since replaced no time of
    /// deletion. The service never takes a deletion back, so that one of long before needs no look at the changes.
    fn push_deleted_later(&self, query: &mut QueryBuilder<Postgres>) {
        query.push("(p.deleted_at > ");
        self.push_earliest(query);
        query.push(
            " AND (SELECT l.deleted_at IS NULL FROM changes l WHERE l.resource_id = p.id AND l.generation IS NOT NULL
                   AND l.position >= ",
        );
        self.push_since(query, "p");
        query.push(" ORDER BY l.position LIMIT 1))");
    }

    /// The kept total of now, without those of `differing` as they are, and with them as they were; and with those that were
    /// marked as deleted since.
    fn push_total(&self, query: &mut QueryBuilder<Postgres>) {
        query.push("SELECT (");
        if self.request.owner.is_some() {
            query.push("SELECT count(*) FROM resources WHERE true");
            self.push_present_filter(query);
        } else {
            push_kept_total(query, self.request);
        }
        query
            .push(") - (SELECT count(*) FROM resources WHERE id IN (SELECT m.id FROM differing m)");
        self.push_present_filter(query);
        query.push(") + (SELECT count(*) FROM differing WHERE is_there");
        self.push_differing_filter(query);
        query.push(")");
        if !self.request.has_deleted() {
            query.push(" + (SELECT count(*) FROM resources p WHERE deleted_at IS NOT NULL");
            self.push_kind(query);
            self.push_owner(query);
            query.push(" AND NOT EXISTS (SELECT FROM differing m WHERE m.id = p.id) AND ");
            self.push_deleted_later(query);
            query.push(")");
        }
        query.push(" AS count");
    }

    /// From the position of the page on.
    fn push_position(&self, query: &mut QueryBuilder<Postgres>) {
        if let Some(position) = &self.request.after {
            query.push(" AND ");
            push_after(query, position);
        }
    }

    /// As many rows as the page may need.
    fn push_first_rows(&self, query: &mut QueryBuilder<Postgres>) {
        push_order(query, &self.request.order, "");
        let rows = i64::from(self.request.page.size) + 1 + skipped(self.request);
        query.push(" LIMIT ").push(rows);
    }

    fn push_present_filter(&self, query: &mut QueryBuilder<Postgres>) {
        self.push_kind(query);
        self.push_differing_filter(query);
    }

    /// The filter on the states of one moment, without the kind: all that `differing` says was there is of the kind.
    fn push_differing_filter(&self, query: &mut QueryBuilder<Postgres>) {
        self.push_owner(query);
        if !self.request.has_deleted() {
            query.push(" AND deleted_at IS NULL");
        }
    }

    fn push_kind(&self, query: &mut QueryBuilder<Postgres>) {
        if let Some(kind) = self.request.kind() {
            query.push(" AND kind = ").push(literal(kind));
        }
    }

    fn push_owner(&self, query: &mut QueryBuilder<Postgres>) {
        push_tenants(query, self.request.tenants);
        if let Some(owner) = self.request.owner {
            query.push(" AND owner_id = ").push_bind(owner.as_uuid());
        }
    }
}
