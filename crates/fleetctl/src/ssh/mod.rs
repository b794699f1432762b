//! Runs the system's `ssh`: shells and commands on machines, and tunnels to the API (`tunnel`).

mod tunnel;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::Context as _;
use tokio::process::Command;

pub(crate) use tunnel::Tunnel;

/// Options of every connection.
#[derive(Debug, Clone)]
pub(crate) struct SshOptions {
    pub username: String,
    pub timeout: Duration,
    pub checks_host_keys: bool,
    pub known_hosts: PathBuf,
}

/// A host, and the port of its sshd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SshHost {
    pub host: String,
    pub port: u16,
}

impl SshHost {
    /// `HOST` or `HOST:PORT`; an IPv6 address with a port is in brackets.
    ///
    /// # Errors
    /// The text after the colon is no port.
    pub(crate) fn parse(text: &str) -> anyhow::Result<Self> {
        let of = |host: &str, port| Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port,
        };
        match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                let port = port.parse();
                Ok(of(
                    host,
                    port.with_context(|| format!("{text}: the port is no number"))?,
                ))
            }
            _ => Ok(of(text, 22)),
        }
    }
}

impl SshOptions {
    /// Arguments of every connection.
    fn arguments(&self) -> Vec<OsString> {
        let (checking, file) = if self.checks_host_keys {
            ("ask", self.known_hosts.clone())
        } else {
            ("no", PathBuf::from("/dev/null"))
        };
        let mut known_hosts = OsString::from("UserKnownHostsFile=");
        known_hosts.push(file);
        let seconds = self.timeout.as_secs().max(1);
        vec![
            "-o".into(),
            format!("ConnectTimeout={seconds}").into(),
            "-o".into(),
            format!("StrictHostKeyChecking={checking}").into(),
            "-o".into(),
            known_hosts,
        ]
    }

    /// Arguments that lead to a host, through a bastion if there is one.
    pub(crate) fn destination(&self, host: &SshHost, bastion: Option<&SshHost>) -> Vec<OsString> {
        let mut arguments = self.arguments();
        if let Some(bastion) = bastion {
            let mut jump = vec![OsString::from("ssh")];
            jump.extend(self.arguments());
            // Brackets, because an IPv6 address has colons.
            jump.extend(["-W".into(), "[%h]:%p".into()]);
            jump.extend(self.login(bastion));
            let jump: Vec<_> = jump
                .iter()
                .map(|word| quoted(&word.to_string_lossy()))
                .collect();
            arguments.extend([
                "-o".into(),
                format!("ProxyCommand={}", jump.join(" ")).into(),
            ]);
        }
        arguments.extend(self.login(host));
        arguments
    }

    fn login(&self, host: &SshHost) -> [OsString; 6] {
        [
            "-p".into(),
            host.port.to_string().into(),
            "-l".into(),
            self.username.clone().into(),
            // A host that begins with a dash would be read as an option.
            "--".into(),
            host.host.clone().into(),
        ]
    }

    /// Creates the folder of the known hosts file, where ssh stores new ones.
    fn prepare(&self) {
        if self.known_hosts.starts_with("~") {
            // ssh finds the user's home itself.
            return;
        }
        if let Some(folder) = self.known_hosts.parent() {
            // ssh itself reports what it could not store.
            let _ = std::fs::create_dir_all(folder);
        }
    }
}

/// A word quoted for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%,+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A command on a machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct RemoteCommand {
    /// Words for the remote shell; none opens a shell.
    pub words: Vec<String>,
    pub forwards_agent: bool,
}

/// Runs a command on a host and connects it to this terminal.
///
/// # Errors
/// ssh could not be started.
pub(crate) async fn run(
    options: &SshOptions,
    host: &SshHost,
    bastion: Option<&SshHost>,
    command: &RemoteCommand,
) -> anyhow::Result<ExitStatus> {
    options.prepare();
    let mut ssh = Command::new("ssh");
    if command.forwards_agent {
        ssh.arg("-A");
    }
    ssh.args(options.destination(host, bastion))
        .args(&command.words);
    let status = ssh.status().await;
    status.context("unable to run ssh: is OpenSSH installed?")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(checks_host_keys: bool) -> SshOptions {
        SshOptions {
            username: "core".to_owned(),
            timeout: Duration::from_secs(10),
            checks_host_keys,
            known_hosts: "/home/u/.fleetctl/known_hosts".into(),
        }
    }

    fn words(arguments: &[OsString]) -> String {
        let words: Vec<_> = arguments
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        words.join(" ")
    }

    #[test]
    fn hosts_may_have_ports() {
        for (text, host, port) in [
            ("bastion", "bastion", 22),
            ("bastion:2222", "bastion", 2222),
            ("192.0.2.1:22", "192.0.2.1", 22),
            ("2001:db8::1", "2001:db8::1", 22),
            ("[2001:db8::1]:2222", "2001:db8::1", 2222),
        ] {
            let expected = SshHost {
                host: host.to_owned(),
                port,
            };
            assert_eq!(SshHost::parse(text).unwrap(), expected);
        }
        assert!(SshHost::parse("bastion:x").is_err());
    }

    #[test]
    fn host_keys_are_checked_unless_users_say_otherwise() {
        let host = SshHost::parse("192.0.2.1").unwrap();
        let arguments = words(&options(true).destination(&host, None));
        assert_eq!(
            arguments,
            "-o ConnectTimeout=10 -o StrictHostKeyChecking=ask -o UserKnownHostsFile=/home/u/.fleetctl/known_hosts -p 22 -l core -- 192.0.2.1"
        );
        let arguments = words(&options(false).destination(&host, None));
        assert!(
            arguments.contains("StrictHostKeyChecking=no"),
            "{arguments}"
        );
        assert!(
            arguments.contains("UserKnownHostsFile=/dev/null"),
            "{arguments}"
        );
    }

    #[test]
    fn a_bastion_is_a_proxy_command() {
        let host = SshHost::parse("192.0.2.1").unwrap();
        let bastion = SshHost::parse("bastion:2222").unwrap();
        let arguments = words(&options(true).destination(&host, Some(&bastion)));
        assert!(
            arguments.contains("ProxyCommand=ssh -o ConnectTimeout=10 ")
                && arguments.contains("-W '[%h]:%p' -p 2222 -l core -- bastion -p 22"),
            "{arguments}"
        );
    }

    #[test]
    fn words_are_quoted_for_shells() {
        for (word, expected) in [
            ("a", "a"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
