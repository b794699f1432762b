//! The commands of fleetd.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;

use super::listen::Doors;
use super::plan::Plan;
use super::{BUILD, daemon};
use crate::settings::{self, Args, Command, ConfigCommand};
use hyperfleet_fleet::api;
use hyperfleet_server_kit::activation;
use hyperfleet_server_kit::check;
use hyperfleet_server_kit::ending::Misuse;
use hyperfleet_server_kit::openapi::print_document;
use hyperfleet_server_kit::program::{self, Build, print, print_completion, print_version};
use hyperfleet_server_kit::settings::CheckOptions;

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
            let handed_over = activation::passed_listeners().context(Misuse)?;
            program::run(daemon::run(file, handed_over))?;
        }
        Some(Command::Config(ConfigCommand::Check(options))) => check(file.as_deref(), options)?,
        Some(Command::Config(ConfigCommand::Reference)) => print(&settings::reference()),
        Some(Command::Openapi(options)) => {
            print_document(&api::openapi(BUILD.version), options.output)?;
        }
        Some(Command::Completion { shell }) => print_completion(shell, Args::command()),
        Some(Command::Version { output }) => print_version(&BUILD, output, &version()),
    }
    Ok(ExitCode::SUCCESS)
}

/// The version as the older fleetd prints it, and what else is known of the build.
fn version() -> String {
    let Build {
        version,
        commit,
        time,
        ..
    } = BUILD;
    format!("fleetd version {version}\ncommit: {commit}\nbuilt: {time}\n")
}

/// Prints the settings and makes every check that needs no etcd.
fn check(file: Option<&Path>, options: CheckOptions) -> anyhow::Result<()> {
    let loaded = settings::load(file).context(Misuse)?;
    let notes = Plan::of(&loaded, &Doors::Named).map(|plan| plan.notes);
    check::print_check(&loaded, notes, options)
}
