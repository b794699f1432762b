//! Flags of every command.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{ArgAction, Args};

/// The headings in `--help`.
const CONNECTION: &str = "Connection";
const SSH: &str = "SSH";

/// Flags of every command; each has a variable.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = CONNECTION)]
pub(crate) struct GlobalArgs {
    /// Address of the API: unix://PATH, http://HOST:PORT or https://HOST:PORT. Of a comma list the first counts
    #[arg(
        long,
        global = true,
        env = "FLEETCTL_ENDPOINT",
        value_name = "URL",
        default_value = "unix:///var/run/fleet.sock"
    )]
    pub endpoint: String,
    /// Client certificate for https, as PEM
    #[arg(long, global = true, env = "FLEETCTL_CERT_FILE", value_name = "FILE")]
    pub cert_file: Option<PathBuf>,
    /// Key of the client certificate, as PEM
    #[arg(long, global = true, env = "FLEETCTL_KEY_FILE", value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// Certificate authorities that the server's certificate must come from, as PEM [default: those of the system]
    #[arg(long, global = true, env = "FLEETCTL_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Longest time to wait for an answer, in seconds or as 30s, 2m
    #[arg(
        long,
        global = true,
        env = "FLEETCTL_REQUEST_TIMEOUT",
        value_name = "TIME",
        default_value = "30s",
        value_parser = positive_time
    )]
    pub request_timeout: Duration,
    /// Connect through ssh to this host, and to the endpoint from there
    #[arg(long, global = true, env = "FLEETCTL_TUNNEL", value_name = "HOST[:PORT]", help_heading = SSH)]
    pub tunnel: Option<String>,
    /// User for ssh
    #[arg(
        long,
        global = true,
        env = "FLEETCTL_SSH_USERNAME",
        value_name = "USER",
        default_value = "core",
        help_heading = SSH
    )]
    pub ssh_username: String,
    /// Longest time to wait for an ssh connection, in seconds or as 10s, 1m
    #[arg(
        long,
        global = true,
        env = "FLEETCTL_SSH_TIMEOUT",
        value_name = "TIME",
        default_value = "10s",
        value_parser = positive_time,
        help_heading = SSH
    )]
    pub ssh_timeout: Duration,
    /// Refuse hosts whose keys are not known; unknown ones are asked about on a terminal
    #[arg(
        long,
        global = true,
        env = "FLEETCTL_STRICT_HOST_KEY_CHECKING",
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_value = "true",
        default_missing_value = "true",
        action = ArgAction::Set,
        hide_possible_values = true,
        value_parser = BoolishValueParser::new(),
        help_heading = SSH
    )]
    pub strict_host_key_checking: bool,
    /// File of known host keys
    #[arg(
        long,
        global = true,
        env = "FLEETCTL_KNOWN_HOSTS_FILE",
        value_name = "FILE",
        default_value = "~/.fleetctl/known_hosts",
        help_heading = SSH
    )]
    pub known_hosts_file: String,
    /// Print each request to standard error
    #[arg(long, global = true, env = "FLEETCTL_DEBUG", help_heading = "Options", value_parser = BoolishValueParser::new())]
    pub debug: bool,
    /// Print the version
    #[arg(long, global = true, help_heading = "Options")]
    pub version: bool,
    /// Print help
    #[arg(long, short = 'h', alias = "h", global = true, action = ArgAction::Help, help_heading = "Options")]
    help: Option<bool>,
    #[command(flatten)]
    pub older: OlderArgs,
}

/// Flags that mean nothing any more; scripts may have them.
#[derive(Debug, Clone, Args)]
pub(crate) struct OlderArgs {
    /// The older fleetctl could also talk to etcd v2.
    #[arg(long, global = true, env = "FLEETCTL_DRIVER", hide = true, value_parser = driver)]
    driver: Option<String>,
    /// Older name of `--cert-file`.
    #[arg(long, global = true, env = "FLEETCTL_ETCD_CERTFILE", hide = true)]
    pub etcd_certfile: Option<PathBuf>,
    /// Older name of `--key-file`.
    #[arg(long, global = true, env = "FLEETCTL_ETCD_KEYFILE", hide = true)]
    pub etcd_keyfile: Option<PathBuf>,
    /// Older name of `--ca-file`.
    #[arg(long, global = true, env = "FLEETCTL_ETCD_CAFILE", hide = true)]
    pub etcd_cafile: Option<PathBuf>,
    /// Only the etcd driver used it.
    #[arg(long, global = true, env = "FLEETCTL_ETCD_KEY_PREFIX", hide = true)]
    etcd_key_prefix: Option<String>,
    /// The API is no longer an experiment.
    #[arg(long, global = true, env = "FLEETCTL_EXPERIMENTAL_API", hide = true, value_parser = BoolishValueParser::new())]
    experimental_api: bool,
}

