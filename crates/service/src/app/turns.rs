//! Changes of rows that other transactions may hold.

use std::time::Duration;

use tokio::time::Instant;

use super::{Error, Service};
use hyperfleet_storage::Turn;

/// A lane that refuses a change sooner has too many changes waiting.
const REFUSED_AT_ONCE: Duration = Duration::from_millis(100);

impl Service {
    /// Makes a change that has no effect unless it succeeds: first with whatever connection is free; then in the lane of
    /// such changes, if others hold what it needs. If that was in vain, or no place became free, it tries once more as at
    /// first.
    pub(super) async fn in_turns<T>(
        &self,
        mut change: impl AsyncFnMut(Turn) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let is_held = |changed: &Result<T, Error>| {
            matches!(changed, Err(Error::Contended(_) | Error::KeyInUse))
        };
        let mut changed = change(Turn::First).await;
        if is_held(&changed) {
            let since = Instant::now();
            changed = change(Turn::InLane).await;
            let is_worth_another = since.elapsed() > REFUSED_AT_ONCE && self.store.has_time();
            if is_held(&changed) && is_worth_another {
                changed = change(Turn::First).await;
            }
        }
        changed
    }
}
