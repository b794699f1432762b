//! What command lines share: flags made of a table, and forms of output.

use clap::{Arg, ArgMatches};

use super::setting::{Setting, SettingKind};
use super::table::SettingTable;

/// How the result of a command is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OutputFormat {
    /// For people.
    #[value(alias = "table")]
    Text,
    /// For programs.
    Json,
}

/// What `config check` prints.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct CheckOptions {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub output: OutputFormat,
    /// Print only the settings that differ from their defaults
    #[arg(long)]
    pub changed: bool,
}

/// What `openapi` prints.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct OpenapiOptions {
    /// Output format
    #[arg(
        short,
        long,
        alias = "format",
        value_name = "FORMAT",
        default_value = "yaml"
    )]
    pub output: OpenapiFormat,
}

/// How the OpenAPI document is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OpenapiFormat {
    /// For people.
    Yaml,
    /// For programs.
    Json,
}

/// Each flag of a command line: its setting and its value.
pub type FlagValues = Vec<(&'static Setting, String)>;

/// The flags of a table, below the heading of their section. Those without effect are hidden.
pub fn flags(
    table: &'static SettingTable,
    heading: fn(&str) -> &'static str,
) -> impl Iterator<Item = Arg> {
    table.settings.iter().filter_map(move |setting| {
        let arg = Arg::new(setting.key)
            .long(setting.flag?)
            .help(flag_help(table, setting, setting.default))
            .help_heading(heading(setting.section()))
            .hide(!setting.is_used());
        let arg = match setting.kind {
            SettingKind::Bool => arg
                .value_name("BOOL")
                .num_args(0..=1)
                .default_missing_value("true"),
            SettingKind::Number => arg.value_name("NUMBER"),
            SettingKind::Duration => arg.value_name("DURATION"),
            SettingKind::File => arg.value_name("FILE"),
            SettingKind::List => arg.value_name("TEXT,…"),
            SettingKind::Choice(words) => arg.value_name("WORD").value_parser(words.to_vec()),
            _ => arg.value_name("TEXT"),
        };
        Some(match setting.short_flag {
            Some(letter) => arg.short(letter),
            None => arg,
        })
    })
}

/// The help of a setting's flag, with this default.
pub fn flag_help(table: &SettingTable, setting: &Setting, default: &str) -> String {
    let variable = table.variable(setting).unwrap_or_default();
    let default = match default {
        "" => String::new(),
        default => format!(" [default: {default}]"),
    };
    format!("{} [env: {variable}]{default}", setting.help)
}

/// The flags of a table that a command line has.
pub fn flag_values(table: &'static SettingTable, matches: &ArgMatches) -> FlagValues {
    let flags = table.settings.iter().filter(|s| s.flag.is_some());
    let values = flags.filter_map(|setting| {
        let text = matches.get_one::<String>(setting.key)?;
        Some((setting, text.clone()))
    });
    values.collect()
}
