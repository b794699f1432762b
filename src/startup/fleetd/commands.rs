//! What each command does.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;

use super::listen::Doors;
use super::plan::Plan;
use super::{BUILD, daemon};
use crate::config::OpenapiFormat;
use crate::config::fleetd::{self, Args, CheckArgs, Command, ConfigCommand, Loaded};
use crate::http;
use crate::kit::activation;
use crate::kit::ending::Misuse;
use crate::kit::program::{self, print, print_completion};
use crate::startup::commands::print_effective;

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
    let loaded = Loaded::read(file);
    let plan = Plan::of(&loaded, &Doors::Named);
    // What has a fault has no value that could be shown.
    if loaded.is_sound() {
        print_effective(&loaded.effective(), args.output)?;
    }
    let of_plan = plan.as_ref().map_or(&[][..], |plan| &plan.notes);
    for note in loaded.notes.iter().chain(of_plan) {
        eprintln!("note: {note}");
    }
    plan.map(drop).context(Misuse)
}
