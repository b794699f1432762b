//! A change as watchers receive it. Its text is serialized once for all watchers with the same format.

use std::sync::{Arc, Mutex, PoisonError};

use hyperfleet_domain::StoredResource;
use hyperfleet_domain::change::ChangePosition;
use hyperfleet_domain::watch::{WatchEventKind, WatchedChange};

/// What a change takes beside its texts, roughly.
const CHANGE_BYTES: usize = 512;

/// A change, with the texts of its events.
#[derive(Debug)]
pub(super) struct SharedChange {
    pub(super) change: WatchedChange,
    texts: Mutex<Vec<EventText>>,
}

#[derive(Debug)]
struct EventText {
    kind: WatchEventKind,
    form: Arc<str>,
    text: Arc<str>,
}

/// What a change is to one watcher.
#[derive(Debug)]
pub struct WatchEvent {
    pub kind: WatchEventKind,
    change: Arc<SharedChange>,
}

impl SharedChange {
    pub(super) fn new(change: WatchedChange) -> Self {
        Self {
            change,
            texts: Mutex::default(),
        }
    }

    pub(super) fn position(&self) -> i64 {
        self.change.position.number
    }

    /// Memory that it takes, roughly.
    pub(super) fn bytes(&self) -> usize {
        // Once more for the text that is written of it.
        CHANGE_BYTES + 2 * change_bytes(&self.change)
    }
}

impl WatchEvent {
    pub(super) fn new(kind: WatchEventKind, change: Arc<SharedChange>) -> Self {
        Self { kind, change }
    }

    pub fn position(&self) -> ChangePosition {
        self.change.change.position
    }

    /// The state to show.
    pub fn resource(&self) -> Option<&StoredResource> {
        let image = match self.kind {
            WatchEventKind::Added | WatchEventKind::Modified => &self.change.change.after,
            WatchEventKind::Deleted => &self.change.change.before,
        };
        image.as_ref().map(|image| &image.stored)
    }

    /// The text of the event in a form, written by `write` if no other watcher has written it; `None` if it cannot be
    /// written.
    pub fn text(
        &self,
        form: &Arc<str>,
        write: impl FnOnce() -> Option<String>,
    ) -> Option<Arc<str>> {
        let texts = &self.change.texts;
        // Held while the text is serialized, so that the other watchers wait for it instead of serializing it again.
        let mut texts = texts.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |text: &&EventText| text.kind == self.kind && text.form == *form;
        if let Some(found) = texts.iter().find(is_same) {
            return Some(Arc::clone(&found.text));
        }
        let text: Arc<str> = write()?.into();
        texts.push(EventText {
            kind: self.kind,
            form: Arc::clone(form),
            text: Arc::clone(&text),
        });
        Some(text)
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
