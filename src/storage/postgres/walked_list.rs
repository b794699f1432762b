//! A whole list in pieces of bounded work, newest first: each statement reads so many resources of the list's collection, and
//! returns those that the filter accepts. So the work for all of them grows with their number, however many pages they are, whereas
//! each page of a search finds all rows of the search again.

use chrono::{DateTime, Utc};
use sqlx::postgres::PgRow;
use sqlx::{Postgres, QueryBuilder, Row as _};
use uuid::Uuid;

use super::keyset::push_after;
use super::list::{ListQuery, push_filter, push_order, read_resources, visible};
use super::measure::SqlOperation::{Query, Raw};
use super::measure::SqlTable::Resources;
use super::row::{COLUMNS, COLUMNS_COUNT, COLUMNS_WITHOUT_SPEC};
use super::{Db, Error};
use crate::domain::watch::VisibleChanges;
use crate::domain::{ListFilter, ResourceId, StoredResource};

/// A piece of a list.
#[derive(Debug)]
pub struct WalkedPage {
    pub items: Vec<StoredResource>,
    /// The last resource that was read, whether it is listed or not; unset at the end of the list.
    pub end: Option<(DateTime<Utc>, ResourceId)>,
    /// Whether it ends before all resources were read, because the filter accepts more than the page holds.
    pub is_full: bool,
    /// The transactions that it shows.
    pub visible: VisibleChanges,
}

/// Where the resources that a statement reads end.
struct Reach {
    count: i64,
    last: Option<(DateTime<Utc>, ResourceId)>,
}

impl Db<'_> {
    /// Reads `window` resources after the position of the request, in the order of creation, and returns those that its
    /// filter accepts, as many as its page holds.
    pub async fn walk_watched(
        &mut self,
        request: &ListQuery<'_>,
        window: u32,
    ) -> Result<WalkedPage, Error> {
        let mut query = statement(request, window);
        let query = query.build().persistent(!request.is_counted_from_rows());
        let result = query.fetch_all(self.repeatable_connection()).await;
        let rows = self.complete_slow(result, Query(Resources), "walk a list")?;
        let size = request.page.size as usize;
        let is_full = rows.len() > size;
        // Without a listed resource there is one row.
        let read = rows.first().map(reach).transpose();
        let read = self.complete(read, Raw, "read the end of a walk")?;
        let (reach, snapshot) = read.unwrap_or((
            Reach {
                count: 0,
                last: None,
            },
            String::new(),
        ));
        let (_, items) = self.complete(read_resources(rows, size), Raw, "read a page")?;
        let last = items.last().filter(|_| is_full);
        let last = last.map(|last| (last.created_at, last.id));
        let is_over = reach.count < i64::from(window);
        Ok(WalkedPage {
            items,
            end: last.or(reach.last.filter(|_| !is_over)),
            is_full,
            visible: visible(snapshot)?,
        })
    }
}

fn reach(row: &PgRow) -> Result<(Reach, String), sqlx::Error> {
    let created_at: Option<DateTime<Utc>> = row.try_get(COLUMNS_COUNT + 2)?;
    let id: Option<Uuid> = row.try_get(COLUMNS_COUNT + 3)?;
    let reach = Reach {
        count: row.try_get(COLUMNS_COUNT)?,
        last: created_at.zip(id.map(Into::into)),
    };
    Ok((reach, row.try_get(COLUMNS_COUNT + 1)?))
}

/// `OFFSET 0` keeps the filter from being looked for in the whole table.
fn statement(request: &ListQuery<'_>, window: u32) -> QueryBuilder<Postgres> {
    let mut query =
        QueryBuilder::new("WITH walked AS MATERIALIZED (SELECT id, created_at FROM resources");
    let walked = request.unsearched();
    push_filter(&mut query, &walked);
    if let Some(position) = &request.after {
        query.push(" AND ");
        push_after(&mut query, position);
    }
    push_order(&mut query, &request.order, "");
    query.push(" LIMIT ").push(window).push(") SELECT ");
    query.push(if request.has_specs {
        COLUMNS
    } else {
        &COLUMNS_WITHOUT_SPEC
    });
    query.push(
        ", reach.count, pg_current_snapshot()::text, reach.created_at, reach.id
         FROM (SELECT * FROM (SELECT count(*) AS count FROM walked) counted
               LEFT JOIN (SELECT created_at, id FROM walked ORDER BY created_at, id LIMIT 1) last ON true) reach
         LEFT JOIN (SELECT id FROM (SELECT r.* FROM walked JOIN resources r USING (id) OFFSET 0) resources",
    );
    let is_searched = |filter: &&ListFilter| !walked.filters.contains(filter);
    let searched = request.filters.iter().filter(is_searched);
    let accepted = ListQuery {
        filters: searched.cloned().collect(),
        owner: None,
        ..request.clone()
    };
    push_filter(&mut query, &accepted);
    push_order(&mut query, &request.order, "");
    query.push(" LIMIT ").push(request.page.size + 1);
    query.push(") page ON true LEFT JOIN resources r ON r.id = page.id");
    push_order(&mut query, &request.order, "r.");
    query
}
