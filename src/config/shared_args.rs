//! Arguments of several commands.
#![allow(
    clippy::doc_markdown,
    reason = "these comments are the text of --help, where backticks would be noise"
)]

use std::fmt;
use std::path::PathBuf;

use clap::{Arg, ArgMatches};

use super::catalogue::TABLE;
use hyperfleet_server_kit::settings::{FlagValues, flag_values, flags};

/// Settings from flags, which the table defines. Unset ones leave the environment, the file or the default.
#[derive(Clone, Default)]
pub struct SettingsArgs {
    /// The settings file, if one was named.
    pub config: Option<PathBuf>,
    pub(super) flag_values: FlagValues,
}

/// Names the flags without their values, because some are secret.
impl fmt::Debug for SettingsArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags: Vec<_> = self
            .flag_values
            .iter()
            .filter_map(|(s, _)| s.flag)
            .collect();
        f.debug_struct("SettingsArgs")
            .field("config", &self.config)
            .field("flags", &flags)
            .finish()
    }
}

impl clap::Args for SettingsArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        let config = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(clap::value_parser!(PathBuf))
            .help("YAML file with settings [env: HYPERFLEET_CONFIG] [default: /etc/hyperfleet/config.yaml; if that does not exist, ./configs/config.yaml]");
        command.arg(config).args(flags(&TABLE, heading))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for SettingsArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self {
            config: matches.get_one::<PathBuf>("config").cloned(),
            flag_values: flag_values(&TABLE, matches),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Heading of a section's flags.
fn heading(section: &str) -> &'static str {
    match section {
        "server" => "Server",
        "database" => "Database",
        "logging" => "Log",
        "metrics" => "Metrics",
        "health" => "Health and shutdown",
        _ => "More",
    }
}
