//! `ssh`: a shell, or a command, on a machine of the cluster.

use std::process::ExitCode;

use anyhow::bail;

use super::named_units::{self, Running};
use super::remote;
use crate::cli::SshArgs;
use crate::machines::UnknownMachine;
use crate::session::Session;
use crate::ssh::RemoteCommand;
use hyperfleet_fleet_model::wire::MachineView;

pub(super) async fn run(session: &Session, args: &SshArgs) -> anyhow::Result<ExitCode> {
    let mut words = args.words.clone();
    let machine = match (&args.machine, &args.unit) {
        (Some(name), _) => session.machines().await?.find(name)?.clone(),
        (None, Some(unit)) => match machine_of_unit(session, unit).await? {
            Some(machine) => machine,
            None => bail!("Unit {unit} does not appear to be running."),
        },
        (None, None) if words.is_empty() => bail!("Provide one machine or unit."),
        (None, None) => named(session, &words.remove(0)).await?,
    };
    let command = RemoteCommand {
        words,
        forwards_agent: args.forward_agent,
    };
    remote::over_ssh(session, &machine, args.ssh_port, &command).await
}

/// The machine of a name, which is that of a machine or of a unit that runs there.
async fn named(session: &Session, name: &str) -> anyhow::Result<MachineView> {
    let machines = session.machines().await?;
    let machine = match machines.find(name) {
        Ok(machine) => Some(machine.clone()),
        Err(UnknownMachine::None(_)) => None,
        Err(several) => return Err(several.into()),
    };
    match (machine, machine_of_unit(session, name).await?) {
        (Some(_), Some(_)) => {
            bail!("Both a machine and a unit are called {name}: use --machine or --unit.")
        }
        (Some(machine), None) | (None, Some(machine)) => Ok(machine),
        (None, None) => bail!("Unable to proceed: could not find matching unit or machine"),
    }
}

/// The machine of a unit; the first of several.
async fn machine_of_unit(session: &Session, unit: &str) -> anyhow::Result<Option<MachineView>> {
    match named_units::running(session, unit).await? {
        Running::On(unit) => Ok(unit.machines.into_iter().next()),
        Running::Unknown(_) | Running::Nowhere(_) => Ok(None),
    }
}
