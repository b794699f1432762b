//! A private, temporary etcd.

mod tools;

use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

use hyperfleet_devkit::PrivateEtcd;
use hyperfleet_fleet::etcd::{EtcdKeys, Settings};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::{PrivateNetwork, scratch_folder};

/// A private server, on free loopback ports or in a private network, with its own folder.
///
/// It stops with the thread that started it, or when it is dropped.
pub struct TestEtcd {
    server: PrivateEtcd,
    folder: tempfile::TempDir,
}

static SHARED: OnceLock<String> = OnceLock::new();

impl TestEtcd {
    /// A plain server, for tests that disturb it.
    pub async fn start() -> Self {
        Self::start_with("http", &[]).await
    }

    /// A server with more arguments; the caller prepares `https`.
    pub async fn start_with(scheme: &'static str, arguments: &[String]) -> Self {
        let mut etcd = Self::prepare();
        etcd.server.scheme = scheme;
        etcd.server.arguments = arguments.to_vec();
        etcd.resume().await;
        etcd
    }

    /// A plain server that also serves the older API, v2. `None` if the installed etcd lacks it: the test is
    /// skipped then, with a message.
    pub async fn start_with_v2() -> Option<Self> {
        if !Self::prepare().server.has_flag("--enable-v2") {
            println!("skipped: this etcd has no API v2 (--enable-v2, up to etcd 3.5)");
            return None;
        }
        Some(Self::start_with("http", &["--enable-v2".to_owned()]).await)
    }

    /// A plain server in a private network.
    pub async fn start_within(network: &PrivateNetwork) -> Self {
        let mut etcd = Self::prepare();
        etcd.server.address = PrivateNetwork::ADDRESS;
        let enter = ["nsenter", "--target", network.process(), "--net", "--"];
        etcd.server.within = enter.map(str::to_owned).into();
        etcd.resume().await;
        etcd
    }

    /// Plain servers of one cluster.
    pub async fn start_cluster<const N: usize>() -> [Self; N] {
        let mut servers: [Self; N] = std::array::from_fn(|_| Self::prepare());
        let peers = servers.iter().map(|etcd| etcd.server.peer_url());
        let names = (0..N).map(|number| format!("test{number}"));
        let members: Vec<_> = names.zip(peers).collect();
        let all: Vec<_> = members
            .iter()
            .map(|(name, peer)| format!("{name}={peer}"))
            .collect();
        for (etcd, (name, _)) in servers.iter_mut().zip(&members) {
            let flags = ["--name", name, "--initial-cluster", &all.join(",")];
            etcd.server.arguments = flags.map(str::to_owned).into();
            etcd.server.spawn().unwrap();
        }
        for etcd in &mut servers {
            etcd.until_ready().await;
        }
        servers
    }

    fn prepare() -> Self {
        let folder = scratch_folder("hyperfleet-etcd-");
        let server = PrivateEtcd::new(folder.path()).unwrap_or_else(|error| panic!("{error:#}"));
        Self { server, folder }
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    /// Starts the server again on its data, and waits until it answers.
    pub async fn resume(&mut self) {
        self.server.spawn().unwrap();
        self.until_ready().await;
    }

    async fn until_ready(&mut self) {
        for _ in 0..3000 {
            let is_ready = self.server.is_ready();
            if is_ready.unwrap_or_else(|error| panic!("{error:#}")) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("etcd was not ready in time");
    }

    /// Kills it, as a crash would.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Deletes its data, as if it were newly installed. Start it again afterwards.
    pub fn lose_data(&mut self) {
        self.kill();
        fs::remove_dir_all(self.server.data()).unwrap();
    }

    /// Sends it a signal. Returns after [`Signal::STOP`] only when none of its threads runs any more: the kernel lets one
    /// of them stop the others, and on a busy machine these go on answering until it has its turn.
    pub fn signal(&self, signal: Signal) {
        let process = self.server.process().unwrap();
        kill_process_group(process, signal).unwrap();
        while signal == Signal::STOP && !has_stopped(process) {
            std::thread::yield_now();
        }
    }
}

/// Whether every thread of a process is stopped (`proc(5)`).
fn has_stopped(process: Pid) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    threads.flatten().all(|thread| {
        let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").map_or("", |(_, state)| state);
        state.is_empty() || state.starts_with('T')
    })
}

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
