//! The current units of a resource.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use hyperfleet_fleet::keys::KeyStore;
use hyperfleet_fleet::{Error, Observed, StateView};
use hyperfleet_fleet_model::unit::DesiredState;

use super::FleetAdapter;
use crate::domain::{DesiredWorkload, OwnedUnit, Ownership, UnitReport};

/// Most units per report for which fleet is asked for an explanation.
const EXPLAINED_MAX: usize = 5;

/// The units of a resource at one moment.
pub(super) struct Units {
    pub(super) owned: Vec<OwnedUnit>,
    /// Desired units whose name belongs to another owner.
    pub(super) foreign_owners: BTreeMap<String, String>,
}

impl<S: KeyStore> FleetAdapter<S> {
    pub(super) async fn observe(
        &self,
        id: &str,
        desired: &[DesiredWorkload],
    ) -> anyhow::Result<Units> {
        let mut names: BTreeSet<String> = self.index.names(id);
        let needed = desired.iter().flat_map(|workload| &workload.units);
        let needed: BTreeSet<&str> = needed.map(|unit| unit.name.as_str()).collect();
        names.extend(needed.iter().map(|name| (*name).to_owned()));
        let names: Vec<String> = names.into_iter().collect();
        let observed = self
            .running
            .fleet
            .observe(&names)
            .await
            .context("read units")?;
        let mut units = Units {
            owned: Vec::new(),
            foreign_owners: BTreeMap::new(),
        };
        let adapter = &self.running.settings.name;
        for (name, observed) in observed {
            let Observed { unit, states } = observed;
            let Some(unit) = unit else {
                units.owned.extend(self.stopping(&name, id, states));
                continue;
            };
            match Ownership::of(&unit.options) {
                Some(owner) if owner.is_of(adapter, id) => units.owned.push(OwnedUnit {
                    name,
                    owner,
                    hash: unit.hash,
                    desired: unit.desired,
                    machine: unit.machine,
                    reports: self.reports(states),
                }),
                other if needed.contains(name.as_str()) => {
                    let owner = describe_owner(other.as_ref(), adapter);
                    units.foreign_owners.insert(name, owner);
                }
                _ => {}
            }
        }
        Ok(units)
    }

    /// A destroyed unit that machines still have.
    fn stopping(&self, name: &str, id: &str, states: Vec<StateView>) -> Option<OwnedUnit> {
        let owner = self
            .index
            .destroyed(name)
            .filter(|owner| owner.resource == id)?;
        Some(OwnedUnit {
            name: name.to_owned(),
            owner,
            hash: String::new(),
            desired: DesiredState::Inactive,
            machine: None,
            reports: self.reports(states),
        })
        .filter(|unit| !unit.reports.is_empty())
    }

    fn reports(&self, states: Vec<StateView>) -> Vec<UnitReport> {
        let reports = states.into_iter().map(|state| UnitReport {
            active_for: self.index.active_for(&state),
            machine: state.machine,
            hash: state.hash,
            load: state.load,
            active: state.active,
            sub: state.sub,
        });
        reports.collect()
    }

    /// Explanations for the first units that run nowhere or not as desired.
    pub(super) async fn explanations(
        &self,
        desired: &[DesiredWorkload],
        owned: &[OwnedUnit],
    ) -> anyhow::Result<BTreeMap<String, String>> {
        let needed = desired.iter().flat_map(|workload| &workload.units);
        let needed: BTreeSet<&str> = needed.map(|unit| unit.name.as_str()).collect();
        let unwell = owned.iter().filter(|unit| {
            let is_unwell = unit.machine.is_none() || !unit.is_active();
            needed.contains(unit.name.as_str())
                && unit.desired == DesiredState::Launched
                && is_unwell
        });
        let mut explanations = BTreeMap::new();
        for unit in unwell.take(EXPLAINED_MAX) {
            match self.running.fleet.explain(&unit.name).await {
                Ok(view) => {
                    explanations.insert(unit.name.clone(), view.reason);
                }
                Err(Error::NoUnit) => {}
                Err(error) => return Err(anyhow::Error::from(error).context("explain a unit")),
            }
        }
        Ok(explanations)
    }
}

/// The owner of a unit, for a message, without the path of another resource.
fn describe_owner(owner: Option<&Ownership>, adapter: &str) -> String {
    match owner {
        None => "no resource of this adapter".to_owned(),
        Some(owner) if owner.adapter == adapter => "another resource".to_owned(),
        Some(owner) => format!("the adapter {}", owner.adapter),
    }
}
