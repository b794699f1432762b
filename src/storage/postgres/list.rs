//! Lists: the statements whose text depends on the request. Identifiers come from closed enums,
//! kinds from the configuration, other values through binds: no user text in SQL.

use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{FromRow, Postgres, QueryBuilder, Row as _};

use super::columns::{column, literal};
use super::error::is_out_of_time;
use super::keyset::push_after;
use super::measure::SqlOperation::{Query, Raw};
use super::measure::SqlTable::{Audit, Resources};
use super::row::{COLUMNS, ResourceRow};
use super::search::Search;
use super::{Db, Error};
use crate::domain::audit::{Entry, Filter};
use crate::domain::page::{Direction, Listing, Order, OrderField, Page};
use crate::domain::position::Position;
use crate::domain::tenancy::TenantScope;
use crate::domain::{EntityRegistry, ListFilter, Resource, ResourceId};

/// How many items a page may skip and still be read quickly: in an index, within a millisecond or two.
const SKIPPED_QUICKLY_MAX: i64 = 10_000;

/// A page of a list of resources.
#[derive(Debug, Clone)]
pub struct ListQuery<'a> {
    /// The caller, who sees a part of the resources.
    pub view: &'a TenantScope,
    /// The resource that owns the listed ones; `None` for any owner or none.
    pub owner: Option<ResourceId>,
    /// The conditions that listed resources meet.
    pub filters: Vec<ListFilter>,
    /// The kinds, for a search: the URLs of their resources are made from ids.
    pub registry: &'a EntityRegistry,
    /// How the list is sorted.
    pub order: Order,
    /// The page.
    pub page: Page,
    /// Where the page begins, instead of where its number says.
    pub after: Option<Position>,
}

/// Where the total of a list comes from. Of the conditions of a list, the last in this order
/// decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Total {
    /// From the numbers that triggers keep, less finalizing resources.
    Kept,
    /// Counted by an index that has nothing else: a condition on one column, equal to one value.
    Counted,
    /// Counted among the rows that the page is taken from, which are found once for both. For every condition that may
    /// have to look at many rows: its statement is planned for its values, and told when it takes too long.
    Found,
}

impl ListQuery<'_> {
    fn total(&self) -> Total {
        let filters = self.filters.iter().map(|filter| match filter {
            ListFilter::Kind(_) | ListFilter::IncludeDeleted(_) => Total::Kept,
            ListFilter::Search(_) | ListFilter::Reference { .. } => Total::Found,
        });
        let owned = self.owner.map(|_| Total::Counted);
        filters.chain(owned).max().unwrap_or(Total::Kept)
    }

    /// Whether the time of the statement depends on how much is stored, and not on the page alone. Then it belongs
    /// into the lane ([`Store::slow_session`](super::Store::slow_session)): every search does, because how many rows
    /// and bytes it reads shows only when it runs. So do lists that are sorted as a whole, and pages far back. A list
    /// by creation is read from an index, and its total is kept or counted by one.
    pub fn may_be_slow(&self) -> bool {
        let skipped = match self.after {
            Some(_) => 0,
            None => self.page.offset(),
        };
        self.is_found_once() || !self.order.is_by_creation() || skipped > SKIPPED_QUICKLY_MAX
    }

    fn is_found_once(&self) -> bool {
        self.total() == Total::Found
    }
}