fn driver(text: &str) -> Result<String, String> {
    match text {
        "API" | "api" => Ok(text.to_owned()),
        "etcd" => Err("units are no longer in etcd v2: leave --driver out and name the API with --endpoint; `fleetctl import` takes over the units of an etcd v2".to_owned()),
        _ => Err("the only driver is API".to_owned()),
    }
}

/// A positive duration: seconds, as in the older fleetctl, or with units.
pub(super) fn positive_time(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok();
    let seconds = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let time = match seconds {
        Some(time) => time,
        None => humantime::parse_duration(text).map_err(|error| error.to_string())?,
    };
    if time.is_zero() {
        return Err("must be above 0".to_owned());
    }
    Ok(time)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A socket of this machine.
    Unix(PathBuf),
    /// `http://…` or `https://…`, without a trailing slash.
    Url(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidEndpoint {
    #[error(
        "URL scheme undefined: {0:?}; write unix://PATH, http://HOST:PORT or https://HOST:PORT"
    )]
    NoScheme(String),
    #[error("URL scheme {0:?} is not supported; use unix, http or https")]
    Scheme(String),
    #[error(
        "{0:?} names the host {1:?}: the path of a unix socket is absolute, as in unix:///var/run/fleet.sock"
    )]
    Host(String, String),
    #[error("{0:?} names no host")]
    NoHost(String),
}

/// An endpoint for messages, without the password that its URL may contain.
pub(crate) fn without_password(endpoint: &str) -> String {
    let start = endpoint.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = endpoint.split_at(start);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let credentials = authority.rsplit_once('@');
    match credentials.and_then(|(login, host)| Some((login.split_once(':')?.0, host))) {
        Some((user, host)) => format!("{scheme}{user}:***@{host}{path}"),
        None => endpoint.to_owned(),
    }
}

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(InvalidEndpoint::NoScheme(without_password(text)));
        };
        match scheme {
            "unix" | "file" => {
                let host = rest.split('/').next().unwrap_or_default();
                if !host.is_empty() || rest.is_empty() {
                    let text = without_password(text);
                    let host = without_password(host);
                    return Err(InvalidEndpoint::Host(text, host));
                }
                Ok(Self::Unix(PathBuf::from(rest)))
            }
            "http" | "https" if rest.trim_matches('/').is_empty() => {
                Err(InvalidEndpoint::NoHost(without_password(text)))
            }
            "http" | "https" => Ok(Self::Url(text.trim_end_matches('/').to_owned())),
            scheme => Err(InvalidEndpoint::Scheme(scheme.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_are_sockets_or_urls() {
        for (text, expected) in [
            (
                "unix:///var/run/fleet.sock",
                Endpoint::Unix("/var/run/fleet.sock".into()),
            ),
            ("file:///run/a.sock", Endpoint::Unix("/run/a.sock".into())),
            (
                "http://127.0.0.1:49153/",
                Endpoint::Url("http://127.0.0.1:49153".to_owned()),
            ),
            ("https://fleet", Endpoint::Url("https://fleet".to_owned())),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for (text, words) in [
            ("127.0.0.1:8000", "URL scheme undefined"),
            ("", "URL scheme undefined"),
            ("unix://var/run/fleet.sock", "\"var\""),
            ("tcp://h", "\"tcp\" is not supported"),
            ("http://", "names no host"),
        ] {
            let fault = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(fault.contains(words), "{text}: {fault}");
        }
    }

    #[test]
    fn messages_have_no_passwords() {
        for (endpoint, shown) in [
            ("https://u:p@h:1/a@b:c", "https://u:***@h:1/a@b:c"),
            ("https://u:p@q@h", "https://u:***@h"),
            ("u:p@h", "u:***@h"),
            ("https://u@h:1", "https://u@h:1"),
            ("http://[::1]:80", "http://[::1]:80"),
            ("unix:///run/a.sock", "unix:///run/a.sock"),
        ] {
            assert_eq!(without_password(endpoint), shown);
        }
    }

    #[test]
    fn times_are_seconds_or_have_units() {
        for (text, millis) in [("3", 3000), ("0.5", 500), ("10s", 10_000), ("2m", 120_000)] {
            assert_eq!(
                positive_time(text),
                Ok(Duration::from_millis(millis)),
                "{text}"
            );
        }
        for text in ["", "0", "-1", "x", "0s", "NaN"] {
            assert!(positive_time(text).is_err(), "{text}");
        }
    }
}
