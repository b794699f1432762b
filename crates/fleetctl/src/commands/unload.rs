//! `unload`: stops units and removes them from their machines.

use std::process::ExitCode;

use hyperfleet_fleet_model::unit::DesiredState;

use super::named_units;
use super::states::{self, Waiting};
use crate::cli::StopArgs;
use crate::output;
use crate::session::Session;
use crate::wait::Goal;

pub(super) async fn run(session: &Session, args: &StopArgs) -> anyhow::Result<ExitCode> {
    let Some(units) = named_units::find_any(session, &args.names.units).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    let inactive = DesiredState::Inactive;
    let changed = states::set(session, &units, inactive, "unload").await?;
    let waiting = Waiting::of(args.block);
    states::settle(session, &changed, Goal::State(inactive), "unload", waiting).await?;
    output::notice(&format!(
        "Successfully unloaded units [{}].",
        changed.join(" ")
    ));
    Ok(ExitCode::SUCCESS)
}
