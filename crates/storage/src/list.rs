//! Lists: statements whose text depends on the request. Identifiers come from closed enums, kinds from the
//! configuration, other values through binds: no user text in SQL.

use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{Postgres, QueryBuilder, Row as _};

use super::audit::{ENTRY_COLUMNS, entry_of, position_of, stable};
use super::columns::{column, literal};
use super::keyset::push_after;
use super::measure::SqlOperation::{Query, Raw};
use super::measure::SqlTable::{Audit, Resources};
use super::row::{COLUMNS, COLUMNS_COUNT, COLUMNS_WITHOUT_SPEC, StoredRow};
use super::search::Search;
use super::{Db, Error};
use hyperfleet_domain::audit::{AuditEntry, AuditFilter, StableTrail, TrailPosition};
use hyperfleet_domain::page::{Direction, Listing, Order, OrderField, PageRequest};
use hyperfleet_domain::position::RowPosition;
use hyperfleet_domain::tenancy::TenantScope;
use hyperfleet_domain::{EntityRegistry, ListFilter, ResourceId, StoredResource};

/// Number of items that a page may skip and still be read quickly: in an index, within a millisecond or two.
const SKIPPED_QUICKLY_MAX: i64 = 10_000;
/// The oldest transaction that is open on the server and has written something, as of the statement's snapshot;
/// without one, the next transaction.
const OPEN_TRANSACTION: &str = "pg_snapshot_xmin(pg_current_snapshot())::text::bigint";
/// Entries that the snapshot does not show are of this era and of that transaction or a later one, and their
/// `commit_order` is not lower than their transaction.
pub(super) const IS_STABLE: &str =
    "(era, commit_order) < (audit_era(), pg_snapshot_xmin(pg_current_snapshot())::text::bigint)";
pub(super) const BY_POSITION: &str = " ORDER BY era, commit_order, sequence";
/// Entries after a position that are counted at most: a reader at the start of a long trail asks for page after page.
const FOLLOWING_COUNT_MAX: i64 = 1_000;

/// A page of a list of resources.
#[derive(Debug, Clone)]
pub struct ListQuery<'a> {
    /// What the caller sees.
    pub tenants: &'a TenantScope,
    /// The resource that owns the listed ones; `None` for any owner or none.
    pub owner: Option<ResourceId>,
    /// The conditions that listed resources meet.
    pub filters: Vec<ListFilter>,
    /// The kinds, for a search: the URLs of their resources are made from ids.
    pub registry: &'a EntityRegistry,
    pub order: Order,
    pub page: PageRequest,
    /// Where the page begins, in place of its number.
    pub after: Option<RowPosition>,
    /// Whether specs are read; if not, each is `null`.
    pub has_specs: bool,
}

/// The source of a list's total. If a list has several conditions, the last one in this order decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TotalSource {
    /// The numbers that triggers keep, less finalizing resources.
    Triggers,
    /// Counted by an index that has nothing else: a condition on one column, equal to one value.
    Index,
    /// Counted among the rows that the page comes from, which are found once for both. For every condition that may
    /// read many rows: its statement is planned for its values, and reported when it takes too long.
    Rows,
}

impl ListQuery<'_> {
    fn total(&self) -> TotalSource {
        let filters = self.filters.iter().map(|filter| match filter {
            ListFilter::Kind(_) | ListFilter::IncludeDeleted(_) => TotalSource::Triggers,
            ListFilter::Search(_) | ListFilter::Reference { .. } => TotalSource::Rows,
        });
        let owned = self.owner.map(|_| TotalSource::Index);
        filters.chain(owned).max().unwrap_or(TotalSource::Triggers)
    }

    /// Whether the time of the statement depends on the amount of stored data, and not only on the page. If so, it
    /// belongs in the lane ([`Store::slow_session`](super::Store::slow_session)). This is true of every search, because
    /// the rows and bytes that it reads are known only when it runs, of lists that sort all their rows, and of pages
    /// with a large offset. A list by creation reads an index, and its total is a counter or comes from an index.
    pub fn may_be_slow(&self) -> bool {
        let skipped = match self.after {
            Some(_) => 0,
            None => self.page.offset(),
        };
        self.is_counted_from_rows() || !self.order.is_by_creation() || skipped > SKIPPED_QUICKLY_MAX
    }

    /// Whether its rows are found by a search or the like, once for the total and the page.
    pub fn is_counted_from_rows(&self) -> bool {
        self.total() == TotalSource::Rows
    }
}

