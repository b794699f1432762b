//! Merkle trees as in RFC 6962, section 2.1: leaves and nodes have different prefixes, so that neither passes for the other.
//!
//! A level pairs the hashes of the level below. An odd last one moves up unchanged.

use super::Hash;

/// The hash of a leaf.
pub(crate) fn leaf(text: &str) -> Hash {
    Hash::of(&[&[0], text.as_bytes()])
}

fn node(left: Hash, right: Hash) -> Hash {
    Hash::of(&[&[1], &left.0, &right.0])
}

/// A tree, level by level: the leaves first, the root last.
pub(crate) struct Tree(Vec<Vec<Hash>>);

impl Tree {
    pub(crate) fn new(leaves: Vec<Hash>) -> Self {
        let mut levels = vec![leaves];
        while let Some(level) = levels.last().filter(|level| level.len() > 1) {
            let pairs = level.chunks(2);
            let above = pairs.map(|pair| match *pair {
                [left, right] => node(left, right),
                _ => pair[0],
            });
            levels.push(above.collect());
        }
        Self(levels)
    }

    pub(crate) fn root(&self) -> Hash {
        let root = self.0.last().and_then(|level| level.first());
        root.copied().unwrap_or_else(|| Hash::of(&[]))
    }

    /// The audit path of a leaf: the hashes beside its way to the root, from below.
    pub(crate) fn path(&self, index: usize) -> Vec<Hash> {
        let levels = self.0.iter().enumerate();
        let beside = levels.filter_map(|(depth, level)| level.get((index >> depth) ^ 1));
        beside.copied().collect()
    }
}

/// The root to which the path of a leaf leads in a tree with `count` leaves; `None` if such a leaf has another path.
pub(crate) fn root_of_path(leaf: Hash, index: u64, count: u64, path: &[Hash]) -> Option<Hash> {
    let (mut hash, mut index, mut count) = (leaf, index, count);
    let mut path = path.iter();
    if index >= count {
        return None;
    }
    while count > 1 {
        if index ^ 1 < count {
            let beside = *path.next()?;
            hash = match index % 2 {
                0 => node(hash, beside),
                _ => node(beside, hash),
            };
        }
        (index, count) = (index / 2, count.div_ceil(2));
    }
    path.next().is_none().then_some(hash)
}
