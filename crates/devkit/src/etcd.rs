//! Starts and stops a private etcd.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// The message without a server program.
const NONE: &str = "No etcd server was found. Either\n  \
    - as root:    apt-get install etcd-server\n  \
    - elsewhere:  export HYPERFLEET_ETCD=/folder/etcd, with the program of a release (3.4 or newer)";

/// Timeout of a start and of an end.
const PATIENCE: Duration = Duration::from_secs(30);
/// Name of a server that is no member of a cluster.
const NAME: &str = "private";
/// `$0` is the folder, the rest the server's command line. When the thread that started it ends, the server stops and its
/// data is deleted.
const THROW_AWAY: &str = r#"
trap 'kill -KILL $server; wait $server; rm -rf "$0"; exit' TERM
"$@" & server=$!
wait $server
"#;

/// The server's program: the one that `HYPERFLEET_ETCD` names, or the first in the path.
///
/// # Errors
/// There is none: how to install it.
pub fn find_etcd() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os("HYPERFLEET_ETCD").filter(|named| !named.is_empty()) {
        let named = PathBuf::from(named);
        if !named.is_file() {
            bail!("HYPERFLEET_ETCD={} is no program", named.display());
        }
        return Ok(named);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        std::env::split_paths(&path).chain(["/usr/bin", "/usr/local/bin"].map(Into::into));
    let mut programs = folders.map(|folder| folder.join("etcd"));
    programs.find(|program| program.is_file()).context(NONE)
}

/// A private etcd on free ports. Every user of this machine may use it.
///
/// It stops, and its folder is deleted, when the thread that started it ends. Dropped, it stops.
#[derive(Debug)]
pub struct PrivateEtcd {
    program: PathBuf,
    folder: PathBuf,
    process: Option<Child>,
    client: u16,
    peer: u16,
    /// `http`, or `https` if the arguments name certificates.
    pub scheme: &'static str,
    /// Address of its ports.
    pub address: Ipv4Addr,
    /// Prefix of its command line, which enters the network of that address.
    pub within: Vec<String>,
    /// Further arguments of the server; they take precedence.
    pub arguments: Vec<String>,
}

impl PrivateEtcd {
    /// A server on loopback that is not started yet, with its data in an existing folder.
    ///
    /// # Errors
    /// There is no program: how to install it.
    pub fn new(folder: &Path) -> anyhow::Result<Self> {
        let [client, peer] = free_ports();
        Ok(Self {
            program: find_etcd()?,
            folder: folder.to_owned(),
            process: None,
            client,
            peer,
            scheme: "http",
            address: Ipv4Addr::LOCALHOST,
            within: Vec::new(),
            arguments: Vec::new(),
        })
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("{}://{}:{}", self.scheme, self.address, self.client)
    }

    /// The URL for other members.
    pub fn peer_url(&self) -> String {
        format!("http://{}:{}", self.address, self.peer)
    }

    /// Its name as `--initial-cluster` has it, with its URL.
    pub fn member(&self) -> String {
        format!("{NAME}={}", self.peer_url())
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Whether the program has a flag.
    pub fn has_flag(&self, flag: &str) -> bool {
        let help = Command::new(&self.program).arg("--help").output();
        help.is_ok_and(|help| {
            let mut texts = [help.stdout, help.stderr].into_iter();
            texts.any(|text| String::from_utf8_lossy(&text).contains(flag))
        })
    }

    /// Starts it, also again on its data, and waits until it answers.
    ///
    /// # Errors
    /// It ended, or did not answer in time: its log.
    pub fn start(&mut self) -> anyhow::Result<()> {
        self.spawn()?;
        let since = Instant::now();
        while !self.is_ready()? {
            if since.elapsed() > PATIENCE {
                bail!("etcd was not ready in time. Its log:\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Starts it without waiting: see [`is_ready`](Self::is_ready).
    ///
    /// # Errors
    /// `setpriv` is missing, or the folder.
    pub fn spawn(&mut self) -> anyhow::Result<()> {
        let (client, peer) = (self.url(), self.peer_url());
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "TERM", "--"])
            .args(&self.within)
            .args(["sh", "-c", THROW_AWAY])
            .arg(&self.folder)
            .arg(&self.program)
            .args(["--name", NAME, "--log-outputs", "stderr"])
            .arg("--data-dir")
            .arg(self.data())
            .args(["--listen-client-urls", &client])
            .args(["--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &self.member()]);
        // Newer servers need not wait for the disk.
        if self.has_flag("--unsafe-no-fsync") {
            command.arg("--unsafe-no-fsync");
        }
        command
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(self.folder.join("log"))?)
            .process_group(0);
        let process = command.spawn();
        self.process = Some(process.context("cannot run setpriv (package util-linux)")?);
        Ok(())
    }

    /// Whether it answers.
    ///
    /// # Errors
    /// It has ended: its log.
    pub fn is_ready(&mut self) -> anyhow::Result<bool> {
        let log = self.log();
        if log.contains("ready to serve client requests") {
            return Ok(true);
        }
        let process = self.process.as_mut().context("etcd is not started")?;
        if process.try_wait()?.is_some() {
            bail!("etcd ended immediately. Its log:\n{log}");
        }
        Ok(false)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Its process, which leads a group with its children; `None` unless it was started.
    pub fn process(&self) -> Option<Pid> {
        self.process.as_ref().map(Pid::from_child)
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) {
        let Some(mut process) = self.process.take() else {
            return;
        };
        let group = Pid::from_child(&process);
        // It may have ended by itself.
        let _ = kill_process_group(group, Signal::KILL);
        let _ = process.wait();
        // That was the shell. The server keeps its ports until it ends, too.
        let since = Instant::now();
        while test_kill_process_group(group).is_ok() && since.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for PrivateEtcd {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Ports below those of outgoing connections, which could take one before the server does.
fn free_ports() -> [u16; 2] {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    std::array::from_fn(|_| {
        let mut ports = std::iter::repeat_with(|| {
            let number = COUNT.fetch_add(1, Ordering::Relaxed).wrapping_mul(7919);
            let port = 12_000 + std::process::id().wrapping_mul(97).wrapping_add(number) % 18_000;
            u16::try_from(port).unwrap_or_default()
        });
        let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
        ports.find(is_free).unwrap_or_default()
    })
}
