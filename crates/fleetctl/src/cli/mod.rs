//! The command line: commands, flags and variables as clap definitions. Help, completions, manual pages and the
//! reference page are made from them.
#![allow(
    clippy::doc_markdown,
    reason = "these comments are the text of --help, where backticks would be noise"
)]

mod args;
mod cluster_args;
mod compat;
mod global;

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

pub(crate) use args::{
    BlockArgs, CatArgs, CompletionArgs, EnsureArgs, ExplainArgs, Format, JournalArgs,
    JournalFormat, ListArgs, OutputArgs, RestartArgs, SshArgs, StatusArgs, StopArgs, SubmitArgs,
    VerifyArgs,
};
pub(crate) use cluster_args::{DrainArgs, ImportArgs, MachineArgs, RebalanceArgs};
pub(crate) use global::{Endpoint, GlobalArgs, without_password};

/// Control units and machines of a fleet cluster
///
/// fleetctl talks to the API of a fleetd: by default over the unix socket of this machine, or over the endpoint that
/// --endpoint or FLEETCTL_ENDPOINT names. With --tunnel it goes through ssh.
///
/// Every global flag has a variable: FLEETCTL_ and the flag in capitals. The command line wins. Commands can be
/// abbreviated to any unique prefix.
///
/// Exit status: 0 success, 1 the command failed, 2 the command line is wrong. status, journal and ssh end with the
/// status of the remote command.
#[derive(Debug, Parser)]
#[command(
    name = "fleetctl",
    bin_name = "fleetctl",
    version,
    disable_help_flag = true,
    disable_version_flag = true,
    infer_subcommands = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Commands of fleetctl.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Store unit files without scheduling them
    Submit(SubmitArgs),
    /// Schedule units onto machines and load them into systemd, without starting them
    Load(EnsureArgs),
    /// Schedule and start units, and wait until they run
    ///
    /// Ends with status 1 when a unit fails, cannot run, or does not run in time. A unit that ran and finished
    /// successfully, such as a oneshot service, counts as started. A unit that is launched already and does not run is
    /// started again. Global units are not waited for.
    Start(EnsureArgs),
    /// Stop units; they stay loaded on their machines
    ///
    /// Waits until they have stopped. Also stops loaded units that systemd has started for another unit, a timer or a
    /// socket. Global units are not waited for.
    Stop(StopArgs),
    /// Stop units and remove them from their machines
    ///
    /// Waits until no machine has them. Global units are not waited for.
    Unload(StopArgs),
    /// Stop units, remove them from their machines, and delete them
    Destroy(StopArgs),
    /// Stop units and start them again on the same machines
    Restart(RestartArgs),
    /// Print the file of a unit
    Cat(CatArgs),
    /// Print the output of systemctl status for units
    Status(StatusArgs),
    /// Print the journal of a unit
    Journal(JournalArgs),
    /// Open a shell, or run a command, on a machine
    ///
    /// The machine is named by its ID, a unique prefix of it, or a unit that runs there. Put -- before a command that
    /// has flags of its own.
    Ssh(SshArgs),
    /// List the machines of the cluster
    ///
    /// If units are not placed on some of them, a further column has their states.
    ListMachines(ListArgs),
    /// List the states of units, as their machines report them
    ListUnits(ListArgs),
    /// List the units of the cluster with their desired and current states
    ListUnitFiles(ListArgs),
    /// Show why a unit is where it is, or why it is not placed
    Explain(ExplainArgs),
    /// Count the units of each machine
    Top(OutputArgs),
    /// Exclude machines from scheduling; their units keep running
    Cordon(MachineArgs),
    /// Include machines in scheduling again, and stop draining them
    Uncordon(MachineArgs),
    /// Move all ordinary units off machines, which are cordoned first
    ///
    /// Waits until no ordinary unit is left, and shows what it waits for. Ctrl-C ends fleetctl, not the drain; `fleetctl uncordon` stops it.
    Drain(DrainArgs),
    /// Spread units evenly over machines
    ///
    /// Shows the moves first and asks. Without a terminal, --yes is required to move anything.
    Rebalance(RebalanceArgs),
    /// Let agents that have halted continue
    ///
    /// Agents halt when etcd went back in time, for instance after a restore. Check what is stored first.
    Resume,
    /// Take over units from the etcd v2 of CoreOS fleet
    ///
    /// Shows what would change first and asks. Without a terminal, --yes is required to write anything. Running it
    /// again continues where it stopped.
    Import(ImportArgs),
    /// Check the connection, the servers and the clock, and say what to do
    Doctor(OutputArgs),
    /// Removed: signed units are not supported
    #[command(hide = true)]
    Verify(VerifyArgs),
    /// Print the version
    Version(OutputArgs),
    /// Print a shell completion script
    ///
    /// For instance: source <(fleetctl completion bash)
    Completion(CompletionArgs),
    /// Print the manual page
    Man,
    /// Print the reference page
    #[command(hide = true)]
    Reference,
}

/// The definition of the command line, with the spellings of the older fleetctl.
pub(crate) fn definition() -> clap::Command {
    compat::with_older_spellings(Cli::command())
}

/// Reads the command line of this process. Ends the process when it is wrong, or asks for help.
pub(crate) fn of_process() -> Cli {
    parsed(std::env::args_os()).unwrap_or_else(|error| error.exit())
}