/// The rows for a page of the audit trail, as of one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct TrailRows {
    pub listing: Listing<AuditEntry>,
    /// The end of the stable part of the trail.
    pub stable: StableTrail,
    /// The position of the last entry, if more follow it in the order of positions.
    pub end: Option<TrailPosition>,
    /// The end of the last pass.
    pub sealed: TrailPosition,
}

impl Db<'_> {
    /// One page of a list with the exact total of all pages, as of one moment.
    pub async fn list_resources(
        &mut self,
        request: &ListQuery<'_>,
    ) -> Result<Listing<StoredResource>, Error> {
        let mut query = statement(request);
        // Texts of searches differ: cached, they would evict statements that are reused. Planned with its values,
        // each also gets the plan that fits them.
        let query = query.build().persistent(!request.is_counted_from_rows());
        let result = query.fetch_all(self.repeatable_connection()).await;
        let doing = "list resources";
        let rows = if request.may_be_slow() {
            self.complete_slow(result, Query(Resources), doing)?
        } else {
            self.complete(result, Query(Resources), doing)?
        };
        let size = request.page.size as usize;
        let is_last = rows.len() <= size;
        let (total, items) = self.complete(read_resources(rows, size), Raw, "read a page")?;
        let last = items.last().filter(|_| !is_last);
        let next = last.map(|last| RowPosition::of(&request.order, last));
        Ok(Listing {
            page: request.page,
            items,
            total,
            next,
        })
    }

    /// One page of the visible audit trail, with the total of all pages: newest first, or after a position in the
    /// order of positions.
    pub async fn list_audit(
        &mut self,
        tenants: &TenantScope,
        filter: &AuditFilter,
        page: PageRequest,
    ) -> Result<TrailRows, Error> {
        let mut query = audit_statement(tenants, filter, page);
        let result = query.build().fetch_all(self.repeatable_connection()).await;
        let rows = self.complete_slow(result, Query(Audit), "list the audit trail")?;
        let read = read_trail(&rows, filter, page);
        self.complete(read, Raw, "read a page of the audit trail")
    }
}

/// The total, which every row repeats after the [`COLUMNS`], and the resources. An empty page has one row: the total.
/// Each row is dropped once it is read, so that a page of large ones is not in memory twice.
pub(super) fn read_resources(
    rows: Vec<PgRow>,
    size: usize,
) -> Result<(i64, Vec<StoredResource>), sqlx::Error> {
    let mut total = 0;
    let mut items = Vec::with_capacity(size.min(rows.len()));
    for row in rows.into_iter().take(size) {
        total = row.try_get(COLUMNS_COUNT)?;
        items.extend(StoredRow::read_state(&row, 0)?.map(StoredResource::from));
    }
    Ok((total, items))
}

/// The total of an empty page also has a row, without an entry.
fn read_trail(
    rows: &[PgRow],
    filter: &AuditFilter,
    page: PageRequest,
) -> Result<TrailRows, sqlx::Error> {
    let first = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    let size = page.size as usize;
    let is_last = rows.len() <= size;
    let entries = rows.iter().take(size);
    let entries = entries.filter(|row| !matches!(position_of(row, ""), Ok(None)));
    let items: Vec<_> = entries.map(entry_of).collect::<Result<_, _>>()?;
    let end = items.last().map(|entry| entry.position);
    Ok(TrailRows {
        stable: stable(first)?,
        end: end.filter(|_| !is_last && filter.after.is_some()),
        sealed: position_of(first, "sealed_")?.unwrap_or(TrailPosition::START),
        listing: Listing {
            page,
            items,
            total: first.try_get("total")?,
            next: None,
        },
    })
}

