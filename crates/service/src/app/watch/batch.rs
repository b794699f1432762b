//! How much is read at a time: many small resources, or few large ones. A spec may have a mebibyte.

/// Bytes that one read brings, about.
const BYTES: usize = 1 << 20;
/// Resources that the first read brings at most, before their size is known.
const FIRST: usize = 8;
/// Resources that a read brings at most.
const COUNT_MAX: usize = 1_000;

/// The number of resources to read next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BatchSize(usize);

impl Default for BatchSize {
    fn default() -> Self {
        Self(FIRST)
    }
}

impl BatchSize {
    pub(super) fn count(self) -> usize {
        self.0
    }

    /// Learns from the lengths of what a read has brought: at most twice as much is read next.
    pub(super) fn learn(&mut self, lengths: impl Iterator<Item = usize>) {
        let (count, bytes) =
            lengths.fold((0, 0), |(count, bytes), length| (count + 1, bytes + length));
        if count > 0 {
            let fitting = BYTES * count / bytes.max(1);
            self.0 = fitting.clamp(1, COUNT_MAX.min(2 * self.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_with_small_resources_and_shrinks_with_large_ones() {
        let mut size = BatchSize::default();
        let mut next = |lengths: &[usize]| {
            size.learn(lengths.iter().copied());
            size.count()
        };
        assert_eq!(next(&[100; 8]), 16);
        assert_eq!(next(&[]), 16);
        assert_eq!(next(&[100; 16]), 32);
        assert_eq!(next(&[BYTES / 4; 32]), 4);
        assert_eq!(next(&[BYTES; 4]), 1);
        assert_eq!(next(&[3 * BYTES]), 1);
    }
}
