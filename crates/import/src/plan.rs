//! What earlier passes have imported, and the order in which a pass imports and removes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::finding::{ImportReason, Refusal};
use hyperfleet_domain::{EntityRegistry, ResourceId};

/// A resource of the source: the part that decides whether and when it is imported.
#[derive(Debug, Clone, Copy)]
pub(super) struct SourceKey<'a> {
    pub(super) id: &'a str,
    pub(super) kind: &'a str,
    pub(super) is_finalizing: bool,
}

/// Every imported resource, with its kind.
pub(super) struct ImportPlan<'r> {
    registry: &'r EntityRegistry,
    imported: HashMap<ResourceId, Imported<'r>>,
    /// By depth of the kind, and of one depth finalizing resources before others, because they free their names.
    levels: BTreeMap<(usize, bool), Vec<ResourceId>>,
}

struct Imported<'r> {
    /// Empty if the kind is no longer configured.
    kind: &'r str,
    /// False if this service has removed it since.
    is_here: bool,
    is_in_source: bool,
}

impl<'r> ImportPlan<'r> {
    pub(super) fn new(registry: &'r EntityRegistry) -> Self {
        Self {
            registry,
            imported: HashMap::new(),
            levels: BTreeMap::new(),
        }
    }

    /// Records an imported resource: of an earlier pass, with its kind unless it was removed here since, or of this one.
    pub(super) fn add(&mut self, id: ResourceId, kind: Option<&str>, is_in_source: bool) {
        let entity = kind.and_then(|kind| self.registry.get(kind));
        let imported = Imported {
            kind: entity.map_or("", |entity| &entity.kind),
            is_here: kind.is_some(),
            is_in_source,
        };
        self.imported.insert(id, imported);
    }

    /// Takes one resource of the source.
    ///
    /// # Errors
    ///
    /// It cannot be imported, or must not come back.
    pub(super) fn push(&mut self, key: SourceKey<'_>) -> Result<(), Refusal> {
        let id = ResourceId::parse(key.id).ok_or(ImportReason::Id)?;
        if let Some(imported) = self.imported.get_mut(&id) {
            imported.is_in_source = true;
            if !imported.is_here {
                return Err(ImportReason::RemovedHere.into());
            }
        }
        let level = (self.registry.depth(key.kind), !key.is_finalizing);
        self.levels.entry(level).or_default().push(id);
        Ok(())
    }

    /// Whether the source has any of what was imported: otherwise it is another source, and the import would remove
    /// everything.
    pub(super) fn fits_source(&self) -> bool {
        self.imported.is_empty() || self.imported.values().any(|imported| imported.is_in_source)
    }

    /// Takes the resources to import, in batches: parents before their children.
    pub(super) fn take_batches(&mut self, size: usize) -> Vec<Vec<ResourceId>> {
        batches(std::mem::take(&mut self.levels), size)
    }

    /// Imported resources that the source no longer has, in batches: children before their parents.
    pub(super) fn vanished(&self, size: usize) -> Vec<Vec<ResourceId>> {
        let mut levels: BTreeMap<_, Vec<_>> = BTreeMap::new();
        let vanished = self.imported.iter();
        for (id, imported) in vanished.filter(|(_, i)| i.is_here && !i.is_in_source) {
            let depth = self.registry.depth(imported.kind);
            levels.entry(Reverse(depth)).or_default().push(*id);
        }
        batches(levels, size)
    }

    /// Whether an earlier pass or this one has imported it.
    pub(super) fn has(&self, id: ResourceId) -> bool {
        self.imported.contains_key(&id)
    }

    /// The kind of an imported resource.
    pub(super) fn kind_of(&self, id: ResourceId) -> Option<&'r str> {
        let imported = self.imported.get(&id).filter(|i| i.is_here)?;
        Some(imported.kind)
    }

    /// Number of resources here, by kind.
    pub(super) fn counts(&self) -> BTreeMap<&'r str, usize> {
        let mut counts = BTreeMap::new();
        for imported in self
            .imported
            .values()
            .filter(|i| i.is_here && !i.kind.is_empty())
        {
            *counts.entry(imported.kind).or_default() += 1;
        }
        counts
    }
}

fn batches<K>(levels: BTreeMap<K, Vec<ResourceId>>, size: usize) -> Vec<Vec<ResourceId>> {
    let sorted = levels.into_values().map(|mut level| {
        level.sort_unstable();
        level
    });
    sorted
        .flat_map(|level| level.chunks(size).map(<[_]>::to_vec).collect::<Vec<_>>())
        .collect()
}
