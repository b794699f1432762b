//! Reads a range in parts, all at one revision.
//!
//! For each part, etcd visits all remaining keys of the range, so the time grows with the square of the number of
//! parts. Therefore keys with small values are read in few large parts.

use super::Registry;
use super::key::Prefix;
use super::table::Family;
use crate::keys::{Entry, Error, KeyStore, LastChange, Range, ReadPosition, Revision};

/// Keys per part. With the largest values a part still fits the store client's limit.
pub(super) const PART_KEYS: usize = 256;
/// Keys per part of families with values of at most some kilobytes.
const SMALL_PART_KEYS: usize = 2048;
/// These families, in the order of their keys.
const SMALL: [Family; 5] = [
    Family::Label,
    Family::Placement,
    Family::Run,
    Family::State,
    Family::Desired,
];

/// A range being read. A cancelled read continues where it was.
#[derive(Debug)]
pub(super) struct Reading {
    rest: Range,
    /// Revision of all parts; set by the first one.
    at: Option<Revision>,
    /// Newest change among the entries read.
    last: Option<LastChange>,
}

impl Reading {
    /// Reads a range at a revision, or with `None` at the newest revision of the first part.
    pub(super) const fn new(range: Range, at: Option<Revision>) -> Self {
        Self {
            rest: range,
            at,
            last: None,
        }
    }

    /// Reads the next part. Returns its entries and, with the last part, the position.
    pub(super) async fn next<S: KeyStore>(
        &mut self,
        registry: &Registry<S>,
    ) -> Result<(Vec<Entry>, Option<ReadPosition>), Error> {
        let (part, limit) = first_part(&registry.prefix, &self.rest);
        let end = part.to.clone();
        let some = registry.store.list(part, limit, self.at).await?;
        self.at = Some(some.revision);
        for entry in &some.entries {
            self.last = Some(LastChange::or_newer(self.last.take(), entry));
        }
        match some.entries.last() {
            Some(last) if some.more => self.rest = self.rest.behind(&last.key),
            _ => self.rest.from = end,
        }
        let is_last = self.rest.from >= self.rest.to;
        let read = is_last.then(|| ReadPosition {
            revision: some.revision,
            last: self.last.take(),
        });
        Ok((some.entries, read))
    }
}

/// The next part of a range, and its size.
fn first_part(prefix: &Prefix, range: &Range) -> (Range, usize) {
    let until = |to: Vec<u8>| Range {
        from: range.from.clone(),
        to: to.min(range.to.clone()),
    };
    for family in SMALL.map(|family| prefix.family(family)) {
        if family.contains(&range.from) {
            return (until(family.to), SMALL_PART_KEYS);
        }
        if range.from < family.from {
            return (until(family.from), PART_KEYS);
        }
    }
    (range.clone(), PART_KEYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_in_order_and_small_values_have_their_own() {
        let prefix = Prefix::default();
        let mut rest = prefix.everything();
        let mut small = Vec::new();
        while rest.from < rest.to {
            let (part, limit) = first_part(&prefix, &rest);
            assert_eq!(part.from, rest.from);
            assert!(part.from < part.to && part.to <= rest.to, "{part:?}");
            if limit == SMALL_PART_KEYS {
                small.push(part.clone());
            }
            rest.from = part.to;
        }
        assert_eq!(small, SMALL.map(|family| prefix.family(family)));
    }

    #[test]
    fn a_part_ends_with_its_range() {
        let prefix = Prefix::default();
        let runs = prefix.part(Family::Run, "m1");
        assert_eq!(first_part(&prefix, &runs), (runs, SMALL_PART_KEYS));
        let units = prefix.family(Family::Unit);
        let rest = units.behind(b"/fleet/v3/unit/m.service");
        assert_eq!(first_part(&prefix, &rest), (rest, PART_KEYS));
    }
}
