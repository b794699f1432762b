//! The list that a watch begins with, page by page.
//!
//! The first page is that of any list. It has the total: if little follows, the other pages are found like it. Otherwise the
//! list is walked, so that the work for a long one grows with its length, not with its square.

use super::groups::Group;
use super::handed::resource_bytes;
use crate::app::{Error, Service};
use crate::domain::StoredResource;
use crate::domain::page::{Order, PageRequest};
use crate::domain::position::RowPosition;
use crate::domain::watch::InitialPages;
use crate::storage::postgres::ListQuery;

/// Pages of a search that take less than to read the resources that it does not find.
const FOUND_PAGES_MAX: u32 = 10;
/// Most resources that one statement of a walk reads, some milliseconds.
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
    /// By reading so many resources, or more than one page holds.
    Walked { window: u32 },
}

impl Way {
    /// After a page of the walk that read a whole window, or was full before.
    fn after_page(self, is_full: bool, listed: usize, size: u32) -> Self {
        match self {
            Self::Found => self,
            Self::Walked { window } => {
                let is_sparse = !is_full && listed < size as usize / 2;
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
                // One more than the page holds tells that it is full.
                let window = window.max(size + 1);
                let page = session.db().walk_watched(&query, window).await?;
                let way = Way::Walked { window };
                self.way = Some(way.after_page(page.is_full, page.items.len(), size));
                (page.items, page.end, page.visible)
            }
            None | Some(Way::Found) => {
                let (listing, visible) = session.db().list_watched(&query).await?;
                let is_short = listing.total <= i64::from(FOUND_PAGES_MAX * size);
                self.way
                    .get_or_insert(if is_short && query.is_counted_from_rows() {
                        Way::Found
                    } else {
                        Way::Walked { window: size }
                    });
                let last = listing.items.last().filter(|_| listing.next.is_some());
                let end = last.map(|last| (last.created_at, last.id));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_grows_while_little_is_found_and_shrinks_when_a_page_is_full() {
        let walked = |window| Way::Walked { window };
        for (window, is_full, listed, expected) in [
            (100, false, 0, 200),
            (100, false, 49, 200),
            (100, false, 50, 100),
            (100, true, 100, 50),
            (1, true, 100, 1),
            (WINDOW_MAX, false, 0, WINDOW_MAX),
        ] {
            let next = walked(window).after_page(is_full, listed, 100);
            assert_eq!(next, walked(expected), "{window} {is_full} {listed}");
        }
        assert_eq!(Way::Found.after_page(true, 100, 100), Way::Found);
    }
}
