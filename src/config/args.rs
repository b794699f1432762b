//! The command line.
#![allow(
    clippy::doc_markdown,
    reason = "these comments are the text of --help, where backticks would be noise"
)]

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use humantime_serde::re::humantime::parse_duration;

use super::scope::{
    DevScope, HealthcheckScope, ImportScope, MigrateScope, OpenapiScope, ScopedArgs,
};
use super::{DevTokenArgs, FleetAdapterCommand, ImportOptions, SettingsArgs};
use hyperfleet_server_kit::settings::{CheckOptions, OpenapiOptions, OutputFormat};

/// Control plane for fleets of clusters.
///
/// Clients declare clusters and nodepools over REST; adapters report what they achieved; the
/// service aggregates the reports into conditions and runs the delete lifecycle. State is kept in
/// PostgreSQL.
///
/// Start with `hyperfleet-api dev`: it needs nothing but PostgreSQL's programs on this machine.
#[derive(Debug, Parser)]
#[command(name = "hyperfleet-api", version = env!("CARGO_PKG_VERSION"), max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API from an existing, migrated database
    ///
    /// Does not change the schema: until `hyperfleet-api migrate` has, it says that it is not ready.
    /// Ends at SIGTERM or Ctrl-C once requests under way are answered; a second signal ends it at
    /// once.
    Serve(SettingsArgs),
    /// Bring the database's schema up to date, then exit
    ///
    /// Takes a lock: two that run at once do not disturb each other. A schema that is newer than
    /// this program, as after a step back to an older version, is left as it is.
    Migrate(Box<MigrateArgs>),
    /// Import the database of the older service, or what has changed there since the last import
    ///
    /// Reads that database in one transaction that cannot write. Ctrl-C ends it after the current
    /// batch; the same command goes on. Ends with 0 if everything is imported, with 3 if rows were
    /// refused, with 4 if the databases differ afterwards, with 130 if it was stopped. See
    /// docs/guides/moving-from-the-go-api.md.
    Import(Box<ImportArgs>),
    /// Try the service on this machine: private PostgreSQL, schema, API, no authentication unless asked for
    ///
    /// Starts a PostgreSQL of its own in a folder, on a Unix socket only, unless the settings name
    /// a database. Data is kept between runs. Ctrl-C stops everything.
    Dev(DevArgs),
    /// Ask the instance on this machine whether it is healthy, for containers
    ///
    /// Sends one request to the health listener, whose address is read from the same settings as
    /// `serve` reads: from the file and the environment, or give the same --health flags. Exits with
    /// 0 if the instance answers that all is well, otherwise with 1 and the reason on standard error.
    ///
    /// Without --ready it asks /healthz: does the process answer? Use that where an unhealthy
    /// container is restarted. With --ready it asks /readyz: does it serve requests? That also
    /// needs the database and its schema.
    Healthcheck(Box<HealthcheckArgs>),
    /// Run the fleet adapter, or try and steer it
    ///
    /// The adapter keeps systemd units in fleet for resources, and reports what became of them. The
    /// program does the same when it is called hyperfleet-fleet-adapter.
    #[command(subcommand, arg_required_else_help = true)]
    FleetAdapter(FleetAdapterCommand),
    /// Look at the settings
    #[command(subcommand, arg_required_else_help = true)]
    Config(ConfigCommand),
    /// Print the OpenAPI document of the configured kinds
    ///
    /// The one that is served at /api/hyperfleet/v1/openapi: for generators of clients. Needs no
    /// database.
    Openapi(OpenapiArgs),
    /// Print what makes a shell complete commands and flags
    ///
    /// For instance: source <(hyperfleet-api completion bash)
    Completion {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print a token for trying the service on this machine
    ///
    /// Signs it with a key pair that it makes and keeps in a folder. A service whose settings name
    /// the issuer and the folder's jwks.json takes it; see examples/auth.yaml.
    DevToken(DevTokenArgs),
    /// Print the version, the commit and the build time
    Version(VersionArgs),
}

/// What to do with the settings.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Check the settings and print each with its value and where that comes from
    ///
    /// Reads what `serve` would read, checks what `serve` would check before it looks for the
    /// database, and leaves secrets out. Fails if anything is wrong.
    Check(CheckArgs),
    /// Print what can be set, as Markdown
    Reference,
}

/// Options of `version`.
#[derive(Debug, clap::Args)]
pub struct VersionArgs {
    /// How it is written
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
}

/// Options of `config check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// What is printed.
    #[command(flatten)]
    pub options: CheckOptions,
    /// The settings.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

/// Options of `dev`.
#[derive(Debug, clap::Args)]
pub struct DevArgs {
    /// Folder for the private PostgreSQL and its data: a new or empty one, or that of an earlier run
    /// [default: .dev/postgres]
    #[arg(long, value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// The settings.
    #[command(flatten)]
    pub settings: ScopedArgs<DevScope>,
}

/// Options of `migrate`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct MigrateArgs {
    /// What to do instead.
    #[command(subcommand)]
    pub command: Option<MigrateCommand>,
    /// The settings.
    #[command(flatten)]
    pub settings: ScopedArgs<MigrateScope>,
}

/// What `migrate` can do instead.
#[derive(Debug, Subcommand)]
pub enum MigrateCommand {
    /// Print which migrations the database has, and which it lacks
    ///
    /// Changes nothing. Ends with 0 if it has all that this program needs, with 3 if it lacks some,
    /// with 1 if it cannot be asked: at once, or with --wait after the retries of `migrate`.
    Status(StatusArgs),
}

/// Options of `migrate status`.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// How it is written
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
    /// Wait for a database that cannot be reached, as database.pool.conn_retry_… say
    #[arg(long)]
    pub wait: bool,
    /// The settings.
    #[command(flatten)]
    pub settings: ScopedArgs<MigrateScope>,
}

/// Options of `healthcheck`.
#[derive(Debug, clap::Args)]
pub struct HealthcheckArgs {
    /// Ask whether the instance serves requests, not only whether its process answers
    #[arg(long)]
    pub ready: bool,
    /// How long the answer may take
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    pub timeout: Duration,
    /// The settings, of which those of the health listener count alone.
    #[command(flatten)]
    pub settings: ScopedArgs<HealthcheckScope>,
}

/// Options of `import`.
#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// What it does.
    #[command(flatten)]
    pub options: ImportOptions,
    /// How the report is written; with json there is no progress on standard error
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
    /// The settings.
    #[command(flatten)]
    pub settings: ScopedArgs<ImportScope>,
}

/// Options of `openapi`.
#[derive(Debug, clap::Args)]
pub struct OpenapiArgs {
    #[command(flatten)]
    pub options: OpenapiOptions,
    /// Print the document of fleet's API instead, which has no kinds
    #[arg(long)]
    pub fleet: bool,
    /// The settings, of which the kinds count alone.
    #[command(flatten)]
    pub settings: ScopedArgs<OpenapiScope>,
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
