//! Two instances behind a real proxy (haproxy), restarted in turn while clients go on: nobody notices.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hyperfleet::domain::entity_config;
use rustix::process::Signal;
use tempfile::TempDir;

use super::load::Load;
use super::program::Program;
use super::until;
use crate::support::{TestApi, TestDatabase, assert_sound};

/// How often each instance is restarted.
const RESTARTS: usize = 3;
const READERS: usize = 4;

/// Where the proxy is, if it is installed. A machine without it may skip the test; CI may not.
fn haproxy() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<_> = std::env::split_paths(&path).collect();
    folders.push("/usr/sbin".into());
    let found = folders.into_iter().map(|folder| folder.join("haproxy"));
    let found = found.into_iter().find(|program| program.is_file());
    if found.is_none() {
        let required = ["CI", "HAPROXY_REQUIRED"].map(std::env::var_os);
        assert!(
            required.iter().all(Option::is_none),
            "haproxy is required here"
        );
        println!("SKIPPED: haproxy is missing: apt-get install haproxy");
    }
    found
}

/// Ports that nobody uses, below those that the system gives to clients: they must still be free
/// when an instance comes back to its own.
fn ports<const N: usize>() -> [u16; N] {
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let mut free = (first..32_000).filter(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok());
    std::array::from_fn(|_| free.next().unwrap())
}

/// The proxy, in front of two instances.
struct Proxy {
    child: Child,
    folder: TempDir,
}

impl Proxy {
    fn start(program: &Path, port: u16, instances: &[Instance; 2]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("stats");
        let servers = instances.iter().map(|instance| {
            let Instance { name, port, health } = instance;
            format!("  server {name} 127.0.0.1:{port} check port {health}\n")
        });
        // As an orchestrator would: it asks whether each is ready, and repeats nothing that was sent.
        let config = format!(
            "global\n  stats socket {}\n\
             defaults\n  mode http\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n  timeout check 5s\n\
             frontend front\n  bind 127.0.0.1:{port}\n  default_backend api\n\
             backend api\n  balance roundrobin\n  retries 0\n  option httpchk GET /readyz\n  \
             http-check expect status 200\n  default-server inter 200ms fall 2 rise 1\n{}",
            socket.display(),
            servers.collect::<String>()
        );
        let file = folder.path().join("haproxy.cfg");
        std::fs::write(&file, config).unwrap();
        let mut command = Command::new(program);
        command.args(["-db", "-f"]).arg(file);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        Self {
            child: child.unwrap(),
            folder,
        }
    }

    /// Waits until the proxy says that of an instance.
    async fn until(&mut self, instance: &Instance, status: &str) {
        let socket = self.folder.path().join("stats");
        until(&format!("{} is {status}", instance.name), async || {
            assert_eq!(self.child.try_wait().unwrap(), None, "haproxy has ended");
            let Ok(mut stream) = UnixStream::connect(&socket) else {
                return false;
            };
            stream.write_all(b"show stat\n").unwrap();
            let mut table = String::new();
            stream.read_to_string(&mut table).unwrap();
            let begin = format!("api,{},", instance.name);
            let line = table.lines().find(|line| line.starts_with(&begin));
            line.is_some_and(|line| line.split(',').nth(17) == Some(status))
        })
        .await;
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One of the two.
struct Instance {
    name: &'static str,
    port: u16,
    health: u16,
}

impl Instance {
    fn start(&self, database: &TestDatabase) -> Program {
        let settings = format!(
            "{{health: {{host: 127.0.0.1, port: {}, shutdown_delay: 2s}}, metrics: {{port: 0}}}}",
            self.health
        );
        let port = self.port.to_string();
        Program::serve_with(database, &settings, &["--server-port", &port])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_is_lost_while_instances_are_restarted_in_turn() {
    let Some(program) = haproxy() else { return };
    let database = TestDatabase::create().await;
    let [port, one, one_health, two, two_health] = ports();
    let instances = [
        Instance {
            name: "one",
            port: one,
            health: one_health,
        },
        Instance {
            name: "two",
            port: two,
            health: two_health,
        },
    ];
    let mut running = instances
        .each_ref()
        .map(|instance| instance.start(&database));
    // The proxy takes them for ready until it has asked.
    for instance in &mut running {
        instance.serving(TestDatabase::at(database.options())).await;
    }
    let mut proxy = Proxy::start(&program, port, &instances);
    for instance in &instances {
        proxy.until(instance, "UP").await;
    }
    let base = format!("http://127.0.0.1:{port}/api/hyperfleet/v1");
    let load = Arc::new(Load::on(TestApi::remote(
        &base,
        TestDatabase::at(database.options()),
    )));
    let writers = load.start();
    let (is_over, reads) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let readers: Vec<_> = (0..READERS)
        .map(|_| {
            let (load, is_over, reads) = (load.clone(), is_over.clone(), reads.clone());
            tokio::spawn(async move {
                while !is_over.load(Ordering::SeqCst) {
                    let answer = load.api.get("/clusters?size=3").await;
                    assert_eq!(answer.status, 200, "{}", answer.body);
                    reads.fetch_add(1, Ordering::SeqCst);
                }
            })
        })
        .collect();
    for _ in 0..RESTARTS {
        for (instance, running) in instances.iter().zip(&mut running) {
            load.until_acknowledged(30).await;
            running.signal(Signal::TERM);
            assert!(running.ended().await.success(), "{}", running.said());
            *running = instance.start(&database);
            proxy.until(instance, "UP").await;
        }
    }
    is_over.store(true, Ordering::SeqCst);
    for reader in readers {
        reader.await.unwrap();
    }
    let known = load.end(writers).await;
    assert_eq!(load.refused(), 0);
    assert!(
        reads.load(Ordering::SeqCst) > 100 && known.len() > 20,
        "{}",
        known.len()
    );
    for known in known {
        known.assert_there(&load.api).await;
    }
    let mut direct = database.connect().await;
    assert_sound(&mut direct, &entity_config::built_in()).await;
}
