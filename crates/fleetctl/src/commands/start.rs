//! `start`: stores units and starts them on machines. A unit that is to run and does not is started again.

use std::process::ExitCode;

use anyhow::Context as _;
use hyperfleet_fleet_model::unit::DesiredState;
use hyperfleet_fleet_model::wire::{StateView, UnitView};

use super::states::{self, Waiting};
use super::{ensure, named_units};
use crate::cli::EnsureArgs;
use crate::client::Client;
use crate::machines::{Detail, id_legend};
use crate::output;
use crate::session::Session;

pub(super) async fn run(session: &Session, args: &EnsureArgs) -> anyhow::Result<ExitCode> {
    let submit = &args.submit;
    if submit.names.units.is_empty() {
        named_units::report_no_units();
        return Ok(ExitCode::SUCCESS);
    }
    let (waiting, launched) = (Waiting::of(args.block), DesiredState::Launched);
    let ensured = ensure::ensure(session, submit, launched).await?;
    let client = session.client().await?;
    let units = named_units::find(client, &ensured.names).await?;
    let is_launched =
        |unit: &UnitView| unit.desired == launched && !ensured.stored.contains(&unit.name);
    let (launched_before, others): (Vec<_>, Vec<_>) = units.into_iter().partition(is_launched);
    let (global, ordinary): (Vec<_>, Vec<_>) = launched_before
        .into_iter()
        .partition(named_units::is_global);
    let changed = states::set(session, &others, &ensured.stored, launched, "start").await;
    let mut names = changed.context(FAILED)?;
    let again = LaunchedUnits::of(client, ordinary).await.context(FAILED)?;
    names.extend(again.under_way);
    for unit in again.stopped {
        let ordered = client.restart_unit(&unit).await;
        let doing = || format!("unable to start unit {unit}");
        ordered.with_context(doing).context(FAILED)?;
        names.push(unit);
    }
    states::settle_running(session, &names, "start", waiting).await?;
    let mut exit = ensured.exit;
    for unit in &global {
        if let Some(text) = not_running(client, unit).await.context(FAILED)? {
            output::notice(&text);
            exit = ExitCode::FAILURE;
        }
    }
    Ok(exit)
}

const FAILED: &str = "Error starting units";

/// Units that were to run before the command, unless they do.
#[derive(Default)]
struct LaunchedUnits {
    /// Not placed yet, or starting.
    under_way: Vec<String>,
    /// Failed, finished, or stopped by hand on their machines.
    stopped: Vec<String>,
}

impl LaunchedUnits {
    async fn of(client: &Client, units: Vec<UnitView>) -> anyhow::Result<Self> {
        let mut found = Self::default();
        for unit in units {
            let report = client.state(&unit.name).await?;
            let active = report.as_ref().map(|state| state.active.as_str());
            match (&unit.machine, active) {
                (Some(_), Some("active" | "reloading"))
                    if unit.current == Some(DesiredState::Launched) => {}
                (Some(_), Some("inactive" | "failed" | "deactivating")) => {
                    found.stopped.push(unit.name);
                }
                _ => found.under_way.push(unit.name),
            }
        }
        Ok(found)
    }
}

/// Why a launched global unit does not run; `None` if it runs on each machine that reports it. It is not started
/// again, because that would restart it on the others.
async fn not_running(client: &Client, unit: &UnitView) -> anyhow::Result<Option<String>> {
    let name = &unit.name;
    let states = client.states(name).await?;
    if states.is_empty() {
        let explanation = client.explanation(name).await?;
        let reason = explanation.map_or_else(String::new, |explanation| explanation.reason);
        return Ok(Some(format!("Unit {name} runs on no machine: {reason}")));
    }
    let runs =
        |state: &StateView| matches!(state.active.as_str(), "active" | "reloading" | "activating");
    let (count, mut failed) = (states.len(), states);
    failed.retain(|state| !runs(state));
    if failed.is_empty() {
        return Ok(None);
    }
    let some = failed.iter().take(EXAMPLES_MAX).map(|state| {
        let machine = id_legend(&state.machine, Detail::Short);
        format!("{machine} ({}/{})", state.active, state.sub)
    });
    let some = some.collect::<Vec<_>>().join(", ");
    let more = if failed.len() > EXAMPLES_MAX {
        ", …"
    } else {
        ""
    };
    Ok(Some(format!(
        "Unit {name} does not run on {} of {count} machines: {some}{more}; to start it again on all machines, run fleetctl restart {name}",
        failed.len()
    )))
}

/// How many machines a message names.
const EXAMPLES_MAX: usize = 5;
