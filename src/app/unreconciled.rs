//! What waits for its adapters, for the gauges that alerts look at.

use chrono::{DateTime, Utc};

use super::{Error, Service};
use crate::storage::postgres::{Connections, Unreconciled};

impl Service {
    /// Counts what is not reconciled, and what has not been since `stuck_before`. Only kinds with
    /// required adapters count: others wait for nothing (decision H15).
    pub async fn count_unreconciled(
        &self,
        stuck_before: DateTime<Utc>,
    ) -> Result<Vec<Unreconciled>, Error> {
        let entities = self.registry.entities().iter();
        let kinds = entities.filter(|e| e.is_reconcilable());
        let kinds: Vec<_> = kinds.map(|e| e.kind.clone()).collect();
        let mut tx = self.store.begin().await?;
        let counted = tx.db().count_unreconciled(&kinds, stuck_before).await;
        tx.finish(counted.map_err(Error::from)).await
    }

    /// How the connections to the database are used.
    pub fn connections(&self) -> Connections {
        self.store.connections()
    }

    /// Closes connections that only background work needed.
    pub fn rest(&self) {
        self.store.rest();
    }
}
