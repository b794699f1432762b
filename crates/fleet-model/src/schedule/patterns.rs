//! Which units exclude each other: for every pattern that an active unit declares, which machines have a unit
//! that declares it, and which have one that it matches.
//!
//! Units that exclude each other are many to many, so pairs are never listed. The check of a unit on a machine
//! takes one look-up for each pattern that it declares or is matched by.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use super::machine_id::MachineId;
use crate::unit::{Glob, UnitName};

/// A pattern that some unit declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PatternId(u64);

/// Machines with a count of at least one.
type Counts = BTreeMap<MachineId, u32>;

#[derive(Debug)]
pub(super) struct Pattern {
    glob: Glob,
    declared_by: usize,
    /// Active units that it matches.
    pub(super) names: BTreeSet<UnitName>,
    /// Global units that declare it as a conflict, and those that it matches.
    pub(super) globals_declaring: usize,
    pub(super) globals_matched: usize,
    /// Units on each machine that declare it as a conflict, and those that it matches.
    pub(super) declared_on: Counts,
    pub(super) matched_on: Counts,
    /// Units on each machine that replace what it matches.
    pub(super) replacing_on: HashMap<MachineId, BTreeSet<UnitName>>,
    /// Units that wait for another to leave.
    pub(super) waiting: BTreeSet<UnitName>,
}

#[derive(Debug, Default)]
pub(super) struct Patterns {
    by_id: HashMap<PatternId, Pattern>,
    by_glob: HashMap<Glob, PatternId>,
    /// Patterns that match exactly one name.
    literal: HashMap<String, PatternId>,
    /// All other patterns, by the literal prefix of the names that they match.
    by_prefix: HashMap<String, BTreeSet<PatternId>>,
    /// How many of these prefixes have each length in bytes.
    lengths: BTreeMap<usize, usize>,
    next: u64,
}

impl Patterns {
    pub(super) fn get(&self, id: PatternId) -> &Pattern {
        &self.by_id[&id]
    }

    pub(super) fn get_mut(&mut self, id: PatternId) -> &mut Pattern {
        let pattern = self.by_id.get_mut(&id);
        pattern.expect("a declared pattern exists")
    }

    /// The patterns that match a name.
    pub(super) fn matching(&self, name: &UnitName) -> Vec<PatternId> {
        let mut found: Vec<_> = self
            .literal
            .get(name.as_str())
            .copied()
            .into_iter()
            .collect();
        let text = name.as_str();
        for &length in self.lengths.range(..=text.len()).map(|(length, _)| length) {
            let candidates = text
                .get(..length)
                .and_then(|prefix| self.by_prefix.get(prefix));
            let candidates = candidates.into_iter().flatten().copied();
            found.extend(candidates.filter(|id| self.get(*id).glob.matches(text)));
        }
        found
    }

    /// Counts one more declaration of a pattern. Returns whether it is new: then the caller adds the units that
    /// it matches.
    pub(super) fn declare(&mut self, glob: &Glob) -> (PatternId, bool) {
        if let Some(&id) = self.by_glob.get(glob) {
            self.get_mut(id).declared_by += 1;
            return (id, false);
        }
        let id = PatternId(self.next);
        self.next += 1;
        if let Some(literal) = glob.literal() {
            self.literal.insert(literal.to_owned(), id);
        } else {
            let prefix = glob.prefix().to_owned();
            let sharing = self.by_prefix.entry(prefix).or_default();
            if sharing.is_empty() {
                *self.lengths.entry(glob.prefix().len()).or_default() += 1;
            }
            sharing.insert(id);
        }
        self.by_glob.insert(glob.clone(), id);
        let pattern = Pattern {
            glob: glob.clone(),
            declared_by: 1,
            names: BTreeSet::new(),
            globals_declaring: 0,
            globals_matched: 0,
            declared_on: Counts::new(),
            matched_on: Counts::new(),
            replacing_on: HashMap::new(),
            waiting: BTreeSet::new(),
        };
        self.by_id.insert(id, pattern);
        (id, true)
    }

    /// Counts one declaration less. Returns the units that must forget the pattern, if it has no declaration
    /// left.
    pub(super) fn revoke(&mut self, id: PatternId) -> BTreeSet<UnitName> {
        let pattern = self.get_mut(id);
        pattern.declared_by -= 1;
        if pattern.declared_by > 0 {
            return BTreeSet::new();
        }
        let pattern = self.by_id.remove(&id).expect("it was there a moment ago");
        self.by_glob.remove(&pattern.glob);
        if let Some(literal) = pattern.glob.literal() {
            self.literal.remove(literal);
            return pattern.names;
        }
        let prefix = pattern.glob.prefix();
        if let Some(sharing) = self.by_prefix.get_mut(prefix) {
            sharing.remove(&id);
            if sharing.is_empty() {
                self.by_prefix.remove(prefix);
                decrease(&mut self.lengths, &prefix.len());
            }
        }
        pattern.names
    }

    /// The names among these that a pattern matches, in order.
    pub(super) fn matched(&self, id: PatternId, names: &BTreeSet<UnitName>) -> Vec<UnitName> {
        let glob = &self.get(id).glob;
        if let Some(literal) = glob.literal() {
            return names.get(literal).cloned().into_iter().collect();
        }
        let prefix = glob.prefix();
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let candidates = names.range::<str, _>(from);
        let candidates = candidates.take_while(|name| name.as_str().starts_with(prefix));
        let matched = candidates.filter(|name| glob.matches(name.as_str()));
        matched.cloned().collect()
    }
}

pub(super) fn increase(counts: &mut Counts, machine: &MachineId) {
    *counts.entry(machine.clone()).or_default() += 1;
}

/// Counts one less. Zero counts are removed from the map.
pub(super) fn decrease<K: Ord, N: std::ops::SubAssign<N> + PartialEq + From<u8>>(
    counts: &mut BTreeMap<K, N>,
    key: &K,
) {
    if let Some(count) = counts.get_mut(key) {
        *count -= N::from(1);
        if *count == N::from(0) {
            counts.remove(key);
        }
    }
}
