//! What the source has and what is here: from both follows what a run has to do.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::finding::about;
use super::{Finding, ImportReason};
use crate::domain::{EntityRegistry, ResourceId};

/// A resource of the source, by what decides whether it is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceKey<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Whether its deletion was requested.
    pub is_finalizing: bool,
    /// Whether its row was written since the last run.
    pub is_changed: bool,
}

/// A resource that an earlier run has imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedKey {
    /// Its id.
    pub id: ResourceId,
    /// Whether every part of it is here.
    pub is_complete: bool,
    /// Its kind; unset if this service has removed it since.
    pub kind: Option<String>,
}

/// What a run has to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportPlan {
    /// Resources to read from the source and to write here, by level: parents before their children. In a level
    /// finalizing resources come first, because they leave their names to others.
    pub bring: Vec<Vec<ResourceId>>,
    /// Ids of the source that are no UUIDs.
    pub foreign_ids: Vec<String>,
    /// Resources that the source no longer has, children before their parents.
    pub remove: Vec<ResourceId>,
    /// Resources that are here as the source has them.
    pub unchanged: usize,
    /// What is left alone, because this service has removed it.
    pub findings: Vec<Finding>,
}

/// Every imported resource, with its kind.
#[derive(Debug, Default)]
pub struct Ledger {
    kinds: Vec<String>,
    entries: HashMap<ResourceId, Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    kind: u16,
    is_complete: bool,
    is_removed_here: bool,
    is_in_source: bool,
}

impl Ledger {
    /// What earlier runs have imported.
    pub fn of(imported: impl IntoIterator<Item = ImportedKey>) -> Self {
        let mut ledger = Self::default();
        for key in imported {
            let entry = Entry {
                kind: ledger.kind(key.kind.as_deref().unwrap_or_default()),
                is_complete: key.is_complete,
                is_removed_here: key.kind.is_none(),
                is_in_source: false,
            };
            ledger.entries.insert(key.id, entry);
        }
        ledger
    }

    /// The number of a kind. There are few: one that is out of range would need 65,536 kinds in the source.
    fn kind(&mut self, kind: &str) -> u16 {
        let at = self.kinds.iter().position(|k| k == kind);
        let at = at.unwrap_or_else(|| {
            self.kinds.push(kind.to_owned());
            self.kinds.len() - 1
        });
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    /// The kind of an imported resource.
    pub fn kind_of(&self, id: ResourceId) -> Option<&str> {
        let entry = self.entries.get(&id).filter(|e| !e.is_removed_here)?;
        self.kinds.get(usize::from(entry.kind)).map(String::as_str)
    }

    /// Whether an earlier run or this one has imported it.
    pub fn has(&self, id: ResourceId) -> bool {
        self.entries.contains_key(&id)
    }

    /// Notes that a resource is here, whole or with parts to come.
    pub fn add(&mut self, id: ResourceId, kind: &str, is_complete: bool) {
        let kind = self.kind(kind);
        let entry = Entry {
            kind,
            is_complete,
            is_removed_here: false,
            is_in_source: true,
        };
        self.entries.insert(id, entry);
    }

    /// Notes whether all parts of a resource are here.
    pub fn set_complete(&mut self, id: ResourceId, is_complete: bool) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.is_complete = is_complete;
        }
    }

    /// Whether every part of a resource is here as the source has it.
    pub fn is_complete(&self, id: ResourceId) -> bool {
        let entry = self.entries.get(&id);
        entry.is_some_and(|e| e.is_complete && e.is_in_source && !e.is_removed_here)
    }

    /// Notes that a resource is gone.
    pub fn remove(&mut self, id: ResourceId) {
        self.entries.remove(&id);
    }

    /// Resources that must be here as the source has them, in the order of their ids.
    pub fn complete(&self) -> Vec<ResourceId> {
        let ids = self.entries.keys().copied();
        let mut ids: Vec<_> = ids.filter(|id| self.is_complete(*id)).collect();
        ids.sort_unstable();
        ids
    }

    /// How many resources of each kind are here.
    pub fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for entry in self.entries.values().filter(|e| !e.is_removed_here) {
            let kind = self.kinds.get(usize::from(entry.kind));
            *counts.entry(kind.map_or("", String::as_str)).or_default() += 1;
        }
        counts
    }
}

/// Makes a [`ImportPlan`] while the keys of the source come in.
pub struct ImportPlanner<'a> {
    registry: &'a EntityRegistry,
    ledger: &'a mut Ledger,
    bring: Vec<(usize, bool, ResourceId)>,
    plan: ImportPlan,
    counts: BTreeMap<String, usize>,
}

impl<'a> ImportPlanner<'a> {
    /// Plans for these kinds. The ledger learns what the source has.
    pub fn new(registry: &'a EntityRegistry, ledger: &'a mut Ledger) -> Self {
        Self {
            registry,
            ledger,
            bring: Vec::new(),
            plan: ImportPlan::default(),
            counts: BTreeMap::new(),
        }
    }

    /// Takes one resource of the source. `has_changed_parts` says whether a label, condition, reference or report of
    /// it was written since the last run.
    pub fn push(&mut self, key: SourceKey<'_>, has_changed_parts: impl FnOnce(ResourceId) -> bool) {
        match self.counts.get_mut(key.kind) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(key.kind.to_owned(), 1)),
        }
        let Some(id) = ResourceId::parse(key.id) else {
            self.plan.foreign_ids.push(key.id.to_owned());
            return;
        };
        let is_wanted = key.is_changed || has_changed_parts(id);
        let entry = self.ledger.entries.get_mut(&id);
        if let Some(entry) = entry {
            entry.is_in_source = true;
            if entry.is_removed_here {
                if is_wanted {
                    let finding = about(ImportReason::RemovedHere, key.kind, id);
                    self.plan.findings.push(finding);
                }
                return;
            }
            if !is_wanted && entry.is_complete {
                self.plan.unchanged += 1;
                return;
            }
        }
        let depth = self.registry.depth(key.kind);
        self.bring.push((depth, !key.is_finalizing, id));
    }

    /// The plan, and how many resources of each kind the source has.
    pub fn finish(mut self) -> (ImportPlan, BTreeMap<String, usize>) {
        self.bring.sort_unstable();
        let levels = self.bring.chunk_by(|(one, ..), (other, ..)| one == other);
        let ids = |level: &[(usize, bool, ResourceId)]| level.iter().map(|(.., id)| *id).collect();
        self.plan.bring = levels.map(ids).collect();
        let vanished = self.ledger.entries.iter();
        let vanished = vanished.filter(|(_, e)| !e.is_in_source && !e.is_removed_here);
        self.plan.remove = vanished.map(|(id, _)| *id).collect();
        let depth = |id: &ResourceId| {
            let kind = self.ledger.kind_of(*id);
            kind.map_or(0, |kind| self.registry.depth(kind))
        };
        self.plan
            .remove
            .sort_by_cached_key(|id| (Reverse(depth(id)), *id));
        (self.plan, self.counts)
    }
}
