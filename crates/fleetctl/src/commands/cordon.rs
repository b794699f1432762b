//! `cordon` and `uncordon`: whether units are placed on machines.

use std::process::ExitCode;

use crate::cli::MachineArgs;
use crate::client::{Client, Error};
use crate::output;
use crate::session::Session;

/// Whether new units are placed on machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheduling {
    Excluded,
    Included,
}

pub(super) async fn run(
    session: &Session,
    args: &MachineArgs,
    scheduling: Scheduling,
) -> anyhow::Result<ExitCode> {
    let client = session.client().await?;
    let machines = session.machines().await?;
    let mut exit = ExitCode::SUCCESS;
    for name in &args.machines {
        let done = match machines.find(name) {
            Ok(machine) => apply(client, &machine.id, scheduling).await,
            // A missing machine keeps its cordon.
            Err(_) if scheduling == Scheduling::Included && is_whole_id(name) => {
                apply(client, name, scheduling).await
            }
            Err(unknown) => Err(unknown.to_string()),
        };
        match done {
            Ok(text) => output::line(&text)?,
            Err(text) => {
                output::notice(&text);
                exit = ExitCode::FAILURE;
            }
        }
    }
    Ok(exit)
}

async fn apply(client: &Client, id: &str, scheduling: Scheduling) -> Result<String, String> {
    let (done, past, verb) = match scheduling {
        Scheduling::Excluded => (client.cordon(id).await, "cordoned", "cordon"),
        Scheduling::Included => (client.uncordon(id).await, "uncordoned", "uncordon"),
    };
    match done {
        Ok(()) => Ok(format!("Machine {id} {past}")),
        Err(error) => Err(refused(verb, id, &error)),
    }
}

fn is_whole_id(name: &str) -> bool {
    name.len() == 32 && name.chars().all(|c| c.is_ascii_hexdigit())
}

/// Why an order about a machine was refused.
pub(super) fn refused(verb: &str, machine: &str, error: &Error) -> String {
    if error.is_missing_route() {
        return format!(
            "Unable to {verb} machine {machine}: this version of fleetd cannot {verb} machines"
        );
    }
    format!("Unable to {verb} machine {machine}: {}", error.words())
}
