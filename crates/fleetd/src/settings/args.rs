//! The command line of fleetd.
#![allow(
    clippy::doc_markdown,
    reason = "these comments are the text of --help, where backticks would be noise"
)]

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

use hyperfleet_server_kit::settings::{CheckOptions, OpenapiOptions, OutputFormat};

/// Runs systemd units on a fleet of machines: starts and stops those of this machine, decides which machine runs
/// which unit, and serves the API for it.
///
/// Without a command it runs until SIGTERM or Ctrl-C. Units and machines are stored in etcd. Of several fleetd on
/// one etcd, one decides and the others stand by; all of them serve the API. With disable_agent = true it runs no
/// units on this machine.
///
/// Settings come from a file, by default /etc/fleet/fleet.conf if it exists, and from variables, which override
/// the file: FLEET_ and the key in capitals. `fleetd config reference` lists them.
///
/// Signals: SIGHUP reads the settings again, SIGUSR1 prints the status as one line of JSON. SIGTERM and SIGINT
/// stop it gracefully; a second signal stops it immediately.
#[derive(Debug, Parser)]
#[command(name = "fleetd", version = concat!("version ", env!("CARGO_PKG_VERSION")), max_term_width = 100)]
pub struct Args {
    /// Settings file with lines key = value [default: /etc/fleet/fleet.conf if it exists]
    #[arg(long, value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check, list and explain settings
    #[command(subcommand, arg_required_else_help = true)]
    Config(ConfigCommand),
    /// Print the API's OpenAPI document
    Openapi(OpenapiOptions),
    /// Print a shell completion script
    ///
    /// For instance: source <(fleetd completion bash)
    Completion {
        /// Shell to print a script for
        shell: clap_complete::Shell,
    },
    /// Print the version, the commit and the build time
    Version {
        /// Output format
        #[arg(short, long, value_name = "FORMAT", default_value = "text")]
        output: OutputFormat,
    },
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the settings and print each with its value and source
    ///
    /// Reads and checks everything that fleetd does before it connects to etcd, and hides secrets. Fails if
    /// anything is wrong.
    Check(CheckOptions),
    /// Print all settings, as Markdown
    Reference,
}

impl Args {
    /// Reads the command line of this process. Ends the process for a wrong command line, or for help.
    ///
    /// The older fleetd also accepted its two flags with one dash.
    pub fn of_process() -> Self {
        Self::parse_from(std::env::args_os().map(with_two_dashes))
    }
}

fn with_two_dashes(arg: OsString) -> OsString {
    let is_older = arg.to_str().is_some_and(|text| {
        ["-config", "-version"].contains(&text) || text.starts_with("-config=")
    });
    if !is_older {
        return arg;
    }
    let mut longer = OsString::from("-");
    longer.push(arg);
    longer
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::CommandFactory as _;
    use hyperfleet_server_kit::settings::OpenapiFormat;

    use super::*;

    fn parsed(args: &[&str]) -> Result<Args, clap::Error> {
        let args = ["fleetd"].iter().chain(args).map(OsString::from);
        Args::try_parse_from(args.map(with_two_dashes))
    }

    #[test]
    fn the_command_line_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn older_command_lines_mean_what_they_did() {
        for args in [
            &["--config", "a"][..],
            &["--config=a"],
            &["-config", "a"],
            &["-config=a"],
        ] {
            let args = parsed(args).unwrap();
            assert_eq!(args.config.as_deref(), Some(Path::new("a")));
            assert!(args.command.is_none());
        }
        for args in ["--version", "-version"] {
            let said = parsed(&[args]).unwrap_err().to_string();
            assert_eq!(
                said.trim(),
                concat!("fleetd version ", env!("CARGO_PKG_VERSION"))
            );
        }
        let version = parsed(&["version"]).unwrap().command;
        assert!(matches!(version, Some(Command::Version { .. })));
        for args in [["-o", "json"], ["--output", "json"], ["--format", "json"]] {
            let document = parsed(&[&["openapi"][..], &args[..]].concat())
                .unwrap()
                .command;
            let Some(Command::Openapi(options)) = document else {
                panic!("{document:?}")
            };
            assert_eq!(options.output, OpenapiFormat::Json);
        }
        let check = parsed(&["config", "check", "--config", "a", "-o", "table"]).unwrap();
        assert_eq!(check.config.as_deref(), Some(Path::new("a")));
        assert!(parsed(&["run"]).is_err() && parsed(&["--verbosity=1"]).is_err());
    }
}
