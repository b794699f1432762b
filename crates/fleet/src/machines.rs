//! Use cases of machines.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::mirror::Picture;
use super::view::{machine_view, rebalance_view};
use super::{
    Error, Fleet, MachineView, MetadataChange, MoveView, Page, RebalanceView, known_units,
    parse_token,
};
use crate::keys::KeyStore;
use crate::registry::{MoveOrder, Registry};

impl<S: KeyStore> Fleet<S> {
    /// Machines by id.
    ///
    /// # Errors
    /// [`Error::Token`]; [`Error::Unavailable`] while the mirror is not connected.
    pub async fn list_machines(&self, token: Option<&str>) -> Result<Page<MachineView>, Error> {
        let after = parse_token(token)?;
        let (after, limit) = (after.as_ref(), self.page_size);
        let list = |picture: &Picture| picture.snapshot.list_machines(after, limit);
        Ok(self.mirrored(list).await??.map(machine_view))
    }

    /// Changes metadata of machines. Of two changes of the same key, the later one counts.
    ///
    /// # Guarantees
    /// Nothing is changed if one of the changes is invalid. The changes of a machine are made in one
    /// transaction, one machine after the other, by id.
    ///
    /// # Errors
    /// [`Error::Invalid`] for names, values or numbers beyond the limits; [`Error::Unreadable`].
    pub async fn set_metadata(&self, changes: &[MetadataChange]) -> Result<(), Error> {
        let mut machines: BTreeMap<&str, BTreeMap<String, Option<String>>> = BTreeMap::new();
        for change in changes {
            let labels = machines.entry(&change.machine).or_default();
            labels.insert(change.key.clone(), change.value.clone());
        }
        for (machine, labels) in &machines {
            Registry::<S>::check_labels(machine, labels)?;
        }
        for (machine, labels) in &machines {
            if let Some(revision) = self.registry.set_labels(machine, labels).await? {
                self.mirror.record_written(revision);
            }
        }
        Ok(())
    }

    /// Plans at most `moves_max` moves that even out the machines' load. Nothing is moved.
    ///
    /// # Errors
    /// [`Error::Unavailable`] while the mirror is not connected.
    pub async fn plan_rebalance(&self, moves_max: usize) -> Result<RebalanceView, Error> {
        // One at a time: a plan takes time in proportion to the registry.
        let permit = Arc::clone(&self.planning).try_acquire_owned();
        let permit = permit.map_err(|_| Error::Busy)?;
        let changes = |picture: &Picture| known_units::changes(&picture.snapshot);
        let changes = self.mirrored(changes).await?;
        // On a thread of its own: with many units this takes a while.
        let planned = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let mut cluster = known_units::cluster(changes);
            let before = cluster.loads();
            let (moves, after) = cluster.rebalance(moves_max);
            rebalance_view(before, moves, after)
        });
        planned.await.map_err(|_| Error::Unavailable(None))
    }

    /// Orders the engine to move units. It skips orders that are outdated when it comes to them.
    ///
    /// # Errors
    /// [`Error::Invalid`] for unusable names; [`Error::Unreadable`].
    pub async fn rebalance(&self, moves: &[MoveView]) -> Result<(), Error> {
        let order = |one: &MoveView| {
            let (from, to) = (one.from.clone(), one.to.clone());
            (one.name.clone(), MoveOrder { from, to })
        };
        let orders: BTreeMap<_, _> = moves.iter().map(order).collect();
        if orders.is_empty() {
            return Ok(());
        }
        let revision = self.registry.order_moves(&orders).await?;
        self.mirror.record_written(revision);
        tracing::info!(count = orders.len(), "moves ordered");
        Ok(())
    }

    /// Orders agents to resume with the current registry although it has gone back in time.
    pub async fn resume(&self) -> Result<(), Error> {
        let revision = self.registry.resume().await?;
        self.mirror.record_written(revision);
        tracing::warn!(revision, "halted agents ordered to resume");
        Ok(())
    }
}
