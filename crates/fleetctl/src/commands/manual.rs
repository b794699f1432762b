//! Completions, the manual page and the reference page, generated from the definition of the command line.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, Command};
use clap_complete::Shell;

use crate::cli;
use crate::output;

pub(super) fn completion(shell: Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::definition(), "fleetctl", &mut script);
    output::print(&String::from_utf8(script)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints one page for fleetctl and all its commands.
pub(super) fn man() -> anyhow::Result<ExitCode> {
    let mut definition = cli::definition();
    definition.build();
    let page = clap_mangen::Man::new(definition.clone());
    let mut roff = Vec::new();
    page.render_title(&mut roff)?;
    page.render_name_section(&mut roff)?;
    page.render_synopsis_section(&mut roff)?;
    page.render_description_section(&mut roff)?;
    page.render_options_section(&mut roff)?;
    let mut roff = String::from_utf8(roff)?;
    roff.push_str(".SH COMMANDS\n");
    for command in shown_commands(&definition) {
        let usage = usage(command);
        let about = about(command);
        let _ = writeln!(
            roff,
            ".TP\n\\fB{}\\fR\n{}",
            escaped(&usage),
            escaped(&about)
        );
        for arg in own_flags(command) {
            let help = escaped(&help(arg));
            let _ = writeln!(
                roff,
                ".RS\n.TP\n\\fB{}\\fR\n{help}\n.RE",
                escaped(&flag(arg))
            );
        }
    }
    output::print(&roff)?;
    Ok(ExitCode::SUCCESS)
}

/// Escapes a text for roff.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('-', "\\-");
    let lines = text
        .lines()
        .map(|line| match line.strip_prefix(['.', '\'']) {
            Some(_) => format!("\\&{line}"),
            None => line.to_owned(),
        });
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn reference() -> anyhow::Result<ExitCode> {
    output::print(&markdown())?;
    Ok(ExitCode::SUCCESS)
}

fn markdown() -> String {
    let mut definition = cli::definition();
    definition.build();
    let mut page = String::from("# fleetctl\n\n");
    page.push_str("<!-- Made by `make fleetctl-reference` from the definitions of the command line: do not edit. -->\n\n");
    let _ = writeln!(
        page,
        "{}\n\n```text\n{}\n```\n",
        about(&definition),
        usage(&definition)
    );
    page.push_str("| command | does |\n| --- | --- |\n");
    for command in shown_commands(&definition) {
        let name = command.get_name();
        let does = command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default();
        let _ = writeln!(page, "| [`{name}`](#{name}) | {} |", cell(&does));
    }
    page.push_str("\n## Global flags\n\n");
    flags(
        &mut page,
        definition.get_arguments().filter(|arg| !arg.is_hide_set()),
    );
    for command in shown_commands(&definition) {
        let _ = writeln!(
            page,
            "\n## {}\n\n{}\n\n```text\n{}\n```",
            command.get_name(),
            about(command),
            usage(command)
        );
        let arguments: Vec<_> = command.get_positionals().collect();
        let own: Vec<_> = arguments.into_iter().chain(own_flags(command)).collect();
        if !own.is_empty() {
            page.push('\n');
            flags(&mut page, own.into_iter());
        }
    }
    page
}

fn shown_commands(definition: &Command) -> impl Iterator<Item = &Command> {
    let commands = definition.get_subcommands();
    commands.filter(|command| !command.is_hide_set() && command.get_name() != "help")
}

fn usage(command: &Command) -> String {
    let usage = command.clone().render_usage().to_string();
    usage.trim_start_matches("Usage: ").to_owned()
}

/// The long description, if there is one.
fn about(command: &Command) -> String {
    let about = command.get_long_about().or_else(|| command.get_about());
    about.map(ToString::to_string).unwrap_or_default()
}

/// Flags of a command beside the global ones and `--help`.
fn own_flags(command: &Command) -> impl Iterator<Item = &Arg> {
    let flags = command.get_arguments();
    flags.filter(|arg| {
        let is_own = !arg.is_hide_set() && !arg.is_global_set();
        is_own && !arg.is_positional() && !matches!(arg.get_action(), ArgAction::Help)
    })
}

fn flags<'a>(page: &mut String, args: impl Iterator<Item = &'a Arg>) {
    page.push_str("| flag | meaning | default | variable |\n| --- | --- | --- | --- |\n");
    for arg in args {
        let defaults: Vec<_> = arg
            .get_default_values()
            .iter()
            .map(|v| v.to_string_lossy())
            .collect();
        let default = if matches!(arg.get_action(), ArgAction::SetTrue) || defaults.is_empty() {
            String::new()
        } else {
            format!("`{}`", defaults.join(","))
        };
        let variable = arg
            .get_env()
            .map(|name| format!("`{}`", name.to_string_lossy()));
        let _ = writeln!(
            page,
            "| `{}` | {} | {default} | {} |",
            cell(&flag(arg)),
            cell(&help(arg)),
            variable.unwrap_or_default()
        );
    }
}

fn help(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values = arg.get_possible_values();
    let names: Vec<_> = values.iter().map(PossibleValue::get_name).collect();
    if names.is_empty() || arg.is_hide_possible_values_set() {
        return help;
    }
    format!("{help}: {}", names.join(", "))
}

fn flag(arg: &Arg) -> String {
    let value = arg.get_value_names().map(|names| names.join(" "));
    let Some(long) = arg.get_long() else {
        return value.unwrap_or_default();
    };
    let short = arg
        .get_short()
        .map(|short| format!("-{short}, "))
        .unwrap_or_default();
    let is_switch = matches!(arg.get_action(), ArgAction::Help | ArgAction::SetTrue);
    match value.filter(|_| !is_switch) {
        Some(value) => format!("{short}--{long} {value}"),
        None => format!("{short}--{long}"),
    }
}

/// Escapes a text for a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/fleetctl.md"
    );

    #[test]
    fn the_committed_reference_is_that_of_the_command_line() {
        let committed = std::fs::read_to_string(PAGE).unwrap();
        assert!(
            committed == markdown(),
            "docs/reference/fleetctl.md is out of date: make fleetctl-reference"
        );
    }

    #[test]
    fn switches_of_commands_are_in_the_reference_too() {
        let page = markdown();
        let section = page
            .split("\n## ")
            .find(|section| section.starts_with("list-units\n"));
        let section = section.unwrap();
        for flag in ["-w, --watch", "--fields FIELDS", "-l, --full"] {
            assert!(
                section.contains(&format!("| `{flag}` |")),
                "{flag}: {section}"
            );
        }
        assert!(!section.contains("--help"), "{section}");
    }

    #[test]
    fn every_command_and_flag_has_a_description() {
        let mut definition = cli::definition();
        definition.build();
        for command in shown_commands(&definition) {
            assert!(command.get_about().is_some(), "{}", command.get_name());
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                assert!(
                    arg.get_help().is_some(),
                    "{} {}",
                    command.get_name(),
                    arg.get_id()
                );
            }
        }
    }
}
