//! Watches of lists: which changes a watcher receives, in which order, and as which events
//! (`docs/decisions/0074-watch.md`).
//!
//! ```text
//! allocated positions, writers ──Horizon──▶ what can no longer change
//! change, WatchFilter ───────────────────▶ ADDED, MODIFIED, DELETED, or nothing
//! ```

mod event;
mod horizon;

pub use event::{ResourceImage, WatchEventKind, WatchFilter, WatchedChange};
pub use horizon::{Horizon, HorizonMove, PolledEnd};

use crate::change::ChangePosition;

/// Where a watch begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchStart {
    /// With changes that are committed from now on.
    Now,
    /// With the present state.
    Initial,
    /// After a position that an answer or an event has named.
    After(ChangePosition),
}
