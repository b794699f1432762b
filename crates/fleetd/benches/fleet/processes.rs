//! The real programs: one etcd, which syncs every write as by default, and fleetd. They are killed with this
//! process.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hyperfleet_testkit::{PrivateSystemd, http_client_builder};
use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process, setrlimit};

/// Clock ticks per second of processor time: the same on every Linux that Rust supports.
const TICKS_PER_SECOND: f64 = 100.0;

pub(crate) struct Process(Child);

/// Raises the limit of open files: each agent has its own connection.
pub(crate) fn allow_many_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without it, a large bench fails with a clear error.
    let _ = setrlimit(Resource::Nofile, limit);
}

impl Process {
    fn spawn(mut command: Command, log: &Path) -> Self {
        let log = fs::File::create(log).expect("a log");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.stderr(log).spawn().expect("setpriv, of util-linux"))
    }

    fn start(program: &str, with: impl FnOnce(&mut Command) -> &mut Command, log: &Path) -> Self {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", program]);
        with(&mut command);
        Self::spawn(command, log)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.0), signal).expect("it runs");
    }

    /// Processor time in seconds.
    pub(crate) fn processor(&self) -> f64 {
        let text = self.read("stat");
        let fields = text.rsplit(')').next().unwrap_or_default();
        let ticks = fields.split_whitespace().skip(11).take(2);
        let ticks: f64 = ticks.filter_map(|t| t.parse::<f64>().ok()).sum();
        ticks / TICKS_PER_SECOND
    }

    /// Resident memory in MB.
    pub(crate) fn memory(&self) -> f64 {
        let text = self.read("status");
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|l| l.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        kilobytes.map_or(f64::NAN, |kilobytes| kilobytes / 1024.0)
    }

    fn read(&self, what: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{what}", self.0.id())).unwrap_or_default()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An etcd with its data in a temporary folder.
pub(crate) struct Etcd {
    pub(crate) process: Process,
    pub(crate) url: String,
    /// Kept as long as the server.
    _folder: tempfile::TempDir,
}

impl Etcd {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir_in(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target"))
            .expect("a folder in target/");
        let program = hyperfleet_devkit::find_etcd().expect("etcd");
        let [client, peer] = [free_address(), free_address()].map(|at| format!("http://{at}"));
        let data = folder.path().join("data");
        let process = Process::start(
            &program.display().to_string(),
            |command| {
                let command = command.args(["--name", "bench", "--log-outputs", "stderr"]);
                let command = command.arg("--data-dir").arg(&data);
                let command = command.args(["--listen-client-urls", &client]);
                let command = command.args(["--advertise-client-urls", &client]);
                let command = command.args(["--listen-peer-urls", &peer]);
                let command = command.args(["--initial-advertise-peer-urls", &peer]);
                command.args(["--initial-cluster", &format!("bench={peer}")])
            },
            &folder.path().join("log"),
        );
        let etcd = Self {
            process,
            url: client,
            _folder: folder,
        };
        while etcd.metrics().await.is_empty() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        etcd
    }

    /// Its metrics, by series.
    pub(crate) async fn metrics(&self) -> Vec<(String, f64)> {
        let Ok(answer) = reqwest::get(format!("{}/metrics", self.url)).await else {
            return Vec::new();
        };
        let text = answer.text().await.unwrap_or_default();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let series = lines.filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        series.collect()
    }
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("it is bound").to_string()
}

/// A fleetd with default settings, except for paths.
pub(crate) struct Fleetd {
    pub(crate) process: Process,
    pub(crate) client: reqwest::Client,
    pub(crate) socket: PathBuf,
    pub(crate) id: String,
}

impl Fleetd {
    /// Starts it and waits until it serves.
    pub(crate) async fn start(etcd: &Etcd, folder: &Path, id: &str) -> Self {
        let socket: PathBuf = folder.join(format!("{id}.sock"));
        let process = Process::start(
            env!("CARGO_BIN_EXE_fleetd"),
            |command| {
                let command = command.env("FLEET_ETCD_SERVERS", &etcd.url);
                let command = command.env("FLEET_MACHINE_ID", id);
                let command = command.env("FLEET_DISABLE_AGENT", "true");
                command.env("FLEET_LISTEN", format!("unix:{}", socket.display()))
            },
            &folder.join(format!("{id}.log")),
        );
        Self::serving(process, &socket, id).await
    }

    /// Starts it with an agent on the systemd of a user, with or without an engine.
    pub(crate) async fn start_on(
        etcd: &Etcd,
        systemd: &PrivateSystemd,
        program: &Path,
        runs_engine: bool,
    ) -> Self {
        let (id, home) = ("machine", systemd.home());
        let socket = home.join("fleet.sock");
        let mut command = systemd.command(program);
        command
            .env("FLEET_ETCD_SERVERS", &etcd.url)
            .env("FLEET_MACHINE_ID", id)
            .env("FLEET_SYSTEMD_USER", "true")
            .env("FLEET_DISABLE_ENGINE", (!runs_engine).to_string())
            .env("FLEET_UNITS_DIRECTORY", home.join("units"))
            .env("FLEET_LISTEN", format!("unix:{}", socket.display()));
        let process = Process::spawn(command, &home.join("log"));
        Self::serving(process, &socket, id).await
    }

    async fn serving(process: Process, socket: &Path, id: &str) -> Self {
        let client = http_client_builder().unix_socket(socket);
        let fleetd = Self {
            process,
            client: client.build().expect("a client"),
            socket: socket.to_owned(),
            id: id.to_owned(),
        };
        while !fleetd.is_serving().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        fleetd
    }

    async fn is_serving(&self) -> bool {
        let answer = self.client.get(url("machines")).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// Reads a page; returns its items and the next token.
    pub(crate) async fn page(&self, what: &str, token: Option<&str>) -> (usize, Option<String>) {
        let token = token.map_or(String::new(), |t| format!("?nextPageToken={t}"));
        let request = self.client.get(url(&format!("{what}{token}")));
        let answer = request.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{}", answer.status());
        let page: serde_json::Value = answer.json().await.expect("JSON");
        let items = page["units"]
            .as_array()
            .or_else(|| page["states"].as_array());
        let next = page["nextPageToken"].as_str().map(str::to_owned);
        (items.map_or(0, Vec::len), next)
    }

    /// Puts a launched unit.
    pub(crate) async fn launch(&self, name: &str) {
        let options = [
            ("Unit", "Description", "A unit of the bench"),
            ("Service", "ExecStart", "/usr/bin/sleep infinity"),
            ("Service", "Restart", "always"),
        ];
        let options = options.map(|(section, name, value)| {
            serde_json::json!({"section": section, "name": name, "value": value})
        });
        let body = serde_json::json!({"desiredState": "launched", "options": options});
        let request = self.client.put(url(&format!("units/{name}")));
        let answer = request.json(&body).send().await.expect("an answer");
        assert_eq!(answer.status(), 201, "{name}");
    }
}

fn url(path: &str) -> String {
    format!("http://fleet/fleet/v1/{path}")
}
