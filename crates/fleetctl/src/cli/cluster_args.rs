//! Flags and arguments of commands for machines and the cluster.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::OutputArgs;
use super::global::positive_time;

/// Machines to act on.
#[derive(Debug, Clone, Args)]
pub(crate) struct MachineArgs {
    /// Machine IDs, or unique prefixes of them
    #[arg(value_name = "MACHINE", required = true)]
    pub machines: Vec<String>,
}

/// Flags of `drain`.
#[derive(Debug, Clone, Args)]
pub(crate) struct DrainArgs {
    /// End the drain after this time, in seconds or as 30s, 10m, whatever is left on the machines
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = positive_time)]
    pub deadline: Duration,
    /// Return at once, without waiting for the units to move
    #[arg(long)]
    pub no_block: bool,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub machines: MachineArgs,
}

/// Flags of `rebalance`.
#[derive(Debug, Clone, Args)]
pub(crate) struct RebalanceArgs {
    /// Move at most this many units [default: that of the server, 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max: Option<u32>,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Show the moves and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Longest time to wait for the moves, in seconds or as 30s, 5m
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = positive_time)]
    pub timeout: Duration,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Flags of `import`.
#[derive(Debug, Clone, Args)]
pub(crate) struct ImportArgs {
    /// etcd v2 servers of the old cluster, comma-separated; the first that answers counts
    #[arg(
        long,
        value_name = "URLS",
        conflicts_with = "file",
        required_unless_present = "file"
    )]
    pub endpoints: Option<String>,
    /// File with the answer of etcd v2 to GET /v2/keys/_coreos.com/fleet/?recursive=true
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Key prefix of the old cluster
    #[arg(long, value_name = "PREFIX", default_value = "/_coreos.com/fleet/")]
    pub prefix: String,
    /// Show what would change and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
}
