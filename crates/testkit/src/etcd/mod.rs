//! A private, temporary etcd.

mod tools;

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hyperfleet_fleet::etcd::{EtcdKeys, Settings};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use crate::{PrivateNetwork, scratch_folder};

/// A private server, on free loopback ports or in a private network, with its own folder.
///
/// It stops with the thread that started it, or when it is dropped.
pub struct TestEtcd {
    process: Option<Child>,
    folder: tempfile::TempDir,
    client: u16,
    peer: u16,
    arguments: Vec<String>,
    scheme: &'static str,
    address: Ipv4Addr,
    /// A process in the server's network, if that is not this machine's.
    network: Option<String>,
}

static SHARED: OnceLock<String> = OnceLock::new();
static COUNT: AtomicU32 = AtomicU32::new(0);

impl TestEtcd {
    /// A plain server, for tests that disturb it.
    pub async fn start() -> Self {
        Self::start_with("http", &[]).await
    }

    /// A server with more arguments; the caller prepares `https`.
    pub async fn start_with(scheme: &'static str, arguments: &[String]) -> Self {
        let mut server = Self::prepare(scheme, arguments);
        server.resume().await;
        server
    }

    /// A plain server that also serves the older API, v2. `None` if the installed etcd lacks it: the test is
    /// skipped then, with a message.
    pub async fn start_with_v2() -> Option<Self> {
        if !has_flag("--enable-v2") {
            println!("skipped: this etcd has no API v2 (--enable-v2, up to etcd 3.5)");
            return None;
        }
        Some(Self::start_with("http", &["--enable-v2".to_owned()]).await)
    }

    /// A plain server in a private network.
    pub async fn start_within(network: &PrivateNetwork) -> Self {
        let mut server = Self::prepare("http", &[]);
        server.address = PrivateNetwork::ADDRESS;
        server.network = Some(network.process().to_owned());
        server.resume().await;
        server
    }

    /// Plain servers of one cluster.
    pub async fn start_cluster<const N: usize>() -> [Self; N] {
        let mut servers: [Self; N] = std::array::from_fn(|_| Self::prepare("http", &[]));
        let members = servers.iter();
        let members: Vec<_> = members.map(|server| server.member().join("=")).collect();
        for server in &mut servers {
            let [name, _] = server.member();
            let flags = ["--name", &name, "--initial-cluster", &members.join(",")];
            server.arguments = flags.map(str::to_owned).into();
            server.spawn();
        }
        for server in &mut servers {
            server.until_ready().await;
        }
        servers
    }

    fn prepare(scheme: &'static str, arguments: &[String]) -> Self {
        let [client, peer] = free_ports();
        Self {
            process: None,
            folder: scratch_folder("hyperfleet-etcd-"),
            client,
            peer,
            arguments: arguments.to_vec(),
            scheme,
            address: Ipv4Addr::LOCALHOST,
            network: None,
        }
    }

    /// Its name in a cluster, and its peer address.
    fn member(&self) -> [String; 2] {
        let peer = format!("http://{}:{}", self.address, self.peer);
        [format!("test{}", self.peer), peer]
    }

    pub fn url(&self) -> String {
        format!("{}://{}:{}", self.scheme, self.address, self.client)
    }

    /// Starts the server again on its data, and waits until it answers.
    pub async fn resume(&mut self) {
        self.spawn();
        self.until_ready().await;
    }

