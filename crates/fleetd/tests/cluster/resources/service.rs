//! The REST service with its PostgreSQL, and the fleet adapter: each a process of the real program.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hyperfleet_devkit::{Durability, PrivatePostgres};
use hyperfleet_testkit::{RunningProgram, scratch_folder};
use tempfile::TempDir;

use super::rest::Rest;

/// Kinds, workload and listeners, for the service and the adapter.
const CONFIG: &str = include_str!("config.yaml");

/// The service and its adapter. Dropped, both are killed.
pub(super) struct Service {
    program: PathBuf,
    pub(super) rest: Rest,
    config: PathBuf,
    /// `None` while it is dead.
    adapter: Option<RunningProgram>,
    _api: RunningProgram,
    _postgres: PrivatePostgres,
    _folder: TempDir,
}

impl Service {
    /// Starts the service on an empty database, and the adapter on the etcd at `etcd`.
    pub(super) async fn start(program: PathBuf, etcd: &str) -> Self {
        let folder = scratch_folder("hyperfleet-service-");
        // PostgreSQL runs as another user.
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let data = folder.path().join("postgres");
        let postgres = PrivatePostgres::start(&data, Durability::ThrownAway).unwrap();
        let url = postgres.url("postgres");
        let config = folder.path().join("config.yaml");
        std::fs::write(&config, CONFIG.replace("ETCD_URL", etcd)).unwrap();
        let migrated = command(&program, &["migrate", "--database-url", &url])
            .output()
            .unwrap();
        assert!(migrated.status.success(), "{migrated:?}");
        let mut api = command(
            &program,
            &[
                "serve",
                "--server-jwt-enabled=false",
                "--database-url",
                &url,
            ],
        );
        let mut api = RunningProgram::start({
            api.arg("--config").arg(&config);
            api
        });
        let address = api.until_found("the service listens", address_in).await;
        let mut service = Self {
            program,
            rest: Rest::at(&address),
            config,
            adapter: None,
            _api: api,
            _postgres: postgres,
            _folder: folder,
        };
        service.start_adapter();
        service
    }

    pub(super) fn start_adapter(&mut self) {
        assert!(self.adapter.is_none(), "it runs");
        let mut adapter = command(&self.program, &["fleet-adapter", "run"]);
        adapter.arg("--config").arg(&self.config);
        adapter.env("HYPERFLEET_FLEET_ADAPTER_API_URL", &self.rest.server);
        self.adapter = Some(RunningProgram::start(adapter));
    }

    /// Kills the adapter, and waits until another one has taken over.
    pub(super) async fn restart_adapter(&mut self) {
        self.kill_adapter();
        self.start_adapter();
        let adapter = self.adapter.as_mut().expect("it was just started");
        adapter.until_output("adapter lease acquired").await;
        adapter.until_output("etcd connected").await;
    }

    /// Ends the adapter as a crash does.
    pub(super) fn kill_adapter(&mut self) {
        let mut adapter = self.adapter.take().expect("an adapter that runs");
        let status = adapter.status();
        assert!(
            status.is_none(),
            "it ended by itself, {status:?}: {}",
            adapter.output()
        );
    }
}

/// `hyperfleet-api`, next to fleetd: `cargo test` of the whole workspace builds both. `None` where it is not built: the test is
/// skipped then, and says so, unless `SYSTEMD_REQUIRED` is set.
pub(super) fn program() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_fleetd")).with_file_name("hyperfleet-api");
    if program.exists() {
        return Some(program);
    }
    let is_required = std::env::var_os("SYSTEMD_REQUIRED").is_some();
    assert!(!is_required, "run `cargo build --bin hyperfleet-api` first");
    println!("skipped: hyperfleet-api is not built (cargo build --bin hyperfleet-api)");
    None
}

/// The program without settings of the environment. It ends with the test, however that ends.
fn command(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "--"])
        .arg(program)
        .args(arguments);
    let settings = std::env::vars().map(|(name, _)| name);
    for name in settings.filter(|name| name.starts_with("HYPERFLEET_")) {
        command.env_remove(name);
    }
    command
        .env_remove("DATABASE_URL")
        .stdin(Stdio::null())
        .current_dir("/");
    command
}

fn address_in(said: &str) -> Option<String> {
    let (_, rest) = said.split_once("\"address\":\"")?;
    let (address, _) = rest.split_once('"')?;
    Some(address.to_owned())
}
