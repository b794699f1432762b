//! The commands.

mod cat;
mod cordon;
mod destroy;
mod doctor;
mod drain;
mod ensure;
mod entry;
mod explain;
mod follow;
mod import;
mod journal;
mod list;
mod list_machines;
mod list_unit_files;
mod list_units;
mod load;
mod manual;
mod named_units;
mod rebalance;
mod remote;
mod restart;
mod resume;
mod ssh;
mod start;
mod states;
mod status;
mod stop;
mod submit;
mod top;
mod unload;
mod version;

use std::process::ExitCode;

use self::cordon::Scheduling;
use crate::cli::{self, Command};
use crate::output;
use crate::session::Session;

/// Runs a command.
///
/// # Errors
/// Why it failed. Results about units are printed, and determine the exit code.
pub(crate) async fn run(session: &Session, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Submit(args) => submit::run(session, &args).await,
        Command::Load(args) => load::run(session, &args).await,
        Command::Start(args) => start::run(session, &args).await,
        Command::Stop(args) => stop::run(session, &args).await,
        Command::Unload(args) => unload::run(session, &args).await,
        Command::Destroy(args) => destroy::run(session, &args).await,
        Command::Restart(args) => restart::run(session, &args).await,
        Command::Cat(args) => cat::run(session, &args).await,
        Command::ListMachines(args) => list_machines::run(session, &args).await,
        Command::ListUnits(args) => list_units::run(session, &args).await,
        Command::ListUnitFiles(args) => list_unit_files::run(session, &args).await,
        Command::Explain(args) => explain::run(session, &args).await,
        Command::Verify(_) => {
            output::notice(
                "WARNING: The signed/verified units feature is DEPRECATED and cannot be used.",
            );
            Ok(ExitCode::from(2))
        }
        Command::Version(args) => version::run(args),
        Command::Status(args) => status::run(session, &args).await,
        Command::Journal(args) => journal::run(session, &args).await,
        Command::Ssh(args) => ssh::run(session, &args).await,
        Command::Top(args) => top::run(session, args).await,
        Command::Cordon(args) => cordon::run(session, &args, Scheduling::Excluded).await,
        Command::Uncordon(args) => cordon::run(session, &args, Scheduling::Included).await,
        Command::Drain(args) => drain::run(session, &args).await,
        Command::Rebalance(args) => rebalance::run(session, &args).await,
        Command::Resume => resume::run(session).await,
        Command::Import(args) => import::run(session, &args).await,
        Command::Doctor(args) => doctor::run(session, args).await,
        Command::Completion(args) => manual::completion(args.shell),
        Command::Man => manual::man(),
        Command::Reference => manual::reference(),
    }
}

/// Prints the text of `--help`.
///
/// # Errors
/// The pipe is closed.
pub(crate) fn print_help() -> anyhow::Result<ExitCode> {
    output::print(&cli::definition().render_long_help().to_string())?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the version, whatever else is on the command line.
///
/// # Errors
/// The pipe is closed.
pub(crate) fn print_version() -> anyhow::Result<ExitCode> {
    version::run(cli::OutputArgs::default())
}
