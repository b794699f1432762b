//! Growing pauses between attempts that fail.

use std::time::Duration;

/// The pause after a failure: doubled with each failure in a row, up to a maximum.
#[derive(Debug, Clone)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    pub const fn new(min: Duration, max: Duration) -> Self {
        let failures = 0;
        Self { min, max, failures }
    }

    /// Whether the last attempt failed. Before [`next_pause`](Self::next_pause): a failure is logged only if not.
    pub const fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Counts a failure, and returns the pause before the next attempt.
    pub fn next_pause(&mut self) -> Duration {
        let factor = 2_u32.saturating_pow(self.failures);
        self.failures = self.failures.saturating_add(1);
        self.min.saturating_mul(factor).min(self.max)
    }

    /// Records a success. Returns whether the last attempt failed.
    pub const fn reset(&mut self) -> bool {
        let was_failing = self.is_failing();
        self.failures = 0;
        was_failing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_maximum_and_start_again() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
        let mut pauses = || backoff.next_pause().as_secs();
        assert_eq!([pauses(), pauses(), pauses(), pauses()], [1, 2, 4, 5]);
        backoff.failures = u32::MAX;
        assert_eq!(backoff.next_pause().as_secs(), 5);
        assert!(backoff.is_failing() && backoff.reset());
        assert!(!backoff.is_failing() && !backoff.reset());
        assert_eq!(backoff.next_pause().as_secs(), 1);
    }
}
