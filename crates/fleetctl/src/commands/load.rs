//! `load`: stores units and loads them on machines.

use std::process::ExitCode;

use anyhow::Context as _;
use hyperfleet_fleet_model::unit::DesiredState;

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
    let names = ensure::ensure(session, submit, loaded, waiting).await?;
    let units = named_units::find(session.client().await?, &names).await?;
    let changed = states::set(session, &units, loaded, "load").await;
    let changed = changed.context("Error loading units")?;
    states::settle(session, &changed, Goal::State(loaded), "load", waiting).await?;
    Ok(ExitCode::SUCCESS)
}
