//! The real program, as a user starts it.

use std::ops::{Deref, DerefMut};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use hyperfleet_testkit::RunningProgram;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::until;
use crate::support::{TestApi, TestDatabase};

/// A running program, and what it reads.
pub(crate) struct Program {
    running: RunningProgram,
    /// What it reads, for as long as it runs.
    folder: Option<TempDir>,
}

/// Settings with which several can run at a time, and end at once.
pub(crate) const FREE_PORTS: &str = "{health: {port: 0, shutdown_delay: 0s}, metrics: {port: 0}}";

/// The program of this checkout.
pub(crate) const CURRENT: &str = env!("CARGO_BIN_EXE_hyperfleet-api");

impl Program {
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_with(args, &[])
    }

    /// `serve` with the listeners of health and metrics on free ports, which `settings` may say more
    /// to, in YAML.
    pub(crate) fn serve_with(database: &TestDatabase, settings: &str, args: &[&str]) -> Self {
        Self::serve_of(CURRENT.as_ref(), database, settings, args)
    }

    /// The same, of another release.
    pub(crate) fn serve_of(
        executable: &Path,
        database: &TestDatabase,
        settings: &str,
        args: &[&str],
    ) -> Self {
        let url = database.url();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.yaml");
        std::fs::write(&file, settings).unwrap();
        let file = file.to_str().unwrap();
        let mut all = vec!["serve", "--config", file, "--database-url", &url];
        all.extend(["--server-host", "127.0.0.1", "--server-jwt-enabled=false"]);
        if !args.contains(&"--server-port") {
            all.extend(["--server-port", "0"]);
        }
        all.extend(args);
        let mut program = Self::start_of(executable, &all, &[]);
        program.folder = Some(folder);
        program
    }

    /// Runs a command on a database to its end: the code that it ends with, and what it says.
    pub(crate) async fn run(database: &TestDatabase, args: &[&str]) -> (Option<i32>, String) {
        let mut program = Self::start(&[args, &["--database-url", &database.url()]].concat());
        let code = program.ended().await.code();
        (code, program.output())
    }

    /// With these variables besides.
    pub(crate) fn start_with(args: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::start_of(CURRENT.as_ref(), args, variables)
    }

    /// The program of another release.
    pub(crate) fn start_of(executable: &Path, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(executable);
        command
            .args(args)
            .env_remove("DATABASE_URL")
            .current_dir("/");
        for (name, _) in std::env::vars() {
            if name.starts_with("HYPERFLEET_") && name != "HYPERFLEET_PG_BINDIR" {
                command.env_remove(name);
            }
        }
        command.envs(variables.iter().copied());
        Self {
            running: RunningProgram::start(command),
            folder: None,
        }
    }

    pub(crate) fn serve(database: &TestDatabase) -> Self {
        Self::serve_with(database, FREE_PORTS, &[])
    }

    /// With its settings in flags and variables, and the listeners on free ports.
    pub(crate) fn serve_by_flags(
        database: &TestDatabase,
        more: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let url = database.url();
        let mut args = vec!["serve", "--database-url", &url, "--server-host"];
        args.extend(["127.0.0.1", "--server-port=0", "--server-jwt-enabled=false"]);
        args.extend(["--health-port=0", "--metrics-port=0"]);
        args.extend(more);
        Self::start_with(&args, variables)
    }

    pub(crate) fn dev(folder: &Folder) -> Self {
        Self::dev_with(folder, &["--server-port", "0"], &[])
    }

    /// `dev` with these flags and variables.
    pub(crate) fn dev_with(folder: &Folder, flags: &[&str], variables: &[(&str, &str)]) -> Self {
        let data = folder.data();
        let args = ["dev", "--data-dir", data.to_str().unwrap()];
        Self::start_with(&[&args, flags].concat(), variables)
    }

    /// The most memory that it has had so far, in KiB.
    pub(crate) fn memory_peak(&self) -> u64 {
        let file = format!("/proc/{}/status", self.id());
        let status = std::fs::read_to_string(file).unwrap();
        let (_, rest) = status.split_once("VmHWM:").unwrap();
        let number = rest.split_whitespace().next().unwrap();
        number.parse().unwrap()
    }

    /// What it has said, without the escapes of JSON, which errors of the start have, too.
    pub(crate) fn plain_output(&self) -> String {
        self.output().replace("\\\"", "\"").replace("\\\\", "\\")
    }

    /// Where it listens, by the name of the listener, as soon as it says so.
    pub(crate) async fn address(&mut self, listener: &str) -> String {
        let mark = format!("\"{listener}\":\"");
        let find = |said: &str| {
            let (_, rest) = said.split_once(&mark)?;
            Some(rest.split_once('"')?.0.to_owned())
        };
        self.until_found("it listens", find).await
    }

    /// Waits until it serves; a client of it.
    pub(crate) async fn serving(&mut self, database: TestDatabase) -> TestApi {
        let address = self.until_found("it serves", address_in).await;
        let base = format!("http://{address}/api/hyperfleet/v1");
        TestApi::remote(&base, database)
    }
}

impl Deref for Program {
    type Target = RunningProgram;

    fn deref(&self) -> &RunningProgram {
        &self.running
    }
}

impl DerefMut for Program {
    fn deref_mut(&mut self) -> &mut RunningProgram {
        &mut self.running
    }
}

/// The address in the log line of `serve`, or in the banner of `dev`.
fn address_in(said: &str) -> Option<String> {
    let (_, rest) = said
        .split_once("\"address\":\"")
        .or_else(|| said.split_once("HyperFleet API     http://"))?;
    let end = rest.find(['"', '/'])?;
    Some(rest[..end].to_owned())
}

/// A folder for `dev`, reachable for the user that PostgreSQL runs as.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.0.path().join("postgres")
    }

    /// The database of a `dev` that serves from it.
    pub(crate) fn database(&self) -> TestDatabase {
        let options = sqlx::postgres::PgConnectOptions::new_without_pgpass();
        let options = options.socket(self.data()).username("postgres");
        TestDatabase::at(options.database("postgres"))
    }

    /// The process of the PostgreSQL that runs in it.
    pub(crate) fn postgres(&self) -> Process {
        let file = self.data().join("data/postmaster.pid");
        let text = std::fs::read_to_string(file).unwrap();
        Process(text.lines().next().unwrap().parse().unwrap())
    }
}

/// A process that is not our child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    /// Whether it runs; one that has ended and waits for its parent does not.
    pub(crate) fn is_running(self) -> bool {
        let folder = Path::new("/proc").join(self.0.to_string());
        let command = std::fs::read(folder.join("cmdline"));
        command.is_ok_and(|command| !command.is_empty())
    }

    pub(crate) fn kill(self) {
        let pid = i32::try_from(self.0).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }

    pub(crate) async fn ended(self) {
        until("PostgreSQL is gone", async || !self.is_running()).await;
    }
}
