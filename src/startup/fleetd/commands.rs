//! What each command does.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;

use super::listen::Doors;
use super::plan::Plan;
use super::{BUILD, daemon};
use crate::config::fleetd::{self, Args, CheckArgs, Command, ConfigCommand};
use crate::http;
use crate::kit::activation;
use crate::kit::ending::Misuse;
use crate::kit::program::{self, print, print_completion};
use crate::kit::settings::OpenapiFormat;
use crate::startup::commands::print_check;

/// Runs a command to its end; gives what the process is to end with.
///
/// # Errors
///
/// Why it could not be done.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let Args {
        config: file,
        command,
    } = args;
    match command {
        None => {
            // Before there are threads: it changes the environment.
            let handed_over = activation::handed_over().context(Misuse)?;
            program::run(daemon::run(file, handed_over))?;
        }
        Some(Command::Config(ConfigCommand::Check(options))) => check(file.as_deref(), &options)?,
        Some(Command::Config(ConfigCommand::Reference)) => print(&fleetd::reference()),
        Some(Command::Openapi { format }) => openapi(format)?,
        Some(Command::Completion { shell }) => print_completion(shell, Args::command()),
        Some(Command::Version) => print(&format!("fleetd version {}\n", BUILD.version)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the document of the API.
fn openapi(format: OpenapiFormat) -> anyhow::Result<()> {
    let document = http::fleet_openapi(BUILD.version);
    let text = match format {
        OpenapiFormat::Yaml => http::yaml(&document)?,
        OpenapiFormat::Json => serde_json::to_string_pretty(&document)? + "\n",
    };
    print(&text);
    Ok(())
}

/// Prints the settings and checks them as far as that goes without etcd.
fn check(file: Option<&Path>, args: &CheckArgs) -> anyhow::Result<()> {
    let loaded = fleetd::load(file);
    let notes = Plan::of(&loaded, &Doors::Named).map(|plan| plan.notes);
    print_check(&loaded, notes, args.output)
}
