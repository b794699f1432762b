//! Every setting of fleetd. The table makes the variables, `config check` and the table of
//! docs/reference/fleetd-settings.md.
//!
//! Names and meanings are those of the older fleetd; new settings come last in their group.

use super::values::{
    addresses, endpoints, host_and_port_or_none, machine_id_or_none, metadata, mode, seconds,
};
use hyperfleet_fleet::settings::Etcd;
use hyperfleet_server_kit::settings::SettingKind::{
    Bool, Choice, File, Number, Read, Secret, Text,
};
use hyperfleet_server_kit::settings::SettingStatus::{Gone, Reloaded};
use hyperfleet_server_kit::settings::{LimitSettings, Setting, SettingTable, Timeouts, row};

pub(super) static TABLE: SettingTable = SettingTable {
    settings: SETTINGS,
    prefix: "FLEET_",
    other_variables: &[],
    reference: "`fleetd config reference`",
};

const IN_SECONDS: &str = ", in seconds";

#[rustfmt::skip]
const SETTINGS: &[Setting] = &[
    Setting { key: "etcd_servers", path: "etcd.endpoints", kind: Read(endpoints), default: "http://127.0.0.1:2379", help: "URLs of etcd's servers, separated by commas, or as a JSON list; all http, or all https", ..Etcd::ENDPOINTS },
    Setting { key: "etcd_username", path: "etcd.username", ..Etcd::USERNAME },
    row("etcd_password", Secret, "", "Password of etcd's user; better kept in a file"),
    Setting { key: "etcd_cafile", path: "etcd.ca_file", ..Etcd::CA_FILE },
    Setting { key: "etcd_certfile", path: "etcd.cert_file", ..Etcd::CERT_FILE },
    Setting { key: "etcd_keyfile", path: "etcd.key_file", ..Etcd::KEY_FILE },
    Setting { key: "etcd_key_prefix", path: "etcd.key_prefix", ..Etcd::KEY_PREFIX },
    Setting { key: "etcd_request_timeout", path: "etcd.request_timeout", kind: Read(seconds), default: "5", unit: IN_SECONDS, ..Etcd::REQUEST_TIMEOUT },
    Setting { key: "etcd_password_file", path: "etcd.password_file", help: "File with the password of etcd's user", ..Etcd::PASSWORD_FILE },
    Setting { key: "etcd_server_name", path: "etcd.server_name", ..Etcd::SERVER_NAME },

    Setting { path: "engine.interval", range: Some(("100ms", "1m")), ..row("engine_reconcile_interval", Read(seconds), "2", "How often the engine checks everything, in seconds; its lease is five times as long") },
    Setting { path: "engine.machine_lease", range: Some(("1s", "1day")), ..row("agent_ttl", Read(seconds), "30s", "How long a machine remains a member after it last renewed its lease; must be equal on all machines") },
    Setting { path: "engine.is_disabled", ..row("disable_engine", Bool, "false", "Do not run an engine: only serve, and never decide where units run") },
    Setting { path: "agent.is_disabled", ..row("disable_agent", Bool, "false", "Do not run an agent: run no units, and do not join the cluster") },
    Setting { status: Reloaded, path: "agent.public_ip", ..row("public_ip", Text, "", "Address of the machine for users; unset: the one from which it reaches others, looked up every 10 seconds") },
    Setting { status: Reloaded, path: "agent.advertise_address", ..row("advertise_address", Read(host_and_port_or_none), "", "host:port where the fleetd of other machines reach the API of this one, to show status and journal of its units; needs listen_cert_file, listen_key_file and listen_client_ca_file, of one authority on all machines; unset: only this machine shows them") },
    Setting { status: Reloaded, path: "agent.metadata", ..row("metadata", Read(metadata), "", "Metadata of the machine: key=value, separated by commas, without quotes; of a repeated key the last counts") },
    Setting { path: "agent.units_directory", ..row("units_directory", File, "/run/fleet/units/", "Folder of unit files that only fleet uses: it removes other unit files in it") },
    Setting { path: "agent.systemd_user", ..row("systemd_user", Bool, "false", "Run units under the systemd of fleetd's user instead of the machine's") },
    Setting { status: Reloaded, path: "agent.shutdown_mode", ..row("shutdown_mode", Choice(&["keep", "stop", "move"]), "keep", "What happens to units when fleetd stops: keep leaves them running for the next start within agent_ttl; stop stops them, and they move to other machines; move first waits for up to a minute until other machines run them, then stops them") },
    Setting { path: "agent.state_directory", ..row("state_directory", File, "/var/lib/fleet/", "Folder on a disk, for what survives a reboot: the machine's registration") },
    row("machine_id", Read(machine_id_or_none), "", "Id of this machine; unset: the one in /etc/machine-id"),

    Setting { path: "page_size", range: Some(("1", "65535")), ..row("token_limit", Number, "100", "Maximum number of items on a page of the API; more than 256 counts as 256") },
    Setting { path: "listen.addresses", ..row("listen", Read(addresses), "unix:/var/run/fleet.sock", "Listeners of the API: unix:/path and tcp:host:port, separated by commas; ignored if systemd passes sockets") },
    Setting { path: "listen.socket_mode", ..row("listen_socket_mode", Read(mode), "0660", "Permissions of created unix sockets, in octal") },
    Setting { path: "listen.cert_file", ..row("listen_cert_file", File, "", "PEM file with the certificate of TCP listeners and its intermediate certificates; unset: no TLS; read again when it changes") },
    Setting { path: "listen.key_file", ..row("listen_key_file", File, "", "PEM file with its private key; read again when it changes") },
    Setting { path: "listen.client_ca_file", ..row("listen_client_ca_file", File, "", "PEM file with the authorities of client certificates, which are then required; read again when it changes") },
    Setting { path: "listen.is_anonymous", ..row("listen_anonymous", Bool, "false", "Accept clients without a certificate over TCP from other machines; they can do anything everywhere") },
    Setting { path: "listen.is_disabled", ..row("disable_api", Bool, "false", "Do not serve the API: open no listener; fleetctl needs the fleetd of another machine, and metrics, status and journal of this machine cannot be read over the network") },

    Setting { key: "max_connections", path: "limits.max_connections", ..LimitSettings::CONNECTIONS },
    Setting { key: "max_in_flight", path: "limits.max_in_flight", ..LimitSettings::IN_FLIGHT },
    Setting { key: "max_buffered_mib", path: "limits.max_buffered_mib", ..LimitSettings::BUFFERED },
    Setting { path: "limits.rate.per_second", range: Some(("0", "1000000")), ..row("rate_per_second", Number, "0", "Average requests per second of one address; beyond it requests get 429; clients of unix sockets count as one; 0 for no limit") },
    Setting { path: "limits.rate.burst", range: Some(("0", "1000000")), ..row("rate_burst", Number, "0", "Requests that one address may send in a burst; 0 for as many as per second") },
    Setting { key: "read_timeout", path: "timeouts.read", kind: Read(seconds), default: "5", unit: IN_SECONDS, ..Timeouts::READ },
    Setting { key: "write_timeout", path: "timeouts.write", kind: Read(seconds), default: "30", unit: IN_SECONDS, ..Timeouts::WRITE },
    Setting { key: "idle_timeout", path: "timeouts.idle", kind: Read(seconds), default: "75", unit: IN_SECONDS, ..Timeouts::IDLE },
    Setting { range: Some(("1s", "2m")), ..row("shutdown_timeout", Read(seconds), "20", "How long requests in progress may take during shutdown, in seconds") },

    Setting { range: Some(("0", "1000000")), status: Reloaded, ..row("verbosity", Number, "0", "More than 0: log_level debug, unless log_level is set") },
    Setting { path: "level", status: Reloaded, ..row("log_level", Choice(&["debug", "info", "warn", "error"]), "", "Log level; unset: info; RUST_LOG overrides it") },
    Setting { path: "logging.format", ..row("log_format", Choice(&["json", "text"]), "text", "Log format on standard error") },


    Setting { status: Gone("etcd v3 is always used over gRPC; remove it"), ..row("enable_grpc", Text, "", "") },
    Setting { status: Gone("changes are always watched; remove it"), ..row("disable_watches", Text, "", "") },
    Setting { status: Gone("units are not signed; remove it"), ..row("verify_units", Text, "", "") },
    Setting { status: Gone("units are not signed; remove it"), ..row("authorized_keys_file", Text, "", "") },
];

/// Every setting as Markdown: those of this version, then those of older files.
pub fn reference() -> String {
    let table = TABLE.markdown("key", SETTINGS);
    let gone = SETTINGS.iter().filter_map(|setting| match setting.status {
        Gone(instead) => Some(format!("| `{}` | {instead} |\n", setting.key)),
        _ => None,
    });
    let gone: String = gone.collect();
    format!("\n{table}\nWithout effect:\n\n| key | because |\n| --- | --- |\n{gone}")
}
