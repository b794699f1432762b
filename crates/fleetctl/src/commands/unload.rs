//! `unload`: stops units and removes them from their machines.

use std::process::ExitCode;

use anyhow::Context as _;
use hyperfleet_fleet_model::unit::DesiredState;

use super::named_units;
use super::states::{self, WaitFailed, Waiting};
use crate::cli::StopArgs;
use crate::session::Session;
use crate::wait::{Goal, wait_for};

pub(super) async fn run(session: &Session, args: &StopArgs) -> anyhow::Result<ExitCode> {
    let Some(units) = named_units::find_any(session, &args.names.units).await? else {
        return Ok(ExitCode::SUCCESS);
    };
    let inactive = DesiredState::Inactive;
    let changed = states::set(session, &units, &[], inactive, "unload").await?;
    let waiting = Waiting::of(args.block);
    states::settle(session, &changed, Goal::Unloaded, "unload", waiting).await?;
    let ordinary = units.iter().filter(|unit| !named_units::is_global(unit));
    let unloaded: Vec<_> = ordinary.map(|unit| unit.name.clone()).collect();
    if let Waiting::For(patience) = waiting {
        // Others may have been unloaded without waiting.
        let client = session.client().await?;
        let quietly = async |_: &str, _: &_| Ok(());
        let gone = wait_for(client, &unloaded, Goal::Unloaded, patience, quietly).await;
        gone.context(WaitFailed)?;
    }
    states::report_success("unloaded", &unloaded, waiting);
    Ok(ExitCode::SUCCESS)
}
