//! What watchers of one group read who are behind. Those at the same position share a read: before a burst that is too large
//! for the group's events, most of them are at one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OnceCell;

use super::handed::HandedChange;

/// Changes after a position.
#[derive(Debug)]
pub(super) struct Slice {
    pub(super) changes: Vec<Arc<HandedChange>>,
    /// Up to which position they are complete.
    pub(super) reached: i64,
}

/// A slice that is being read, or was read. It exists as long as a watcher needs it.
pub(super) type SharedSlice = Arc<OnceCell<Slice>>;

/// The slices of one group, by the position before them.
#[derive(Debug, Default)]
pub(super) struct Slices(Mutex<HashMap<i64, Weak<OnceCell<Slice>>>>);

impl Slices {
    /// The slice after a position: that of another watcher, or a new one that is not read yet.
    pub(super) fn after(&self, position: i64) -> SharedSlice {
        let mut slices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = slices.get(&position).and_then(Weak::upgrade) {
            return found;
        }
        slices.retain(|_, slice| slice.strong_count() > 0);
        let slice = SharedSlice::default();
        slices.insert(position, Arc::downgrade(&slice));
        slice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_is_shared_while_a_watcher_needs_it() {
        let slices = Slices::default();
        let first = slices.after(7);
        assert!(Arc::ptr_eq(&first, &slices.after(7)));
        assert!(!Arc::ptr_eq(&first, &slices.after(8)));
        drop(first);
        slices.after(9);
        assert_eq!(slices.0.lock().unwrap().len(), 1);
    }
}
