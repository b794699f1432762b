//! What the source has and what is here: from both follows what a run has to do.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::finding::about;
use super::{ImportFinding, ImportReason, Regression};
use crate::domain::{EntityRegistry, ResourceId};

/// A resource of the source, by what decides whether it is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceKey<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its generation.
    pub generation: i64,
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
    /// Its generation; unset if this service has changed or removed it since.
    pub generation: Option<i32>,
}

/// How much of an imported resource is here as the source has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportedParts {
    /// All of it.
    All,
    /// All but the reports and references that were refused.
    Accepted,
    /// An older state, or one without its references.
    Older,
}

/// What a run has to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportPlan {
    /// Resources to read from the source and to write here, by level: parents before their children, and of one kind
    /// finalizing resources before others, because they leave their names to these.
    pub bring: Vec<Vec<ResourceId>>,
    /// Ids of the source that are no UUIDs.
    pub foreign_ids: Vec<String>,
    /// Resources that the source no longer has, children before their parents.
    pub remove: Vec<ResourceId>,
    /// Resources that are here as the source has them.
    pub unchanged: usize,
    /// What is left alone, because this service has removed it.
    pub findings: Vec<ImportFinding>,
    /// Set if the source has older states of resources than were imported.
    pub regression: Option<Regression>,
}

impl ImportPlan {
    /// How many resources are to be read.
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
    /// What earlier runs have imported.
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

    /// Notes that a resource is here.
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

    /// Notes how much of a resource is here.
    pub fn set_parts(&mut self, id: ResourceId, parts: ImportedParts) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.parts = parts;
        }
    }

    /// Notes that this service has removed a resource.
    pub fn set_removed_here(&mut self, id: ResourceId) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.is_removed_here = true;
        }
    }

    /// How much of a resource of the source is here; unset if it is not.
    pub fn parts(&self, id: ResourceId) -> Option<ImportedParts> {
        let entry = self.entries.get(&id);
        let entry = entry.filter(|e| e.is_in_source && !e.is_removed_here);
        entry.map(|e| e.parts)
    }

    /// Notes that a resource is gone.
    pub fn remove(&mut self, id: ResourceId) {
        self.entries.remove(&id);
    }

    /// Whether a resource must be here as the source has it, but for refused parts.
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

    /// How many resources are here in an older state than the source has.
    pub fn older(&self) -> usize {
        let ids = self.entries.keys();
        ids.filter(|id| self.parts(**id) == Some(ImportedParts::Older))
            .count()
    }

    /// How many resources of the source this service has removed.
    pub fn removed_here(&self) -> usize {
        let entries = self.entries.values();
        entries
            .filter(|e| e.is_in_source && e.is_removed_here)
            .count()
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

    /// The plan, and how many resources of each kind the source has.
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
