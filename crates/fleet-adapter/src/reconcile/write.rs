//! Carries plans out. Every write checks that the unit still belongs to the resource.

use anyhow::bail;
use hyperfleet_fleet::keys::KeyStore;
use hyperfleet_fleet::{Error, SetUnit};
use hyperfleet_fleet_model::unit::{DesiredState, UnitOption};

use super::FleetAdapter;
use crate::domain::{Blocker, Ownership, Plan, PlanStep};
use crate::running::Running;

impl<S: KeyStore> FleetAdapter<S> {
    /// Carries a plan out. Steps that fleet refuses are removed from the plan.
    pub(super) async fn carry_out(
        &self,
        id: &str,
        plan: &mut Plan<'_>,
        blocker: Option<&Blocker>,
    ) -> anyhow::Result<Option<Blocker>> {
        if let Some(Blocker::NameTaken { .. }) = blocker {
            // A partial workload is useless: nothing is created before all of it can be.
            plan.postpone_changes();
        }
        let mut refused = None;
        let mut done = Vec::with_capacity(plan.steps.len());
        for step in std::mem::take(&mut plan.steps) {
            if !self.tenure.is_certain() {
                bail!(Error::Unavailable(None));
            }
            match self.carry_out_one(id, step).await {
                Ok(()) => done.push(step),
                Err(Error::NoUnit) => {}
                Err(
                    Error::Invalid(message) | Error::Conflict(message) | Error::Unreadable(message),
                ) => {
                    let unit = step.unit().to_owned();
                    refused.get_or_insert(Blocker::Refused { unit, message });
                }
                Err(error) => {
                    return Err(
                        anyhow::Error::from(error).context(format!("write {}", step.unit()))
                    );
                }
            }
        }
        plan.steps = done;
        Ok(refused)
    }

    /// Writes only if the unit still belongs to the resource, or is still missing.
    async fn carry_out_one(&self, id: &str, step: PlanStep<'_>) -> Result<(), Error> {
        let Running {
            fleet, settings, ..
        } = &self.running;
        let is_ours = |found: Option<&[UnitOption]>| match found {
            None => matches!(step, PlanStep::Create(_)),
            Some(options) => {
                Ownership::of(options).is_some_and(|owner| owner.is_of(&settings.name, id))
            }
        };
        let (options, desired) = match step {
            PlanStep::Create(unit) | PlanStep::Replace(unit) => {
                (Some(unit.options.clone()), DesiredState::Launched)
            }
            PlanStep::Launch(_) => (None, DesiredState::Launched),
            PlanStep::Stop(_) => (None, DesiredState::Inactive),
            PlanStep::Destroy(_) => return fleet.destroy_unit_if(step.unit(), is_ours).await,
        };
        let desired = Some(desired);
        let command = SetUnit { options, desired };
        fleet.set_unit_if(step.unit(), command, is_ours).await?;
        Ok(())
    }
}
