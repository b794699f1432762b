//! Every key of the settings: what it takes, its default, and what it is for. One table makes the variables,
//! `config check` and the table of docs/fleet-running.md.
//!
//! Names and meanings are those of the older fleetd (fleet.md §8.2); what it did not have stands last in its group.

use std::time::Duration;

use super::values::{format, level, list, machine_id, mode, number, time, truth};
use super::{Address, Settings};
use crate::config::Secret;

/// What every variable begins with.
const PREFIX: &str = "FLEET_";
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);
/// Most of anything that is counted one by one.
const COUNT_MAX: usize = 1_000_000;
/// Most memory that may be held for clients: 1 TiB.
const BUFFERED_MIB_MAX: usize = 1024 * 1024;
/// Most items of a page: what `storage/registry` reads at a time.
pub(in crate::config) const PAGE_SIZE_MAX: usize = 256;
/// What may be said all the same, and counts as that: the older fleetd took any number of 16 bits.
const PAGE_SIZE_TAKEN_MAX: usize = 65_535;

/// What a key means today.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// It is a setting.
    Used,
    /// It is one, and a reload (SIGHUP) takes a new value; files are looked at by themselves.
    Reloaded,
    /// It is for the agent, which this version does not have: checked, without effect.
    Agent,
    /// The older fleetd had it; what is instead.
    Gone(&'static str),
}

/// One key.
#[derive(Clone, Copy)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) status: Status,
    /// As it would stand in the file.
    pub(super) default: &'static str,
    pub(super) is_secret: bool,
    /// What it is for, for people.
    pub(super) help: &'static str,
    /// Takes a value: what is wrong with it otherwise, to follow the key's name.
    pub(super) take: fn(&mut Settings, &str) -> Result<(), String>,
}

impl Key {
    /// The variable that gives it.
    pub(super) fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_uppercase())
    }
}

type Take = fn(&mut Settings, &str) -> Result<(), String>;

const fn key(name: &'static str, default: &'static str, help: &'static str, take: Take) -> Key {
    Key {
        name,
        status: Status::Used,
        default,
        is_secret: false,
        help,
        take,
    }
}

const fn reloaded(key: Key) -> Key {
    let status = Status::Reloaded;
    Key { status, ..key }
}

const fn secret(key: Key) -> Key {
    let is_secret = true;
    Key { is_secret, ..key }
}

const fn agent(key: Key) -> Key {
    let status = Status::Agent;
    Key { status, ..key }
}

const fn gone(name: &'static str, instead: &'static str) -> Key {
    Key {
        status: Status::Gone(instead),
        ..key(name, "", "", |_, _| Ok(()))
    }
}

/// A setter of something that any text will do for.
macro_rules! text {
    ($($field:ident).+) => {
        |settings, text| {
            settings.$($field).+ = text.into();
            Ok(())
        }
    };
}

/// A setter of what a function reads.
macro_rules! read {
    ($($field:ident).+, $read:expr) => {
        |settings, text| {
            settings.$($field).+ = $read(text)?;
            Ok(())
        }
    };
}

fn short(text: &str) -> Result<Duration, String> {
    time(text, &(Duration::from_millis(100)..=MINUTE))
}

fn patience(text: &str) -> Result<Duration, String> {
    time(text, &(SECOND..=DAY))
}

fn count(text: &str) -> Result<usize, String> {
    number(text, &(1..=COUNT_MAX))
}

fn per_second(text: &str) -> Result<u32, String> {
    let count = number(text, &(0..=COUNT_MAX))?;
    Ok(u32::try_from(count).unwrap_or(u32::MAX))
}

fn addresses(text: &str) -> Result<Vec<Address>, String> {
    let texts = list(text);
    let read: Result<Vec<_>, _> = texts.iter().map(|one| Address::parse(one)).collect();
    let addresses = read?;
    for (index, address) in addresses.iter().enumerate() {
        let is_free = matches!(address, Address::Tcp { port: 0, .. });
        if !is_free && addresses.iter().take(index).any(|other| other == address) {
            return Err(format!("{address} stands there twice"));
        }
    }
    if addresses.is_empty() {
        return Err("says nowhere: name a listener, such as unix:/var/run/fleet.sock".to_owned());
    }
    Ok(addresses)
}

fn endpoints(text: &str) -> Result<Vec<String>, String> {
    let endpoints = list(text);
    if endpoints.is_empty() {
        return Err("names no server of etcd".to_owned());
    }
    Ok(endpoints)
}

/// What an agent will publish. The older fleetd dropped what is no pair without a word.
fn metadata(text: &str) -> Result<(), String> {
    let mut pairs = text.split(',').map(str::trim).filter(|p| !p.is_empty());
    match pairs.find(|pair| !pair.contains('=')) {
        Some(odd) => Err(format!("{odd:?} is no pair key=value")),
        None => Ok(()),
    }
}

