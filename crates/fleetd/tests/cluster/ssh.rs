//! fleetctl over a real ssh: to a machine that runs `sshd`, and through it to the API.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use hyperfleet_testkit::{PrivateMachine, until};
use tempfile::TempDir;

use super::cluster::Cluster;
use super::command_line::{Ran, program};
use super::local::free_port;

const SSHD: &str = "/usr/sbin/sshd";
/// Its name has a backslash, which has to reach `systemctl` there through a shell.
const UNIT: &str = "hello@a\\x2db.service";
/// The same in a URL.
const UNIT_PATH: &str = "hello@a%5Cx2db.service";
const HELLO: [&str; 1] = ["Service ExecStart=/bin/sh -c 'echo hello over ssh; exec sleep 1000'"];

/// Whether the programs of OpenSSH are installed. A machine without them may skip the test; CI may not.
fn has_openssh() -> bool {
    let missing = [SSHD, "/usr/bin/ssh", "/usr/bin/ssh-agent"];
    let missing = missing.iter().find(|program| !Path::new(program).exists());
    if let Some(missing) = missing {
        let required = ["CI", "SSH_REQUIRED"].map(std::env::var_os);
        assert!(
            required.iter().all(Option::is_none),
            "{missing} is required here"
        );
        println!("skipped: {missing} is missing: apt-get install openssh-server openssh-client");
    }
    missing.is_none()
}

/// Keys of a user and of hosts, and an agent that holds the user's key.
struct Keys {
    folder: TempDir,
    agent: Child,
}

impl Keys {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("agent");
        let mut agent = Command::new("ssh-agent");
        agent.arg("-D").arg("-a").arg(&socket).stdout(Stdio::null());
        let agent = agent.spawn().unwrap();
        let keys = Self { folder, agent };
        for name in ["user", "host", "other"] {
            let path = keys.folder.path().join(name);
            let mut generate = Command::new("ssh-keygen");
            generate
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(path);
            assert!(generate.status().unwrap().success());
        }
        until("the agent listens", async || socket.exists()).await;
        let mut add = Command::new("ssh-add");
        add.arg("-q").arg(keys.folder.path().join("user"));
        assert!(
            add.env("SSH_AUTH_SOCK", &socket)
                .status()
                .unwrap()
                .success()
        );
        keys
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }

    /// Makes one of the keys the known one of the machine; without a key, forgets all.
    fn trust_key(&self, port: u16, key: Option<&str>) {
        let key = key.map(|name| format!("[127.0.0.1]:{port} {}", self.read(name)));
        let file = self.folder.path().join("known_hosts");
        std::fs::write(file, key.unwrap_or_default()).unwrap();
    }

    /// Files by which a machine runs `sshd`.
    fn machine_files(&self, port: u16) -> [(String, String); 4] {
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey /run/host_key\nAuthorizedKeysFile /opt/authorized_keys\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPidFile none\n"
        );
        // A machine has neither the user that sshd drops its rights to, nor a root that may log in.
        let service = format!(
            "[Service]\n\
             ExecStartPre=/bin/sh -c 'mkdir -p /run/sshd; install -m 600 /opt/host_key /run/host_key'\n\
             ExecStartPre=/bin/sh -c 'grep -q ^sshd: /etc/passwd || echo sshd:x:998:65534::/run/sshd:/usr/sbin/nologin >>/etc/passwd'\n\
             ExecStartPre=/bin/sed -i 's/^root:[^:]*/root:*/' /etc/shadow\n\
             ExecStart={SSHD} -D -e -f /opt/sshd_config\n"
        );
        let files = [
            ("bin/sshd_config", config),
            ("bin/host_key", self.read("host")),
            ("bin/authorized_keys", self.read("user.pub")),
            ("units/sshd.service", service),
        ];
        files.map(|(path, text)| (path.to_owned(), text))
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        let _ = self.agent.kill();
        let _ = self.agent.wait();
    }
}

/// fleetctl as a user on another host runs it.
struct User<'a> {
    keys: &'a Keys,
    port: u16,
    /// The socket of the API; with a tunnel, its path on the machine.
    endpoint: String,
}