fn parsed(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut definition = definition();
    let arguments = compat::with_newer_spellings(&definition, arguments);
    let asks_for_version = asks_for_version(&arguments);
    let matches = match definition.try_get_matches_from_mut(arguments) {
        // The version is printed whatever else is missing.
        Err(error) if asks_for_version && error.kind() == ErrorKind::MissingRequiredArgument => {
            definition.try_get_matches_from_mut(["fleetctl", VERSION])?
        }
        matches => matches.map_err(|error| without_hidden_tips(error, &definition))?,
    };
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut definition))
}

/// Without tips that name hidden commands or prefixes.
fn without_hidden_tips(mut error: clap::Error, definition: &clap::Command) -> clap::Error {
    let kind = ContextKind::SuggestedSubcommand;
    let Some(ContextValue::Strings(tips)) = error.remove(kind) else {
        return error;
    };
    let is_shown = |tip: &String| {
        let mut commands = definition.get_subcommands();
        commands.any(|command| command.get_name() == tip && !command.is_hide_set())
    };
    let tips: Vec<_> = tips.into_iter().filter(is_shown).collect();
    if !tips.is_empty() {
        error.insert(kind, ContextValue::Strings(tips));
    }
    error
}

const VERSION: &str = "--version";

/// Whether the flag for the version is among the arguments before `--`.
fn asks_for_version(arguments: &[OsString]) -> bool {
    let mut flags = arguments.iter().take_while(|argument| *argument != "--");
    flags.any(|argument| argument == VERSION)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Result<Cli, clap::Error> {
        super::parsed(["fleetctl"].iter().chain(args).map(OsString::from))
    }

    #[test]
    fn the_command_line_is_sound() {
        definition().debug_assert();
    }

    #[test]
    fn flags_of_the_older_fleetctl_are_accepted() {
        for args in [
            &["list-machines", "-l"][..],
            &["list-machines", "--l", "--no-legend=false"],
            &["--strict-host-key-checking=false", "list-units", "--full"],
            &["list-units", "--strict-host-key-checking=0", "--full=true"],
            &[
                "journal",
                "-f",
                "--lines",
                "5",
                "--output=cat",
                "--sudo",
                "a",
            ],
            &["journal", "--f", "--ssh-port=22", "a"],
            &["ssh", "-A", "--machine", "m", "--", "ls", "-l"],
            &["ssh", "--A", "m", "uptime"],
            &[
                "start",
                "--no-block",
                "--block-attempts=3",
                "--replace",
                "--sign",
                "a",
                "b",
            ],
            &["stop", "a", "--block-attempts", "20", "b"],
            &[
                "--driver=API",
                "--experimental-api",
                "--endpoint",
                "http://h",
                "list-m",
            ],
            &[
                "--request-timeout=3",
                "--ssh-timeout=10.5",
                "--etcd-key-prefix=/x/",
                "cat",
                "a",
            ],
            &[
                "--etcd-keyfile=k",
                "--etcd-certfile=c",
                "--etcd-cafile=a",
                "submit",
            ],
            &["destroy", "--debug"],
            &["list-units", "-no-legend", "-fields=unit,machine"],
            &["-debug=true", "list-machines", "-full"],
            &[
                "-endpoint",
                "http://h",
                "-strict-host-key-checking=false",
                "list-units",
            ],
            &["journal", "-lines=5", "-f", "a"],
            &["journal", "-lines", "5", "-follow", "-output=cat", "a"],
            &["start", "-no-block", "-block-attempts=3", "a"],
            &["drain", "--deadline", "3", "m"],
            &["rebalance", "--timeout=2.5"],
        ] {
            if let Err(error) = parsed(args) {
                panic!("{args:?}: {error}");
            }
        }
        for args in [
            &["list-machines", "--no-such-flag"][..],
            &["no-such-command"],
            &["list-unit"],
            &["list-machines", "--full=maybe"],
            &["start", "--block-attempts=-1", "a"],
            &["--driver=sql", "list-machines"],
        ] {
            assert_eq!(parsed(args).unwrap_err().exit_code(), 2, "{args:?}");
        }
    }

    #[test]
    fn tips_name_shown_commands_only() {
        for (typed, tip) in [
            ("versio", None),
            ("frobnicate", None),
            ("strat", Some("start")),
        ] {
            let said = match parsed(&[typed]) {
                Ok(cli) => {
                    assert!(matches!(cli.command, Some(Command::Version(_))), "{typed}");
                    continue;
                }
                Err(error) => error.to_string(),
            };
            for hidden in ["'verify'", "'reference'", "'r'", "'ver'"] {
                assert!(!said.contains(hidden), "{typed}: {said}");
            }
            if let Some(tip) = tip {
                assert!(said.contains(&format!("'{tip}'")), "{typed}: {said}");
            }
        }
    }

    #[test]
    fn every_command_knows_the_version_flag() {
        for command in definition().get_subcommands() {
            let name = command.get_name();
            for args in [[name, VERSION], [VERSION, name]] {
                let cli = parsed(&args).unwrap_or_else(|error| panic!("{args:?}: {error}"));
                assert!(cli.global.version, "{args:?}");
            }
        }
        assert!(parsed(&["cordon", "--", VERSION]).is_ok_and(|cli| !cli.global.version));
        assert!(parsed(&["cordon"]).is_err());
    }

    #[test]
    fn booleans_are_read_as_they_were() {
        let strict = |args| parsed(args).unwrap().global.strict_host_key_checking;
        assert!(strict(&["version"]));
        assert!(strict(&["version", "--strict-host-key-checking"]));
        assert!(!strict(&["--strict-host-key-checking=false", "version"]));
        let Some(Command::ListUnits(list)) = parsed(&["list-units", "--full"]).unwrap().command
        else {
            panic!("another command");
        };
        assert!(list.full && !list.no_legend);
    }
}
