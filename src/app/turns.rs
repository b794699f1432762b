//! Changes of rows that other transactions may hold.

use super::{Error, Service};
use crate::storage::postgres::Turn;

impl Service {
    /// Makes a change that has no effect unless it succeeds: first with whatever connection is free, and once more in the lane of such
    /// changes if others hold what it needs.
    pub(super) async fn in_turns<T>(
        &self,
        mut change: impl AsyncFnMut(Turn) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match change(Turn::First).await {
            Err(Error::Contended(_) | Error::KeyInUse) => change(Turn::InLane).await,
            changed => changed,
        }
    }
}
