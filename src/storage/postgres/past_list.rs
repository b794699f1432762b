//! Lists of an earlier moment, one statement each: the page is found first, and whole states are read for its resources alone.
//!
//! A list in an order that changes do not move is [walked](super::past_walked): its time depends on the page, and on how many
//! resources came and went since. Any other is [rebuilt](super::past_rebuilt) from all resources and all changes since.

use chrono::{DateTime, Utc};
use sqlx::Row as _;

use super::list::{ListQuery, read_resources};
use super::measure::SqlOperation::{Query, Raw};
use super::measure::SqlTable::Changes;
use super::row::COLUMNS_COUNT;
use super::{Db, Error, past_rebuilt, past_walked};
use crate::domain::StoredResource;
use crate::domain::page::Listing;
use crate::domain::position::RowPosition;

/// A page of a list as it was at a moment.
#[derive(Debug)]
pub struct PastListing {
    pub listing: Listing<StoredResource>,
    /// The time from which on all changes are stored; unset if all are.
    pub kept_since: Option<DateTime<Utc>>,
}

impl Db<'_> {
    /// One page of a list as it was at `at`, with the exact total of all pages. Searches are not supported.
    pub async fn list_past(
        &mut self,
        request: &ListQuery<'_>,
        at: DateTime<Utc>,
    ) -> Result<PastListing, Error> {
        let mut query = if past_walked::is_possible(request) {
            past_walked::statement(request, at)
        } else {
            past_rebuilt::statement(request, at)
        };
        // Planned for its moment: it may be a minute or a month ago.
        let query = query.build().persistent(false);
        let result = query.fetch_all(self.repeatable_connection()).await;
        let rows = self.complete_slow(result, Query(Changes), "list resources of a moment")?;
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