impl Db<'_> {
    /// One page of a list with the exact total of all pages, as of one moment.
    pub async fn list_resources(
        &mut self,
        wanted: &ListQuery<'_>,
    ) -> Result<Listing<Resource>, Error> {
        let mut query = statement(wanted);
        // Searches differ in their texts: kept, they would push out the statements that do not.
        // Planned with its values, each also gets the plan that fits them.
        let query = query.build().persistent(!wanted.is_found_once());
        let result = query.fetch_all(self.repeatable_wire()).await;
        // A list waits for nobody's locks: what takes its whole time is the list itself.
        let is_too_slow = wanted.may_be_slow() && result.as_ref().is_err_and(is_out_of_time);
        let rows = self.done(result, Query(Resources), "list resources");
        if is_too_slow {
            return Err(Error::TooSlow {
                doing: "list resources",
            });
        }
        let rows = rows?;
        let (total, mut rows) = self.read_page::<ResourceRow>(&rows, "id")?;
        let size = wanted.page.size as usize;
        let is_last = rows.len() <= size;
        rows.truncate(size);
        let items: Vec<_> = rows.into_iter().map(Resource::from).collect();
        let last = items.last().filter(|_| !is_last);
        let next = last.map(|last| Position::of(&wanted.order, last));
        Ok(Listing {
            page: wanted.page,
            items,
            total,
            next,
        })
    }

    /// One page of what is seen of the audit trail, newest first, with the exact total of all pages.
    pub async fn list_audit(
        &mut self,
        view: &TenantScope,
        filter: &Filter,
        page: Page,
    ) -> Result<Listing<Entry>, Error> {
        let mut query = QueryBuilder::new(
            "SELECT total.count AS total, e.* FROM (SELECT count(*) FROM audit_entries",
        );
        push_audit_filter(&mut query, view, filter);
        query.push(") total LEFT JOIN (SELECT sequence, at, actor, request_id, action, kind, resource_id, name, \
             generation_before, generation_after, reason, tenancy FROM audit_entries");
        push_audit_filter(&mut query, view, filter);
        query
            .push(" ORDER BY sequence DESC LIMIT ")
            .push_bind(i64::from(page.size));
        query.push(" OFFSET ").push_bind(page.offset());
        query.push(") e ON true ORDER BY e.sequence DESC");
        let result = query.build().fetch_all(self.repeatable_wire()).await;
        let is_too_slow = result.as_ref().is_err_and(is_out_of_time);
        let rows = self.done(result, Query(Audit), "list the audit trail");
        if is_too_slow {
            return Err(Error::TooSlow {
                doing: "list the audit trail",
            });
        }
        let rows = rows?;
        let (total, items) = self.read_page(&rows, "sequence")?;
        Ok(Listing {
            page,
            items,
            total,
            next: None,
        })
    }

    /// The total, which every row repeats, and the items. An empty page has one row: the total,
    /// and nothing in the column `key`.
    fn read_page<T: for<'r> FromRow<'r, PgRow>>(
        &mut self,
        rows: &[PgRow],
        key: &str,
    ) -> Result<(i64, Vec<T>), Error> {
        let mut total = Ok(0);
        let mut items = Vec::with_capacity(rows.len());
        for row in rows {
            total = row.try_get("total");
            let is_there = row
                .try_get_raw(key)
                .map(|value| !sqlx::ValueRef::is_null(&value));
            if self.done(is_there, Raw, "read a page")? {
                items.push(self.done(T::from_row(row), Raw, "read a page")?);
            }
        }
        Ok((self.done(total, Raw, "read the total of a list")?, items))
    }
}

fn push_audit_filter(query: &mut QueryBuilder<Postgres>, view: &TenantScope, filter: &Filter) {
    query.push(" WHERE true");
    push_view(query, view);
    // Taken apart, so that a new filter cannot be left out.
    let Filter {
        resource_id,
        kind,
        actor,
        action,
        since,
        until,
    } = filter.clone();
    if let Some(id) = resource_id {
        query.push(" AND resource_id = ").push_bind(id.as_uuid());
    }
    if let Some(kind) = kind {
        query.push(" AND kind = ").push_bind(kind);
    }
    if let Some(actor) = actor {
        query.push(" AND actor = ").push_bind(actor);
    }
    if let Some(action) = action {
        query.push(" AND action = ").push_bind(action.into_str());
    }
    if let Some(since) = since {
        query.push(" AND at >= ").push_bind(since);
    }
    if let Some(until) = until {
        query.push(" AND at < ").push_bind(until);
    }
}

/// The page's ids come from an index alone; only the rows on the page are read whole.
///
/// The text says how long the page is, that the first one skips nothing, and which kind is listed:
/// only where the server knows how few rows there will be does it keep a plan, instead of planning
/// anew for each request, which takes longer than the rest; and only where it knows the kind is
/// that plan a good one for rare kinds, too.
///
/// One row more than the page holds tells whether it is the last one.
///
/// What is filtered is found once, for the total and for the page: with that the server has no
/// reason to walk the whole list in the hope that a page comes together early.
fn statement(wanted: &ListQuery<'_>) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new("");
    if wanted.is_found_once() {
        query.push("WITH found AS MATERIALIZED (SELECT id");
        for (field, _) in wanted.order.keys().filter(|(f, _)| *f != OrderField::Id) {
            query.push(", ").push(column(field));
        }
        query.push(" FROM resources");
        push_filter(&mut query, wanted);
        query.push(") ");
    }
    query
        .push("SELECT total.count AS total, ")
        .push(COLUMNS)
        .push(" FROM (");
    push_total(&mut query, wanted);
    query.push(") total LEFT JOIN (SELECT id FROM ");
    if wanted.is_found_once() {
        query.push("found");
    } else {
        query.push("resources");
        push_filter(&mut query, wanted);
    }
    if let Some(position) = &wanted.after {
        query.push(if wanted.is_found_once() {
            " WHERE "
        } else {
            " AND "
        });
        push_after(&mut query, position);
    }
    push_order(&mut query, &wanted.order, "");
    query.push(" LIMIT ").push(wanted.page.size + 1);
    if wanted.after.is_none() && wanted.page.offset() > 0 {
        query.push(" OFFSET ").push_bind(wanted.page.offset());
    }
    query.push(") page ON true LEFT JOIN resources r ON r.id = page.id");
    push_order(&mut query, &wanted.order, "r.");
    query
}

