//! `list-machines`

use std::process::ExitCode;

use anyhow::Context as _;
use tokio::time::sleep;

use super::list::{Listing, POLL, Screen, Shown};
use crate::cli::ListArgs;
use crate::machines::{id_legend, state, warn_of_halted};
use crate::output::{self, Column, or_dash};
use crate::session::Session;
use hyperfleet_fleet_model::wire::MachineView;

const COLUMNS: [Column<MachineView, Shown>; 5] = [
    Column {
        name: "machine",
        text: |machine, shown| id_legend(&machine.id, shown.detail),
    },
    Column {
        name: "ip",
        text: |machine, _| or_dash(&machine.ip),
    },
    Column {
        name: "metadata",
        text: |machine, _| {
            let pairs = machine
                .metadata
                .iter()
                .map(|(key, value)| format!("{key}={value}"));
            or_dash(&pairs.collect::<Vec<_>>().join(","))
        },
    },
    Column {
        name: "state",
        text: |machine, _| state(machine).to_owned(),
    },
    Column {
        name: "version",
        text: |machine, _| or_dash(&machine.version),
    },
];
const USUAL: &str = "machine,ip,metadata";
/// If units are not placed on every machine.
const WITH_STATE: &str = "machine,ip,metadata,state";

pub(super) async fn run(session: &Session, args: &ListArgs) -> anyhow::Result<ExitCode> {
    let listing = Listing::new(args, &COLUMNS, USUAL)?;
    let with_state = Listing::new(args, &COLUMNS, WITH_STATE)?;
    let mut screen = Screen::default();
    let client = session.client().await?;
    let text = async || {
        let machines = client.machines().await;
        let machines = machines.context("Error retrieving list of active machines")?;
        let are_ready = machines.iter().all(|machine| state(machine) == "ready");
        let listing = if are_ready { &listing } else { &with_state };
        let text = listing.text(machines.iter())?;
        anyhow::Ok((text, machines))
    };
    if !args.watch {
        let (text, machines) = text().await?;
        output::print(&text)?;
        warn_of_halted(&machines);
        return Ok(ExitCode::SUCCESS);
    }
    screen.show(text().await?.0)?;
    loop {
        sleep(POLL).await;
        // A short outage of the server does not end the watch.
        if let Ok((text, _)) = text().await {
            screen.show(text)?;
        }
    }
}
