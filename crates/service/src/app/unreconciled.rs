//! Counts resources that wait for their adapters, for the gauges of alerts.

use chrono::{DateTime, Utc};

use super::{Error, Service};
use hyperfleet_storage::{Connections, Unreconciled};

impl Service {
    /// Counts resources that are not reconciled: those that have not been since `stuck_before`, and those that are
    /// finalizing since before `finalizing_before`. Only kinds with required adapters count: others wait for nothing
    /// (`docs/decisions/0015-kinds-without-adapters.md`).
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

    pub fn reconcilable_kinds(&self) -> impl Iterator<Item = &str> {
        let entities = self.registry.entities().iter();
        let reconcilable = entities.filter(|e| e.is_reconcilable());
        reconcilable.map(|e| e.kind.as_str())
    }

    pub fn connections(&self) -> Connections {
        self.store.connections()
    }

    /// Closes connections that only background work needed.
    pub fn close_idle(&self) {
        self.store.close_idle();
    }
}
