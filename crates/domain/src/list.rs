//! Filters of lists of resources.

use strum::{EnumDiscriminants, EnumIter};

use super::ResourceId;
use super::tsl::Filter;

/// A condition that every listed resource meets.
///
/// A new filter is a new variant here. The compiler then asks how it is read (`wire::query`), which lists have it
/// (`app::list`), its SQL, and whether the counters of totals support it (`storage::list`). Its parameters
/// are described in `wire::schemas::parameters`. Tokens that continue a list are bound to the value of every filter
/// (`wire::continuation`), by its place in this list: add new ones at the end.
#[derive(Debug, Clone, PartialEq, Hash, EnumDiscriminants)]
#[strum_discriminants(
    name(ListFilterKind),
    derive(EnumIter),
    doc = "Which filter, without its value."
)]
pub enum ListFilter {
    /// Resources of this kind, which is configured.
    Kind(String),
    Search(Filter),
    /// Includes finalizing resources if `true`.
    IncludeDeleted(bool),
    /// Resources with a reference to another one.
    Reference {
        ref_type: String,
        /// `None` for an id that no resource can have, which matches nothing.
        target: Option<ResourceId>,
    },
}
