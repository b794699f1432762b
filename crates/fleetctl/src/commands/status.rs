//! `status`: prints the output of `systemctl status` for units on their machines.

use std::process::ExitCode;

use anyhow::Context as _;

use super::named_units::{self, Running};
use super::remote;
use crate::cli::StatusArgs;
use crate::output;
use crate::session::Session;
use hyperfleet_fleet_model::wire::MachineView;

/// Header with the exit status of systemctl.
const EXIT_STATUS: &str = "fleet-exit-status";

pub(super) async fn run(session: &Session, args: &StatusArgs) -> anyhow::Result<ExitCode> {
    if args.names.units.is_empty() {
        named_units::report_no_units();
        return Ok(ExitCode::SUCCESS);
    }
    let mut exit = ExitCode::SUCCESS;
    let mut is_first = true;
    for argument in &args.names.units {
        let unit = match named_units::running(session, argument).await? {
            Running::On(unit) => unit,
            Running::Unknown(name) => {
                output::notice(&format!("Unit {name} does not exist."));
                exit = ExitCode::FAILURE;
                continue;
            }
            Running::Nowhere(name) => {
                output::notice(&format!("Unit {name} does not appear to be loaded."));
                exit = ExitCode::FAILURE;
                continue;
            }
        };
        for machine in &unit.machines {
            if !std::mem::take(&mut is_first) {
                output::line("")?;
            }
            let status = status_on(session, args, &unit.name, machine).await?;
            if status != ExitCode::SUCCESS {
                exit = status;
            }
        }
    }
    Ok(exit)
}

async fn status_on(
    session: &Session,
    args: &StatusArgs,
    unit: &str,
    machine: &MachineView,
) -> anyhow::Result<ExitCode> {
    let client = session.client().await?;
    if !args.ssh.ssh && session.bastion()?.is_none() {
        match client.unit_status(unit, &machine.id).await {
            Ok(text) => {
                let status = text
                    .header(EXIT_STATUS)
                    .and_then(|status| status.parse().ok());
                remote::print_text(text).await?;
                return Ok(ExitCode::from(status.unwrap_or(0)));
            }
            Err(error) if error.is_missing_route() => named_units::say_fallback(&error),
            Err(error) => {
                let doing = || format!("Error retrieving the status of {unit}");
                return Err(error).with_context(doing);
            }
        }
    }
    let words = ["systemctl", "status", "-l", "--", unit];
    remote::run_on(session, machine, args.ssh.ssh_port, &words).await
}
