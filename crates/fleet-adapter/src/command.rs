//! Defines the command line of the fleet adapter.
#![allow(
    clippy::doc_markdown,
    reason = "these comments are the text of --help, where backticks would be noise"
)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use hyperfleet_server_kit::settings::OutputFormat;

/// Name of a link to the program. Under this name the program is only the fleet adapter.
const LINK: &str = "hyperfleet-fleet-adapter";
const COMMAND: &str = "fleet-adapter";

/// The commands; `S` has the settings of the program.
#[derive(Debug, Subcommand)]
pub enum FleetAdapterCommand<S: clap::Args> {
    /// Run the fleet adapter without the API
    ///
    /// Needs the API at fleet.adapter.api_url and etcd, but no database. Reads the settings of
    /// `serve`: fleet, entities, logging, tracing, metrics and health. Several replicas may run: one
    /// works, the others stand by. SIGTERM or Ctrl-C stops it gracefully; a second signal
    /// stops it immediately.
    Run(Box<S>),
    /// Print the units that a resource would have, by the configured workloads
    ///
    /// Needs neither the API nor etcd. Fails if a workload is invalid for the resource.
    Render(Box<RenderArgs<S>>),
    /// Approve removals that exceed fleet.adapter.removal_limit, for ten minutes
    ApproveRemovals(Box<S>),
}

#[derive(Debug, clap::Args)]
pub struct RenderArgs<S: clap::Args> {
    /// File with the resource as JSON or YAML, in the form of the API; - for standard input
    #[arg(value_name = "FILE")]
    pub resource: PathBuf,
    /// File with the parent resource, for workloads that use owner
    #[arg(long, value_name = "FILE")]
    pub owner: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
    #[command(flatten)]
    pub settings: S,
}

/// The command line, with the command that the program's name implies.
pub fn with_command_of_name(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<_> = arguments.into_iter().collect();
    let is_link = |name: &OsString| Path::new(name).file_name().is_some_and(|n| n == LINK);
    if arguments.first().is_some_and(is_link) {
        arguments.insert(1, COMMAND.into());
    }
    arguments
}
