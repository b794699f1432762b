//! Pages of lists. All bounded; the storage turns them into SQL without looking.

pub use super::order::{Direction, InvalidOrder, Order, OrderField};
use super::position::RowPosition;

/// Which part of a list is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRequest {
    /// From 1 to [`PageRequest::NUMBER_MAX`].
    pub number: u32,
    /// Most items on it, from 1 to [`PageRequest::SIZE_MAX`].
    pub size: u32,
}

impl PageRequest {
    /// Highest page number.
    pub const NUMBER_MAX: u32 = 100_000;
    /// Most items on one page.
    pub const SIZE_MAX: u32 = 100;
    /// Items on a page unless asked otherwise.
    pub const SIZE_DEFAULT: u32 = 20;

    /// How many items come before the page.
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

/// One part of the list together with the size of the whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing<T> {
    /// Which part.
    pub page: PageRequest,
    /// What is on it.
    pub items: Vec<T>,
    /// How many there are on all pages.
    pub total: i64,
    /// Where the last item stands, if there are more after it and the list can be continued there.
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
