//! Addresses of listeners.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Longest path of a unix socket, in bytes: the kernel's limit without the terminating zero (`unix(7)`).
const PATH_BYTES_MAX: usize = 107;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Address {
    Unix(PathBuf),
    Tcp {
        /// IP address or name.
        host: String,
        /// 0 for a free port.
        port: u16,
    },
}

impl Address {
    /// Parses `unix:/path` or `tcp:host:port`. `//` may follow the colon, as in the endpoints of clients.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let behind = |scheme: &str| {
            let rest = text.strip_prefix(scheme)?;
            Some(rest.strip_prefix("//").unwrap_or(rest))
        };
        if let Some(path) = behind("unix:") {
            return unix(Path::new(path));
        }
        if let Some(address) = behind("tcp:") {
            return tcp(address);
        }
        Err(format!(
            "{text:?} is no listener: give unix:/path/of/socket or tcp:host:port"
        ))
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text)
    }
}

fn unix(path: &Path) -> Result<Address, String> {
    let shown = path.display();
    if !path.is_absolute() || path.file_name().is_none() {
        return Err(format!(
            "\"unix:{shown}\" is no listener: give the whole path of the socket, from /"
        ));
    }
    if path.as_os_str().len() > PATH_BYTES_MAX {
        return Err(format!(
            "\"unix:{shown}\" is too long: the path of a socket has {PATH_BYTES_MAX} bytes at most"
        ));
    }
    Ok(Address::Unix(path.to_owned()))
}

fn tcp(text: &str) -> Result<Address, String> {
    let parts = text.rsplit_once(':');
    let found = parts.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    let (host, port) = found
        .filter(|(host, _)| !host.is_empty())
        .ok_or_else(|| format!("\"tcp:{text}\" is no listener: give tcp:host:port"))?;
    let inner = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    if inner.is_none() && host.contains([':', '[', ']', '/', '@']) {
        return Err(format!(
            "\"tcp:{text}\" is no listener: an IPv6 address goes in brackets, tcp:[::1]:49153"
        ));
    }
    Ok(Address::Tcp {
        host: inner.unwrap_or(host).to_owned(),
        port,
    })
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "tcp:[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "tcp:{host}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_and_ports_are_listeners_and_nothing_else_is() {
        for (text, shown) in [
            ("unix:/var/run/fleet.sock", "unix:/var/run/fleet.sock"),
            ("unix:///var/run/fleet.sock", "unix:/var/run/fleet.sock"),
            ("tcp:127.0.0.1:49153", "tcp:127.0.0.1:49153"),
            ("tcp://localhost:0", "tcp:localhost:0"),
            ("tcp:[::1]:49153", "tcp:[::1]:49153"),
        ] {
            assert_eq!(Address::parse(text).unwrap().to_string(), shown);
        }
        let long = format!("unix:/{}", "a".repeat(107));
        for text in [
            "",
            "/var/run/fleet.sock",
            "unix:",
            "unix:fleet.sock",
            "unix://fleet.sock",
            "unix:/",
            "unix:/a/..",
            "tcp:",
            "tcp:49153",
            "tcp::49153",
            "tcp:host:70000",
            "tcp:::1:49153",
            "http://127.0.0.1:49153",
            long.as_str(),
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }
}
