//! `journal`: what the journal of its machine has of a unit.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::sleep;

use super::named_units::{self, Running};
use super::remote;
use crate::cli::JournalArgs;
use crate::session::Session;
use hyperfleet_fleet_model::wire::MachineView;

/// How long to wait before an answer that has ended is asked for again.
const RETRY: Duration = Duration::from_secs(1);

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
        match client
            .journal(&unit.name, &query(args, args.lines, machine), args.follow)
            .await
        {
            Ok(text) => {
                remote::print_text(text).await?;
                return follow(session, args, &unit.name, machine).await;
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

/// Goes on with a journal that is followed: the server ends each answer after a while.
async fn follow(
    session: &Session,
    args: &JournalArgs,
    unit: &str,
    machine: &MachineView,
) -> anyhow::Result<ExitCode> {
    if !args.follow {
        return Ok(ExitCode::SUCCESS);
    }
    let client = session.client().await?;
    loop {
        sleep(RETRY).await;
        let text = client.journal(unit, &query(args, 0, machine), true).await;
        let text = text.with_context(|| format!("Error following the journal of {unit}"))?;
        remote::print_text(text).await?;
    }
}

fn query(args: &JournalArgs, lines: u32, machine: &MachineView) -> [(&'static str, String); 4] {
    [
        ("lines", lines.to_string()),
        ("output", args.output.clone()),
        ("follow", args.follow.to_string()),
        ("machineID", machine.id.clone()),
    ]
}

async fn over_ssh(
    session: &Session,
    args: &JournalArgs,
    unit: &str,
    machine: &MachineView,
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
