//! The real program, as a user starts it.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::registry::{Prefix, Registry};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

use super::fleet_socket::FleetSocket;
use hyperfleet_testkit::{RunningProgram, etcd_settings, fresh_prefix, shared_etcd_url, until};

/// A fleetd's folder, and its part of an etcd.
pub(super) struct Place {
    pub(super) folder: TempDir,
    pub(super) etcd: String,
    pub(super) prefix: String,
}

impl Place {
    /// In the etcd that tests share.
    pub(super) async fn new() -> Self {
        Self::on(shared_etcd_url().await)
    }

    /// In this one.
    pub(super) fn on(etcd: String) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            etcd,
            prefix: fresh_prefix(),
        }
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file; returns its path.
    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.file(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// fleetd's registry, for checks that bypass it.
    pub(super) async fn registry(&self) -> Registry<EtcdKeys> {
        let keys = EtcdKeys::connect(etcd_settings(&self.etcd)).await.unwrap();
        Registry::new(keys, Prefix::new(&self.prefix).unwrap())
    }

    /// The leader, by the id of its machine.
    pub(super) async fn leader(&self, registry: &Registry<EtcdKeys>) -> Option<String> {
        let leader = registry.snapshot().await.unwrap().leader?;
        Some(leader.value.id)
    }

    /// fleetd here, as machine `m1`, on the socket `sock`.
    pub(super) fn start(&self) -> Fleetd {
        self.start_as("m1", &[])
    }

    /// Another machine with its own socket and additional settings.
    pub(super) fn start_as(&self, machine: &str, settings: &[(&str, &str)]) -> Fleetd {
        let mut command = self.command(machine, settings);
        command.stdin(Stdio::null());
        Fleetd::start(command, self.socket(machine))
    }

    /// The same with another release of the program.
    pub(super) fn start_of(&self, program: &Path, machine: &str) -> Fleetd {
        let mut command = self.command_of(program, machine, &[]);
        command.stdin(Stdio::null());
        Fleetd::start(command, self.socket(machine))
    }

    pub(super) fn socket(&self, machine: &str) -> PathBuf {
        self.file(&format!("{machine}.sock"))
    }

    pub(super) fn command(&self, machine: &str, settings: &[(&str, &str)]) -> Command {
        self.command_of(CURRENT.as_ref(), machine, settings)
    }

    fn command_of(&self, program: &Path, machine: &str, settings: &[(&str, &str)]) -> Command {
        let mut command = fleetd_of(program);
        command
            .env("FLEET_ETCD_SERVERS", &self.etcd)
            .env("FLEET_ETCD_KEY_PREFIX", &self.prefix)
            .env("FLEET_MACHINE_ID", machine)
            .env(
                "FLEET_LISTEN",
                format!("unix:{}", self.socket(machine).display()),
            );
        for (key, value) in settings {
            command.env(format!("FLEET_{}", key.to_uppercase()), value);
        }
        command
    }
}

/// The program of this checkout.
pub(super) const CURRENT: &str = env!("CARGO_BIN_EXE_fleetd");

/// The program, without variables of the test.
pub(super) fn fleetd() -> Command {
    fleetd_of(CURRENT.as_ref())
}

fn fleetd_of(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir("/");
    // Tests must not use the systemd of their user.
    command.env("FLEET_DISABLE_AGENT", "true");
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
}

/// A running fleetd and its address.
pub(super) struct Fleetd {
    running: RunningProgram,
    pub(super) socket: PathBuf,
}

impl Fleetd {
    pub(super) fn start(command: Command, socket: PathBuf) -> Self {
        Self {
            running: RunningProgram::start(command),
            socket,
        }
    }

    /// With a chosen standard output.
    pub(super) fn start_with_output(command: Command, output: Stdio, socket: PathBuf) -> Self {
        Self {
            running: RunningProgram::start_with_output(command, output),
            socket,
        }
    }

    /// A client of its socket.
    pub(super) fn api(&self) -> FleetSocket {
        FleetSocket::at(&self.socket)
    }

    /// The response to a GET over its socket, if there is one.
    pub(super) async fn get(&self, path: &str) -> Option<(u16, Value)> {
        self.api().get(path).await
    }

    /// Waits until it serves the contents of etcd.
    pub(super) async fn until_serving(&self) {
        until("it serves", async || {
            matches!(self.get("/fleet/v1/units").await, Some((200, _)))
        })
        .await;
    }

    /// Puts a launched unit.
    pub(super) async fn launch(&self, name: &str) {
        let lines = ["Service ExecStart=/bin/true"];
        self.api().put(name, &lines, "launched").await;
    }

    /// Stops it, and checks that it stops gracefully.
    pub(super) async fn stop(&mut self) {
        self.signal(Signal::TERM);
        assert!(self.ended().await.success(), "{}", self.output());
    }
}

impl Deref for Fleetd {
    type Target = RunningProgram;

    fn deref(&self) -> &RunningProgram {
        &self.running
    }
}

impl DerefMut for Fleetd {
    fn deref_mut(&mut self) -> &mut RunningProgram {
        &mut self.running
    }
}
