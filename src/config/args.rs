//! The command line.
#![allow(
    clippy::doc_markdown,
    reason = "these comments are the text of --help, where backticks would be noise"
)]

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use figment::Provider;
use figment::value::{Dict, Map, Value};
use figment::{Metadata, Profile};

use super::load::insert;

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
    /// Does not change the schema: run `hyperfleet-api migrate` first. Ends at SIGTERM or Ctrl-C
    /// once requests under way are answered; a second signal ends it at once.
    Serve(SettingsArgs),
    /// Bring the database's schema up to date, then exit
    ///
    /// Takes a lock: two that run at once do not disturb each other. A schema that is newer than
    /// this program, as after a step back to an older version, is left as it is.
    Migrate(SettingsArgs),
    /// Try the service on this machine: private PostgreSQL, schema, API, no authentication
    ///
    /// Starts a PostgreSQL of its own in a folder, on a Unix socket only, unless the settings name
    /// a database. Data is kept between runs. Ctrl-C stops everything.
    Dev(DevArgs),
    /// Print the OpenAPI document of the configured kinds
    ///
    /// The one that is served at /api/hyperfleet/v1/openapi: for generators of clients. Needs no
    /// database.
    Openapi(OpenapiArgs),
    /// Print the version, the commit and the build time
    Version,
}

/// Options of `dev`.
#[derive(Debug, clap::Args)]
pub struct DevArgs {
    /// Folder for the private PostgreSQL and its data: a new or empty one, or that of an earlier run
    #[arg(long, value_name = "FOLDER", default_value = ".dev/postgres")]
    pub data_dir: PathBuf,
    /// The settings.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

/// Options of `openapi`.
#[derive(Debug, clap::Args)]
pub struct OpenapiArgs {
    /// How it is written
    #[arg(long, value_name = "FORMAT", default_value = "yaml")]
    pub format: OpenapiFormat,
    /// The settings, of which the kinds count alone.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

/// How the OpenAPI document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OpenapiFormat {
    /// For people.
    Yaml,
    /// For programs.
    Json,
}

/// Settings that flags can give. Unset ones leave the environment, the file or the default.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct SettingsArgs {
    /// YAML file with settings [env: HYPERFLEET_CONFIG] [default: /etc/hyperfleet/config.yaml or
    /// ./configs/config.yaml, whichever is there]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Database to use, as postgres://user:password@host:port/name [env: DATABASE_URL]
    #[arg(long, value_name = "URL", help_heading = "Database")]
    pub database_url: Option<String>,
    /// Database host [env: HYPERFLEET_DATABASE_HOST] [default: localhost]
    #[arg(long, value_name = "HOST", help_heading = "Database")]
    pub db_host: Option<String>,
    /// Database port [env: HYPERFLEET_DATABASE_PORT] [default: 5432]
    #[arg(long, value_name = "PORT", help_heading = "Database")]
    pub db_port: Option<u16>,
    /// Database name [env: HYPERFLEET_DATABASE_NAME] [default: hyperfleet]
    #[arg(long, value_name = "NAME", help_heading = "Database")]
    pub db_name: Option<String>,
    /// Database user [env: HYPERFLEET_DATABASE_USERNAME] [default: hyperfleet]
    #[arg(long, value_name = "NAME", help_heading = "Database")]
    pub db_username: Option<String>,
    /// Database password; better given in the environment [env: HYPERFLEET_DATABASE_PASSWORD]
    #[arg(long, value_name = "TEXT", help_heading = "Database")]
    pub db_password: Option<String>,
    /// disable, require, verify-ca or verify-full [env: HYPERFLEET_DATABASE_SSL_MODE] [default:
    /// disable]
    #[arg(long, value_name = "MODE", help_heading = "Database")]
    pub db_ssl_mode: Option<String>,
    /// PEM file with the authorities to trust [env: HYPERFLEET_DATABASE_SSL_ROOT_CERT_FILE]
    #[arg(long, value_name = "FILE", help_heading = "Database")]
    pub db_root_cert_file: Option<PathBuf>,
    /// Most connections [env: HYPERFLEET_DATABASE_POOL_MAX_CONNECTIONS] [default: 16]
    #[arg(long, value_name = "COUNT", help_heading = "Database")]
    pub db_max_open_connections: Option<usize>,
    /// Address or name to listen on [env: HYPERFLEET_SERVER_HOST] [default: localhost]
    #[arg(long, value_name = "HOST", help_heading = "Server")]
    pub server_host: Option<String>,
    /// Port to listen on, 0 for a free one [env: HYPERFLEET_SERVER_PORT] [default: 8000]
    #[arg(long, value_name = "PORT", help_heading = "Server")]
    pub server_port: Option<u16>,
    /// Whether callers must present a token [env: HYPERFLEET_SERVER_JWT_ENABLED] [default: true]
    #[arg(long, value_name = "BOOL", help_heading = "Server", num_args = 0..=1)]
    #[arg(default_missing_value = "true")]
    pub server_jwt_enabled: Option<bool>,
    /// OpenAPI document with the schemas of specs [env: HYPERFLEET_SERVER_OPENAPI_SCHEMA_PATH]
    /// [default: none: any spec will do]
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub server_openapi_schema_path: Option<PathBuf>,
    /// What is logged [env: HYPERFLEET_LOGGING_LEVEL] [default: info]
    #[arg(short = 'l', long, value_name = "LEVEL", help_heading = "Log")]
    pub log_level: Option<String>,
    /// How it is written [env: HYPERFLEET_LOGGING_FORMAT] [default: json; dev: text]
    #[arg(short = 'f', long, value_name = "FORMAT", help_heading = "Log")]
    pub log_format: Option<String>,
}

impl SettingsArgs {
    /// Each flag that was given, with the setting it is for.
    fn given(&self) -> Vec<(&'static str, Value)> {
        let path = |path: &PathBuf| Value::from(path.to_string_lossy().into_owned());
        let text = |text: &String| Value::from(text.as_str());
        let all = [
            ("database.url", self.database_url.as_ref().map(text)),
            ("database.host", self.db_host.as_ref().map(text)),
            ("database.port", self.db_port.map(Value::from)),
            ("database.name", self.db_name.as_ref().map(text)),
            ("database.username", self.db_username.as_ref().map(text)),
            ("database.password", self.db_password.as_ref().map(text)),
            ("database.ssl.mode", self.db_ssl_mode.as_ref().map(text)),
            (
                "database.ssl.root_cert_file",
                self.db_root_cert_file.as_ref().map(path),
            ),
            (
                "database.pool.max_connections",
                self.db_max_open_connections.map(Value::from),
            ),
            ("server.host", self.server_host.as_ref().map(text)),
            ("server.port", self.server_port.map(Value::from)),
            (
                "server.jwt.enabled",
                self.server_jwt_enabled.map(Value::from),
            ),
            (
                "server.openapi_schema_path",
                self.server_openapi_schema_path.as_ref().map(path),
            ),
            ("logging.level", self.log_level.as_ref().map(text)),
            ("logging.format", self.log_format.as_ref().map(text)),
        ];
        let given = all.into_iter();
        given
            .filter_map(|(key, value)| Some((key, value?)))
            .collect()
    }
}

impl Provider for SettingsArgs {
    fn metadata(&self) -> Metadata {
        Metadata::named("flags")
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let mut root = Dict::new();
        for (key, value) in self.given() {
            insert(&mut root, key, value);
        }
        Ok(Map::from([(Profile::Default, root)]))
    }
}
