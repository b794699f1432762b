//! Every setting of fleetd. The table makes the variables, `config check` and the table of docs/fleet-running.md.
//!
//! Names and meanings are those of the older fleetd; what it did not have stands last in its group.

use std::time::Duration;

use super::values::{addresses, endpoints, level, machine_id_or_none, metadata, mode, seconds};
use hyperfleet_fleet::settings::Etcd;
use hyperfleet_server_kit::settings::SettingKind::{
    Bool, Choice, File, Number, Read, Secret, Text,
};
use hyperfleet_server_kit::settings::SettingStatus::{Gone, Reloaded, WithoutEffect};
use hyperfleet_server_kit::settings::{Limits, Setting, SettingTable, Timeouts, row};

const SHORT: Duration = Duration::from_millis(100);
const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_mins(1);
const DAY: Duration = Duration::from_hours(24);
/// Most of anything that is counted one by one.
const COUNT_MAX: u128 = 1_000_000;
/// What may be said of pages, and counts as [`super::PAGE_SIZE_MAX`]: the older fleetd took any number of 16 bits.
const PAGE_SIZE_TAKEN_MAX: u128 = 65_535;
const IN_SECONDS: &str = ", in seconds";

pub(super) static TABLE: SettingTable = SettingTable {
    settings: SETTINGS,
    prefix: "FLEET_",
    other_variables: &[],
    unknown_variable: "is no setting and does not count",
    reference: "`fleetd config reference`",
    out_of_range: |it| {
        let (key, origin, value, least, most) = (it.key, it.origin, &it.value, &it.least, &it.most);
        format!("{key} (from {origin}): {value} is not between {least} and {most}")
    },
};

