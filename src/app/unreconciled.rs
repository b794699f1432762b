//! What waits for its adapters, for the gauges that alerts look at.

use chrono::{DateTime, Utc};

use super::{Error, Service};
use crate::storage::postgres::{Connections, Unreconciled};

impl Service {
    /// Counts what is not reconciled: what has not been since `stuck_before`, and what is finalizing
    /// since before `finalizing_before`, too. Only kinds with required adapters count: others wait
    /// for nothing (`docs/decisions/0015-kinds-without-adapters.md`).
    pub async fn count_unreconciled(
        &self,
        stuck_before: DateTime<Utc>,
        finalizing_before: DateTime<Utc>,
    ) -> Result<Vec<Unreconciled>, Error> {
        let kinds: Vec<_> = self.reconcilable_kinds().map(ToOwned::to_owned).collect();
        let mut tx = self.store.begin().await?;
        let mut db = tx.db();
        let counted = db.count_unreconciled(&kinds, stuck_before, finalizing_before);
        let counted = counted.await;
        tx.finish(counted.map_err(Error::from)).await
    }

    /// The kinds with required adapters.
    pub fn reconcilable_kinds(&self) -> impl Iterator<Item = &str> {
        let entities = self.registry.entities().iter();
        let reconcilable = entities.filter(|e| e.is_reconcilable());
        reconcilable.map(|e| e.kind.as_str())
    }

    /// How the connections to the database are used.
    pub fn connections(&self) -> Connections {
        self.store.connections()
    }

    /// Closes connections that only background work needed.
    pub fn close_idle(&self) {
        self.store.close_idle();
    }
}
