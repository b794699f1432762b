//! The program, and what it printed.

use std::path::Path;
use std::process::{Output, Stdio};

use tokio::process::Command;
use tokio::time::timeout;

use hyperfleet_testkit::PATIENCE;

/// A run of fleetctl that has ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: i32,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self {
            status: output.status.code().expect("it ends by itself"),
            output: text(output.stdout),
            errors: text(output.stderr),
        }
    }

    /// What it printed, if it succeeded.
    pub(crate) fn succeeded(self) -> String {
        assert_eq!(self.status, 0, "{self:?}");
        self.output
    }

    /// Whether it ended so, and printed exactly this.
    pub(crate) fn is(&self, status: i32, output: &str, errors: &str) {
        assert_eq!(
            (self.status, self.output.as_str(), self.errors.as_str()),
            (status, output, errors)
        );
    }
}

/// fleetctl with no variables of its own but these.
pub(crate) fn command(variables: &[(&str, &str)], arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetctl"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("FLEETCTL_") {
            command.env_remove(name);
        }
    }
    command.env_remove("NO_COLOR");
    command.envs(variables.iter().copied()).args(arguments);
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs fleetctl to its end.
pub(crate) async fn run(variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
    run_in(Path::new("."), variables, arguments).await
}

/// Runs fleetctl in a folder to its end.
pub(crate) async fn run_in(folder: &Path, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
    let output = command(variables, arguments).current_dir(folder).output();
    let output = timeout(PATIENCE, output).await.expect("it ends in time");
    Ran::of(output.unwrap())
}