/// Every key, in the order of the documentation.
#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    key("etcd_servers", "http://127.0.0.1:2379", "URLs of etcd's servers, with commas between them, also as a JSON list; all http, or all https",
        read!(etcd.endpoints, endpoints)),
    key("etcd_username", "", "User to log in to etcd as",
        text!(etcd.username)),
    secret(key("etcd_password", "", "Its password; better kept in a file",
        |settings, text| { settings.etcd_password = Secret::from(text.to_owned()); Ok(()) })),
    key("etcd_cafile", "", "PEM file with the authorities of etcd's certificates; needed for https",
        text!(etcd.ca_file)),
    key("etcd_certfile", "", "PEM file with the certificate to show to etcd",
        text!(etcd.cert_file)),
    key("etcd_keyfile", "", "PEM file with its private key",
        text!(etcd.key_file)),
    key("etcd_key_prefix", "/fleet/v3/", "What all of fleet's keys begin with",
        text!(etcd.key_prefix)),
    key("etcd_request_timeout", "5", "How long a call to etcd may take, in seconds",
        read!(etcd.request_timeout, short)),
    key("etcd_password_file", "", "File with the password of etcd's user",
        text!(etcd.password_file)),
    key("etcd_server_name", "", "Name that etcd's certificates are for, if not that of its URLs",
        text!(etcd.server_name)),

    key("engine_reconcile_interval", "2", "How often the engine looks at everything, in seconds; it leads on a lease of five times that",
        read!(engine.interval, short)),
    key("agent_ttl", "30s", "How long a machine counts as there without a sign of life; the same on all machines",
        read!(engine.machine_lease, |text| time(text, &(SECOND..=DAY)))),
    key("disable_engine", "false", "Whether this fleetd only serves, and never decides where units run",
        read!(engine.is_disabled, truth)),
    key("machine_id", "", "What this machine is called; unset: what /etc/machine-id says",
        |settings, text| {
            settings.machine_id = if text.is_empty() { String::new() } else { machine_id(text)? };
            Ok(())
        }),

    key("token_limit", "100", "Most items of a page of the API, up to 256",
        read!(page_size, |text| number(text, &(1..=PAGE_SIZE_TAKEN_MAX)))),
    key("listen", "unix:/var/run/fleet.sock", "Where the API is served: unix:/path and tcp:host:port, with commas between them; not bound where systemd hands over sockets",
        read!(listen.addresses, addresses)),
    key("listen_socket_mode", "0660", "Permissions of unix sockets that it makes, in octal",
        read!(listen.socket_mode, mode)),
    key("listen_cert_file", "", "PEM file with the certificate of TCP listeners, then those that it is signed by; unset: no TLS; read again when it changes",
        text!(listen.cert_file)),
    key("listen_key_file", "", "PEM file with its private key; read again when it changes",
        text!(listen.key_file)),
    key("listen_client_ca_file", "", "PEM file with the authorities of clients' certificates, which are required then; read again when it changes",
        text!(listen.client_ca_file)),
    key("listen_anonymous", "false", "Whether other machines may call over TCP without a certificate, which is to do anything everywhere",
        read!(listen.is_anonymous, truth)),

    key("max_connections", "10000", "Most connections at a time; more wait until one is closed",
        read!(limits.max_connections, count)),
    key("max_in_flight", "512", "Most requests under way at a time; more are answered 503",
        read!(limits.max_in_flight, count)),
    key("max_buffered_mib", "128", "Most MiB of large bodies and answers that are held for clients at a time; more are answered 503",
        read!(limits.max_buffered_mib, |text| number(text, &(1..=BUFFERED_MIB_MAX)))),
    key("rate_per_second", "0", "Most requests of one address in a second, on average; more are answered 429; clients of unix sockets count as one; 0 for any number",
        read!(limits.rate.per_second, per_second)),
    key("rate_burst", "0", "Most requests of one address at once; 0 for as many as in one second",
        read!(limits.rate.burst, per_second)),
    key("read_timeout", "5", "How long a client may take to send the head of a request, and then its body, in seconds",
        read!(timeouts.read, patience)),
    key("write_timeout", "30", "How long an answer may wait for its client to go on reading, in seconds",
        read!(timeouts.write, patience)),
    key("idle_timeout", "75", "How long a connection is kept open for the next request, in seconds",
        read!(timeouts.idle, patience)),
    key("shutdown_timeout", "20", "How long requests under way may take to end once fleetd is to end, in seconds",
        read!(shutdown_timeout, |text| time(text, &(SECOND..=MINUTE * 2)))),

    reloaded(key("verbosity", "0", "More than 0: log_level debug, where that is not set",
        read!(verbosity, |text| number(text, &(0..=COUNT_MAX))))),
    reloaded(key("log_level", "", "What is logged: debug, info, warn or error; unset: info; RUST_LOG overrides it",
        |settings, text| {
            settings.level = if text.is_empty() { None } else { Some(level(text)?) };
            Ok(())
        })),
    key("log_format", "text", "How it is written to standard error: text or json",
        read!(logging.format, format)),

    agent(key("public_ip", "", "Address that the machine is known by",
        |_, _| Ok(()))),
    agent(key("metadata", "", "What the machine says of itself: key=value, with commas between them",
        |_, text| metadata(text))),
    agent(key("units_directory", "/run/fleet/units/", "Folder of unit files",
        |_, _| Ok(()))),
    agent(key("systemd_user", "false", "Whether units run under the user's systemd",
        |_, text| truth(text).map(drop))),

    gone("enable_grpc", "etcd v3 is always spoken to over gRPC; leave it out"),
    gone("disable_watches", "changes are always watched for; leave it out"),
    gone("verify_units", "units are not signed; leave it out"),
    gone("authorized_keys_file", "units are not signed; leave it out"),
];

/// The key of that name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}
