//! Lists of resources: the one statement whose text depends on the request.

use sqlx::{FromRow as _, Postgres, QueryBuilder, Row as _};

use super::row::ResourceRow;
use super::{Db, Error};
use crate::domain::page::{Direction, Listing, Order, OrderField, Page};
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

/// What of it is wanted.
#[derive(Debug, Clone)]
pub struct ListQuery<'a> {
    /// Of which resources.
    pub scope: Scope<'a>,
    /// Whether finalizing ones are listed, too.
    pub includes_deleted: bool,
    /// How sorted.
    pub order: Order,
    /// Which part.
    pub page: Page,
}

impl Db<'_> {
    /// One page of a list with the exact total of all pages, as of one moment.
    pub async fn list_resources(
        &mut self,
        wanted: &ListQuery<'_>,
    ) -> Result<Listing<Resource>, Error> {
        let mut query = statement(wanted);
        let result = query.build().fetch_all(self.wire()).await;
        let rows = self.done(result, "list resources")?;
        let mut listing = Listing {
            page: wanted.page,
            items: Vec::with_capacity(rows.len()),
            total: 0,
        };
        for row in &rows {
            let total = row.try_get("total");
            listing.total = self.done(total, "read the total of a list")?;
            // The one row of an empty page is the total alone.
            let id = row.try_get::<Option<uuid::Uuid>, _>("id");
            if self.done(id, "read a listed resource")?.is_some() {
                let row = ResourceRow::from_row(row);
                listing
                    .items
                    .push(self.done(row, "read a listed resource")?.into());
            }
        }
        Ok(listing)
    }
}

/// The page's ids come from an index alone; only the rows on the page are read whole.
fn statement(wanted: &ListQuery<'_>) -> QueryBuilder<Postgres> {
    let mut query = QueryBuilder::new("SELECT total.count AS total, r.*, ");
    query.push(
        "(SELECT jsonb_agg(jsonb_build_object('type', ref_type, 'kind', target_kind, 'id', target_id)) \
         FROM resource_references WHERE source_id = r.id) AS links FROM (",
    );
    push_total(&mut query, wanted);
    query.push(") total LEFT JOIN (SELECT id FROM resources");
    push_filter(&mut query, wanted);
    push_order(&mut query, &wanted.order, "");
    query.push(" LIMIT ").push_bind(i64::from(wanted.page.size));
    query.push(" OFFSET ").push_bind(wanted.page.offset());
    query.push(") page ON true LEFT JOIN resources r ON r.id = page.id");
    push_order(&mut query, &wanted.order, "r.");
    query
}

/// Totals of whole kinds are kept, not counted: all rows, less the finalizing ones.
fn push_total(query: &mut QueryBuilder<Postgres>, wanted: &ListQuery<'_>) {
    let kind = match wanted.scope {
        Scope::Owned { .. } => {
            query.push("SELECT count(*) FROM resources");
            return push_filter(query, wanted);
        }
        Scope::Kind(kind) => Some(kind),
        Scope::All => None,
    };
    query.push("SELECT (SELECT coalesce(sum(count), 0)::bigint FROM resource_counts");
    if let Some(kind) = kind {
        query.push(" WHERE kind = ").push_bind(kind.to_owned());
    }
    query.push(")");
    if !wanted.includes_deleted {
        query.push(" - (SELECT count(*) FROM resources WHERE deleted_at IS NOT NULL");
        if let Some(kind) = kind {
            query.push(" AND kind = ").push_bind(kind.to_owned());
        }
        query.push(")");
    }
    query.push(" AS count");
}

fn push_filter(query: &mut QueryBuilder<Postgres>, wanted: &ListQuery<'_>) {
    query.push(" WHERE true");
    if let Scope::Kind(kind) | Scope::Owned { kind, .. } = wanted.scope {
        query.push(" AND kind = ").push_bind(kind.to_owned());
    }
    if let Scope::Owned { owner, .. } = wanted.scope {
        query.push(" AND owner_id = ").push_bind(owner.as_uuid());
    }
    if !wanted.includes_deleted {
        query.push(" AND deleted_at IS NULL");
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

fn column(field: OrderField) -> &'static str {
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
