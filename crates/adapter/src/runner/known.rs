//! Resources that lists and watches showed, so that a resource is worked on once per generation, however often it is
//! shown.

use std::collections::{HashMap, HashSet};

use super::news::{News, Part};
use super::work::LastReport;
use crate::queue::Key;
use crate::resource::Resource;
use crate::watch::Change;

/// Resources that were shown and may still exist.
#[derive(Debug, Default)]
pub(super) struct KnownResources {
    entries: HashMap<Key, Entry>,
    /// By the path of their owner.
    owned: HashMap<String, HashSet<Key>>,
    /// The number of the current sweep, by kind.
    sweeps: HashMap<usize, u64>,
}

/// What a worker has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Todo {
    Work {
        /// Whether the resource is new or has changed.
        is_news: bool,
    },
    /// The resource is gone.
    Nothing,
}

#[derive(Debug)]
struct Entry {
    /// The newest generation that was shown. Every change adds one, including the deletion.
    generation: i64,
    last_report: Option<LastReport>,
    owner: Option<String>,
    /// The current sweep when it was shown last.
    sweep: u64,
}

impl Entry {
    fn is_reported(&self) -> bool {
        let last = self.last_report.as_ref();
        last.is_some_and(|last| last.generation == self.generation)
    }
}

impl KnownResources {
    /// Returns what there is to do for which resource.
    pub(super) fn apply(&mut self, news: News) -> Vec<(Key, Todo)> {
        let (kind, mut todo) = (news.kind, Vec::new());
        match news.part {
            Part::SweepBegins => *self.sweeps.entry(kind).or_default() += 1,
            Part::Swept(items) => {
                // Lists of changes precede the first sweep, and those were worked on already.
                let is_due = self.sweep(kind) > 1;
                for item in items {
                    self.show(kind, item, is_due, &mut todo);
                }
            }
            Part::SweepEnds => self.forget_unseen(kind),
            Part::Listed(items) => {
                for item in items {
                    self.show(kind, item, false, &mut todo);
                }
            }
            Part::Changed(changes) => {
                for change in changes {
                    match change {
                        Change::Seen(resource) => self.show(kind, resource, false, &mut todo),
                        Change::Removed(href) => {
                            let key = Key { kind, href };
                            self.forget(&key);
                            todo.push((key, Todo::Nothing));
                        }
                    }
                }
            }
        }
        todo
    }

    fn sweep(&self, kind: usize) -> u64 {
        self.sweeps.get(&kind).copied().unwrap_or_default()
    }

    fn show(&mut self, kind: usize, item: Resource, is_due: bool, todo: &mut Vec<(Key, Todo)>) {
        let href = item.href.clone();
        let (key, is_news) = self.see(kind, item);
        if is_news {
            let work = Todo::Work { is_news: true };
            todo.extend(self.owned_by(&href).map(|key| (key, work)));
        }
        if is_news || is_due || !self.entries[&key].is_reported() {
            todo.push((key, Todo::Work { is_news }));
        }
    }

    fn see(&mut self, kind: usize, item: Resource) -> (Key, bool) {
        let sweep = self.sweep(kind);
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
        // A list may be older than the last report or event.
        let is_news = item.generation > entry.generation;
        entry.generation = entry.generation.max(item.generation);
        entry.sweep = sweep;
        (key, is_news)
    }

    fn forget_unseen(&mut self, kind: usize) {
        let sweep = self.sweep(kind);
        let entries = self.entries.iter();
        // A resource that a worker has, and that still exists, is shown again by the next sweep.
        let gone = entries.filter(|(key, entry)| key.kind == kind && entry.sweep < sweep);
        let gone: Vec<Key> = gone.map(|(key, _)| key.clone()).collect();
        for key in gone {
            self.forget(&key);
        }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource(href: &str, generation: i64) -> Resource {
        let document = json!({
            "id": "1", "kind": "Cart", "name": "a", "href": href, "generation": generation,
        });
        Resource::read(document).unwrap()
    }

    fn seen(href: &str, generation: i64) -> Part {
        Part::Changed(vec![Change::Seen(resource(href, generation))])
    }

    fn apply(known: &mut KnownResources, part: Part) -> Vec<(String, Todo)> {
        let todo = known.apply(News { kind: 0, part });
        todo.into_iter()
            .map(|(key, todo)| (key.href, todo))
            .collect()
    }

    fn has(known: &KnownResources, href: &str) -> bool {
        let href = href.to_owned();
        known.has(&Key { kind: 0, href })
    }

    #[test]
    fn only_a_new_generation_is_news_however_it_is_shown() {
        let mut known = KnownResources::default();
        let work = |is_news| vec![("/a".to_owned(), Todo::Work { is_news })];
        assert_eq!(apply(&mut known, seen("/a", 2)), work(true));
        let listed = Part::Listed(vec![resource("/a", 1)]);
        assert_eq!(apply(&mut known, listed), work(false), "not reported yet");
        let last = LastReport {
            generation: 2,
            report: crate::Report::finalized("Removed", "it is gone"),
            at: tokio::time::Instant::now(),
        };
        let href = "/a".to_owned();
        known.reported(&Key { kind: 0, href }, last);
        assert_eq!(apply(&mut known, seen("/a", 2)), []);
        assert_eq!(apply(&mut known, seen("/a", 3)), work(true));
    }

    #[test]
    fn a_resource_that_an_event_shows_during_a_sweep_is_kept() {
        let mut known = KnownResources::default();
        for href in ["/gone", "/listed"] {
            apply(&mut known, seen(href, 1));
        }
        apply(&mut known, Part::SweepBegins);
        apply(&mut known, seen("/new", 1));
        apply(&mut known, Part::Swept(vec![resource("/listed", 1)]));
        apply(&mut known, Part::SweepEnds);
        let kept = ["/gone", "/listed", "/new"].map(|href| has(&known, href));
        assert_eq!(kept, [false, true, true]);
    }

    #[test]
    fn a_removed_resource_is_forgotten_and_may_return() {
        let mut known = KnownResources::default();
        apply(&mut known, seen("/a", 4));
        let removed = || Part::Changed(vec![Change::Removed("/a".to_owned())]);
        let nothing = [("/a".to_owned(), Todo::Nothing)];
        assert_eq!(apply(&mut known, removed()), nothing);
        assert!(!has(&known, "/a"));
        assert_eq!(apply(&mut known, removed()), nothing);
        let work = [("/a".to_owned(), Todo::Work { is_news: true })];
        assert_eq!(apply(&mut known, seen("/a", 4)), work);
    }
}
