//! Every setting of `hyperfleet-api`. The table makes the variables, the flags, `config check` and the tables of
//! docs/configuration.md.

use std::time::Duration;

use hyperfleet_fleet::settings::{Etcd, PAGE_SIZE_MAX};
use hyperfleet_server_kit::settings::SettingKind::{
    Bool, Choice, Duration as Time, File, Number, Objects, Secret, Text,
};
use hyperfleet_server_kit::settings::SettingStatus::{Gone, Renamed};
use hyperfleet_server_kit::settings::{Limits, Masking, Setting, SettingTable, Timeouts, row};

/// The variable that names a database to many programs.
pub(super) const DATABASE_URL: &str = "DATABASE_URL";
/// Most connections that can be asked for: more serve nobody better.
const DATABASE_CONNECTIONS_MAX: u128 = 200;
const INSTANT: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// As long as orchestrators wait for the end, and for a probe.
const MINUTES: Duration = Duration::from_mins(2);
const DAY: Duration = Duration::from_hours(24);
/// Longest time that anything may be given: what is longer was meant otherwise.
const TIME_MAX: Duration = Duration::from_hours(24 * 365);

pub(super) static TABLE: SettingTable = SettingTable {
    settings: SETTINGS,
    prefix: "HYPERFLEET_",
    other_variables: &["HYPERFLEET_CONFIG"],
    unknown_variable: "is no setting",
    reference: "docs/configuration.md",
    out_of_range: |it| {
        let (key, value, least, most) = (it.key, &it.value, &it.least, &it.most);
        format!("{key} is {value}: set it to between {least} and {most}")
    },
};

const LEVELS: &[&str] = &["debug", "info", "warn", "error"];
const SSL_MODES: &[&str] = &["disable", "require", "verify-ca", "verify-full"];

