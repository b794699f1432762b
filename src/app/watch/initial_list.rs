//! The list that a watch begins with, page by page.
//!
//! The first page is that of any list. Each page of a search finds all of its rows, which is the shorter way to a few pages of a large
//! collection. If there are more, the collection is walked, so that the work grows with its length, and not with the square of
//! what is found.

use super::groups::Group;
use super::handed::resource_bytes;
use crate::app::{Error, Service};
use crate::domain::StoredResource;
use crate::domain::page::{Order, PageRequest};
use crate::domain::position::RowPosition;
use crate::domain::watch::InitialPages;
use crate::storage::postgres::{self as storage, ListQuery};

/// Most pages of a search that are found. Without an index each of them reads the whole collection.
const FOUND_PAGES_MAX: i64 = 10;
/// Most resources that one statement of a walk reads: some 50 ms for specs of a kilobyte, a second for the largest ones.
const WINDOW_MAX: u32 = 10_000;

/// How far a list has been read.
pub(super) struct InitialList {
    pub(super) pages: InitialPages,
    after: Option<RowPosition>,
    has_specs: bool,
    method: Method,
}

/// How the next page is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    /// Like a page of any list.
    Found,
    /// By reading some resources of the collection.
    Walked(Window),
}

/// How many resources a statement of a walk reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    count: u32,
    /// Fewer than took too long.
    count_max: u32,
}

impl Window {
    fn of(count: u32) -> Self {
        Self {
            count,
            count_max: WINDOW_MAX,
        }
    }

    /// At least one more than the page holds: that tells whether there are more.
    fn over(self, page_size: u32) -> Self {
        let count = self.count.max(page_size + 1);
        Self { count, ..self }
    }

    /// Less after a page that was full before its window was read, and more after one with hardly anything.
    fn after_page(self, is_full: bool, listed: usize, page_size: u32) -> Self {
        let is_sparse = listed < page_size as usize / 2;
        let count = match (is_full, is_sparse) {
            (true, _) => self.count / 2,
            (false, true) => self.count.saturating_mul(2),
            (false, false) => self.count,
        };
        let count = count.clamp(1, self.count_max);
        Self { count, ..self }
    }

    fn after_timeout(self) -> Self {
        let count = (self.count / 2).max(2);
        Self {
            count,
            count_max: count,
        }
    }
}

impl InitialList {
    pub(super) fn new(has_specs: bool) -> Self {
        Self {
            pages: InitialPages::default(),
            after: None,
            has_specs,
            method: Method::Found,
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
        let size = match self.method {
            Method::Found => size,
            Method::Walked(window) => size.min(window.count_max - 1),
        };
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
        let (items, end, visible) = match self.method {
            Method::Walked(window) => {
                let window = window.over(size);
                let page = session.db().walk_watched(&query, window.count).await;
                if let Err(storage::Error::TooSlow { .. }) = page {
                    self.method = Method::Walked(window.after_timeout());
                }
                let page = page?;
                let window = window.after_page(page.is_full, page.items.len(), size);
                self.method = Method::Walked(window);
                (page.items, page.end, page.visible)
            }
            Method::Found => {
                let page = session.db().list_watched(&query).await;
                if let Err(storage::Error::TooSlow { .. }) = page {
                    self.method = Method::Walked(Window::of(size));
                }
                let (listing, visible) = page?;
                let lengths = listing.items.iter().map(resource_bytes);
                if !query.is_counted_from_rows() || is_long(listing.total, portion.fitting(lengths))
                {
                    self.method = Method::Walked(Window::of(size));
                }
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

/// Whether so many resources are more pages than are found.
fn is_long(total: i64, page_size: usize) -> bool {
    let page_size = page_size.try_into().unwrap_or(i64::MAX);
    total > FOUND_PAGES_MAX.saturating_mul(page_size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_grows_while_little_is_found_and_shrinks_when_a_page_is_full() {
        for (window, is_full, listed, expected) in [
            (200, false, 0, 400),
            (200, false, 49, 400),
            (200, false, 50, 200),
            (200, true, 100, 100),
            (1, true, 100, 1),
            (WINDOW_MAX, false, 0, WINDOW_MAX),
        ] {
            let next = Window::of(window).after_page(is_full, listed, 100);
            assert_eq!(next, Window::of(expected), "{window} {is_full} {listed}");
        }
        assert_eq!(Window::of(50).over(100).count, 101);
    }

    #[test]
    fn a_window_that_took_too_long_is_not_tried_again() {
        let window = Window::of(1_000).after_timeout();
        assert_eq!(window.count, 500);
        assert_eq!(window.after_page(false, 0, 100).count, 500);
        let mut least = window;
        for _ in 0..20 {
            least = least.after_timeout();
        }
        // A page of one, and one more.
        assert_eq!(least.count, 2);
    }

    #[test]
    fn ten_pages_are_not_long() {
        assert!(!is_long(1_000, 100));
        assert!(is_long(1_001, 100));
        assert!(is_long(11, 1));
    }
}