#[rustfmt::skip]
const SETTINGS: &[Setting] = &[
    Etcd::ENDPOINTS.at("etcd.endpoints").named("etcd_servers").written_as(endpoints, "http://127.0.0.1:2379", "")
        .help("URLs of etcd's servers, with commas between them, also as a JSON list; all http, or all https"),
    Etcd::USERNAME.at("etcd.username").named("etcd_username"),
    row("etcd_password", Secret, "", "Its password; better kept in a file"),
    Etcd::CA_FILE.at("etcd.ca_file").named("etcd_cafile"),
    Etcd::CERT_FILE.at("etcd.cert_file").named("etcd_certfile"),
    Etcd::KEY_FILE.at("etcd.key_file").named("etcd_keyfile"),
    Etcd::KEY_PREFIX.at("etcd.key_prefix").named("etcd_key_prefix"),
    Etcd::REQUEST_TIMEOUT.at("etcd.request_timeout").named("etcd_request_timeout").written_as(seconds, "5", IN_SECONDS),
    Etcd::PASSWORD_FILE.at("etcd.password_file").named("etcd_password_file").help("File with the password of etcd's user"),
    Etcd::SERVER_NAME.at("etcd.server_name").named("etcd_server_name"),

    row("engine.interval", Read(seconds), "2", "How often the engine looks at everything, in seconds; it leads on a lease of five times that").named("engine_reconcile_interval").lasting(SHORT, MINUTE),
    row("engine.machine_lease", Read(seconds), "30s", "How long a machine counts as there without a sign of life; the same on all machines").named("agent_ttl").lasting(SECOND, DAY),
    row("engine.is_disabled", Bool, "false", "Whether this fleetd only serves, and never decides where units run").named("disable_engine"),
    row("machine_id", Read(machine_id_or_none), "", "What this machine is called; unset: what /etc/machine-id says"),

    row("page_size", Number, "100", "Most items of a page of the API, up to 256").named("token_limit").between(1, PAGE_SIZE_TAKEN_MAX),
    row("listen.addresses", Read(addresses), "unix:/var/run/fleet.sock", "Where the API is served: unix:/path and tcp:host:port, with commas between them; not bound where systemd hands over sockets").named("listen"),
    row("listen.socket_mode", Read(mode), "0660", "Permissions of unix sockets that it makes, in octal").named("listen_socket_mode"),
    row("listen.cert_file", File, "", "PEM file with the certificate of TCP listeners, then those that it is signed by; unset: no TLS; read again when it changes").named("listen_cert_file"),
    row("listen.key_file", File, "", "PEM file with its private key; read again when it changes").named("listen_key_file"),
    row("listen.client_ca_file", File, "", "PEM file with the authorities of clients' certificates, which are required then; read again when it changes").named("listen_client_ca_file"),
    row("listen.is_anonymous", Bool, "false", "Whether other machines may call over TCP without a certificate, which is to do anything everywhere").named("listen_anonymous"),

    Limits::CONNECTIONS.at("limits.max_connections").named("max_connections"),
    Limits::IN_FLIGHT.at("limits.max_in_flight").named("max_in_flight"),
    Limits::BUFFERED.at("limits.max_buffered_mib").named("max_buffered_mib"),
    row("limits.rate.per_second", Number, "0", "Most requests of one address in a second, on average; more are answered 429; clients of unix sockets count as one; 0 for any number").named("rate_per_second").between(0, COUNT_MAX),
    row("limits.rate.burst", Number, "0", "Most requests of one address at once; 0 for as many as in one second").named("rate_burst").between(0, COUNT_MAX),
    Timeouts::READ.at("timeouts.read").named("read_timeout").written_as(seconds, "5", IN_SECONDS),
    Timeouts::WRITE.at("timeouts.write").named("write_timeout").written_as(seconds, "30", IN_SECONDS),
    Timeouts::IDLE.at("timeouts.idle").named("idle_timeout").written_as(seconds, "75", IN_SECONDS),
    row("shutdown_timeout", Read(seconds), "20", "How long requests under way may take to end once fleetd is to end, in seconds").lasting(SECOND, Duration::from_mins(2)),

    row("verbosity", Number, "0", "More than 0: log_level debug, where that is not set").between(0, COUNT_MAX).status(Reloaded),
    row("level", Read(level), "", "What is logged: debug, info, warn or error; unset: info; RUST_LOG overrides it").named("log_level").status(Reloaded),
    row("logging.format", Choice(&["json", "text"]), "text", "How it is written to standard error: text or json").named("log_format"),

    row("public_ip", Text, "", "Address that the machine is known by").status(WithoutEffect),
    row("metadata", Read(metadata), "", "What the machine says of itself: key=value, with commas between them").status(WithoutEffect),
    row("units_directory", File, "/run/fleet/units/", "Folder of unit files").status(WithoutEffect),
    row("systemd_user", Bool, "false", "Whether units run under the user's systemd").status(WithoutEffect),

    row("enable_grpc", Text, "", "").status(Gone("etcd v3 is always spoken to over gRPC; leave it out")),
    row("disable_watches", Text, "", "").status(Gone("changes are always watched for; leave it out")),
    row("verify_units", Text, "", "").status(Gone("units are not signed; leave it out")),
    row("authorized_keys_file", Text, "", "").status(Gone("units are not signed; leave it out")),
];

/// Every setting as Markdown: those of this version, then those of older files.
pub fn reference() -> String {
    let table = TABLE.markdown("key", SETTINGS);
    let unused = SETTINGS.iter().filter(|s| s.status == WithoutEffect);
    let unused: Vec<_> = unused.map(|s| format!("`{}`", s.key)).collect();
    let unused = unused.join(", ");
    let gone = SETTINGS.iter().filter_map(|setting| match setting.status {
        Gone(instead) => Some(format!("| `{}` | {instead} |\n", setting.key)),
        _ => None,
    });
    let gone: String = gone.collect();
    format!(
        "\n{table}\nChecked, and without effect because this version runs no agent: {unused}.\n\n\
         Without a meaning any more:\n\n| key | because |\n| --- | --- |\n{gone}"
    )
}
