//! State shared by all commands: the global flags, and a client that connects when it is first needed.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::OnceCell;

use crate::cli::{Endpoint, GlobalArgs, without_password};
use crate::client::{Client, ConnectionSettings, TlsFiles, connect};
use crate::machines::Machines;
use crate::output;
use crate::signals::{Ending, Signals};
use crate::ssh::{SshHost, SshOptions, Tunnel};

/// One run of fleetctl.
#[derive(Debug)]
pub(crate) struct Session {
    global: GlobalArgs,
    connection: OnceCell<Connection>,
    /// The command handles the next signal.
    handles_signal: Cell<bool>,
}

#[derive(Debug)]
struct Connection {
    client: Client,
    /// Ends with the session.
    _tunnel: Option<Tunnel>,
}

impl Session {
    pub(crate) fn new(global: GlobalArgs) -> Self {
        Self {
            global,
            connection: OnceCell::new(),
            handles_signal: Cell::new(false),
        }
    }

    /// The client of the API.
    ///
    /// # Errors
    /// The endpoint, a certificate or the tunnel cannot be used.
    pub(crate) async fn client(&self) -> anyhow::Result<&Client> {
        let connection = self.connection.get_or_try_init(|| self.connect()).await?;
        Ok(&connection.client)
    }

    /// Waits for a signal, which then does not end fleetctl: the command completes its work, and ends. A second
    /// signal ends fleetctl.
    pub(crate) async fn interrupted(&self) -> Ending {
        let Ok(mut signals) = Signals::new() else {
            // Without signals nothing interrupts.
            return std::future::pending().await;
        };
        self.handles_signal.set(true);
        let mut handling = Handling {
            flag: &self.handles_signal,
            has_come: false,
        };
        let ending = signals.next().await;
        handling.has_come = true;
        ending
    }

    /// Whether the command handles the signal that arrived.
    pub(crate) fn leaves_signal_to_command(&self) -> bool {
        self.handles_signal.replace(false)
    }

    pub(crate) async fn machines(&self) -> anyhow::Result<Machines> {
        Ok(Machines::new(self.client().await?.machines().await?))
    }

    /// The host of `--tunnel`.
    ///
    /// # Errors
    /// Its port is no number.
    pub(crate) fn bastion(&self) -> anyhow::Result<Option<SshHost>> {
        let tunnel = self.global.tunnel.as_deref();
        tunnel.map(SshHost::parse).transpose().context("--tunnel")
    }

    pub(crate) fn tls_files(&self) -> TlsFiles {
        let GlobalArgs {
            cert_file,
            key_file,
            ca_file,
            older,
            ..
        } = &self.global;
        TlsFiles {
            certificate: cert_file.clone().or(older.etcd_certfile.clone()),
            key: key_file.clone().or(older.etcd_keyfile.clone()),
            authorities: ca_file.clone().or(older.etcd_cafile.clone()),
        }
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        self.global.request_timeout
    }

    pub(crate) fn ssh_options(&self) -> SshOptions {
        SshOptions {
            username: self.global.ssh_username.clone(),
            timeout: self.global.ssh_timeout,
            checks_host_keys: self.global.strict_host_key_checking,
            known_hosts: below_home(&self.global.known_hosts_file),
        }
    }

    async fn connect(&self) -> anyhow::Result<Connection> {
        let mut endpoints = self.global.endpoint.split(',').map(str::trim);
        let name = endpoints.next().unwrap_or_default().to_owned();
        let shown = without_password(&name);
        if endpoints.next().is_some() {
            output::notice(&format!(
                "WARNING: only the first of several endpoints is used: {shown}"
            ));
        }
        let endpoint: Endpoint = name.parse()?;
        let (endpoint, tunnel) = match self.bastion()? {
            None => (endpoint, None),
            Some(bastion) => {
                let target = tunnel_target(&endpoint)?;
                let tunnel = Tunnel::open(&self.ssh_options(), &bastion, &target).await?;
                (Endpoint::Unix(tunnel.socket()), Some(tunnel))
            }
        };
        let client = connect(ConnectionSettings {
            endpoint,
            name: shown,
            tls: self.tls_files(),
            timeout: self.global.request_timeout,
            prints_calls: self.global.debug,
        })?;
        Ok(Connection {
            client,
            _tunnel: tunnel,
        })
    }
}

/// A command that handles a signal until this is dropped.
struct Handling<'s> {
    flag: &'s Cell<bool>,
    has_come: bool,
}

impl Drop for Handling<'_> {
    fn drop(&mut self) {
        if !self.has_come {
            self.flag.set(false);
        }
    }
}

/// The target of ssh's forwarding on the other side.
fn tunnel_target(endpoint: &Endpoint) -> anyhow::Result<String> {
    match endpoint {
        Endpoint::Unix(path) => Ok(path.display().to_string()),
        Endpoint::Url(url) => {
            let rest = url.strip_prefix("http://");
            let rest =
                rest.context("--tunnel encrypts already: use it with an endpoint of http or unix")?;
            let address = rest.split('/').next().unwrap_or_default();
            let address = address.rsplit('@').next().unwrap_or_default();
            let has_port = address
                .rsplit_once(':')
                .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
            Ok(if has_port {
                address.to_owned()
            } else {
                format!("{address}:80")
            })
        }
    }
}

/// A path whose `~` is the user's home; unchanged without HOME.
fn below_home(path: &str) -> PathBuf {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunnels_lead_to_sockets_and_ports() {
        for (endpoint, target) in [
            ("unix:///var/run/fleet.sock", "/var/run/fleet.sock"),
            ("http://127.0.0.1:49153", "127.0.0.1:49153"),
            ("http://fleet", "fleet:80"),
            ("http://u:p@fleet:1", "fleet:1"),
            ("http://[::1]:8000/", "[::1]:8000"),
        ] {
            assert_eq!(tunnel_target(&endpoint.parse().unwrap()).unwrap(), target);
        }
        assert!(tunnel_target(&"https://h".parse().unwrap()).is_err());
    }
}
