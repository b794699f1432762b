//! `top`: prints the number of units per machine.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context as _;
use futures_util::TryStreamExt as _;
use hyperfleet_fleet_model::wire::{MachineView, StateView};
use serde::Serialize;

use crate::cli::OutputArgs;
use crate::machines::{Detail, Machines, id_legend, state, warn_of_halted};
use crate::output::{self, Table, or_dash};
use crate::session::Session;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
struct Load {
    machine: String,
    ip: String,
    units: u64,
    active: u64,
    failed: u64,
    cordoned: bool,
    state: &'static str,
}

pub(super) async fn run(session: &Session, args: OutputArgs) -> anyhow::Result<ExitCode> {
    let client = session.client().await?;
    let machines = session.machines().await?;
    let mut loads = empty(&machines);
    let pages = client.state_pages(None);
    tokio::pin!(pages);
    while let Some(page) = pages
        .try_next()
        .await
        .context("Error retrieving states of units")?
    {
        for state in &page {
            count(&mut loads, state);
        }
    }
    let loads: Vec<Load> = loads.into_values().collect();
    match output::structured(args.format, &loads)? {
        Some(text) => output::print(&text)?,
        None => output::print(&text(&loads))?,
    }
    warn_of_halted(machines.iter());
    Ok(ExitCode::SUCCESS)
}

fn empty(machines: &Machines) -> BTreeMap<String, Load> {
    let load = |machine: &MachineView| Load {
        machine: machine.id.clone(),
        ip: machine.ip.clone(),
        cordoned: machine.cordoned,
        state: state(machine),
        ..Load::default()
    };
    machines
        .iter()
        .map(|machine| (machine.id.clone(), load(machine)))
        .collect()
}

fn count(loads: &mut BTreeMap<String, Load>, state: &StateView) {
    // A state outlives its machine for a moment.
    if let Some(load) = loads.get_mut(&state.machine) {
        load.units += 1;
        load.active += u64::from(state.active == "active");
        load.failed += u64::from(state.active == "failed");
    }
}

fn text(loads: &[Load]) -> String {
    let legend = ["MACHINE", "IP", "UNITS", "ACTIVE", "FAILED", "STATE"];
    let mut table = Table::new(legend.map(str::to_owned).to_vec());
    for load in loads {
        table.push(vec![
            id_legend(&load.machine, Detail::Short),
            or_dash(&load.ip),
            load.units.to_string(),
            load.active.to_string(),
            load.failed.to_string(),
            load.state.to_owned(),
        ]);
    }
    table.take_text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfleet_fleet_model::wire::MachineView;

    #[test]
    fn units_are_counted_by_machine_and_state() {
        let mut loads = empty(&Machines::new([MachineView {
            id: "aaaaaaaaaa".to_owned(),
            cordoned: true,
            ..MachineView::default()
        }]));
        for (machine, active) in [
            ("aaaaaaaaaa", "active"),
            ("aaaaaaaaaa", "failed"),
            ("gone", "active"),
        ] {
            count(
                &mut loads,
                &StateView {
                    hash: String::new(),
                    machine: machine.to_owned(),
                    unit: "a.service".to_owned(),
                    active: active.to_owned(),
                    load: "loaded".to_owned(),
                    sub: String::new(),
                    error: String::new(),
                },
            );
        }
        let loads: Vec<Load> = loads.into_values().collect();
        assert_eq!(
            text(&loads),
            "MACHINE\t\tIP\tUNITS\tACTIVE\tFAILED\tSTATE\naaaaaaaa...\t-\t2\t1\t1\tcordoned\n"
        );
    }
}
