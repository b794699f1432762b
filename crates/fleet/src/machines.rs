//! Machines, and what is said of them while they run.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::view::{machine_view, rebalance_view};
use super::{
    Error, Fleet, MachineView, MetadataChange, MoveView, Page, RebalanceView, known_units,
    parse_token,
};
use crate::keys::KeyStore;
use crate::registry::{MoveOrder, Registry};
use hyperfleet_fleet_model::schedule::Cluster;

impl<S: KeyStore> Fleet<S> {
    /// Machines that are there, by id. All pages of a list are of one moment.
    ///
    /// # Errors
    /// [`Error::Token`]; [`Error::Stale`] if the moment is too long ago.
    pub async fn list_machines(&self, token: Option<&str>) -> Result<Page<MachineView>, Error> {
        let after = parse_token(token)?;
        let (after, limit) = (after.as_ref(), self.page_size);
        let list = self.mirrored(after, |picture| picture.known.list_machines(after, limit));
        let page = match list.await? {
            Some(page) => page,
            None => self.registry.list_machines(after, limit).await?,
        };
        Ok(page.map(machine_view))
    }

    /// Changes metadata of machines. Of two changes of the same, the later one counts.
    ///
    /// # Guarantees
    /// Nothing is changed if one of the changes cannot be made. For each machine all is changed at once, or
    /// nothing; one machine after the other, by id.
    ///
    /// # Errors
    /// [`Error::Invalid`] for names, values or numbers beyond the limits; [`Error::Foreign`].
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
                self.mirror.wrote(revision);
            }
        }
        Ok(())
    }

    /// Moves that would make machines carry alike, that many at most. Nothing is moved.
    ///
    /// # Errors
    /// [`Error::Unavailable`] while nothing is known of what there is.
    pub async fn plan_rebalance(&self, moves_max: usize) -> Result<RebalanceView, Error> {
        // One at a time: it costs as much as there is.
        let permit = Arc::clone(&self.planning).try_acquire_owned();
        let permit = permit.map_err(|_| Error::Busy)?;
        let changes = self
            .mirrored(None, |picture| Ok(known_units::changes(&picture.known)))
            .await?;
        let changes = changes.ok_or(Error::Unavailable(None))?;
        // With many units this takes a while, which others need not wait for.
        let planned = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let mut cluster = Cluster::new();
            for change in changes {
                cluster.apply(change);
            }
            let before = cluster.loads();
            let (moves, after) = cluster.rebalance(moves_max);
            rebalance_view(before, moves, after)
        });
        planned.await.map_err(|_| Error::Unavailable(None))
    }

    /// Asks the engine for moves. What is no longer right when it comes to them is left out.
    ///
    /// # Errors
    /// [`Error::Invalid`] for names that there cannot be; [`Error::Foreign`].
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
        self.mirror.wrote(revision);
        tracing::info!(count = orders.len(), "moves ordered");
        Ok(())
    }

    /// Tells agents to go on with what stands in the registry, although it went back in time.
    ///
    /// # Errors
    /// Those of the registry.
    pub async fn resume(&self) -> Result<(), Error> {
        let revision = self.registry.resume().await?;
        self.mirror.wrote(revision);
        tracing::warn!(revision, "agents that have halted are told to go on");
        Ok(())
    }
}
