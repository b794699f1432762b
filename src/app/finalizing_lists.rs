//! Which kinds' finalizing resources clients have listed: a poller that never lists them never sees a deletion.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Service;
use crate::domain::{EntityRegistry, ListFilter};

/// The kinds of which a list of this process has included finalizing resources.
#[derive(Debug)]
pub(super) struct FinalizingLists(BTreeMap<String, AtomicBool>);

impl FinalizingLists {
    pub(super) fn new(registry: &EntityRegistry) -> Self {
        let kinds = registry.entities().iter();
        Self(
            kinds
                .map(|e| (e.kind.clone(), AtomicBool::default()))
                .collect(),
        )
    }

    /// Remembers that a list with these filters was answered.
    pub(super) fn record(&self, filters: &[ListFilter]) {
        if !filters.contains(&ListFilter::IncludeDeleted(true)) {
            return;
        }
        for (kind, is_included) in &self.0 {
            let is_listed =
                |filter: &ListFilter| !matches!(filter, ListFilter::Kind(k) if k != kind);
            // Read first: threads that only read do not take the cache line from each other.
            if filters.iter().all(is_listed) && !is_included.load(Ordering::Relaxed) {
                is_included.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl Service {
    /// Whether every list of the kind that this process has answered left finalizing resources out.
    /// Never so where lists include them by default (setting `lists.include_deleted`).
    pub fn hides_finalizing(&self, kind: &str) -> bool {
        let is_included = self.finalizing_lists.0.get(kind);
        !self.lists_include_deleted && is_included.is_some_and(|is| !is.load(Ordering::Relaxed))
    }
}
