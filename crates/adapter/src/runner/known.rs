//! Listed resources, so that a resource is worked on once per generation, however often it is listed.

use std::collections::{HashMap, HashSet};

use super::lists::Listed;
use super::work::LastReport;
use crate::queue::Key;
use crate::resource::Resource;

/// Resources that were listed and may still exist.
#[derive(Debug, Default)]
pub(super) struct KnownResources {
    entries: HashMap<Key, Entry>,
    /// By the path of their owner.
    owned: HashMap<String, HashSet<Key>>,
}

#[derive(Debug)]
struct Entry {
    /// The newest listed generation. Every change adds one, including the deletion.
    generation: i64,
    last_report: Option<LastReport>,
    owner: Option<String>,
    /// The sweep that listed it last.
    sweep: u64,
}

impl Entry {
    fn is_reported(&self) -> bool {
        let last = self.last_report.as_ref();
        last.is_some_and(|last| last.generation == self.generation)
    }
}

impl KnownResources {
    /// Applies a part of a list. Returns the resources to work on, and whether each is new or has changed.
    pub(super) fn apply(&mut self, listed: Listed) -> Vec<(Key, bool)> {
        let mut to_do = Vec::new();
        for item in listed.items {
            let href = item.href.clone();
            let (key, is_news) = self.see(listed.kind, listed.sweep, item);
            if is_news {
                to_do.extend(self.owned_by(&href).map(|key| (key, true)));
            }
            // A list of changes precedes the first sweep, and those were worked on already.
            let is_due = listed.is_sweep && listed.sweep > 1;
            if is_news || is_due || !self.entries[&key].is_reported() {
                to_do.push((key, is_news));
            }
        }
        if listed.is_sweep && listed.is_end {
            // A resource that a worker has, and that still exists, is in the next list again.
            let entries = self.entries.iter();
            let gone = entries
                .filter(|(key, entry)| key.kind == listed.kind && entry.sweep < listed.sweep);
            let gone: Vec<Key> = gone.map(|(key, _)| key.clone()).collect();
            for key in gone {
                self.forget(&key);
            }
        }
        to_do
    }

    fn see(&mut self, kind: usize, sweep: u64, item: Resource) -> (Key, bool) {
        let (href, owner) = (item.href, item.owner.map(|owner| owner.href));
        let key = Key { kind, href };
        if let Some(owner) = &owner
            && !self.entries.contains_key(&key)
        {
            let children = self.owned.entry(owner.clone()).or_default();
            children.insert(key.clone());
        }
        let entry = self.entries.entry(key.clone()).or_insert(Entry {
            generation: 0,
            last_report: None,
            owner,
            sweep,
        });
        // A list may be older than the last report.
        let is_news = item.generation > entry.generation;
        entry.generation = entry.generation.max(item.generation);
        entry.sweep = sweep;
        (key, is_news)
    }

    fn owned_by(&self, href: &str) -> impl Iterator<Item = Key> {
        self.owned.get(href).into_iter().flatten().cloned()
    }

    pub(super) fn has(&self, key: &Key) -> bool {
        self.entries.contains_key(key)
    }

    pub(super) fn last_report(&self, key: &Key) -> Option<LastReport> {
        self.entries.get(key)?.last_report.clone()
    }

    pub(super) fn reported(&mut self, key: &Key, report: LastReport) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.generation = entry.generation.max(report.generation);
            entry.last_report = Some(report);
        }
    }

    pub(super) fn forget(&mut self, key: &Key) {
        let owner = self.entries.remove(key).and_then(|entry| entry.owner);
        if let Some(owner) = owner
            && let Some(children) = self.owned.get_mut(&owner)
        {
            children.remove(key);
            if children.is_empty() {
                self.owned.remove(&owner);
            }
        }
    }
}
