//! Flags, signals, output and exit status.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};

use crate::report::{CheckOutcome, Row, RunReport};
use crate::run::{run, selected};
use crate::subject::Target;

const DIFFERS: u8 = 1;
const COULD_NOT_RUN: u8 = 2;

/// Play the rules of the HyperFleet API against a server
///
/// The run makes clusters and node pools with names and labels of its own, and removes them at its end.
/// Exit status: 0 every rule holds, 1 a rule differs, 2 the run could not take place or was interrupted.
#[derive(Debug, Parser)]
#[command(name = "hyperfleet-conformance", version)]
struct Args {
    /// Scheme, host and port of the server
    #[arg(long, default_value = "http://127.0.0.1:8000", value_name = "URL")]
    base: String,
    /// Token of the caller
    #[arg(
        long,
        env = "HYPERFLEET_TOKEN",
        hide_env_values = true,
        conflicts_with = "token_file"
    )]
    token: Option<String>,
    /// File with the token of the caller
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Further header of every request, for instance a tenant's (repeatable)
    #[arg(long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Required adapters of clusters ("" for none)
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "validation,dns,pullsecret,hypershift",
        value_name = "NAMES"
    )]
    cluster_adapters: Vec<String>,
    /// Required adapters of node pools ("" for none)
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "validation,hypershift",
        value_name = "NAMES"
    )]
    nodepool_adapters: Vec<String>,
    /// Expect finalizing resources in lists (server setting `lists.include_deleted`)
    #[arg(long)]
    lists_include_deleted: bool,
    /// Play only this check or group, such as patch.same or search (repeatable)
    #[arg(long, value_name = "ID")]
    only: Vec<String>,
    /// List the checks and where their rules are written
    #[arg(long)]
    list: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Output {
    #[default]
    Table,
    Json,
}

pub fn main() -> ExitCode {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(conformance(args)),
        Err(error) => Err(error.to_string()),
    };
    ended.unwrap_or_else(|message| {
        print_to_stderr(&format!("error: {message}"));
        ExitCode::from(COULD_NOT_RUN)
    })
}

async fn conformance(args: Args) -> Result<ExitCode, String> {
    if args.list {
        let checks = selected(&args.only).map_err(|error| error.to_string())?;
        let rows = checks
            .iter()
            .map(|check| format!("{:<28} {} ({})\n", check.id, check.rule, check.source));
        print(&rows.collect::<String>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let (output, only) = (args.output, args.only.clone());
    let target = target(args)?;
    let interrupted = interruption().map_err(|error| error.to_string())?;
    let tell = |row: &Row| {
        if output == Output::Table {
            // A closed pipe doesn't prevent the cleanup.
            let _ = print(&format!("{row}\n"));
        }
    };
    let report = run(target, &only, interrupted, tell).await;
    let report = report.map_err(|error| error.to_string())?;
    let text = match output {
        Output::Table => report.summary(),
        Output::Json => serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?,
    };
    print(&format!("{text}\n"))?;
    Ok(status(&report))
}

fn target(args: Args) -> Result<Target, String> {
    let token = match args.token_file {
        Some(path) => {
            let read = std::fs::read_to_string(&path);
            let text = read.map_err(|error| format!("--token-file {}: {error}", path.display()))?;
            Some(text.trim().to_owned())
        }
        None => args.token,
    };
    let names = |names: Vec<String>| names.into_iter().filter(|name| !name.is_empty()).collect();
    Ok(Target {
        base: args.base,
        token,
        headers: args.headers,
        cluster_adapters: names(args.cluster_adapters),
        nodepool_adapters: names(args.nodepool_adapters),
        lists_include_deleted: args.lists_include_deleted,
    })
}

/// Ends with the first SIGINT or SIGTERM. The second one ends the program immediately.
fn interruption() -> io::Result<impl Future<Output = ()>> {
    let (mut interrupt, mut terminate) = (
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    );
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        print_to_stderr(
            "interrupted: removing what this run has made (a second signal leaves it there)",
        );
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            std::process::exit(COULD_NOT_RUN.into());
        });
    })
}

fn print(text: &str) -> Result<(), String> {
    let mut output = io::stdout().lock();
    let written = output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush());
    written.map_err(|error| error.to_string())
}

/// Prints a line to standard error. A closed pipe changes neither the exit status nor the cleanup.
fn print_to_stderr(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}

fn status(report: &RunReport) -> ExitCode {
    if report.interrupted {
        return ExitCode::from(COULD_NOT_RUN);
    }
    if report.count(CheckOutcome::Differs) > 0 || !report.left_behind.is_empty() {
        return ExitCode::from(DIFFERS);
    }
    ExitCode::SUCCESS
}
