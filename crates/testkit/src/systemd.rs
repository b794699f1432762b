//! A private systemd of a user, for tests of agents. The machine's own is not touched.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use std::time::{Duration, Instant};

use rustix::process::Signal;
use tempfile::TempDir;

use super::{PATIENCE, RunningProgram, until};

/// Exit code of `scripts/private-systemd` where it cannot run.
const CANNOT_RUN: i32 = 3;

/// A systemd of the user `nobody`. Dropped, it ends with everything that it runs.
pub struct PrivateSystemd {
    program: RunningProgram,
    folder: TempDir,
}

impl PrivateSystemd {
    /// Starts one. `None` if that is impossible here: the test is skipped then, with a message, unless
    /// `SYSTEMD_REQUIRED` is set.
    pub async fn start() -> Option<Self> {
        let folder = tempfile::Builder::new()
            .prefix("hyperfleet-systemd-")
            .tempdir()
            .unwrap();
        let path = folder.path().display().to_string();
        let mut program = private_systemd(&["user", &path]);
        let bus = folder.path().join("run/bus");
        Ended::or(&mut program, |_| bus.exists())
            .await
            .then_some(())?;
        let systemd = Self { program, folder };
        until("systemd answers", async || {
            systemd.systemctl(&["is-system-running"]).status.code() != Some(1)
                || systemd.systemctl(&["list-units"]).status.success()
        })
        .await;
        Some(systemd)
    }

    /// Writes a file that its user may read.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.home().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A folder that its user may read and write.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// A program as its user would start it. The program need not be readable for the user.
    pub fn command(&self, program: &Path) -> Command {
        let copy = self.folder.path().join(program.file_name().unwrap());
        if !copy.exists() {
            hand_over(program, &copy);
        }
        self.user_command(&copy)
    }

    fn user_command(&self, program: &Path) -> Command {
        let run = self.folder.path().join("run");
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", "nobody", "--regid", "nogroup", "--clear-groups"])
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program)
            .env_clear()
            .current_dir("/")
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.home())
            .env(
                "DBUS_SESSION_BUS_ADDRESS",
                format!("unix:path={}/bus", run.display()),
            )
            .env("XDG_RUNTIME_DIR", run);
        command
    }

    /// The output of `systemctl --user`.
    pub fn systemctl(&self, arguments: &[&str]) -> Output {
        let mut command = self.user_command(Path::new("systemctl"));
        command.arg("--user").args(arguments).output().unwrap()
    }

    /// A property of a unit, from systemd itself.
    pub fn property(&self, unit: &str, name: &str) -> String {
        let output = self.systemctl(&["show", "--value", "--property", name, unit]);
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

impl Drop for PrivateSystemd {
    fn drop(&mut self) {
        Ended::wait(&mut self.program);
    }
}

pub(super) fn private_systemd(arguments: &[&str]) -> RunningProgram {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/private-systemd");
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "TERM", "--", script])
        .args(arguments)
        .stdin(Stdio::null());
    RunningProgram::start(command)
}

/// Copies a program to a place where everybody can read it.
pub(super) fn hand_over(program: &Path, copy: &Path) {
    if std::fs::hard_link(program, copy).is_err() {
        std::fs::copy(program, copy).unwrap();
    }
    std::fs::set_permissions(copy, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The exit of `scripts/private-systemd`.
pub(super) struct Ended;

impl Ended {
    /// Waits for a condition. False if the script ends because it cannot run here; any other end fails.
    pub(super) async fn or(
        program: &mut RunningProgram,
        mut is_so: impl FnMut(&RunningProgram) -> bool,
    ) -> bool {
        let mut status = None;
        until("systemd is there", async || {
            status = program.status();
            status.is_some() || is_so(program)
        })
        .await;
        let Some(status) = status else {
            return true;
        };
        let said = program.output();
        let is_required = std::env::var_os("SYSTEMD_REQUIRED").is_some();
        assert!(status.code() == Some(CANNOT_RUN) && !is_required, "{said}");
        println!("skipped: {said}");
        false
    }

    /// Waits for a line with this beginning; returns the rest of it. `None` if the script ends because it
    /// cannot run here.
    pub(super) async fn or_line(program: &mut RunningProgram, words: &str) -> Option<String> {
        let find = |said: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(words))?;
            Some(line.to_owned())
        };
        let said = Self::or(program, |program| find(&program.stdout()).is_some());
        said.await.then_some(())?;
        find(&program.stdout())
    }

    /// Ends it. It removes its files, which it could not if it were killed.
    pub(super) fn wait(program: &mut RunningProgram) {
        if program.status().is_none() {
            program.signal(Signal::TERM);
        }
        let since = Instant::now();
        while program.status().is_none() && since.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
