//! Spellings of the older fleetctl that the definitions for clap lack.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgAction, Command};

/// Commands of the older fleetctl: a prefix that was unique among them keeps its meaning.
const OLDER: [&str; 18] = [
    "cat",
    "destroy",
    "fd-forward",
    "help",
    "journal",
    "list-machines",
    "list-unit-files",
    "list-units",
    "load",
    "restart",
    "ssh",
    "start",
    "status",
    "stop",
    "submit",
    "unload",
    "verify",
    "version",
];

/// Adds prefixes of older commands that newer commands share. Empty variables count as absent.
pub(super) fn with_older_spellings(command: Command) -> Command {
    let command = without_empty_variables(command);
    let names = command
        .get_subcommands()
        .map(|command| command.get_name().to_owned());
    let prefixes = older_prefixes(&names.collect::<Vec<_>>());
    command.mut_subcommands(|command| {
        let own = prefixes
            .iter()
            .filter(|(_, name)| *name == command.get_name());
        let own: Vec<&'static str> = own.map(|(prefix, _)| *prefix).collect();
        command.aliases(own)
    })
}

fn without_empty_variables(command: Command) -> Command {
    command.mut_args(|arg| {
        let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
        if arg.get_env().is_some_and(is_empty) {
            return arg.env(None::<&str>);
        }
        arg.hide_env_values(true)
    })
}

/// Prefixes of older commands that are not unique among all commands, each with its command.
fn older_prefixes(names: &[String]) -> Vec<(&'static str, &'static str)> {
    let count = |prefix: &str| OLDER.iter().filter(|name| name.starts_with(prefix)).count();
    let is_shared = |prefix: &str| names.iter().filter(|n| n.starts_with(prefix)).count() > 1;
    let mut prefixes = Vec::new();
    for name in OLDER
        .into_iter()
        .filter(|name| names.iter().any(|n| n == name))
    {
        for end in 1..name.len() {
            let prefix = &name[..end];
            if count(prefix) == 1 && is_shared(prefix) {
                prefixes.push((prefix, name));
            }
        }
    }
    prefixes
}

/// The arguments with `--flag=true` as `--flag`, and without `--flag=false`: in the older fleetctl all switches
/// accepted values. Arguments after `--` stay unchanged.
pub(super) fn without_switch_values(
    command: &Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Vec<OsString> {
    let all = command
        .get_subcommands()
        .chain([command])
        .flat_map(Command::get_arguments);
    let is_switch = |arg: &&Arg| matches!(arg.get_action(), ArgAction::SetTrue);
    let names = all.filter(is_switch).flat_map(|arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        aliases.into_iter().chain(arg.get_long()).map(str::to_owned)
    });
    let names: BTreeSet<String> = names.collect();
    let mut is_behind = false;
    let mut kept = Vec::new();
    for argument in arguments {
        is_behind |= argument == "--";
        let text = argument.to_str().and_then(|text| text.strip_prefix("--"));
        let switch = text.and_then(|text| text.split_once('='));
        let switch = switch.filter(|(name, _)| !is_behind && names.contains(*name));
        match switch.and_then(|(name, value)| Some((name, boolean(value)?))) {
            Some((name, true)) => kept.push(format!("--{name}").into()),
            Some((_, false)) => {}
            None => kept.push(argument),
        }
    }
    kept
}

/// A boolean in the notations of the older flags.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_of_older_commands_keep_their_meaning() {
        let definition = super::super::definition();
        for (prefix, name) in [
            ("d", "destroy"),
            ("c", "cat"),
            ("j", "journal"),
            ("re", "restart"),
            ("u", "unload"),
            ("list-m", "list-machines"),
        ] {
            let found = definition
                .clone()
                .try_get_matches_from(["fleetctl", prefix]);
            let found = found.unwrap_or_else(|error| panic!("{prefix}: {error}"));
            assert_eq!(found.subcommand_name(), Some(name), "{prefix}");
        }
        for ambiguous in ["v", "st", "list-unit"] {
            let refused = definition
                .clone()
                .try_get_matches_from(["fleetctl", ambiguous]);
            assert_eq!(refused.unwrap_err().exit_code(), 2, "{ambiguous}");
        }
    }

    #[test]
    fn switches_may_have_values() {
        let definition = super::super::definition();
        let kept = |arguments: &[&str]| {
            let arguments = arguments.iter().map(OsString::from);
            let kept = without_switch_values(&definition, arguments);
            kept.into_iter()
                .map(|a| a.into_string().unwrap())
                .collect::<Vec<_>>()
        };
        for (given, expected) in [
            (
                &["start", "--no-block=true", "a"][..],
                &["start", "--no-block", "a"][..],
            ),
            (&["start", "--replace=0", "a"], &["start", "a"]),
            (
                &["--debug=T", "list-units", "--full=F"],
                &["--debug", "list-units"],
            ),
            (
                &["--full=maybe", "--endpoint=true"],
                &["--full=maybe", "--endpoint=true"],
            ),
            (
                &["--strict-host-key-checking=false"],
                &["--strict-host-key-checking=false"],
            ),
            (
                &["ssh", "m", "--", "--full=true"],
                &["ssh", "m", "--", "--full=true"],
            ),
        ] {
            assert_eq!(kept(given), expected);
        }
    }
}
