//! Units as the adapter compares them: those that a resource needs, and those that it has.

use std::time::Duration;

use hyperfleet_fleet_model::unit::{DesiredState, UnitHash, UnitOption};

use super::ownership::Ownership;

/// systemd's state of a running service.
const ACTIVE: &str = "active";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredUnit {
    pub name: String,
    /// 1 to the number of replicas.
    pub index: u32,
    /// Includes the section that names its owner.
    pub options: Vec<UnitOption>,
    pub hash: UnitHash,
}

/// The units of one workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredWorkload {
    /// Position among the workloads of the kind, from 1.
    pub number: u32,
    /// How many replicas an update may make unavailable.
    pub max_unavailable: u32,
    /// How long a service must be active to count as available.
    pub min_ready: Duration,
    /// By index.
    pub units: Vec<DesiredUnit>,
}

/// A unit that belongs to a resource, with machines' reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedUnit {
    pub name: String,
    pub owner: Ownership,
    /// Empty for a destroyed unit that machines still have.
    pub hash: String,
    pub desired: DesiredState,
    /// The machine that the engine has chosen.
    pub machine: Option<String>,
    /// By machine. A moving unit is briefly reported by two.
    pub reports: Vec<UnitReport>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitReport {
    pub machine: String,
    /// Hash of the file on the machine.
    pub hash: String,
    /// systemd's states.
    pub load: String,
    pub active: String,
    pub sub: String,
    /// How long it has been active with this file.
    pub active_for: Duration,
}

impl OwnedUnit {
    /// The report of the machine that it is placed on.
    pub fn report(&self) -> Option<&UnitReport> {
        let machine = self.machine.as_deref()?;
        self.reports.iter().find(|report| report.machine == machine)
    }

    /// Whether its service runs the current file.
    pub fn is_active(&self) -> bool {
        let is_active = |report: &UnitReport| report.active == ACTIVE && report.hash == self.hash;
        self.desired == DesiredState::Launched && self.report().is_some_and(is_active)
    }

    /// Whether it has been active long enough.
    pub fn is_ready(&self, min_ready: Duration) -> bool {
        self.is_active()
            && self
                .report()
                .is_some_and(|report| report.active_for >= min_ready)
    }

    /// Whether no machine has or will get any of it.
    pub fn is_gone_from_machines(&self) -> bool {
        self.desired == DesiredState::Inactive && self.machine.is_none() && self.reports.is_empty()
    }
}
