//! What this machine reports about its units.

use std::collections::BTreeMap;

use super::disk::Memory;
use super::membership::Membership;
use super::units::Units;
use crate::keys::{KeyStore, Revision};
use crate::registry::{Error, Registration, Registry, Reports, UnitState};

pub(super) struct Reporter<S> {
    registry: Registry<S>,
    machine: String,
    /// `None` while the machine is not registered.
    reports: Option<Reports>,
    /// Whether the registry may hold states that the agent does not know.
    recalls_states: bool,
}

impl<S: KeyStore> Reporter<S> {
    pub(super) fn new(registry: Registry<S>, machine: String) -> Self {
        Self {
            registry,
            machine,
            reports: None,
            recalls_states: false,
        }
    }

    pub(super) fn is_registered(&self) -> bool {
        self.reports.is_some()
    }

    /// The revision of the last report; 0 for none.
    pub(super) fn last_report(&self) -> Revision {
        self.reports.as_ref().map_or(0, Reports::last)
    }

    /// Reports under this registration from now on; without one it does not report. Units may have been reported before.
    pub(super) fn resume(&mut self, registration: Option<Registration>, memory: &Memory) {
        let last_report = memory.history.map_or(0, |history| history.last_report);
        self.reports = registration.map(|registration| {
            Reports::resumed(registration, memory.reported.clone(), last_report)
        });
    }

    /// Reads this machine's states before the next report: an older etcd may have brought some back.
    pub(super) fn recall_later(&mut self) {
        self.recalls_states = true;
    }

    /// Reads this machine's states in the registry, if they are unknown.
    pub(super) async fn recall(
        &mut self,
        membership: &Membership<S>,
        units: &mut Units,
    ) -> Result<(), Error> {
        if !self.recalls_states {
            return Ok(());
        }
        let mut reported = units.memory.reported.clone();
        reported.extend(self.registry.reported_by(&self.machine).await?);
        units.may_be_reported(reported);
        self.resume(membership.registration(), &units.memory);
        self.recalls_states = false;
        Ok(())
    }

    /// Reports these states.
    pub(super) async fn publish(
        &mut self,
        states: &BTreeMap<String, UnitState>,
    ) -> Result<(), Error> {
        match &mut self.reports {
            Some(reports) => reports.publish(&self.registry, states).await.map(drop),
            None => Ok(()),
        }
    }

    /// Reports a unit before its start. Returns whether it is reported.
    pub(super) async fn claim(
        &mut self,
        units: &mut Units,
        unit: &str,
        hash: &str,
        ordered_at: Option<Revision>,
    ) -> bool {
        let Some(reports) = &mut self.reports else {
            return false;
        };
        if reports.has(unit) {
            return true;
        }
        let Some(ordered_at) = ordered_at else {
            return false;
        };
        let mut reported = units.memory.reported.clone();
        reported.insert(unit.to_owned());
        units.may_be_reported(reported);
        let claim = reports.claim(&self.registry, unit, hash, ordered_at);
        matches!(claim.await, Ok(true))
    }
}
