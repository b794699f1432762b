//! Compares the keys of the source with those here, and plans a run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::finding::about;
use super::{ImportFinding, ImportReason, Regression};
use crate::domain::{EntityRegistry, ResourceId};

/// A resource of the source: the part that decides whether it is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceKey<'a> {
    pub id: &'a str,
    pub kind: &'a str,
    pub generation: i64,
    pub is_finalizing: bool,
    /// Whether its row was written since the last run.
    pub is_changed: bool,
}

/// A resource that an earlier run has imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedKey {
    pub id: ResourceId,
    /// Whether every part of it is here.
    pub is_complete: bool,
    /// Unset if this service has removed it since.
    pub kind: Option<String>,
    /// Unset if this service has changed or removed it since.
    pub generation: Option<i32>,
}

/// How much of an imported resource is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportedParts {
    All,
    /// All but the reports and references that were refused.
    Accepted,
    /// An older state, or one without its references.
    Older,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportPlan {
    /// Resources to read from the source and to write here, by level: parents before their children, and of one kind
    /// finalizing resources before others, because they free their names.
    pub bring: Vec<Vec<ResourceId>>,
    /// Ids of the source that are not UUIDs.
    pub foreign_ids: Vec<String>,
    /// Resources that the source has removed, children before their parents.
    pub remove: Vec<ResourceId>,
    /// Number of resources that are equal already.
    pub unchanged: usize,
    /// Resources that this service has removed, and that stay so.
    pub findings: Vec<ImportFinding>,
    /// Set if the source has older states of resources than were imported.
    pub regression: Option<Regression>,
}

impl ImportPlan {
    /// Number of resources to read.
    pub fn total(&self) -> usize {
        self.bring.iter().map(Vec::len).sum::<usize>() + self.foreign_ids.len()
    }

    fn record_regression(&mut self, id: ResourceId) {
        let (count, first) = match self.regression {
            Some(Regression::Generations { count, first }) => (count + 1, first),
            _ => (1, id),
        };
        self.regression = Some(Regression::Generations { count, first });
    }
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
    generation: Option<i32>,
    parts: ImportedParts,
    is_removed_here: bool,
    is_in_source: bool,
}

impl Ledger {
    /// The resources that earlier runs have imported.
    pub fn of(imported: impl IntoIterator<Item = ImportedKey>) -> Self {
        let mut ledger = Self::default();
        for key in imported {
            let entry = Entry {
                kind: ledger.kind(key.kind.as_deref().unwrap_or_default()),
                generation: key.generation,
                parts: if key.is_complete {
                    ImportedParts::All
                } else {
                    ImportedParts::Older
                },
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

    pub fn add(&mut self, id: ResourceId, kind: &str, parts: ImportedParts) {
        let kind = self.kind(kind);
        let entry = Entry {
            kind,
            generation: None,
            parts,
            is_removed_here: false,
            is_in_source: true,
        };
        self.entries.insert(id, entry);
    }

    pub fn set_parts(&mut self, id: ResourceId, parts: ImportedParts) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.parts = parts;
        }
    }

    /// Records that this service has removed a resource.
    pub fn set_removed_here(&mut self, id: ResourceId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.is_removed_here = true;
        }
    }

    /// How much of a resource of the source is here; unset if nothing is.
    pub fn parts(&self, id: ResourceId) -> Option<ImportedParts> {
        let entry = self.entries.get(&id);
        let entry = entry.filter(|e| e.is_in_source && !e.is_removed_here);
        entry.map(|e| e.parts)
    }

    pub fn remove(&mut self, id: ResourceId) {
        self.entries.remove(&id);
    }

    /// Whether a resource must be equal here, except for refused parts.
    pub fn is_comparable(&self, id: ResourceId) -> bool {
        !matches!(self.parts(id), None | Some(ImportedParts::Older))
    }

    /// Every comparable resource, in the order of the ids.
    pub fn comparable(&self) -> Vec<ResourceId> {
        let ids = self.entries.keys().copied();
        let mut ids: Vec<_> = ids.filter(|id| self.is_comparable(*id)).collect();
        ids.sort_unstable();
        ids
    }

    /// Number of resources that are here in an older state than in the source.
    pub fn older(&self) -> usize {
        let ids = self.entries.keys();
        ids.filter(|id| self.parts(**id) == Some(ImportedParts::Older))
            .count()
    }

    /// Number of resources of the source that this service has removed.
    pub fn removed_here(&self) -> usize {
        let entries = self.entries.values();
        entries
            .filter(|e| e.is_in_source && e.is_removed_here)
            .count()
    }

    /// Number of resources here, by kind.
    pub fn counts(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for entry in self.entries.values().filter(|e| !e.is_removed_here) {
            let kind = self.kinds.get(usize::from(entry.kind));
            *counts.entry(kind.map_or("", String::as_str)).or_default() += 1;
        }
        counts
    }
}

/// Makes an [`ImportPlan`] while the keys of the source arrive.
pub struct ImportPlanner<'a> {
    registry: &'a EntityRegistry,
    ledger: &'a mut Ledger,
    bring: Vec<(usize, bool, ResourceId)>,
    plan: ImportPlan,
    counts: BTreeMap<String, usize>,
}

impl<'a> ImportPlanner<'a> {
    /// Plans for these kinds. Updates the ledger with the resources of the source.
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
            let is_older = |imported: &i32| key.generation < i64::from(*imported);
            if entry.generation.as_ref().is_some_and(is_older) {
                self.plan.record_regression(id);
            }
            if !is_wanted && entry.parts == ImportedParts::All {
                self.plan.unchanged += 1;
                return;
            }
        }
        let depth = self.registry.depth(key.kind);
        self.bring.push((depth, !key.is_finalizing, id));
    }

    /// The plan, and the number of resources in the source by kind.
    pub fn finish(mut self) -> (ImportPlan, BTreeMap<String, usize>) {
        self.bring.sort_unstable();
        let levels = self
            .bring
            .chunk_by(|one, other| (one.0, one.1) == (other.0, other.1));
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
