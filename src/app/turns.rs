//! Changes of rows that other transactions may hold.

use super::{Error, Service};
use crate::storage::postgres::Turn;

impl Service {
    /// Makes a change that has no effect unless it succeeds: first with whatever connection is free, then in the lane of
    /// such changes if others hold what it needs. If the lane is full, too, they may have ended meanwhile.
    pub(super) async fn in_turns<T>(
        &self,
        mut change: impl AsyncFnMut(Turn) -> Result<T, Error>,
    ) -> Result<T, Error> {
        for turn in [Turn::First, Turn::InLane] {
            match change(turn).await {
                Err(Error::Contended(_) | Error::KeyInUse) => {}
                changed => return changed,
            }
        }
        change(Turn::First).await
    }
}
