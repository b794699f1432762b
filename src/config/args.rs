//! Defines the command line.
#![allow(
    clippy::doc_markdown,
    reason = "these comments are the text of --help, where backticks would be noise"
)]

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use humantime_serde::re::humantime::parse_duration;

use super::{AuditCommand, DevTokenArgs, ImportOptions, SettingsArgs};
use hyperfleet_fleet_adapter::command::FleetAdapterCommand;
use hyperfleet_server_kit::settings::{CheckOptions, OpenapiOptions, OutputFormat};

/// Control plane for fleets of clusters.
///
/// Clients declare clusters and nodepools over REST; adapters report what they achieved; the
/// service aggregates the reports into conditions and runs the delete lifecycle. State is stored in
/// PostgreSQL.
///
/// Start with `hyperfleet-api dev`: it needs nothing but PostgreSQL's programs on this machine.
#[derive(Debug, Parser)]
#[command(name = "hyperfleet-api", version = env!("CARGO_PKG_VERSION"), max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API from an existing, migrated database
    ///
    /// Does not change the schema: it is not ready until `hyperfleet-api migrate` has.
    /// SIGTERM or Ctrl-C stops it gracefully; a second signal stops it immediately.
    Serve(SettingsArgs),
    /// Bring the database's schema up to date, then exit
    ///
    /// Takes a lock: a second migrate waits for the first. Does not change a schema that is newer
    /// than this program, as after a step back to an older version.
    Migrate(Box<MigrateArgs>),
    /// Import the database of the older service
    ///
    /// Reads the entire database in one read-only transaction, and writes what differs here. Run it
    /// again at any time. Ctrl-C stops after the current batch; the same command continues. Exit
    /// status: 0 everything is imported, 3 rows were refused, 4 the databases differ afterwards, 130 it
    /// was stopped. See docs/guides/moving-from-the-go-api.md.
    Import(Box<ImportArgs>),
    /// Verify and export the audit trail
    #[command(subcommand, arg_required_else_help = true)]
    Audit(AuditCommand),
    /// Try the service on this machine: private PostgreSQL, schema, API, no authentication unless asked for
    ///
    /// Starts a PostgreSQL of its own in a folder, on a Unix socket only, unless the settings name
    /// a database. Data persists between runs. Ctrl-C stops everything.
    ///
    /// A demo adapter stands in for the required adapters, so that resources become Reconciled. It
    /// needs callers without a token; otherwise start `hyperfleet-api demo-adapter` with one.
    Dev(DevArgs),
    /// Stand in for the required adapters of all kinds, to try the service without any
    ///
    /// Reports work in progress, then success, and finalizes what is deleted; it creates nothing.
    /// Never run it beside real adapters: resources would look ready that are not.
    ///
    /// A resource decides by its spec: {"demo": {"fail": true}} fails, {"demo": {"fail": "dns"}}
    /// fails for one adapter, {"demo": {"manual": true}} is not touched.
    DemoAdapter(Box<DemoAdapterArgs>),
    /// Check the health of the instance on this machine, for containers
    ///
    /// Sends one request to the health listener, whose address comes from the settings of `serve`:
    /// its file, its variables, or the same --health flags. Exit status: 0 if the instance is
    /// healthy, otherwise 1, with the reason on standard error.
    ///
    /// Asks /healthz: does the process answer? Use that where an unhealthy container is restarted.
    /// With --ready it asks /readyz: does the instance serve requests? That also needs the database
    /// and its schema.
    Healthcheck(Box<HealthcheckArgs>),
    /// Run and control the fleet adapter
    ///
    /// The adapter keeps systemd units in fleet for resources, and reports their state. Under the
    /// name hyperfleet-fleet-adapter the program is this command.
    #[command(subcommand, arg_required_else_help = true)]
    FleetAdapter(FleetAdapterCommand<SettingsArgs>),
    /// Check, list and explain settings
    #[command(subcommand, arg_required_else_help = true)]
    Config(ConfigCommand),
    /// Print the OpenAPI document of the configured kinds
    ///
    /// The same document as at /api/hyperfleet/v1/openapi, for generators of clients. Needs no
    /// database.
    Openapi(OpenapiArgs),
    /// Print a shell completion script
    ///
    /// For instance: source <(hyperfleet-api completion bash)
    Completion {
        /// Shell to print a script for
        shell: clap_complete::Shell,
    },
    /// Print a token for trying the service on this machine
    ///
    /// Signs it with a key pair that it makes and keeps in a folder. A service accepts it if its
    /// settings name the issuer and the folder's jwks.json; see examples/auth.yaml.
    DevToken(DevTokenArgs),
    /// Print the version, the commit and the build time
    Version(VersionArgs),
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the settings and print each with its value and source
    ///
    /// Reads and checks everything that `serve` does before it connects to the database, and hides
    /// secrets. Fails if anything is wrong.
    Check(CheckArgs),
    /// Print all settings, as Markdown
    Reference,
}

