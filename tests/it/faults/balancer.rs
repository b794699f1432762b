//! Two instances behind a real proxy (haproxy), which asks whether each is ready and repeats nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use rustix::process::Signal;
use tempfile::TempDir;

use super::program::Program;
use super::until;
use crate::support::{TestApi, TestDatabase};

/// Where the proxy is, if it is installed. A machine without it may skip the test; CI may not.
pub(super) fn haproxy() -> Option<PathBuf> {
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
/// when an instance comes back to its own. Each test of a process gets others.
fn ports<const N: usize>() -> [u16; N] {
    static LAST: Mutex<u16> = Mutex::new(0);
    let mut last = LAST.lock().unwrap();
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let untried = first.max(*last + 1)..32_000;
    let mut free = untried.filter(|&port| TcpListener::bind(("127.0.0.1", port)).is_ok());
    let ports = std::array::from_fn(|_| free.next().unwrap());
    *last = ports.into_iter().max().unwrap();
    ports
}

/// One of the two.
struct Instance {
    name: &'static str,
    port: u16,
    health: u16,
    running: Program,
}

/// The two, and the proxy in front of them.
pub(super) struct Balanced {
    instances: [Instance; 2],
    proxy: Child,
    folder: TempDir,
    port: u16,
    database: TestDatabase,
}

fn serve(executable: &Path, database: &TestDatabase, port: u16, health: u16) -> Program {
    let settings = format!(
        "{{health: {{host: 127.0.0.1, port: {health}, shutdown_delay: 2s}}, metrics: {{port: 0}}}}"
    );
    let port = port.to_string();
    Program::serve_of(executable, database, &settings, &["--server-port", &port])
}

impl Balanced {
    /// Waits until both serve.
    pub(super) async fn start(haproxy: &Path, executable: &Path, database: TestDatabase) -> Self {
        let [port, one, one_health, two, two_health] = ports();
        let instances = [("one", one, one_health), ("two", two, two_health)];
        let mut instances = instances.map(|(name, port, health)| Instance {
            name,
            port,
            health,
            running: serve(executable, &database, port, health),
        });
        // The proxy takes them for ready until it has asked.
        for instance in &mut instances {
            let at = TestDatabase::at(database.options());
            instance.running.serving(at).await;
        }
        let folder = tempfile::tempdir().unwrap();
        let mut balanced = Self {
            proxy: start(haproxy, &folder, port, &instances),
            instances,
            folder,
            port,
            database,
        };
        for number in 0..2 {
            balanced.until(number, "UP").await;
        }
        balanced
    }

    /// A client of the proxy.
    pub(super) fn api(&self) -> TestApi {
        let base = format!("http://127.0.0.1:{}/api/hyperfleet/v1", self.port);
        TestApi::remote(&base, TestDatabase::at(self.database.options()))
    }

    /// Ends one instance as an orchestrator does, and starts this program in its place.
    pub(super) async fn replace(&mut self, number: usize, executable: &Path) {
        let Instance {
            port,
            health,
            running,
            ..
        } = &mut self.instances[number];
        running.signal(Signal::TERM);
        assert!(running.ended().await.success(), "{}", running.output());
        let said = running.output();
        let mut failures = said
            .lines()
            .filter(|line| line.contains("\"status_code\":5"));
        assert_eq!(failures.next(), None, "a request failed");
        *running = serve(executable, &self.database, *port, *health);
        self.until(number, "UP").await;
    }

    /// Waits until the proxy says that of an instance.
    async fn until(&mut self, number: usize, status: &str) {
        let name = self.instances[number].name;
        let socket = self.folder.path().join("stats");
        until(&format!("{name} is {status}"), async || {
            assert_eq!(self.proxy.try_wait().unwrap(), None, "haproxy has ended");
            let Ok(mut stream) = UnixStream::connect(&socket) else {
                return false;
            };
            stream.write_all(b"show stat\n").unwrap();
            let mut table = String::new();
            stream.read_to_string(&mut table).unwrap();
            let begin = format!("api,{name},");
            let line = table.lines().find(|line| line.starts_with(&begin));
            line.is_some_and(|line| line.split(',').nth(17) == Some(status))
        })
        .await;
    }
}

impl Drop for Balanced {
    fn drop(&mut self) {
        let _ = self.proxy.kill();
        let _ = self.proxy.wait();
    }
}

fn start(haproxy: &Path, folder: &TempDir, port: u16, instances: &[Instance; 2]) -> Child {
    let socket = folder.path().join("stats");
    let servers = instances.iter().map(|instance| {
        let Instance {
            name, port, health, ..
        } = instance;
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
    let mut command = Command::new(haproxy);
    command.args(["-db", "-f"]).arg(file);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    child.unwrap()
}
