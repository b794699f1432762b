//! The commands of fleetd.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;

use super::listen::Doors;
use super::plan::Plan;
use super::{BUILD, daemon};
use crate::settings::{self, Args, CheckArgs, Command, ConfigCommand};
use hyperfleet_fleet::api;
use hyperfleet_server_kit::activation;
use hyperfleet_server_kit::check;
use hyperfleet_server_kit::ending::Misuse;
use hyperfleet_server_kit::openapi::print_document;
use hyperfleet_server_kit::program::{self, print, print_completion};

/// Runs a command. Returns the exit code of the process.
///
/// # Errors
/// Why the command failed.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args {
        config: file,
        command,
    } = args;
    match command {
        None => {
            // Before any thread starts, because it changes the environment.
            let handed_over = activation::handed_over().context(Misuse)?;
            program::run(daemon::run(file, handed_over))?;
        }
        Some(Command::Config(ConfigCommand::Check(options))) => check(file.as_deref(), &options)?,
        Some(Command::Config(ConfigCommand::Reference)) => print(&settings::reference()),
        Some(Command::Openapi { format }) => print_document(&api::openapi(BUILD.version), format)?,
        Some(Command::Completion { shell }) => print_completion(shell, Args::command()),
        Some(Command::Version) => print(&format!("fleetd version {}\n", BUILD.version)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the settings and checks them as far as possible without etcd.
fn check(file: Option<&Path>, args: &CheckArgs) -> anyhow::Result<()> {
    let loaded = settings::load(file);
    let notes = Plan::of(&loaded, &Doors::Named).map(|plan| plan.notes);
    check::print_check(&loaded, notes, args.output)
}
