//! Pages of lists. All are bounded, so that storage need not check them.

pub use super::order::{Direction, InvalidOrder, Order, OrderField};
use super::position::RowPosition;

/// A part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// From 1 to [`PageRequest::NUMBER_MAX`].
    pub number: u32,
    /// Items on it at most, from 1 to [`PageRequest::SIZE_MAX`].
    pub size: u32,
}

impl PageRequest {
    pub const NUMBER_MAX: u32 = 100_000;
    pub const SIZE_MAX: u32 = 100;
    pub const SIZE_DEFAULT: u32 = 20;

    /// Number of items before the page.
    pub fn offset(self) -> i64 {
        (i64::from(self.number) - 1) * i64::from(self.size)
    }
}

impl Default for PageRequest {
    fn default() -> Self {
        Self {
            number: 1,
            size: Self::SIZE_DEFAULT,
        }
    }
}

/// A page together with the total of the list.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing<T> {
    pub page: PageRequest,
    pub items: Vec<T>,
    /// Number of items on all pages.
    pub total: i64,
    /// The position of the last item, if more follow it and the list can be continued there.
    pub next: Option<RowPosition>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_page_starts_at_the_first_item() {
        assert_eq!(PageRequest::default().offset(), 0);
        assert_eq!(
            PageRequest {
                number: 400,
                size: 20
            }
            .offset(),
            7980
        );
    }
}