/// The page, with the total and the stable end of the trail in every row, and in a row of their own if the page is
/// empty. After a position it has one row more than the page holds, which tells whether it is the last page.
fn audit_statement(
    tenants: &TenantScope,
    filter: &AuditFilter,
    page: PageRequest,
) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new(
        "SELECT total.count AS total, stable.*, last.*, sealed.*, e.* FROM (SELECT audit_era() AS current_era, ",
    );
    query.push(OPEN_TRANSACTION).push(
        " AS open_transaction) stable
         LEFT JOIN (SELECT era AS last_era, commit_order AS last_commit_order, sequence AS last_sequence
                    FROM audit_entries WHERE ",
    );
    query.push(IS_STABLE).push(
        " ORDER BY era DESC, commit_order DESC, sequence DESC LIMIT 1) last ON true
         LEFT JOIN (SELECT end_era AS sealed_era, end_commit_order AS sealed_commit_order, end_sequence AS sealed_sequence
                    FROM audit_passes ORDER BY number DESC LIMIT 1) sealed ON true
         CROSS JOIN (SELECT count(*) FROM ",
    );
    let order = if filter.after.is_some() {
        // With the order the server reads the index of positions, and stops at the limit.
        query.push("(SELECT FROM audit_entries");
        push_audit_filter(&mut query, tenants, filter);
        query
            .push(BY_POSITION)
            .push(" LIMIT ")
            .push(FOLLOWING_COUNT_MAX);
        query.push(") counted");
        BY_POSITION
    } else {
        query.push("audit_entries");
        push_audit_filter(&mut query, tenants, filter);
        " ORDER BY sequence DESC"
    };
    query.push(") total LEFT JOIN (SELECT ").push(ENTRY_COLUMNS);
    query.push(" FROM audit_entries");
    push_audit_filter(&mut query, tenants, filter);
    let rows = i64::from(page.size) + i64::from(filter.after.is_some());
    query.push(order).push(" LIMIT ").push_bind(rows);
    query.push(" OFFSET ").push_bind(page.offset());
    query.push(") e ON true").push(order);
    query
}

fn push_audit_filter(
    query: &mut QueryBuilder<Postgres>,
    tenants: &TenantScope,
    filter: &AuditFilter,
) {
    query.push(" WHERE true");
    push_tenants(query, tenants);
    // Destructured, so that a new filter cannot be forgotten.
    let AuditFilter {
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
        query.push(IS_STABLE);
    }
}

/// The page's ids come from an index-only scan; only rows on the page are read completely.
///
/// The text contains the length of the page, that the first page skips nothing, and the kind. The server keeps a plan
/// only if it knows how few rows there will be; otherwise it plans for each request, which takes longer than the rest.
/// The plan is good for rare kinds only if it is made for the kind.
///
/// One row more than the page holds tells whether it is the last one.
///
/// Filtered rows are found once, for the total and for the page. Otherwise the planner might scan the entire list
/// because it expects to fill the page early.
fn statement(request: &ListQuery<'_>) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new("");
    if request.is_counted_from_rows() {
        query.push("WITH found AS MATERIALIZED (SELECT id");
        for (field, _) in request.order.keys().filter(|(f, _)| *f != OrderField::Id) {
            query.push(", ").push(column(field));
        }
        query.push(" FROM resources");
        push_filter(&mut query, request);
        query.push(") ");
    }
    let columns = if request.has_specs {
        COLUMNS
    } else {
        &COLUMNS_WITHOUT_SPEC
    };
    query
        .push("SELECT ")
        .push(columns)
        .push(", total.count AS total");
    query.push(" FROM (");
    push_total(&mut query, request);
    query.push(") total LEFT JOIN (SELECT id FROM ");
    if request.is_counted_from_rows() {
        query.push("found");
    } else {
        query.push("resources");
        push_filter(&mut query, request);
    }
    if let Some(position) = &request.after {
        query.push(if request.is_counted_from_rows() {
            " WHERE "
        } else {
            " AND "
        });
        push_after(&mut query, position);
    }
    push_order(&mut query, &request.order, "");
    query.push(" LIMIT ").push(request.page.size + 1);
    if request.after.is_none() && request.page.offset() > 0 {
        query.push(" OFFSET ").push_bind(request.page.offset());
    }
    query.push(") page ON true LEFT JOIN resources r ON r.id = page.id");
    push_order(&mut query, &request.order, "r.");
    query
}

fn push_total(query: &mut QueryBuilder<Postgres>, request: &ListQuery<'_>) {
    match request.total() {
        TotalSource::Rows => {
            query.push("SELECT count(*) FROM found");
        }
        TotalSource::Index => {
            query.push("SELECT count(*) FROM resources");
            push_filter(query, request);
        }
        TotalSource::Triggers => push_counter_total(query, request),
    }
}

/// The counter that triggers maintain for each kind and tenant, minus finalizing resources if the list excludes them.
fn push_counter_total(query: &mut QueryBuilder<Postgres>, request: &ListQuery<'_>) {
    let push_scope = |query: &mut QueryBuilder<Postgres>| {
        push_tenants(query, request.tenants);
        for filter in &request.filters {
            if let ListFilter::Kind(kind) = filter {
                query.push(" AND kind = ").push(literal(kind));
            }
        }
    };
    query.push("SELECT (SELECT coalesce(sum(count), 0)::bigint FROM ");
    query.push(match request.tenants.tenancy() {
        Some(_) => "tenant_resource_counts",
        None => "resource_counts",
    });
    query.push(" WHERE true");
    push_scope(query);
    query.push(")");
    if request.filters.contains(&ListFilter::IncludeDeleted(false)) {
        query.push(" - (SELECT count(*) FROM resources WHERE deleted_at IS NOT NULL");
        push_scope(query);
        query.push(")");
    }
    query.push(" AS count");
}

fn push_filter(query: &mut QueryBuilder<Postgres>, request: &ListQuery<'_>) {
    query.push(" WHERE true");
    push_tenants(query, request.tenants);
    if let Some(owner) = request.owner {
        query.push(" AND owner_id = ").push_bind(owner.as_uuid());
        push_visible(query, request.tenants, Some(owner));
    }
    for filter in &request.filters {
        match filter {
            ListFilter::Kind(kind) => {
                query.push(" AND kind = ").push(literal(kind));
            }
            ListFilter::Search(search) => {
                query.push(" AND ");
                Search(request.registry).push_filter(query, search);
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
                push_visible(query, request.tenants, *target);
                query.push(")");
            }
        }
    }
}

/// Adds the condition that the caller sees rows of a table with a column `tenancy`. The second half is for the indexes
/// of tenants; a caller that does not see everything has a tenancy.
pub(super) fn push_tenants(query: &mut QueryBuilder<Postgres>, tenants: &TenantScope) {
    if let Some(tenancy) = tenants.tenancy() {
        query
            .push(" AND tenancy = ")
            .push_bind(Json(tenancy.clone()));
        query.push(" AND tenancy <> '{}'");
    }
}

/// Adds the condition that the caller sees the resource it names; evaluated once.
fn push_visible(query: &mut QueryBuilder<Postgres>, tenants: &TenantScope, id: Option<ResourceId>) {
    if let Some((id, tenancy)) = id.zip(tenants.tenancy()) {
        query.push(" AND has_tenancy(").push_bind(id.as_uuid());
        query.push(", ").push_bind(Json(tenancy.clone())).push(")");
    }
}

pub(super) fn push_order(query: &mut QueryBuilder<Postgres>, order: &Order, table: &'static str) {
    for (index, (field, direction)) in order.keys().enumerate() {
        query.push(if index == 0 { " ORDER BY " } else { ", " });
        query.push(table).push(column(field));
        query.push(match direction {
            Direction::Ascending => " ASC",
            Direction::Descending => " DESC",
        });
    }
}