    fn spawn(&mut self) {
        let log = File::create(self.folder.path().join("log")).unwrap();
        let client = self.url();
        let [_, peer] = self.member();
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "TERM", "--"])
            .args(self.enter_network())
            .args(["sh", "-c", THROW_AWAY])
            .arg(self.folder.path())
            .arg(program())
            .args(["--name", NAME, "--log-outputs", "stderr"])
            .arg("--data-dir")
            .arg(self.data())
            .args(["--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("{NAME}={peer}")]);
        // Newer servers need not wait for the disk.
        if has_flag("--unsafe-no-fsync") {
            command.arg("--unsafe-no-fsync");
        }
        command
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .process_group(0);
        self.process = Some(command.spawn().expect("setpriv, of util-linux"));
    }

    async fn until_ready(&mut self) {
        let is_ready = |log: &str| log.contains("ready to serve client requests");
        for _ in 0..3000 {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap();
            if is_ready(&log) {
                return;
            }
            let ended = self.process.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "etcd ended at once. It said:\n{log}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("etcd was not ready in time");
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let group = Pid::from_child(&process);
            // It may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
            process.wait().unwrap();
            // That was the shell. The server keeps its ports until it ends, too.
            for _ in 0..500 {
                if test_kill_process_group(group).is_err() {
                    return;
                }
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    /// Deletes its data, as if it were newly installed. Start it again afterwards.
    pub fn lose_data(&mut self) {
        self.kill();
        fs::remove_dir_all(self.data()).unwrap();
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Prefix of a command that runs in its network.
    fn enter_network(&self) -> Vec<String> {
        let network = self.network.as_ref();
        let enter = network.map(|process| ["nsenter", "--target", process, "--net", "--"]);
        enter.into_iter().flatten().map(str::to_owned).collect()
    }

    /// Sends it a signal. Returns after [`Signal::STOP`] only when none of its threads runs any more: the kernel lets one
    /// of them stop the others, and on a busy machine these go on answering until it has its turn.
    pub fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().unwrap();
        kill_process_group(Pid::from_child(process), signal).unwrap();
        while signal == Signal::STOP && !has_stopped(process.id()) {
            std::thread::yield_now();
        }
    }
}

impl Drop for TestEtcd {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Whether every thread of a process is stopped (`proc(5)`).
fn has_stopped(process: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    threads.flatten().all(|thread| {
        let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map_or("", |(_, state)| state);
        state.is_empty() || state.starts_with('T')
    })
}

/// Name of a single server.
const NAME: &str = "test";

/// `$0` is the folder, the rest the server's command line. When the thread that started it ends, the server
/// stops and its data is deleted.
const THROW_AWAY: &str = r#"
trap 'kill -KILL $server; wait $server; rm -rf "$0"; exit' TERM
"$@" & server=$!
wait $server
"#;

/// Settings for a server, with timeouts for a busy machine.
pub fn etcd_settings(url: &str) -> Settings {
    Settings {
        request_timeout: Duration::from_secs(20),
        ..Settings::plain(vec![url.to_owned()])
    }
}

/// The server that tests share: the one in `ETCD_URL`, or a private one of this process.
pub async fn shared_etcd() -> EtcdKeys {
    let url = shared_etcd_url().await;
    EtcdKeys::connect(etcd_settings(&url)).await.unwrap()
}

pub async fn shared_etcd_url() -> String {
    tokio::task::spawn_blocking(shared_url).await.unwrap()
}

/// An unused prefix in a shared server.
pub fn fresh_prefix() -> String {
    format!("/test/{}/", uuid::Uuid::now_v7())
}

fn shared_url() -> String {
    SHARED
        .get_or_init(|| {
            if let Ok(url) = std::env::var("ETCD_URL") {
                return url;
            }
            // The server stops with the thread that started it, so that thread never ends.
            let (sender, receiver) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .unwrap();
                let server = runtime.block_on(TestEtcd::start());
                sender.send(server.url()).unwrap();
                loop {
                    std::thread::park();
                }
            });
            receiver
                .recv()
                .expect("a private etcd; its error stands above")
        })
        .clone()
}

/// The server's program, found by the same rules as `scripts/find-etcd`.
fn program() -> String {
    let found = Command::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../scripts/find-etcd"
    ))
    .output()
    .unwrap();
    assert!(
        found.status.success(),
        "{}",
        String::from_utf8_lossy(&found.stderr)
    );
    String::from_utf8(found.stdout).unwrap().trim().to_owned()
}

/// Whether the installed etcd has a flag.
fn has_flag(flag: &str) -> bool {
    let help = Command::new(program()).arg("--help").output().unwrap();
    [help.stdout, help.stderr]
        .iter()
        .any(|text| String::from_utf8_lossy(text).contains(flag))
}

/// Ports below those of outgoing connections, which could take one before the server does.
fn free_ports() -> [u16; 2] {
    let mut free = (0..).map_while(|_| {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let port = 12_000 + (std::process::id() * 97 + number * 7919) % 18_000;
        u16::try_from(port).ok()
    });
    let mut next = || {
        free.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
            .unwrap()
    };
    [next(), next()]
}
