//! The recently touched items: the newest part of the history without values. Followers use it to know what to
//! look up.

use std::collections::VecDeque;

use crate::keys::Revision;
use crate::registry::StateKey;

/// How many are kept: with usual names at most some ten megabytes, and enough for every unit of a large cluster
/// to be placed and reported while a follower is away.
const KEPT_MAX: usize = 1 << 16;
/// Most items per answer. All items of its last revision are included.
const AT_A_TIME: usize = 256;

/// An item that users can follow was touched.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Touch {
    Unit(String),
    State(StateKey),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Since<'a> {
    /// The revision is too old.
    Forgotten,
    /// Items up to a revision, oldest first, possibly repeated.
    Touched(Revision, Vec<&'a Touch>),
}

/// Touched items, oldest first.
#[derive(Debug, Clone, Default)]
pub(super) struct Touched {
    /// Everything that was touched later is here.
    after: Revision,
    newest: Revision,
    kept: VecDeque<(Revision, Touch)>,
}

impl Touched {
    /// Starts empty at a revision.
    pub(super) fn since_now(revision: Revision) -> Self {
        Self {
            after: revision,
            newest: revision,
            kept: VecDeque::new(),
        }
    }

    /// Adds everything that was touched between the newest revision and this one.
    pub(super) fn add(&mut self, revision: Revision, touches: impl IntoIterator<Item = Touch>) {
        let touches = touches.into_iter().map(|touch| (revision, touch));
        self.kept.extend(touches);
        self.newest = revision;
        while self.kept.len() > KEPT_MAX {
            self.forget_oldest();
        }
    }

    /// Removes all items of the oldest revision.
    fn forget_oldest(&mut self) {
        if let Some((oldest, _)) = self.kept.pop_front() {
            self.after = oldest;
        }
        while self.kept.front().is_some_and(|(at, _)| *at == self.after) {
            self.kept.pop_front();
        }
    }

    /// Whether it knows everything that was touched after a revision.
    pub(super) fn reaches(&self, after: Revision) -> bool {
        after >= self.after
    }

    /// The next items that were touched after a revision.
    pub(super) fn since(&self, after: Revision) -> Since<'_> {
        if !self.reaches(after) {
            return Since::Forgotten;
        }
        let first = self.kept.partition_point(|(at, _)| *at <= after);
        let mut some = Vec::new();
        let mut upto = after;
        for (at, touch) in self.kept.range(first..) {
            if some.len() >= AT_A_TIME && *at != upto {
                return Since::Touched(upto, some);
            }
            upto = *at;
            some.push(touch);
        }
        Since::Touched(self.newest.max(after), some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(name: &str) -> Touch {
        Touch::Unit(name.to_owned())
    }

    fn since(touched: &Touched, after: Revision) -> Option<(Revision, usize)> {
        match touched.since(after) {
            Since::Forgotten => None,
            Since::Touched(upto, some) => Some((upto, some.len())),
        }
    }

    #[test]
    fn touched_items_are_returned_from_any_revision_on() {
        let mut touched = Touched::since_now(5);
        assert_eq!(since(&touched, 4), None);
        assert_eq!(since(&touched, 5), Some((5, 0)));
        touched.add(7, [touch("a"), touch("b")]);
        touched.add(8, []);
        touched.add(9, [touch("a")]);
        for (after, expected) in [
            (5, (9, 3)),
            (6, (9, 3)),
            (7, (9, 1)),
            (9, (9, 0)),
            (12, (12, 0)),
        ] {
            assert_eq!(since(&touched, after), Some(expected), "{after}");
        }
    }

    #[test]
    fn items_are_returned_in_parts_that_end_with_a_revision() {
        let mut touched = Touched::since_now(0);
        let many = |count: usize| (0..count).map(|n| touch(&n.to_string()));
        touched.add(1, many(AT_A_TIME - 1));
        touched.add(2, many(2 * AT_A_TIME));
        touched.add(3, many(1));
        assert_eq!(since(&touched, 0), Some((2, 3 * AT_A_TIME - 1)));
        assert_eq!(since(&touched, 1), Some((2, 2 * AT_A_TIME)));
        assert_eq!(since(&touched, 2), Some((3, 1)));
    }

    #[test]
    fn whole_revisions_are_forgotten() {
        let mut touched = Touched::since_now(0);
        let many = |count: usize| (0..count).map(|n| touch(&n.to_string()));
        touched.add(1, many(10));
        touched.add(2, many(KEPT_MAX - 10));
        assert_eq!(since(&touched, 0).map(|(upto, _)| upto), Some(2));
        touched.add(3, many(1));
        assert_eq!(since(&touched, 0), None);
        assert_eq!(since(&touched, 1), Some((2, KEPT_MAX - 10)));
        // More at once than is kept: earlier followers must list again.
        touched.add(4, many(KEPT_MAX + 1));
        assert_eq!(since(&touched, 3), None);
        assert_eq!(since(&touched, 4), Some((4, 0)));
    }
}
