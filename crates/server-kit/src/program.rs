//! The identity of this program, and functions for its start and end.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;

use crate::settings::OutputFormat;

/// Constants of the build. Only programs set it: a library with the commit would be rebuilt with each one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Build {
    /// Label of its log lines and metrics.
    pub component: &'static str,
    pub version: &'static str,
    pub commit: &'static str,
    pub time: &'static str,
    /// The compiler and its version.
    pub compiler: &'static str,
}

/// The name in the command line.
pub fn name() -> String {
    let name = std::env::args_os().next();
    let name = name.as_deref().and_then(|name| Path::new(name).file_name());
    name.map_or_else(
        || "hyperfleet".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Runs a command, and does not wait for threads that it leaves behind: a lookup of a host name occupies one
/// for as long as the resolver takes, while signals are no longer handled.
pub fn run<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let result = runtime.block_on(command);
    runtime.shutdown_background();
    result
}

/// Prints to standard output. A closed pipe is no error.
pub fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Prints a line to standard error. A closed pipe is no error: `eprintln!` would panic, and the exit code would
/// report a defect.
pub fn print_to_stderr(line: &str) {
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

/// Prints the version of this program: for people as `text`.
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
