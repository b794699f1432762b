//! The list that a watch begins with, page by page.
//!
//! The first page is that of any list. Each page of a search finds all of its rows: for few pages of a large collection that is the
//! shorter way, and the other pages are found like the first one. Otherwise the collection is walked, so that the work grows with
//! its length, and not with the square of what is found.

use super::groups::Group;
use super::handed::resource_bytes;
use crate::app::{Error, Service};
use crate::domain::StoredResource;
use crate::domain::page::{Order, PageRequest};
use crate::domain::position::RowPosition;
use crate::domain::watch::InitialPages;
use crate::storage::postgres::{self as storage, Db, ListQuery};

/// Most resources that one statement of a walk reads, a tenth of a second or so: specs that a search looks into may be large.
const WINDOW_MAX: u32 = 10_000;

/// How far a list has been read.
pub(super) struct InitialList {
    pub(super) pages: InitialPages,
    after: Option<RowPosition>,
    has_specs: bool,
    /// Unset before the first page.
    way: Option<Way>,
}

/// How the next pages are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// As the first one.
    Found,
    /// By reading so many resources of the collection, but at least one more than the page holds.
    Walked { window: u32 },
}

/// Whether to read the whole collection takes less than to find all rows of a search again for each page.
fn is_walk_shorter(found: i64, page_size: usize, collection: i64) -> bool {
    let page_size = page_size.max(1).try_into().unwrap_or(i64::MAX);
    found.saturating_mul(found) / page_size > collection
}

impl Way {
    /// Reads less at a time if the page was full before its window was read, and more if hardly anything was listed.
    fn after_page(window: u32, is_full: bool, listed: usize, size: u32) -> Self {
        let is_sparse = listed < size as usize / 2;
        let window = match (is_full, is_sparse) {
            (true, _) => window / 2,
            (false, true) => window.saturating_mul(2),
            (false, false) => window,
        };
        Self::Walked {
            window: window.clamp(1, WINDOW_MAX),
        }
    }
}

impl InitialList {
    pub(super) fn new(has_specs: bool) -> Self {
        Self {
            pages: InitialPages::default(),
            after: None,
            has_specs,
            way: None,
        }
    }

    /// The resources of the next page, none perhaps, and whether it is the last one.
    pub(super) async fn next(
        &mut self,
        service: &Service,
        group: &Group,
    ) -> Result<(Vec<StoredResource>, bool), Error> {
        let portion = &group.page_portion;
        let size = portion.count().try_into().unwrap_or(1);
        let filter = &group.filter;
        // The newest first: an index has them in this order.
        let query = ListQuery {
            tenants: &filter.tenants,
            owner: filter.owner,
            filters: filter.filters.clone(),
            registry: service.registry(),
            order: Order::newest_first(),
            page: PageRequest { number: 1, size },
            after: self.after.clone(),
            has_specs: self.has_specs,
        };
        let mut session = service.store.slow_session().await?;
        let (items, end, visible) = match self.way {
            Some(Way::Walked { window }) => {
                let page = session
                    .db()
                    .walk_watched(&query, window.max(size + 1))
                    .await;
                if let Err(storage::Error::TooSlow { .. }) = page {
                    self.way = Some(Way::Walked { window: window / 2 });
                }
                let page = page?;
                let listed = page.items.len();
                self.way = Some(Way::after_page(window, page.is_full, listed, size));
                (page.items, page.end, page.visible)
            }
            None | Some(Way::Found) => {
                let (listing, visible) = session.db().list_watched(&query).await?;
                let last = listing.items.last().filter(|_| listing.next.is_some());
                let end = last.map(|last| (last.created_at, last.id));
                if self.way.is_none() && end.is_some() {
                    let page_size = portion.fitting(listing.items.iter().map(resource_bytes));
                    let way = way(&mut session.db(), &query, listing.total, page_size).await?;
                    self.way = Some(way);
                }
                (listing.items, end, visible)
            }
        };
        drop(session);
        portion.learn(items.iter().map(resource_bytes));
        self.pages.push(end, visible);
        self.after = end.map(|(created_at, id)| RowPosition::newest_first(created_at, id));
        Ok((items, end.is_none()))
    }
}

/// The way to the other pages of a list, if they hold about so many resources each.
async fn way(
    db: &mut Db<'_>,
    query: &ListQuery<'_>,
    found: i64,
    page_size: usize,
) -> Result<Way, Error> {
    let mut collection = query.unsearched();
    collection.page.size = 1;
    let is_walked = !query.is_counted_from_rows() || {
        let collection = db.list_resources(&collection).await?;
        is_walk_shorter(found, page_size, collection.total)
    };
    Ok(if is_walked {
        Way::Walked {
            window: query.page.size,
        }
    } else {
        Way::Found
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_grows_while_little_is_found_and_shrinks_when_a_page_is_full() {
        for (window, is_full, listed, expected) in [
            (100, false, 0, 200),
            (100, false, 49, 200),
            (100, false, 50, 100),
            (100, true, 100, 50),
            (1, true, 100, 1),
            (WINDOW_MAX, false, 0, WINDOW_MAX),
        ] {
            let next = Way::after_page(window, is_full, listed, 100);
            let expected = Way::Walked { window: expected };
            assert_eq!(next, expected, "{window} {is_full} {listed}");
        }
    }

    #[test]
    fn few_rows_of_a_large_collection_are_found_and_many_are_walked_to() {
        for (found, page_size, collection, expected) in [
            (100, 100, 1_000_000, false),
            (10_000, 100, 1_000_000, false),
            (10_100, 100, 1_000_000, true),
            (10_000, 10, 1_000_000, true),
            (4_000, 100, 8_000, true),
            (i64::MAX, 1, 1_000_000, true),
        ] {
            let is_shorter = is_walk_shorter(found, page_size, collection);
            assert_eq!(is_shorter, expected, "{found} of {collection}");
        }
    }
}
