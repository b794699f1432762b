//! Lists: the statements whose text depends on the request. Identifiers come from closed enums,
//! kinds from the configuration, other values through binds: no user text in SQL.

use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{FromRow, Postgres, QueryBuilder, Row as _};
use uuid::Uuid;

use super::columns::{column, literal};
use super::error::is_out_of_time;
use super::keyset::push_after;
use super::measure::SqlOperation::{Query, Raw};
use super::measure::SqlTable::{Audit, Resources};
use super::row::{COLUMNS, COLUMNS_COUNT, COLUMNS_WITHOUT_SPEC, StoredRow};
use super::search::Search;
use super::{Db, Error};
use crate::domain::audit::{Entry, Filter, SettledTrail, TrailPosition};
use crate::domain::page::{Direction, Listing, Order, OrderField, Page};
use crate::domain::position::Position;
use crate::domain::tenancy::TenantScope;
use crate::domain::{EntityRegistry, ListFilter, ResourceId, StoredResource};

/// How many items a page may skip and still be read quickly: in an index, within a millisecond or two.
const SKIPPED_QUICKLY_MAX: i64 = 10_000;
/// The oldest transaction that is open anywhere on the server and has written something, as of the statement's
/// snapshot; if there is none, the next one.
const OPEN_TRANSACTION: &str = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint";
/// What the snapshot does not show is of this era and of that transaction or a later one, and its `commit_order` is no
/// lower than its transaction.
const IS_SETTLED: &str =
    "(era, commit_order) < (audit_era(), pg_snapshot_xmin(pg_current_snapshot())::text::bigint)";
const BY_POSITION: &str = " ORDER BY era, commit_order, sequence";
/// So many entries behind a position are counted: a reader who begins with a long trail asks for page after page.
const FOLLOWING_COUNT_MAX: i64 = 1_000;

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
    /// Whether specs are read; if not, each is `null`.
    pub has_specs: bool,
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

/// What a page of the audit trail is made from, as of one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct TrailRows {
    /// The entries.
    pub listing: Listing<Entry>,
    /// How far the trail is settled.
    pub settled: SettledTrail,
    /// The position of the last entry, if more follow it in the order of positions.
    pub end: Option<TrailPosition>,
}

impl Db<'_> {
    /// One page of a list with the exact total of all pages, as of one moment.
    pub async fn list_resources(
        &mut self,
        wanted: &ListQuery<'_>,
    ) -> Result<Listing<StoredResource>, Error> {
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
        let size = wanted.page.size as usize;
        let is_last = rows.len() <= size;
        let (total, items) = self.done(read_resources(rows, size), Raw, "read a page")?;
        let last = items.last().filter(|_| !is_last);
        let next = last.map(|last| Position::of(&wanted.order, last));
        Ok(Listing {
            page: wanted.page,
            items,
            total,
            next,
        })
    }

    /// One page of what is seen of the audit trail, with the total of all pages: newest first, or behind a
    /// position in the order of positions.
    pub async fn list_audit(
        &mut self,
        view: &TenantScope,
        filter: &Filter,
        page: Page,
    ) -> Result<TrailRows, Error> {
        let mut query = audit_statement(view, filter, page);
        let result = query.build().fetch_all(self.repeatable_wire()).await;
        let is_too_slow = result.as_ref().is_err_and(is_out_of_time);
        let rows = self.done(result, Query(Audit), "list the audit trail");
        if is_too_slow {
            return Err(Error::TooSlow {
                doing: "list the audit trail",
            });
        }
        let mut rows = rows?;
        // The total of an empty trail has a row, too.
        let first = rows.first().map(SettledTrail::from_row);
        let settled = first.unwrap_or(Err(sqlx::Error::RowNotFound));
        let settled = self.done(settled, Raw, "read how far the trail is settled")?;
        let size = page.size as usize;
        let is_last = rows.len() <= size;
        rows.truncate(size);
        let end = rows.last().filter(|_| !is_last && filter.after.is_some());
        let end = end.map(TrailPosition::from_row).transpose();
        let end = self.done(end, Raw, "read a position of the trail")?;
        let (total, items) = self.read_page(&rows, "sequence")?;
        let listing = Listing {
            page,
            items,
            total,
            next: None,
        };
        Ok(TrailRows {
            listing,
            settled,
            end,
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

/// The total, which every row repeats behind the [`COLUMNS`], and the resources. An empty page has one row: the total.
/// Each row is dropped once it is read, so that a page of large ones is not in memory twice.
fn read_resources(
    rows: Vec<PgRow>,
    size: usize,
) -> Result<(i64, Vec<StoredResource>), sqlx::Error> {
    let mut total = 0;
    let mut items = Vec::with_capacity(size.min(rows.len()));
    for row in rows.into_iter().take(size) {
        total = row.try_get(COLUMNS_COUNT)?;
        if row.try_get::<Option<Uuid>, _>(0)?.is_some() {
            items.push(StoredRow::read(&row)?.into());
        }
    }
    Ok((total, items))
}

/// The page, with the total and with how far the trail is settled in every row, and in a row of their own if
/// the page is empty. Behind a position it has one row more than the page holds, which tells whether it is the last one.
fn audit_statement(view: &TenantScope, filter: &Filter, page: Page) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(
        "SELECT total.count AS total, settled.*, last.*, e.* FROM (SELECT audit_era() AS current_era, ",
    );
    query.push(OPEN_TRANSACTION).push(
        " AS open_transaction) settled
         LEFT JOIN (SELECT era AS last_era, commit_order AS last_commit_order, sequence AS last_sequence
                    FROM audit_entries WHERE ",
    );
    query.push(IS_SETTLED).push(
        " ORDER BY era DESC, commit_order DESC, sequence DESC LIMIT 1) last ON true
         CROSS JOIN (SELECT count(*) FROM ",
    );
    let order = if filter.after.is_some() {
        // With the order the server reads the index of positions, and stops at the limit.
        query.push("(SELECT FROM audit_entries");
        push_audit_filter(&mut query, view, filter);
        query
            .push(BY_POSITION)
            .push(" LIMIT ")
            .push(FOLLOWING_COUNT_MAX);
        query.push(") counted");
        BY_POSITION
    } else {
        query.push("audit_entries");
        push_audit_filter(&mut query, view, filter);
        " ORDER BY sequence DESC"
    };
    query.push(
        ") total LEFT JOIN (SELECT sequence, at, actor, request_id, action, kind, resource_id, name, \
         generation_before, generation_after, reason, tenancy, era, commit_order FROM audit_entries",
    );
    push_audit_filter(&mut query, view, filter);
    let rows = i64::from(page.size) + i64::from(filter.after.is_some());
    query.push(order).push(" LIMIT ").push_bind(rows);
    query.push(" OFFSET ").push_bind(page.offset());
    query.push(") e ON true").push(order);
    query
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
        after,
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
    if let Some(after) = after {
        query.push(" AND (era, commit_order, sequence) > (");
        query.push_bind(after.era).push(", ");
        query.push_bind(after.commit_order).push(", ");
        query.push_bind(after.sequence).push(") AND ");
        query.push(IS_SETTLED);
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
    let columns = if wanted.has_specs {
        COLUMNS
    } else {
        &COLUMNS_WITHOUT_SPEC
    };
    query
        .push("SELECT ")
        .push(columns)
        .push(", total.count AS total FROM (");
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