impl User<'_> {
    fn run(&self, arguments: &[&str]) -> Ran {
        let folder = self.keys.folder.path();
        let mut command = Command::new(program());
        command.env_clear().stdin(Stdio::null()).args(arguments);
        command.env("PATH", "/usr/bin:/bin").env("HOME", folder);
        command.env("SSH_AUTH_SOCK", folder.join("agent"));
        command.env("FLEETCTL_ENDPOINT", &self.endpoint);
        command.env("FLEETCTL_SSH_USERNAME", "root");
        command.env("FLEETCTL_KNOWN_HOSTS_FILE", folder.join("known_hosts"));
        Ran::of(&command.output().unwrap())
    }

    /// Runs a command that takes `--ssh-port`; gives its status and what it has printed.
    fn over_ssh(&self, command: &str, arguments: &[&str]) -> (Option<i32>, String) {
        let port = format!("--ssh-port={}", self.port);
        let ran = self.run(&[&[command, &port], arguments].concat());
        (ran.code, ran.out + &ran.err)
    }
}

async fn until_sshd_listens(machine: &PrivateMachine, port: u16) {
    machine.systemctl(&["start", "sshd"]);
    until("sshd listens", async || {
        tokio::net::TcpStream::connect(("127.0.0.1", port))
            .await
            .is_ok()
    })
    .await;
}

#[tokio::test]
async fn shells_status_journals_and_tunnels_go_over_a_real_ssh() {
    if !has_openssh() {
        return;
    }
    let (keys, port) = (Keys::new().await, free_port());
    let settings = [("PUBLIC_IP", "127.0.0.1")];
    let Some(cluster) = Cluster::boot_one(&settings, &keys.machine_files(port)).await else {
        return;
    };
    let machine = &cluster.machines[0];
    until_sshd_listens(machine, port).await;
    cluster.api().put(UNIT_PATH, &HELLO, "launched").await;
    cluster.until_active_on(UNIT).await;
    let user = User {
        keys: &keys,
        port,
        endpoint: format!("unix://{}", machine.socket().display()),
    };

    // A host that is unknown, and one whose key has changed, are refused.
    for known in [None, Some("other.pub")] {
        keys.trust_key(port, known);
        let (status, said) = user.over_ssh("ssh", &[&machine.id, "true"]);
        assert_eq!(status, Some(255), "{said}");
        assert!(said.contains("Host key verification failed"), "{said}");
    }
    keys.trust_key(port, Some("host.pub"));
    let (status, said) = user.over_ssh("ssh", &[&machine.id, "cat", "/etc/machine-id"]);
    assert_eq!((status, said.trim()), (Some(0), machine.id.as_str()));
    let (status, said) = user.over_ssh("ssh", &["--unit", UNIT, "exit", "7"]);
    assert_eq!((status, said.as_str()), (Some(7), ""));

    let (status, said) = user.over_ssh("status", &["--ssh", UNIT]);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("Active: active (running)"), "{said}");
    until("the unit has said something", async || {
        let (status, said) = user.over_ssh("journal", &["--ssh", "--output=cat", UNIT]);
        status == Some(0) && said.contains("hello over ssh\n")
    })
    .await;

    // Through a tunnel the endpoint is a socket of the machine.
    let tunnel = format!("--tunnel=127.0.0.1:{port}");
    let through = User {
        endpoint: "unix:///run/fleet.sock".to_owned(),
        ..user
    };
    let listed = through.run(&[
        &tunnel,
        "list-machines",
        "--full",
        "--fields=machine",
        "--no-legend",
    ]);
    assert_eq!(
        (listed.code, listed.out.trim()),
        (Some(0), machine.id.as_str()),
        "{}",
        listed.err
    );
    let stopped = through.run(&[&tunnel, "stop", UNIT]);
    assert_eq!(stopped.code, Some(0), "{}{}", stopped.out, stopped.err);
    // And the machine is reached through the host of the tunnel.
    let (status, said) = through.over_ssh("status", &[&tunnel, UNIT]);
    assert_eq!(status, Some(3), "{said}");
    assert!(said.contains("Active: inactive (dead)"), "{said}");
    cluster.destroy(&[UNIT_PATH]).await;
    cluster.until_empty().await;
}