#[derive(Debug, clap::Args)]
pub struct VersionArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
}

#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    #[command(flatten)]
    pub options: CheckOptions,
    #[command(flatten)]
    pub settings: SettingsArgs,
}

#[derive(Debug, clap::Args)]
pub struct DevArgs {
    /// Folder for the private PostgreSQL and its data: a new or empty one, or the folder of an earlier run
    /// [default: .dev/postgres]
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// Leave reports to you, or to adapters that you start
    #[arg(long)]
    pub no_demo_adapter: bool,
    #[command(flatten)]
    pub settings: SettingsArgs,
}

#[derive(Debug, clap::Args)]
pub struct DemoAdapterArgs {
    /// URL of the API
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8000")]
    pub api_url: String,
    /// File with a token, which is read again before it expires
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Time from the first report on a change to the result
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    pub work_time: Duration,
    #[command(flatten)]
    pub settings: SettingsArgs,
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct MigrateArgs {
    #[command(subcommand)]
    pub command: Option<MigrateCommand>,
    #[command(flatten)]
    pub settings: SettingsArgs,
}

#[derive(Debug, Subcommand)]
pub enum MigrateCommand {
    /// Print which migrations the database has, and which it lacks
    ///
    /// Changes nothing. Exit status: 0 if the database has every migration of this program, 3 if it
    /// lacks some, 1 if it is unreachable: immediately, or with --wait after the retries of `migrate`.
    Status(StatusArgs),
}

#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
    /// Wait for an unreachable database, as long as database.pool.conn_retry_… say
    #[arg(long)]
    pub wait: bool,
    #[command(flatten)]
    pub settings: SettingsArgs,
}

#[derive(Debug, clap::Args)]
pub struct HealthcheckArgs {
    /// Check that the instance serves requests, not only that its process answers
    #[arg(long)]
    pub ready: bool,
    /// Timeout of the answer
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    pub timeout: Duration,
    #[command(flatten)]
    pub settings: SettingsArgs,
}

#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    #[command(flatten)]
    pub options: ImportOptions,
    /// Output format of the report; with json there is no progress on standard error
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
    #[command(flatten)]
    pub settings: SettingsArgs,
}

#[derive(Debug, clap::Args)]
pub struct OpenapiArgs {
    #[command(flatten)]
    pub options: OpenapiOptions,
    /// Print the document of fleet's API instead
    #[arg(long)]
    pub fleet: bool,
    /// Leave out dry runs, watches and headers of requests, for generators that accept only one success per operation
    #[arg(long, conflicts_with = "fleet")]
    pub plain: bool,
    #[command(flatten)]
    pub settings: SettingsArgs,
}

#[cfg(test)]
mod tests {
    use hyperfleet_server_kit::settings::OpenapiFormat;

    use super::*;

    #[test]
    fn every_result_is_printed_as_o_says_and_older_spellings_are_accepted() {
        for line in [
            "config check -o json",
            "config check -o table",
            "config check --output text",
            "migrate status -o json",
            "import -o json",
            "audit verify -o json",
            "fleet-adapter render -o json file",
            "version -o json",
            "version",
        ] {
            let line = ["hyperfleet-api"].into_iter().chain(line.split(' '));
            Args::try_parse_from(line).unwrap();
        }
        for flag in ["-o", "--output", "--format"] {
            let args = Args::try_parse_from(["hyperfleet-api", "openapi", flag, "json"]).unwrap();
            let Command::Openapi(args) = args.command else {
                panic!("{args:?}")
            };
            assert_eq!(args.options.output, OpenapiFormat::Json, "{flag}");
        }
    }
}