/// By section. Names are those that operators of the older service know; those that it does not have stand last in
/// their section.
#[rustfmt::skip]
const SETTINGS: &[Setting] = &[
    row("server.hostname", Text, "", "What this instance is called in its log").flag("server-hostname"),
    row("server.host", Text, "localhost", "Address or name to listen on").flag("server-host"),
    row("server.port", Number, "8000", "Port to listen on, 0 for a free one").flag("server-port"),
    row("server.openapi_schema_path", File, "", "OpenAPI document with the schemas of specs; none: any spec will do").flag("server-openapi-schema-path"),
    Timeouts::READ.at("server.timeouts.read").flag("server-read-timeout"),
    Timeouts::WRITE.at("server.timeouts.write").flag("server-write-timeout"),
    Timeouts::IDLE.at("server.timeouts.idle"),
    row("server.tls.enabled", Bool, "false", "Whether the API speaks TLS").flag("server-https-enabled"),
    row("server.tls.cert_file", File, "", "PEM file with its certificate, then those that it is signed by; read again when it changes").flag("server-https-cert-file"),
    row("server.tls.key_file", File, "", "PEM file with the certificate's private key").flag("server-https-key-file"),
    row("server.jwt.enabled", Bool, "true", "Whether callers must present a token").flag("server-jwt-enabled"),
    row("server.jwt.configs", Objects, "[]", "Whose tokens are taken; see docs/authentication.md"),
    row("server.tenant.enabled", Bool, "false", "Whether requests must say on whose behalf they come").flag("server-tenant-enabled"),
    row("server.tenant.system_header", Text, "", "Header that marks system identities by saying true").flag("server-tenant-system-header"),
    row("server.tenant.dimensions", Objects, "[]", "What a tenant consists of: header, key, required; see docs/tenancy.md"),
    row("server.tenant.enforce", Bool, "false", "Whether callers see and change only what is their tenant's"),
    Limits::CONNECTIONS.at("server.limits.max_connections"),
    Limits::IN_FLIGHT.at("server.limits.max_in_flight"),
    Limits::BUFFERED.at("server.limits.max_buffered_mib"),
    row("server.limits.rate.per_second", Number, "0", "Most requests of one caller in a second, on average; more are answered 429; 0 for any number"),
    row("server.limits.rate.burst", Number, "0", "Most requests of one caller at once; 0 for as many as in one second"),

    row("database.dialect", Choice(&["postgres"]), "postgres", "Sort of database: there is one").flag("db-dialect"),
    row("database.host", Text, "localhost", "Host name, address, or folder of a Unix socket").flag("db-host").file_variable(),
    row("database.port", Number, "5432", "Port of the database").flag("db-port").file_variable(),
    row("database.name", Text, "hyperfleet", "Name of the database").flag("db-name").file_variable(),
    row("database.username", Text, "hyperfleet", "Who the service is there").flag("db-username").file_variable(),
    row("database.password", Secret, "", "Its password; better given in the environment or a file than by this flag").flag("db-password").file_variable(),
    row("database.debug", Bool, "false", "Whether every statement is logged, without its values").flag("db-debug"),
    row("database.ssl.mode", Choice(SSL_MODES), "", "How much of TLS towards the database is verified; unset: disable, with database.url what that says").flag("db-ssl-mode"),
    row("database.ssl.root_cert_file", File, "", "PEM file with the authorities to trust; none: the system's").flag("db-root-cert-file"),
    row("database.pool.max_connections", Number, "16", "Most connections at a time, divided among the threads; few are faster than many").flag("db-max-open-connections").between(1, DATABASE_CONNECTIONS_MAX),
    row("database.pool.max_idle_connections", Number, "10", "Most connections that are kept while nobody needs them"),
    row("database.pool.conn_max_lifetime", Time, "5m", "How old a connection may become; 0s for any age").lasting(Duration::ZERO, TIME_MAX),
    row("database.pool.conn_max_idle_time", Time, "1m", "How long a connection is kept while nobody needs it; 0s for any time").lasting(Duration::ZERO, TIME_MAX),
    row("database.pool.request_timeout", Time, "30s", "How long one statement may take; 0s for no limit").lasting(Duration::ZERO, DAY),
    row("database.pool.conn_retry_attempts", Number, "10", "How often a start tries again to reach the database"),
    row("database.pool.conn_retry_interval", Time, "3s", "How long it waits in between").lasting(INSTANT, DAY),
    row("database.pool.advisory_lock_timeout", Time, "5m", "How long migrate waits for another one to end; less than 1s counts as 5m").lasting(Duration::ZERO, DAY),
    row("database.url", Secret, "", "All of it as postgres://user:password@host:port/name; counts instead of all above but debug, ssl and pool").flag("database-url").file_variable().common_variable(DATABASE_URL),

    row("logging.level", Choice(LEVELS), "info", "What is logged; RUST_LOG overrides it").flag("log-level").short_flag('l'),
    row("logging.format", Choice(&["json", "text"]), "json", "How it is written").flag("log-format").short_flag('f'),
    row("logging.output", Choice(&["stdout", "stderr"]), "stdout", "Where it goes").flag("log-output"),
    Masking::ENABLED.at("logging.masking.enabled").flag("log-masking-enabled"),
    Masking::HEADERS.at("logging.masking.headers").flag("log-masking-sensitive-headers"),
    Masking::FIELDS.at("logging.masking.fields").flag("log-masking-sensitive-fields"),

    row("tracing.enabled", Bool, "true", "Whether traces are sent to where OTEL_EXPORTER_OTLP_ENDPOINT says"),
    row("tracing.service_name", Text, "hyperfleet-api", "What the service is called in traces").common_variable("OTEL_SERVICE_NAME"),

    row("metrics.host", Text, "localhost", "Address or name on which metrics are served").flag("metrics-host"),
    row("metrics.port", Number, "9090", "Their port, 0 for a free one").flag("metrics-port"),
    row("metrics.tls.enabled", Bool, "false", "Whether they are served over TLS").flag("metrics-tls-enabled"),
    row("metrics.tls.cert_file", File, "", "As server.tls.cert_file, which counts if neither file is named").flag("metrics-tls-cert-file"),
    row("metrics.tls.key_file", File, "", "As server.tls.key_file").flag("metrics-tls-key-file"),
    row("metrics.reconciliation_stuck_threshold", Time, "10m", "How long a resource may stay unreconciled before it counts as stuck").flag("metrics-reconciliation-stuck-threshold").lasting(SECOND, TIME_MAX),

    row("health.host", Text, "localhost", "Address or name on which probes are answered").flag("health-host"),
    row("health.port", Number, "8080", "Their port, 0 for a free one").flag("health-port"),
    row("health.tls.enabled", Bool, "false", "Whether they are answered over TLS").flag("health-tls-enabled"),
    row("health.tls.cert_file", File, "", "As server.tls.cert_file, which counts if neither file is named").flag("health-tls-cert-file"),
    row("health.tls.key_file", File, "", "As server.tls.key_file").flag("health-tls-key-file"),
    row("health.db_ping_timeout", Time, "2s", "How long the database may take to answer before it counts as gone").flag("health-db-ping-timeout").lasting(INSTANT, MINUTES),
    row("health.shutdown_timeout", Time, "20s", "How long requests under way may take to end once the service ends").flag("health-shutdown-timeout").lasting(SECOND, MINUTES),
    row("health.shutdown_delay", Time, "5s", "How long the service, told to end, goes on as before but for saying that it is not ready").lasting(Duration::ZERO, MINUTES),

    row("lists.include_deleted", Bool, "false", "Whether lists show finalizing resources to callers that do not say; for pollers that cannot send includeDeleted"),
    row("audit.retention", Time, "", "How long entries of the audit trail are kept, 1h at least; unset: for ever"),
    row("fleet.enabled", Bool, "false", "Whether fleet's API is served, too, at /fleet/v1 and /v1-alpha; see docs/fleet-running.md"),
    Etcd::ENDPOINTS.at("fleet.etcd.endpoints"),
    Etcd::USERNAME.at("fleet.etcd.username"),
    Etcd::PASSWORD_FILE.at("fleet.etcd.password_file"),
    Etcd::CA_FILE.at("fleet.etcd.ca_file"),
    Etcd::CERT_FILE.at("fleet.etcd.cert_file"),
    Etcd::KEY_FILE.at("fleet.etcd.key_file"),
    Etcd::SERVER_NAME.at("fleet.etcd.server_name"),
    Etcd::KEY_PREFIX.at("fleet.etcd.key_prefix").help("What all of fleet's keys begin with: what fleetd has as etcd_key_prefix"),
    Etcd::REQUEST_TIMEOUT.at("fleet.etcd.request_timeout"),
    row("fleet.page_size", Number, "100", "Most items of a page of fleet's lists, up to 256").between(1, PAGE_SIZE_MAX as u128),
    row("entities", Objects, "", "The kinds of resources; unset: Cluster and NodePool"),

    // Of older versions.
    row("logging.otel.enabled", Bool, "", "").status(Renamed("tracing.enabled")),
    row("metrics.label_metrics_inclusion_duration", Text, "", "").flag("metrics-label-metrics-inclusion-duration").status(Gone("leave it out")),
    row("adapters", Objects, "", "").status(Gone("name the adapters of each kind in entities[].required_adapters")),
];
