//! The pace at which expired rows are removed: in small steps, with rests in between.

use tokio::time::{Instant, sleep};

/// Most rows that a step removes: readers of changes wait for it, and answers that are kept with keys may be large.
pub(super) const STEP_ROWS: i64 = 1_000;
/// How long to rest after a step, as a multiple of the time that it took: requests have the database for most of the time.
const REST_TIMES: u32 = 3;

/// The steps of one removal.
pub(super) struct Steps {
    began: Instant,
}

impl Steps {
    /// Begins the first step.
    pub(super) fn begin() -> Self {
        let began = Instant::now();
        Self { began }
    }

    /// Ends a step, rests, and begins the next one.
    pub(super) async fn rest(&mut self) {
        sleep(REST_TIMES * self.began.elapsed()).await;
        self.began = Instant::now();
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
            steps.rest().await;
            assert!(ended.elapsed() >= REST_TIMES * STEP);
        }
    }
}
