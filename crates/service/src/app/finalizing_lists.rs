//! Remembers of which kinds clients have listed or watched finalizing resources: an adapter that never asks for them never
//! sees a deletion.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Service;
use hyperfleet_domain::{EntityRegistry, ListFilter};

/// The kinds whose finalizing resources a list or a watch of this process has included.
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

    /// Notes that a list with these filters was answered, or a watch has begun.
    pub(super) fn record(&self, filters: &[ListFilter]) {
        if !filters.contains(&ListFilter::IncludeDeleted(true)) {
            return;
        }
        for (kind, is_included) in &self.0 {
            let is_listed =
                |filter: &ListFilter| !matches!(filter, ListFilter::Kind(k) if k != kind);
            // Read first, so that threads which only read do not take the cache line from each other.
            if filters.iter().all(is_listed) && !is_included.load(Ordering::Relaxed) {
                is_included.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl Service {
    /// Whether every list and watch of the kind in this process has left finalizing resources out.
    ///
    /// Never true if lists include them by default (setting `lists.include_deleted`).
    pub fn hides_finalizing(&self, kind: &str) -> bool {
        let is_included = self.finalizing_lists.0.get(kind);
        !self.lists_include_deleted && is_included.is_some_and(|is| !is.load(Ordering::Relaxed))
    }
}