/// Totals of whole kinds are kept, also by tenant: all rows, less the finalizing ones.
fn push_total(query: &mut QueryBuilder<Postgres>, wanted: &ListQuery<'_>) {
    match wanted.total() {
        Total::Found => {
            query.push("SELECT count(*) FROM found");
            return;
        }
        Total::Counted => {
            query.push("SELECT count(*) FROM resources");
            return push_filter(query, wanted);
        }
        Total::Kept => {}
    }
    let push_scope = |query: &mut QueryBuilder<Postgres>| {
        push_view(query, wanted.view);
        for filter in &wanted.filters {
            if let ListFilter::Kind(kind) = filter {
                query.push(" AND kind = ").push(literal(kind));
            }
        }
    };
    query.push("SELECT (SELECT coalesce(sum(count), 0)::bigint FROM ");
    query.push(match wanted.view.tenancy() {
        Some(_) => "tenant_resource_counts",
        None => "resource_counts",
    });
    query.push(" WHERE true");
    push_scope(query);
    query.push(")");
    if wanted.filters.contains(&ListFilter::IncludeDeleted(false)) {
        query.push(" - (SELECT count(*) FROM resources WHERE deleted_at IS NOT NULL");
        push_scope(query);
        query.push(")");
    }
    query.push(" AS count");
}

fn push_filter(query: &mut QueryBuilder<Postgres>, wanted: &ListQuery<'_>) {
    query.push(" WHERE true");
    push_view(query, wanted.view);
    if let Some(owner) = wanted.owner {
        query.push(" AND owner_id = ").push_bind(owner.as_uuid());
        push_seen(query, wanted.view, Some(owner));
    }
    for filter in &wanted.filters {
        match filter {
            ListFilter::Kind(kind) => {
                query.push(" AND kind = ").push(literal(kind));
            }
            ListFilter::Search(search) => {
                query.push(" AND ");
                Search(wanted.registry).push_filter(query, search);
            }
            ListFilter::IncludeDeleted(true) => {}
            ListFilter::IncludeDeleted(false) => {
                query.push(" AND deleted_at IS NULL");
            }
            ListFilter::Reference { ref_type, target } => {
                query.push(
                    " AND id IN (SELECT source_id FROM resource_references WHERE ref_type = ",
                );
                query.push_bind(ref_type.clone());
                query
                    .push(" AND target_id = ")
                    .push_bind(target.map(ResourceId::as_uuid));
                push_seen(query, wanted.view, *target);
                query.push(")");
            }
        }
    }
}

/// Adds the condition that rows of a table with a column `tenancy` are seen. The second half is what
/// the indexes of tenants are for; whoever does not see all has a tenancy.
fn push_view(query: &mut QueryBuilder<Postgres>, view: &TenantScope) {
    if let Some(tenancy) = view.tenancy() {
        query
            .push(" AND tenancy = ")
            .push_bind(Json(tenancy.clone()));
        query.push(" AND tenancy <> '{}'");
    }
}

/// Adds the condition that a resource which the client names is seen; looked at once.
fn push_seen(query: &mut QueryBuilder<Postgres>, view: &TenantScope, id: Option<ResourceId>) {
    if let Some((id, tenancy)) = id.zip(view.tenancy()) {
        query.push(" AND has_tenancy(").push_bind(id.as_uuid());
        query.push(", ").push_bind(Json(tenancy.clone())).push(")");
    }
}

fn push_order(query: &mut QueryBuilder<Postgres>, order: &Order, table: &'static str) {
    for (place, (field, direction)) in order.keys().enumerate() {
        query.push(if place == 0 { " ORDER BY " } else { ", " });
        query.push(table).push(column(field));
        query.push(match direction {
            Direction::Ascending => " ASC",
            Direction::Descending => " DESC",
        });
    }
}
