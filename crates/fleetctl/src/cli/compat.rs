//! Spellings of the older fleetctl that the definitions for clap lack.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgAction, Command};

/// Commands of the older fleetctl: a prefix that was unique among them keeps its meaning.
const OLDER: [&str; 16] = [
    "cat",
    "destroy",
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

/// The arguments as clap expects them: long flags with two dashes, and switches without values. Arguments after
/// `--` stay unchanged.
///
/// The older fleetctl accepted `--flag=true` for all switches, and until version 0.11 `-flag` for `--flag`. A short
/// flag of today keeps its meaning: none is as long as the name of a long flag.
pub(super) fn with_newer_spellings(
    command: &Command,
    arguments: impl IntoIterator<Item = OsString>,
) -> Vec<OsString> {
    let all = command
        .get_subcommands()
        .chain([command])
        .flat_map(Command::get_arguments);
    let all: Vec<&Arg> = all.collect();
    let flags = names(all.iter().copied());
    let is_switch = |arg: &&Arg| matches!(arg.get_action(), ArgAction::SetTrue);
    let switches = names(all.iter().copied().filter(is_switch));
    let mut is_behind = false;
    let mut words = 0;
    let mut kept: Vec<OsString> = Vec::new();
    for argument in arguments {
        // What follows the unit or machine of `ssh` is the command to run there.
        let is_word = argument.to_str().is_none_or(|text| !text.starts_with('-'));
        let is_ssh = kept.iter().skip(1).any(|word| word == "ssh");
        is_behind |= argument == "--" || (is_ssh && words > 0);
        words += usize::from(is_ssh && is_word);
        let argument = match argument.to_str() {
            Some(text) if !is_behind && has_one_dash(text, &flags) => format!("-{text}").into(),
            _ => argument,
        };
        let text = argument.to_str().and_then(|text| text.strip_prefix("--"));
        let switch = text.and_then(|text| text.split_once('='));
        let switch = switch.filter(|(name, _)| !is_behind && switches.contains(*name));
        match switch.and_then(|(name, value)| Some((name, boolean(value)?))) {
            Some((name, true)) => kept.push(format!("--{name}").into()),
            Some((_, false)) => {}
            None => kept.push(argument),
        }
    }
    kept
}

/// The long names of arguments.
fn names<'a>(arguments: impl Iterator<Item = &'a Arg>) -> BTreeSet<String> {
    let names = arguments.flat_map(|arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        aliases.into_iter().chain(arg.get_long()).map(str::to_owned)
    });
    names.collect()
}

/// Whether an argument is a long flag with one dash: `-no-legend`, `-fields=unit`.
fn has_one_dash(argument: &str, flags: &BTreeSet<String>) -> bool {
    let Some(text) = argument.strip_prefix('-') else {
        return false;
    };
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    name.len() > 1 && flags.contains(name)
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
    fn the_command_behind_ssh_stays_as_it_is() {
        let definition = super::super::definition();
        let newer = |words: &str| {
            let words = words.split(' ').map(OsString::from);
            let words = with_newer_spellings(&definition, words);
            let words = words.iter().map(|word| word.to_str().unwrap());
            words.collect::<Vec<_>>().join(" ")
        };
        for (older, expected) in [
            (
                "fleetctl ssh m1 java -version",
                "fleetctl ssh m1 java -version",
            ),
            (
                "fleetctl ssh m1 x --debug=true",
                "fleetctl ssh m1 x --debug=true",
            ),
            (
                "fleetctl -debug=true ssh -machine m1 mvn -debug",
                "fleetctl --debug ssh --machine m1 mvn -debug",
            ),
            (
                "fleetctl list-units -no-legend",
                "fleetctl list-units --no-legend",
            ),
        ] {
            assert_eq!(newer(older), expected);
        }
    }

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
        for ambiguous in ["st", "list-unit"] {
            let refused = definition
                .clone()
                .try_get_matches_from(["fleetctl", ambiguous]);
            assert_eq!(refused.unwrap_err().exit_code(), 2, "{ambiguous}");
        }
    }

    #[test]
    fn prefixes_of_hidden_commands_are_those_of_others() {
        let definition = super::super::definition();
        for prefix in ["v", "ve", "ver", "vers"] {
            let found = definition
                .clone()
                .try_get_matches_from(["fleetctl", prefix]);
            let found = found.unwrap_or_else(|error| panic!("{prefix}: {error}"));
            assert_eq!(found.subcommand_name(), Some("version"), "{prefix}");
        }
    }

    #[test]
    fn no_short_flags_look_like_a_long_one() {
        let definition = super::super::definition();
        for command in definition.get_subcommands() {
            let shorts: Vec<char> = command
                .get_arguments()
                .filter_map(|arg| Some((arg.get_short()?, arg)))
                .filter(|(_, arg)| matches!(arg.get_action(), ArgAction::SetTrue))
                .map(|(short, _)| short)
                .collect();
            for name in names(command.get_arguments()) {
                let is_cluster = name.len() > 1 && name.chars().all(|c| shorts.contains(&c));
                assert!(!is_cluster, "{name}");
            }
        }
    }

    #[test]
    fn switches_may_have_values_and_long_flags_one_dash() {
        let definition = super::super::definition();
        let kept = |arguments: &[&str]| {
            let arguments = arguments.iter().map(OsString::from);
            let kept = with_newer_spellings(&definition, arguments);
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
                &["list-units", "-no-legend", "-fields=unit,machine", "-l"],
                &["list-units", "--no-legend", "--fields=unit,machine", "-l"],
            ),
            (
                &[
                    "-debug=true",
                    "-endpoint",
                    "http://h",
                    "list-machines",
                    "-full=0",
                ],
                &["--debug", "--endpoint", "http://h", "list-machines"],
            ),
            (
                &["journal", "-lines=5", "-f", "-ojson", "-output", "cat", "a"],
                &[
                    "journal",
                    "--lines=5",
                    "-f",
                    "-ojson",
                    "--output",
                    "cat",
                    "a",
                ],
            ),
            (
                &["ssh", "-A", "m", "--", "-full"],
                &["ssh", "-A", "m", "--", "-full"],
            ),
            (
                &["-strict-host-key-checking=false", "-h", "-x"],
                &["--strict-host-key-checking=false", "-h", "-x"],
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
