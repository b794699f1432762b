//! What each command does.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::CommandFactory as _;

use super::plan::Plan;
use crate::config::fleetd::{self, Args, CheckArgs, Command, ConfigCommand, Loaded};
use crate::config::{self, CheckFormat};
use crate::startup::commands::{BUILD, completion, print};
use crate::startup::ending::Misuse;

/// Runs a command to its end; gives what the process is to end with.
///
/// # Errors
///
/// Why it could not be done.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let file = args.config.as_deref();
    match args.command {
        None => todo!(),
        Some(Command::Config(ConfigCommand::Check(args))) => check(file, &args)?,
        Some(Command::Config(ConfigCommand::Reference)) => print(&fleetd::reference()),
        Some(Command::Openapi { format: _ }) => todo!(),
        Some(Command::Completion { shell }) => completion(shell, Args::command()),
        Some(Command::Version) => print(&format!("fleetd version {}\n", BUILD.version)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints the settings and checks them as far as that goes without etcd.
fn check(file: Option<&Path>, args: &CheckArgs) -> anyhow::Result<()> {
    let loaded = Loaded::read(file);
    let plan = Plan::of(&loaded, &[]);
    // What has a fault has no value that could be shown.
    if loaded.is_sound() {
        let effective = loaded.effective();
        print(&match args.output {
            CheckFormat::Table => config::as_table(&effective),
            CheckFormat::Json => serde_json::to_string_pretty(&config::as_json(&effective))? + "\n",
        });
    }
    let of_plan = plan.as_ref().map_or(&[][..], |plan| &plan.notes);
    for note in loaded.notes.iter().chain(of_plan) {
        eprintln!("note: {note}");
    }
    plan.map(drop).context(Misuse)
}
