//! The pace at which expired rows are removed: in small steps, with rests in between.

use tokio::time::{Instant, sleep};

/// Most rows that a step removes: readers of changes wait for it, and responses that are stored with keys may be large.
pub(super) const STEP_ROWS: i64 = 1_000;
/// How long to rest after a step, as a multiple of the time that it took: requests have the database for most of the time.
const REST_TIMES: u32 = 3;

/// The steps of one removal. `while steps.rest_after(step().await?).await {}` takes them all.
///
/// Not a function that takes the step: the compiler cannot see that the future of an async closure may be sent to another
/// thread, as background tasks are.
pub(super) struct Steps {
    began: Instant,
    removed: u64,
}

impl Steps {
    /// Begins the first step.
    pub(super) fn begin() -> Self {
        Self {
            began: Instant::now(),
            removed: 0,
        }
    }

    /// Ends a step that has removed so many rows. Rests, and begins the next one; returns false if none is left to remove.
    pub(super) async fn rest_after(&mut self, count: u64) -> bool {
        self.removed += count;
        if count > 0 {
            sleep(REST_TIMES * self.began.elapsed()).await;
            self.began = Instant::now();
        }
        count > 0
    }

    /// Number of rows that all steps have removed.
    pub(super) fn removed(&self) -> u64 {
        self.removed
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_rest_is_longer_than_its_step() {
        const STEP: Duration = Duration::from_millis(20);
        let mut steps = Steps::begin();
        for _ in 0..2 {
            sleep(STEP).await;
            let ended = Instant::now();
            assert!(steps.rest_after(10).await);
            assert!(ended.elapsed() >= REST_TIMES * STEP);
        }
        assert!(!steps.rest_after(0).await);
        assert_eq!(steps.removed(), 20);
    }
}
