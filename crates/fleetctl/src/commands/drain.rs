//! `drain`: moves all ordinary units off machines, and shows the progress.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::cordon::refused;
use crate::cli::{DrainArgs, Format};
use crate::client::Client;
use crate::output::{self, counted};
use crate::session::Session;
use crate::wait::Progress;
use hyperfleet_fleet_model::wire::{DrainView, LeftUnit};

const POLL: Duration = Duration::from_secs(1);
/// How often the progress is printed where there is no terminal, if it has changed.
const REPORT: Duration = Duration::from_secs(5);
/// A drain that is not in progress after this time has ended, even if it was never seen in progress.
const BEGINNING: Duration = Duration::from_secs(3);

/// The result of a drain, for programs.
#[derive(Debug, Serialize)]
struct DrainResult<'d> {
    machine: &'d str,
    drained: bool,
    units: &'d [LeftUnit],
}

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
    let is_table = args.output.format == Format::Table;
    for id in &ids {
        let begun = async {
            client.cordon(id).await?;
            client.drain(id, args.deadline).await
        };
        if let Err(error) = begun.await {
            bail!(refused("drain", id, &error));
        }
        if is_table {
            output::line(&format!("Machine {id} cordoned, draining"))?;
        }
    }
    if args.no_block {
        return Ok(ExitCode::SUCCESS);
    }
    let ended = async {
        let mut ended = Vec::new();
        for id in &ids {
            let drain = follow(client, id).await?;
            if is_table {
                say(id, &drain)?;
            }
            ended.push(drain);
        }
        anyhow::Ok(ended)
    };
    let ended = tokio::select! {
        ended = ended => ended?,
        ending = session.interrupted() => {
            output::notice(&format!("\nThe drain goes on. Stop it with: fleetctl uncordon {}", ids.join(" ")));
            return Ok(ending.into());
        }
    };
    let results = ids.iter().zip(&ended).map(|(id, drain)| DrainResult {
        machine: id,
        drained: left(drain) == 0,
        units: &drain.units,
    });
    let results: Vec<_> = results.collect();
    if let Some(text) = output::structured(args.output.format, &results)? {
        output::print(&text)?;
    }
    let is_done = results.iter().all(|result| result.drained);
    Ok(if is_done {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// How many units are left. The server names only the first of many.
fn left(drain: &DrainView) -> usize {
    let count = usize::try_from(drain.unit_count).unwrap_or(usize::MAX);
    count.max(drain.units.len())
}

/// Prints how a drain ended.
fn say(id: &str, drain: &DrainView) -> anyhow::Result<()> {
    if left(drain) == 0 {
        return Ok(output::line(&format!("Machine {id} drained"))?);
    }
    output::notice(&left_behind(id, drain));
    Ok(())
}

/// Waits until a drain has ended; returns its last state. Units in it did not move.
async fn follow(client: &Client, id: &str) -> anyhow::Result<DrainView> {
    let since = Instant::now();
    let (mut progress, mut was_draining) = (Progress::new(), false);
    let (mut reported, mut reported_at) = (String::new(), since);
    let mut reasons = BTreeMap::new();
    loop {
        match client.drain_progress(id).await {
            Ok(mut drain) => {
                was_draining |= drain.draining;
                remember_reasons(&mut drain, &mut reasons);
                if has_ended(&drain, was_draining || since.elapsed() >= BEGINNING) {
                    return Ok(drain);
                }
                let text = text(id, &drain);
                progress.say(&text);
                let is_due = !progress.is_on() && reported_at.elapsed() >= REPORT;
                if is_due && text != reported {
                    output::notice(&text);
                    (reported, reported_at) = (text, Instant::now());
                }
            }
            // The engine carries out the drain: a short outage of the server does not end it.
            Err(error) if error.is_passing() => progress.say(&error.words()),
            Err(error) => bail!(refused("drain", id, &error)),
        }
        sleep(POLL).await;
    }
}

/// Keeps the reasons of units that cannot leave: the server sends them only during the drain.
fn remember_reasons(drain: &mut DrainView, reasons: &mut BTreeMap<String, String>) {
    for unit in &mut drain.units {
        match &unit.reason {
            Some(reason) => _ = reasons.insert(unit.name.clone(), reason.clone()),
            None => unit.reason = reasons.get(&unit.name).cloned(),
        }
    }
}

/// Whether a drain has ended. One that has not begun looks like one that ended with units left.
fn has_ended(drain: &DrainView, has_begun: bool) -> bool {
    left(drain) == 0 || (has_begun && !drain.draining)
}

fn text(id: &str, drain: &DrainView) -> String {
    let stuck = drain
        .units
        .iter()
        .find_map(|unit| Some((&unit.name, unit.reason.as_ref()?)));
    let stuck = stuck.map(|(name, reason)| format!("; {name}: {reason}"));
    format!(
        "draining {id}: {} left{}",
        counted(left(drain), "unit"),
        stuck.unwrap_or_default()
    )
}

/// The units that a drain has left behind, with reasons.
fn left_behind(id: &str, drain: &DrainView) -> String {
    let mut lines = vec![format!(
        "Machine {id}: the drain has ended with {} left; the machine stays cordoned:",
        counted(left(drain), "unit")
    )];
    let units = drain.units.iter();
    lines.extend(units.map(|unit| match &unit.reason {
        Some(reason) => format!("  {}: {reason}", unit.name),
        None => format!("  {}", unit.name),
    }));
    if left(drain) > drain.units.len() {
        lines.push("  …".to_owned());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn drain(draining: bool, units: &[&str]) -> DrainView {
        let unit = |name: &&str| json!({"name": name});
        let units: Vec<_> = units.iter().map(unit).collect();
        let drain = json!({
            "cordoned": true, "draining": draining, "machineID": "m", "unitCount": units.len(), "units": units,
        });
        serde_json::from_value(drain).unwrap()
    }

    #[test]
    fn the_reasons_of_a_drain_outlive_it() {
        let mut reasons = BTreeMap::new();
        let mut under_way = drain(true, &["a", "b"]);
        under_way.units[0].reason = Some("no machine".to_owned());
        remember_reasons(&mut under_way, &mut reasons);
        let mut ended = drain(false, &["a", "b"]);
        remember_reasons(&mut ended, &mut reasons);
        assert_eq!(ended.units[0].reason.as_deref(), Some("no machine"));
        assert_eq!(ended.units[1].reason, None);
    }

    #[test]
    fn a_drain_ends_without_units_or_when_the_server_says_so() {
        assert!(has_ended(&drain(true, &[]), true));
        assert!(!has_ended(&drain(true, &["a"]), true));
        assert!(!has_ended(&drain(false, &["a"]), false));
        assert!(has_ended(&drain(false, &["a"]), true));
    }
}
