//! `submit`: stores units.

use std::process::ExitCode;

use hyperfleet_fleet_model::unit::DesiredState;

use super::{ensure, named_units, states};
use crate::cli::SubmitArgs;
use crate::session::Session;
use crate::wait::{Goal, Patience};

pub(super) async fn run(session: &Session, args: &SubmitArgs) -> anyhow::Result<ExitCode> {
    if args.names.units.is_empty() {
        named_units::report_no_units();
        return Ok(ExitCode::SUCCESS);
    }
    let inactive = DesiredState::Inactive;
    let ensured = ensure::ensure(session, args, inactive).await?;
    let (goal, patience) = (Goal::State(inactive), Patience::attempts(0));
    states::wait(session, &ensured.stored, goal, patience).await?;
    Ok(ensured.exit)
}
