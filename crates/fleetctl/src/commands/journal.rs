//! `journal`: what the journal of its machine has of a unit.

use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::named_units::{self, Running};
use super::remote;
use crate::cli::JournalArgs;
use crate::client::Machine;
use crate::session::Session;

pub(super) async fn run(session: &Session, args: &JournalArgs) -> anyhow::Result<ExitCode> {
    let [argument] = &args.names.units[..] else {
        bail!("One unit file must be provided.");
    };
    let unit = match named_units::running(session, argument).await? {
        Running::On(unit) => unit,
        Running::Unknown(name) => bail!("Unit {name} does not exist."),
        Running::Nowhere(name) => bail!("Unit {name} does not appear to be running."),
    };
    let machines = session.machines().await?;
    let machine = match (&args.machine, &unit.machines[..]) {
        (Some(name), _) => machines.find(name)?,
        (None, [machine]) if !unit.is_global => machine,
        (None, _) => {
            bail!(
                "Unable to retrieve journal of global unit {}: name a machine with --machine.",
                unit.name
            )
        }
    };
    let client = session.client().await?;
    if !args.ssh.ssh && !args.sudo && session.bastion()?.is_none() {
        let query = [
            ("lines", args.lines.to_string()),
            ("output", args.output.clone()),
            ("follow", args.follow.to_string()),
            ("machineID", machine.id.clone()),
        ];
        match client.journal(&unit.name, &query).await {
            Ok(text) => {
                remote::print_text(text).await?;
                return Ok(ExitCode::SUCCESS);
            }
            Err(error) if error.is_missing_route() => named_units::say_fallback(&error),
            Err(error) => {
                let doing = || format!("Error retrieving the journal of {}", unit.name);
                return Err(error).with_context(doing);
            }
        }
    }
    over_ssh(session, args, &unit.name, machine).await
}

async fn over_ssh(
    session: &Session,
    args: &JournalArgs,
    unit: &str,
    machine: &Machine,
) -> anyhow::Result<ExitCode> {
    let lines = args.lines.to_string();
    let mut words = vec![
        "journalctl",
        "--unit",
        unit,
        "--no-pager",
        "-n",
        &lines,
        "--output",
        &args.output,
    ];
    if args.follow {
        words.push("-f");
    }
    if args.sudo {
        words.insert(0, "sudo");
    }
    remote::run_on(session, machine, args.ssh.ssh_port, &words).await
}
