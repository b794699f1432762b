//! `start`: stores units and starts them on machines.

use std::process::ExitCode;

use anyhow::Context as _;
use hyperfleet_fleet_model::unit::DesiredState;

use super::states::{self, Waiting};
use super::{ensure, named_units};
use crate::cli::EnsureArgs;
use crate::session::Session;
use crate::wait::{Goal, wait_for};

pub(super) async fn run(session: &Session, args: &EnsureArgs) -> anyhow::Result<ExitCode> {
    let submit = &args.submit;
    if submit.names.units.is_empty() {
        named_units::report_no_units();
        return Ok(ExitCode::SUCCESS);
    }
    let (waiting, launched) = (Waiting::of(args.block), DesiredState::Launched);
    let names = ensure::ensure(session, submit, launched, waiting).await?;
    let units = named_units::find(session.client().await?, &names).await?;
    let changed = states::set(session, &units, launched, "start").await;
    let changed = changed.context("Error starting units")?;
    settle(session, &changed, "start", waiting).await?;
    Ok(ExitCode::SUCCESS)
}

/// Waits until agents have started the units, and then until systemd runs them.
pub(super) async fn settle(
    session: &Session,
    units: &[String],
    verb: &str,
    waiting: Waiting,
) -> anyhow::Result<()> {
    let launched = Goal::State(DesiredState::Launched);
    states::settle(session, units, launched, verb, waiting).await?;
    if let Waiting::For(patience) = waiting {
        let client = session.client().await?;
        let running = wait_for(client, units, Goal::Active, patience, async |_, _| Ok(())).await;
        running.context("Error waiting for systemd unit states, err")?;
    }
    Ok(())
}
