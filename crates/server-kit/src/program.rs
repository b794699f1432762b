//! Which program this is, and what every program does at its start and end.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;

use crate::settings::OutputFormat;

/// What a program knows of its own making. Programs alone set it: a library that did would be
/// rebuilt with each commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Build {
    /// What its log lines and series are labelled with.
    pub component: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The commit it was built from.
    pub commit: &'static str,
    /// When it was built.
    pub time: &'static str,
    /// The compiler and its version.
    pub compiler: &'static str,
}

/// The name that this program was started with.
pub fn name() -> String {
    let name = std::env::args_os().next();
    let name = name.as_deref().and_then(|name| Path::new(name).file_name());
    name.map_or_else(
        || "hyperfleet".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Runs a command to its end, and does not wait for threads it leaves behind: a name that does not
/// resolve holds one for as long as the system's resolver likes, while signals are no longer heard.
pub fn run<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let result = runtime.block_on(command);
    runtime.shutdown_background();
    result
}

/// Prints to standard output. That its reader has left is no error.
pub fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Prints a line to standard error. That its reader has left is no error: `eprintln!` would panic, and the exit code
/// would say that the program has a defect.
pub fn print_to_stderr(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Prints which program this is: for people by `text`.
pub fn print_version(build: &Build, format: OutputFormat, text: &str) {
    let Build {
        version,
        commit,
        time,
        ..
    } = build;
    let json = json!({"version": version, "commit": commit, "build_time": time});
    match format {
        OutputFormat::Text => print(text),
        OutputFormat::Json => print(&format!("{json:#}\n")),
    }
}

/// Prints a shell completion script.
pub fn print_completion(shell: clap_complete::Shell, mut command: clap::Command) {
    let (mut script, name) = (Vec::new(), command.get_name().to_owned());
    clap_complete::generate(shell, &mut command, name, &mut script);
    print(&String::from_utf8_lossy(&script));
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn what_hangs_when_all_is_done_is_not_waited_for() {
        let since = Instant::now();
        let done = run(async {
            let (begun, begins) = tokio::sync::oneshot::channel();
            tokio::task::spawn_blocking(move || {
                let _ = begun.send(());
                std::thread::sleep(Duration::from_mins(1));
            });
            begins.await.unwrap();
            Ok("done")
        });
        assert_eq!(done.unwrap(), "done");
        assert!(since.elapsed() < Duration::from_secs(30));
    }
}
