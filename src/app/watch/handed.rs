//! A change as the watchers of a group are shown it: written once for all of them.

use std::sync::{Arc, OnceLock};

use crate::domain::StoredResource;
use crate::domain::change::ChangePosition;
use crate::domain::watch::{WatchEventKind, WatchedChange};

/// What an event takes beside its texts, roughly.
const EVENT_BYTES: usize = 512;
/// An event, for all watchers of a group.
#[derive(Debug)]
pub struct HandedChange {
    pub kind: WatchEventKind,
    change: Arc<WatchedChange>,
    written: OnceLock<Option<String>>,
}

impl HandedChange {
    pub(super) fn new(kind: WatchEventKind, change: Arc<WatchedChange>) -> Self {
        Self {
            kind,
            change,
            written: OnceLock::new(),
        }
    }

    pub fn position(&self) -> ChangePosition {
        self.change.position
    }

    pub(super) fn change(&self) -> &WatchedChange {
        &self.change
    }

    /// The state to show.
    pub fn resource(&self) -> Option<&StoredResource> {
        let image = match self.kind {
            WatchEventKind::Added | WatchEventKind::Modified => &self.change.after,
            WatchEventKind::Deleted => &self.change.before,
        };
        image.as_ref().map(|image| &image.stored)
    }

    /// The text of the event, written by `write` if no other watcher has written it.
    pub fn written(&self, write: impl FnOnce() -> Option<String>) -> Option<&str> {
        self.written.get_or_init(write).as_deref()
    }

    /// Memory that it takes, roughly.
    pub(super) fn bytes(&self) -> usize {
        // Once more for the text that is written of it.
        EVENT_BYTES + 2 * change_bytes(&self.change)
    }
}

/// The length of a resource's texts.
pub(super) fn resource_bytes(resource: &StoredResource) -> usize {
    let texts = [&resource.spec, &resource.labels, &resource.conditions];
    texts.into_iter().map(|text| text.as_str().len()).sum()
}

/// The same for the resource before and after a change.
pub(super) fn change_bytes(change: &WatchedChange) -> usize {
    let images = [&change.before, &change.after].into_iter().flatten();
    images.map(|image| resource_bytes(&image.stored)).sum()
}
