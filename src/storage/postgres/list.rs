//! Lists: the statements whose text depends on the request. Identifiers come from closed enums,
//! kinds from the configuration, other values through binds: no user text in SQL.

use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{FromRow, Postgres, QueryBuilder, Row as _};

use super::audit::EntryRow;
use super::error::is_out_of_time;
use super::keyset::push_after;
use super::measure::SqlOperation::{Query, Raw};
use super::measure::SqlTable::{Audit, Resources};
use super::row::{COLUMNS, ResourceRow};
use super::{Db, Error, Search};
use crate::domain::audit::{Action, Entry, Filter};
use crate::domain::page::{Direction, Listing, Order, OrderField, Page};
use crate::domain::position::Position;
use crate::domain::tenancy::TenantScope;
use crate::domain::{Resource, ResourceId};

/// Which resources a list is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// All of them.
    All,
    /// Those of one kind.
    Kind(&'a str),
    /// Those of one kind that one resource owns.
    Owned {
        /// The kind.
        kind: &'a str,
        /// The owner.
        owner: ResourceId,
    },
}

/// A link that resources must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceFilter {
    /// Of what type.
    pub ref_type: String,
    /// To which resource; none that can be there, if unset.
    pub target: Option<ResourceId>,
}

/// What of it is wanted.
#[derive(Debug, Clone)]
pub struct ListQuery<'a> {
    /// Of which resources.
    pub scope: Scope<'a>,
    /// As who sees them.
    pub view: &'a TenantScope,
    /// Whether finalizing ones are listed, too.
    pub includes_deleted: bool,
    /// Only those that match.
    pub search: Option<Search>,
    /// Only those with such a link.
    pub reference: Option<ReferenceFilter>,
    /// How sorted.
    pub order: Order,
    /// Which part.
    pub page: Page,
    /// Where it begins, instead of where the page's number says.
    pub after: Option<Position>,
}

impl ListQuery<'_> {
    /// Whether it is not simply all of what it is about.
    fn is_filtered(&self) -> bool {
        self.search.is_some() || self.reference.is_some()
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
        let query = query.build().persistent(!wanted.is_filtered());
        let result = query.fetch_all(self.wire()).await;
        // A list waits for nobody's locks: what takes its whole time is the search itself.
        let is_too_slow = wanted.is_filtered() && result.as_ref().is_err_and(is_out_of_time);
        let rows = self.done(result, Query(Resources), "list resources");
        if is_too_slow {
            return Err(Error::TooSlow {
                doing: "search for resources",
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
        let result = query.build().fetch_all(self.wire()).await;
        let rows = self.done(result, Query(Audit), "list the audit trail")?;
        let (total, rows) = self.read_page::<EntryRow>(&rows, "sequence")?;
        let items = rows
            .into_iter()
            .map(Entry::try_from)
            .collect::<Result<_, _>>()?;
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
    if let Some(id) = filter.resource_id {
        query.push(" AND resource_id = ").push_bind(id.as_uuid());
    }
    if let Some(kind) = &filter.kind {
        query.push(" AND kind = ").push_bind(kind.clone());
    }
    if let Some(actor) = &filter.actor {
        query.push(" AND actor = ").push_bind(actor.clone());
    }
    if let Some(action) = filter.action {
        query
            .push(" AND action = ")
            .push_bind(Action::as_str(action));
    }
    if let Some(since) = filter.since {
        query.push(" AND at >= ").push_bind(since);
    }
    if let Some(until) = filter.until {
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
    if wanted.is_filtered() {
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
    if wanted.is_filtered() {
        query.push("found");
    } else {
        query.push("resources");
        push_filter(&mut query, wanted);
    }
    if let Some(position) = &wanted.after {
        query.push(if wanted.is_filtered() {
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

/// Totals of whole kinds are kept, of each tenant, too, not counted: all rows, less the finalizing
/// ones.
fn push_total(query: &mut QueryBuilder<Postgres>, wanted: &ListQuery<'_>) {
    if wanted.is_filtered() {
        query.push("SELECT count(*) FROM found");
        return;
    }
    let kind = match wanted.scope {
        Scope::Owned { .. } => {
            query.push("SELECT count(*) FROM resources");
            return push_filter(query, wanted);
        }
        Scope::Kind(kind) => Some(kind),
        Scope::All => None,
    };
    query.push("SELECT (SELECT coalesce(sum(count), 0)::bigint FROM ");
    query.push(match wanted.view.tenancy() {
        Some(_) => "tenant_resource_counts",
        None => "resource_counts",
    });
    query.push(" WHERE true");
    push_view(query, wanted.view);
    if let Some(kind) = kind {
        query.push(" AND kind = ").push(literal(kind));
    }
    query.push(")");
    if !wanted.includes_deleted {
        query.push(" - (SELECT count(*) FROM resources WHERE deleted_at IS NOT NULL");
        push_view(query, wanted.view);
        if let Some(kind) = kind {
            query.push(" AND kind = ").push(literal(kind));
        }
        query.push(")");
    }
    query.push(" AS count");
}

fn push_filter(query: &mut QueryBuilder<Postgres>, wanted: &ListQuery<'_>) {
    query.push(" WHERE true");
    push_view(query, wanted.view);
    if let Scope::Kind(kind) | Scope::Owned { kind, .. } = wanted.scope {
        query.push(" AND kind = ").push(literal(kind));
    }
    if let Scope::Owned { owner, .. } = wanted.scope {
        query.push(" AND owner_id = ").push_bind(owner.as_uuid());
        push_seen(query, wanted.view, Some(owner));
    }
    if !wanted.includes_deleted {
        query.push(" AND deleted_at IS NULL");
    }
    if let Some(search) = &wanted.search {
        query.push(" AND ");
        search.push(query);
    }
    if let Some(reference) = &wanted.reference {
        query.push(" AND id IN (SELECT source_id FROM resource_references WHERE ref_type = ");
        query.push_bind(reference.ref_type.clone());
        query
            .push(" AND target_id = ")
            .push_bind(reference.target.map(ResourceId::as_uuid));
        push_seen(query, wanted.view, reference.target);
        query.push(")");
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

/// A configured text as SQL. Kinds are identifiers, and paths plain; quotes are doubled all the same.
pub(super) fn literal(kind: &str) -> String {
    format!("'{}'", kind.replace('\'', "''"))
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

pub(super) fn column(field: OrderField) -> &'static str {
    match field {
        OrderField::Id => "id",
        OrderField::Name => "name",
        OrderField::Kind => "kind",
        OrderField::Generation => "generation",
        OrderField::CreatedTime => "created_at",
        OrderField::CreatedBy => "created_by",
        OrderField::UpdatedTime => "updated_at",
        OrderField::UpdatedBy => "updated_by",
        OrderField::DeletedTime => "deleted_at",
        OrderField::DeletedBy => "deleted_by",
        OrderField::OwnerId => "owner_id",
    }
}
