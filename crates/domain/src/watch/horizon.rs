//! Up to which position every change is visible, although transactions commit in another order than they allocate
//! positions.

use std::collections::{BTreeSet, VecDeque};

/// What the database says of the end of the changes, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolledEnd {
    pub era: i64,
    /// The highest allocated position.
    pub allocated: i64,
    /// Up to which position retention has removed changes.
    pub removed: i64,
    /// The open transactions that may have allocated a position up to `allocated` without committing it.
    pub writers: BTreeSet<String>,
}

/// The result of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HorizonMove {
    /// Every change up to this position is visible to statements that begin from now on, and none is added.
    Upto(i64),
    /// The database was set back, or began another era: earlier positions mean nothing.
    Reset,
}

/// Follows the end of the changes.
///
/// A poll lists the writers that were open after its highest position had been allocated. Once all of them have ended,
/// all changes up to that position are visible or will never be. Which transactions are open elsewhere on the server
/// does not matter.
#[derive(Debug, Default)]
pub struct Horizon {
    era: Option<i64>,
    upto: i64,
    /// In the order of positions.
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    allocated: i64,
    writers: BTreeSet<String>,
}

/// Polls that are remembered while writers are open. A longer list would find the end of a short transaction sooner
/// while a long one is open, which moves the horizon no further.
const WAITING_MAX: usize = 8;

impl Horizon {
    /// Applies the result of a poll. Polls must be applied in order.
    pub fn observe(&mut self, end: &PolledEnd) -> HorizonMove {
        let known = self.waiting.back().map_or(self.upto, |last| last.allocated);
        let was_set_back = self.era.is_some_and(|era| era != end.era) || end.allocated < known;
        if was_set_back {
            *self = Self::default();
        }
        self.era = Some(end.era);
        let known = self.waiting.back().map_or(self.upto, |last| last.allocated);
        if end.allocated > known {
            if self.waiting.len() >= WAITING_MAX {
                self.waiting.pop_back();
            }
            self.waiting.push_back(Waiting {
                allocated: end.allocated,
                writers: end.writers.clone(),
            });
        }
        while let Some(first) = self.waiting.front_mut() {
            // A transaction that is no longer listed has ended. No other transaction gets the same name.
            first.writers.retain(|writer| end.writers.contains(writer));
            if !first.writers.is_empty() {
                break;
            }
            self.upto = first.allocated;
            self.waiting.pop_front();
        }
        for later in &mut self.waiting {
            later.writers.retain(|writer| end.writers.contains(writer));
        }
        if was_set_back {
            HorizonMove::Reset
        } else {
            HorizonMove::Upto(self.upto)
        }
    }

    /// The position that was reached.
    pub fn upto(&self) -> i64 {
        self.upto
    }

    /// Whether there may be changes after the horizon.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::HorizonMove::{Reset, Upto};
    use super::*;

    fn end(allocated: i64, writers: &[&str]) -> PolledEnd {
        PolledEnd {
            era: 0,
            allocated,
            removed: 0,
            writers: writers.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn it_waits_for_the_writers_of_its_positions_and_no_others() {
        let mut horizon = Horizon::default();
        for (polled, moved) in [
            (end(3, &[]), Upto(3)),
            // One of these two has allocated 4, and 5 may be committed already.
            (end(5, &["a", "b"]), Upto(3)),
            (end(5, &["b"]), Upto(3)),
            (end(6, &["b", "c"]), Upto(3)),
            // A writer that came later has allocated a later position.
            (end(7, &["c", "d"]), Upto(5)),
            (end(7, &["d"]), Upto(6)),
            (end(7, &["e"]), Upto(7)),
            (end(7, &["e"]), Upto(7)),
        ] {
            assert_eq!(horizon.observe(&polled), moved, "{polled:?}");
        }
        assert!(!horizon.is_waiting());
    }

    #[test]
    fn a_long_writer_holds_a_few_polls_and_then_everything_comes() {
        let mut horizon = Horizon::default();
        for allocated in 1..100 {
            let other = allocated.to_string();
            assert_eq!(horizon.observe(&end(allocated, &["long", &other])), Upto(0));
            assert!(horizon.waiting.len() <= WAITING_MAX);
        }
        // 99 was allocated while another writer was open, which still is.
        assert_eq!(horizon.observe(&end(99, &["99"])), Upto(7));
        assert_eq!(horizon.observe(&end(99, &[])), Upto(99));
    }

    #[test]
    fn what_was_set_back_begins_again() {
        let mut horizon = Horizon::default();
        assert_eq!(horizon.observe(&end(9, &[])), Upto(9));
        assert_eq!(horizon.observe(&end(8, &[])), Reset);
        assert_eq!(horizon.observe(&end(8, &[])), Upto(8));
        let later = PolledEnd {
            era: 1,
            ..end(8, &[])
        };
        assert_eq!(horizon.observe(&later), Reset);
        assert_eq!(horizon.observe(&later), Upto(8));
    }
}
