//! Looks up the units that a command names.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use hyperfleet_fleet_model::unit::{DesiredState, FleetSection, NameParts, UnitOption};
use hyperfleet_fleet_model::wire::UnitView;

use crate::client::{Client, Error};
use crate::machines::Machines;
use crate::output;
use crate::session::Session;
use crate::source::UnitArgument;
use hyperfleet_fleet_model::wire::MachineView;

/// Parallel requests.
const CALLS_MAX: usize = 16;

/// Reports that a command names no units. Scripts rely on its status of 0.
pub(super) fn report_no_units() {
    output::notice("No units given");
}

/// The named units that exist, in the order of the arguments, without repetitions.
pub(super) async fn find(client: &Client, arguments: &[String]) -> anyhow::Result<Vec<UnitView>> {
    let mut names: Vec<String> = Vec::new();
    for argument in arguments {
        let name = UnitArgument::new(argument).name;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let calls = stream::iter(names).map(async |name| client.unit(&name).await);
    let found: Vec<Option<UnitView>> = calls.buffered(CALLS_MAX).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

/// Like [`find`], for commands that need at least one unit; `None` without any, which is printed. Scripts rely
/// on the status of 0 then.
pub(super) async fn find_any(
    session: &Session,
    arguments: &[String],
) -> anyhow::Result<Option<Vec<UnitView>>> {
    if arguments.is_empty() {
        report_no_units();
        return Ok(None);
    }
    let units = find(session.client().await?, arguments).await?;
    if units.is_empty() {
        output::notice("Units not found in registry");
        return Ok(None);
    }
    Ok(Some(units))
}

/// Whether a unit runs on every matching machine.
pub(super) fn is_global(unit: &UnitView) -> bool {
    let options: Vec<UnitOption> = unit.options.iter().cloned().map(Into::into).collect();
    let section = FleetSection::of(&options);
    section.requirements(NameParts::of(&unit.name)).is_global
}

/// Where a unit runs.
#[derive(Debug)]
pub(super) enum Running {
    On(RunningUnit),
    Unknown(String),
    Nowhere(String),
}

/// A unit on one or several machines.
#[derive(Debug)]
pub(super) struct RunningUnit {
    pub(super) name: String,
    pub(super) is_global: bool,
    pub(super) machines: Vec<MachineView>,
}

/// Finds out where a unit runs: by its placement, or for a global unit by reports.
pub(super) async fn running(session: &Session, argument: &str) -> anyhow::Result<Running> {
    let client = session.client().await?;
    let name = UnitArgument::new(argument).name;
    let Some(unit) = client.unit(&name).await? else {
        return Ok(Running::Unknown(name));
    };
    let is_global = is_global(&unit);
    let ids: Vec<String> = if is_global {
        client
            .states(&name)
            .await?
            .into_iter()
            .map(|state| state.machine)
            .collect()
    } else if unit.current == Some(DesiredState::Inactive) {
        Vec::new()
    } else {
        Vec::from_iter(unit.machine)
    };
    if ids.is_empty() {
        return Ok(Running::Nowhere(name));
    }
    let known = session.machines().await?;
    let machines = ids.iter().map(|id| machine(&known, id)).collect();
    Ok(Running::On(RunningUnit {
        name,
        is_global,
        machines,
    }))
}

/// A machine, of which at least the ID is known.
fn machine(known: &Machines, id: &str) -> MachineView {
    known.get(id).cloned().unwrap_or_else(|| MachineView {
        id: id.to_owned(),
        ..MachineView::default()
    })
}

/// Prints why a command uses ssh, if the server gave a reason.
pub(super) fn say_fallback(error: &Error) {
    if let Error::Refused { message, .. } = error
        && !message.is_empty()
    {
        output::notice(&format!("{message}; trying ssh"));
    }
}
