//! `load`: stores units and loads them on machines.

use std::process::ExitCode;

use anyhow::Context as _;
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_fleet_model::wire::UnitView;

use super::states::{self, Waiting};
use super::{ensure, named_units};
use crate::cli::EnsureArgs;
use crate::session::Session;
use crate::wait::Goal;

pub(super) async fn run(session: &Session, args: &EnsureArgs) -> anyhow::Result<ExitCode> {
    let submit = &args.submit;
    if submit.names.units.is_empty() {
        named_units::report_no_units();
        return Ok(ExitCode::SUCCESS);
    }
    let (waiting, loaded) = (Waiting::of(args.block), DesiredState::Loaded);
    let ensured = ensure::ensure(session, submit, loaded).await?;
    let units = named_units::find(session.client().await?, &ensured.names).await?;
    let changed = states::set(session, &units, &ensured.stored, loaded, "load").await;
    let mut names = changed.context("Error loading units")?;
    // An earlier command has ordered it.
    let is_under_way = |unit: &&UnitView| {
        unit.desired == loaded
            && unit.current == Some(DesiredState::Inactive)
            && !ensured.stored.contains(&unit.name)
    };
    let under_way = units.iter().filter(is_under_way);
    names.extend(under_way.map(|unit| unit.name.clone()));
    states::settle(session, &names, Goal::State(loaded), "load", waiting).await?;
    Ok(ensured.exit)
}
