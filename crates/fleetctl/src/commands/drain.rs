//! `drain`: moves all ordinary units off machines, and shows how far that is.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use tokio::time::{Instant, sleep};

use super::cordon::refused;
use crate::cli::DrainArgs;
use crate::client::{Client, Drain};
use crate::output::{self, counted};
use crate::session::Session;
use crate::wait::Progress;

/// How often the server is asked how far it is.
const POLL: Duration = Duration::from_secs(1);
/// A drain that is not under way after this time has ended, whether it was seen under way or not.
const BEGINNING: Duration = Duration::from_secs(3);
/// The status of a program that Ctrl-C ends.
const INTERRUPTED: u8 = 130;

pub(super) async fn run(session: &Session, args: &DrainArgs) -> anyhow::Result<ExitCode> {
    let client = session.client().await?;
    let machines = session.machines().await?;
    let found = args
        .machines
        .machines
        .iter()
        .map(|name| machines.find(name));
    let found: Vec<_> = found.collect::<Result<_, _>>()?;
    let ids: Vec<String> = found
        .into_iter()
        .map(|machine| machine.id.clone())
        .collect();
    for id in &ids {
        let begun = async {
            client.cordon(id).await?;
            client.drain(id, args.deadline).await
        };
        if let Err(error) = begun.await {
            bail!(refused("drain", id, &error));
        }
        output::line(&format!("Machine {id} cordoned, draining"))?;
    }
    if args.no_block {
        return Ok(ExitCode::SUCCESS);
    }
    let drained = async {
        let mut exit = ExitCode::SUCCESS;
        for id in &ids {
            if let Ended::UnitsLeft(drain) = follow(client, id).await? {
                eprintln!("{}", left(id, &drain));
                exit = ExitCode::FAILURE;
            } else {
                output::line(&format!("Machine {id} drained"))?;
            }
        }
        Ok(exit)
    };
    tokio::select! {
        exit = drained => exit,
        () = session.interrupted() => {
            eprintln!("\nThe drain goes on. Stop it with: fleetctl uncordon {}", ids.join(" "));
            Ok(ExitCode::from(INTERRUPTED))
        }
    }
}

/// How a drain ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ended {
    Empty,
    UnitsLeft(Drain),
}

async fn follow(client: &Client, id: &str) -> anyhow::Result<Ended> {
    let since = Instant::now();
    let (mut progress, mut was_draining) = (Progress::new(), false);
    loop {
        match client.drain_progress(id).await {
            Ok(drain) => {
                was_draining |= drain.draining;
                if let Some(ended) = ended(&drain, was_draining || since.elapsed() >= BEGINNING) {
                    return Ok(ended);
                }
                progress.say(&text(id, &drain));
            }
            // The drain is the engine's: a server that is away for a moment does not end it.
            Err(error) if error.is_passing() => progress.say(&error.words()),
            Err(error) => bail!(refused("drain", id, &error)),
        }
        sleep(POLL).await;
    }
}

/// Whether a drain has ended, and how. One that has not begun looks like one that has ended with units left.
fn ended(drain: &Drain, has_begun: bool) -> Option<Ended> {
    match (drain.units.is_empty(), drain.draining) {
        (true, _) => Some(Ended::Empty),
        (false, false) if has_begun => Some(Ended::UnitsLeft(drain.clone())),
        (false, _) => None,
    }
}

fn text(id: &str, drain: &Drain) -> String {
    let stuck = drain
        .units
        .iter()
        .find_map(|unit| Some((&unit.name, unit.reason.as_ref()?)));
    let stuck = stuck.map(|(name, reason)| format!("; {name}: {reason}"));
    format!(
        "draining {id}: {} left{}",
        counted(drain.units.len(), "unit"),
        stuck.unwrap_or_default()
    )
}

/// The units that a drain has left behind, with reasons.
fn left(id: &str, drain: &Drain) -> String {
    let mut lines = vec![format!(
        "Machine {id}: the drain has ended with {} left; the machine stays cordoned:",
        counted(drain.units.len(), "unit")
    )];
    let units = drain.units.iter();
    lines.extend(units.map(|unit| match &unit.reason {
        Some(reason) => format!("  {}: {reason}", unit.name),
        None => format!("  {}", unit.name),
    }));
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn drain(draining: bool, units: &[&str]) -> Drain {
        let units: Vec<_> = units.iter().map(|name| json!({"name": name})).collect();
        serde_json::from_value(json!({"draining": draining, "units": units})).unwrap()
    }

    #[test]
    fn a_drain_ends_without_units_or_when_the_server_says_so() {
        assert_eq!(ended(&drain(true, &[]), true), Some(Ended::Empty));
        assert_eq!(ended(&drain(true, &["a"]), true), None);
        assert_eq!(ended(&drain(false, &["a"]), false), None);
        let stuck = drain(false, &["a"]);
        assert_eq!(ended(&stuck, true), Some(Ended::UnitsLeft(stuck.clone())));
    }
}
