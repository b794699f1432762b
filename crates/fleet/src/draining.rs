//! Cordons and drains machines.

use std::collections::BTreeSet;

use super::mirror::Picture;
use super::reasons::Why;
use super::view::marks;
use super::{DrainView, Error, Fleet};
use crate::keys::KeyStore;
use hyperfleet_fleet_model::schedule::{Availability, Cluster};
use hyperfleet_fleet_model::wire::LeftUnit;

impl<S: KeyStore> Fleet<S> {
    /// Cordons a machine: no further units are placed on it. Units that are placed there stay, and global units
    /// run on it as before.
    ///
    /// # Errors
    /// [`Error::NoMachine`]; [`Error::Unreadable`].
    pub async fn cordon(&self, id: &str) -> Result<(), Error> {
        self.expect_machine(id).await?;
        let revision = self.registry.cordon_machine(id).await?;
        self.mirror.record_written(revision);
        tracing::info!(machine = id, "machine cordoned");
        Ok(())
    }

    /// Removes a machine's cordon and ends its drain. The machine need not be there.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unusable id; [`Error::Unreadable`].
    pub async fn uncordon(&self, id: &str) -> Result<(), Error> {
        let revision = self.registry.uncordon_machine(id).await?;
        self.mirror.record_written(revision);
        tracing::info!(machine = id, "machine uncordoned");
        Ok(())
    }

    /// Cordons a machine and lets the engine move its units, each as soon as another machine can run it. Units
    /// that are left after the deadline stay.
    ///
    /// # Errors
    /// [`Error::NoMachine`]; [`Error::Unreadable`].
    pub async fn drain(&self, id: &str, deadline_seconds: Option<u32>) -> Result<(), Error> {
        self.expect_machine(id).await?;
        let revision = self.registry.drain_machine(id, deadline_seconds).await?;
        self.mirror.record_written(revision);
        tracing::info!(machine = id, deadline_seconds, "machine drained");
        Ok(())
    }

    /// Ends a drain: remaining units stay. The machine remains cordoned and need not be there.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an unusable id; [`Error::Unreadable`].
    pub async fn end_drain(&self, id: &str) -> Result<(), Error> {
        let revision = self.registry.end_drain(id).await?;
        self.mirror.record_written(revision);
        tracing::info!(machine = id, "drain of machine ended");
        Ok(())
    }

    /// The progress of a drain: the ordinary units that are placed on the machine, and why those stay that
    /// cannot leave.
    ///
    /// # Errors
    /// [`Error::NoMachine`].
    pub async fn drain_progress(&self, id: &str) -> Result<DrainView, Error> {
        self.mirrored(|_| ()).await?;
        let cluster = self.mirror.cluster().await;
        let cluster = cluster.map_err(|_| Error::Unavailable(None))?;
        let view = |picture: &Picture| drain_view(picture, &cluster, id, self.page_size);
        self.mirrored(view).await?.ok_or(Error::NoMachine)
    }

    async fn expect_machine(&self, id: &str) -> Result<(), Error> {
        match self.registry.find_machine(id).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(Error::NoMachine),
            Err(error) if Error::is_unusable_name(&error) => Err(Error::NoMachine),
            Err(error) => Err(error.into()),
        }
    }
}

/// The progress of a machine's drain, naming at most `units_max` units; `None` for an unknown machine.
fn drain_view(
    picture: &Picture,
    cluster: &Cluster,
    machine: &str,
    units_max: usize,
) -> Option<DrainView> {
    let snapshot = &picture.snapshot;
    let availability = snapshot.availability(machine);
    if availability == Availability::Open && !snapshot.machines.contains_key(machine) {
        return None;
    }
    let (cordoned, draining) = marks(availability);
    // A unit that was placed elsewhere counts as left until it has stopped here.
    let is_global = |unit: &&str| {
        let body = snapshot.bodies.get(*unit);
        body.is_some_and(|body| body.value.global.is_some())
    };
    let placed: BTreeSet<&str> = snapshot.units_on(machine).collect();
    let reported = picture.units_on(machine, None);
    let mut left = placed.clone();
    left.extend(reported.filter(|unit| !is_global(unit)));
    let unit = |name: &&str| {
        let reason = if placed.contains(name) {
            Why::of(cluster, name).map(|why| why.reason)
        } else {
            Some("is stopping".to_owned())
        };
        LeftUnit {
            name: (*name).to_owned(),
            reason,
        }
    };
    Some(DrainView {
        cordoned,
        draining,
        machine: machine.to_owned(),
        unit_count: u64::try_from(left.len()).unwrap_or(u64::MAX),
        units: left.iter().take(units_max).map(unit).collect(),
    })
}
