//! How much is read at a time: many small things, or few large ones. A spec may have a mebibyte.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that one read brings, about.
const BYTES: usize = 1 << 20;
/// Things that the first read brings at most, before their size is known.
const FIRST: usize = 8;

/// Grows while full reads bring little, and shrinks after one that brought much.
#[derive(Debug)]
pub(super) struct Portion {
    count: AtomicUsize,
    count_max: usize,
}

impl Portion {
    pub(super) fn up_to(count_max: usize) -> Self {
        Self {
            count: AtomicUsize::new(FIRST.min(count_max)),
            count_max,
        }
    }

    /// How many things to read next.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How many such things as these a read can bring.
    pub(super) fn fitting(&self, lengths: impl Iterator<Item = usize>) -> usize {
        per_read(totals(lengths)).clamp(1, self.count_max)
    }

    /// Learns from the lengths of what a read has brought.
    pub(super) fn learn(&self, lengths: impl Iterator<Item = usize>) {
        let (count, bytes) = totals(lengths);
        let fitting = per_read((count, bytes));
        let before = self.count();
        // A read that was not full says little about the next one.
        let growth = if count < before { 1 } else { 2 };
        let most = self.count_max.min(growth * before);
        if count > 0 {
            self.count.store(fitting.clamp(1, most), Ordering::Relaxed);
        }
    }
}

/// The number of these lengths, and their sum.
fn totals(lengths: impl Iterator<Item = usize>) -> (usize, usize) {
    lengths.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes))
}

fn per_read((count, bytes): (usize, usize)) -> usize {
    BYTES * count / bytes.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(portion: &Portion, bytes: usize) -> usize {
        portion.learn(std::iter::repeat_n(bytes, portion.count()));
        portion.count()
    }

    #[test]
    fn a_portion_grows_with_small_things_and_shrinks_with_large_ones() {
        let portion = Portion::up_to(100);
        assert_eq!(portion.count(), 8);
        let grown = [1_000; 5].map(|bytes| learned(&portion, bytes));
        assert_eq!(grown, [16, 32, 64, 100, 100]);
        assert_eq!(learned(&portion, 100_000), 10);
        assert_eq!(learned(&portion, 5_000_000), 1);
        portion.learn(std::iter::empty());
        assert_eq!(portion.count(), 1, "nothing was learned");
        assert_eq!([0; 2].map(|bytes| learned(&portion, bytes)), [2, 4]);
        assert_eq!(Portion::up_to(3).count(), 3);
        let quiet = Portion::up_to(100);
        quiet.learn(std::iter::once(10));
        assert_eq!(quiet.count(), 8, "the read was not full");
    }
}
