//! Tunnels to the API: OpenSSH forwards a local unix socket.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::{SshHost, SshOptions};

/// An ssh connection to the API. Dropped, it ends.
#[derive(Debug)]
pub(crate) struct Tunnel {
    ssh: Child,
    /// A private folder with the socket.
    folder: TempDir,
}

impl Tunnel {
    /// Connects to a host. `target` is the API's listener there: the path of a socket, or `host:port`.
    ///
    /// # Errors
    /// ssh ended, or did not connect in time.
    pub(crate) async fn open(
        options: &SshOptions,
        host: &SshHost,
        target: &str,
    ) -> anyhow::Result<Self> {
        options.prepare();
        let folder = tempfile::Builder::new().prefix("fleetctl-").tempdir();
        let folder = folder.context("unable to create a private folder for the tunnel")?;
        let socket = folder.path().join(SOCKET);
        let mut ssh = Command::new("sh");
        ssh.args(["-c", UNINTERRUPTED, "ssh"])
            .args(["-N", "-o", "ExitOnForwardFailure=yes", "-L"])
            .arg(format!("{}:{target}", socket.display()))
            .args(options.destination(host, None))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let ssh = ssh.spawn();
        let ssh = ssh.context("unable to run sh, which starts ssh")?;
        let mut tunnel = Self { ssh, folder };
        tunnel.wait_for(&socket, options.timeout, host).await?;
        Ok(tunnel)
    }

    /// The local end of the tunnel.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join(SOCKET)
    }

    async fn wait_for(
        &mut self,
        socket: &Path,
        time: Duration,
        host: &SshHost,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + time;
        while !socket.exists() {
            if let Some(status) = self.ssh.try_wait().context("unable to watch ssh")? {
                let mut said = String::new();
                if let Some(mut errors) = self.ssh.stderr.take() {
                    let _ = errors.read_to_string(&mut said).await;
                }
                if status.code() == Some(NOT_FOUND) {
                    bail!("unable to run ssh: is OpenSSH installed?");
                }
                bail!(
                    "unable to open a tunnel to {}: ssh ended with {status}: {}",
                    host.host,
                    // ssh ends its lines as a terminal needs them.
                    said.replace('\r', "").trim()
                );
            }
            if Instant::now() >= deadline {
                bail!(
                    "unable to open a tunnel to {}: no connection within {}; see --ssh-timeout",
                    host.host,
                    humantime::format_duration(time)
                );
            }
            sleep(POLL).await;
        }
        Ok(())
    }
}

/// Starts ssh without SIGINT and SIGHUP, which a terminal sends to all of its processes: fleetctl handles them,
/// and may need the tunnel then. In its own process group ssh could not ask for passwords.
const UNINTERRUPTED: &str = "trap '' HUP INT; exec ssh \"$@\"";
/// Status of a shell that does not find a program.
const NOT_FOUND: i32 = 127;
const SOCKET: &str = "api.sock";
/// How often the socket of a tunnel is checked.
const POLL: Duration = Duration::from_millis(50);
