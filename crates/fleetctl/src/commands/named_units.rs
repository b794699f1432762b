//! Looks up the units that a command names.

use anyhow::bail;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use hyperfleet_fleet_model::unit::{DesiredState, FleetSection, NameParts};
use hyperfleet_fleet_model::wire::UnitView;

use crate::client::{Client, Error};
use crate::machines::Machines;
use crate::output;
use crate::session::Session;
use crate::source::UnitArgument;
use hyperfleet_fleet_model::wire::MachineView;

/// Parallel requests.
const CALLS_MAX: usize = 16;

/// Reports that a command names no units. Scripts rely on its status of 0: a list that they expand may be empty.
pub(super) fn report_no_units() {
    output::notice("No units given");
}

/// The names of units in the order of the arguments, without repetitions.
///
/// # Errors
/// A pattern, which the shell has not expanded because it fits no file.
fn names(arguments: &[String]) -> anyhow::Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for argument in arguments {
        let name = UnitArgument::new(argument).name;
        if name.contains(['*', '?', '[']) {
            bail!(
                "{name} is no unit name: patterns are not expanded; fleetctl list-unit-files --no-legend --fields=unit lists names"
            );
        }
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// The named units that exist, in the order of the arguments, without repetitions.
pub(super) async fn find(client: &Client, arguments: &[String]) -> anyhow::Result<Vec<UnitView>> {
    let calls = stream::iter(names(arguments)?).map(async |name| client.unit(&name).await);
    let found: Vec<Option<UnitView>> = calls.buffered(CALLS_MAX).try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

/// The units that a command names.
#[derive(Debug)]
pub(super) enum Named {
    /// There are no arguments.
    None,
    Units {
        /// Those that exist.
        found: Vec<UnitView>,
        /// Whether others are missing, which is printed.
        some_missing: bool,
    },
}

/// Like [`find`], and prints which units are missing.
pub(super) async fn find_named(session: &Session, arguments: &[String]) -> anyhow::Result<Named> {
    if arguments.is_empty() {
        report_no_units();
        return Ok(Named::None);
    }
    let names = names(arguments)?;
    let found = find(session.client().await?, &names).await?;
    let is_missing = |name: &&String| !found.iter().any(|unit| unit.name == **name);
    let missing: Vec<_> = names.iter().filter(is_missing).collect();
    let some_missing = !missing.is_empty();
    if found.is_empty() {
        output::notice("Units not found in registry");
    } else {
        for name in missing {
            output::notice(&format!("Unit {name} not found in registry"));
        }
    }
    Ok(Named::Units {
        found,
        some_missing,
    })
}

/// Like [`find_named`], for commands that need at least one unit, and have nothing to do for missing ones: scripts
/// rely on the status of 0 then.
pub(super) async fn find_any(
    session: &Session,
    arguments: &[String],
) -> anyhow::Result<Option<Vec<UnitView>>> {
    Ok(match find_named(session, arguments).await? {
        Named::Units { found, .. } if !found.is_empty() => Some(found),
        Named::Units { .. } | Named::None => None,
    })
}

/// Whether a unit runs on every matching machine.
pub(super) fn is_global(unit: &UnitView) -> bool {
    let section = FleetSection::of(&unit.options);
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
    pub(super) machines: Vec<MachineView>,
}

/// Finds out where a unit runs: by its placement, or for a global unit by reports.
pub(super) async fn running(session: &Session, argument: &str) -> anyhow::Result<Running> {
    let client = session.client().await?;
    let name = UnitArgument::new(argument).name;
    let Some(unit) = client.unit(&name).await? else {
        return Ok(Running::Unknown(name));
    };
    let ids: Vec<String> = if is_global(&unit) {
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
    Ok(Running::On(RunningUnit { name, machines }))
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
