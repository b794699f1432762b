//! `stop`: stops units; they stay loaded.

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
    let loaded = DesiredState::Loaded;
    let mut changed = Vec::new();
    for unit in units {
        let is_inactive = unit.current == Some(DesiredState::Inactive);
        if is_inactive && !named_units::is_global(&unit) {
            // Scripts rely on it that later units are not stopped then.
            output::notice(&format!(
                "Unable to stop unit {} in state inactive",
                unit.name
            ));
            return Ok(ExitCode::FAILURE);
        }
        changed.extend(states::set(session, &[unit], loaded, "stop").await?);
    }
    states::settle(
        session,
        &changed,
        Goal::State(loaded),
        "stop",
        Waiting::of(args.block),
    )
    .await?;
    output::notice(&format!(
        "Successfully stopped units [{}].",
        changed.join(" ")
    ));
    Ok(ExitCode::SUCCESS)
}
