//! `submit`: stores units.

use std::process::ExitCode;

use hyperfleet_fleet_model::unit::DesiredState;

use super::states::Waiting;
use super::{ensure, named_units};
use crate::cli::SubmitArgs;
use crate::session::Session;
use crate::wait::Patience;

pub(super) async fn run(session: &Session, args: &SubmitArgs) -> anyhow::Result<ExitCode> {
    if args.names.units.is_empty() {
        named_units::report_no_units();
        return Ok(ExitCode::SUCCESS);
    }
    let waiting = Waiting::For(Patience::attempts(0));
    let ensured = ensure::ensure(session, args, DesiredState::Inactive, waiting).await?;
    Ok(ensured.exit)
}
