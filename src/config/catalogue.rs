//! Every setting of `hyperfleet-api`. The table makes the variables, the flags, `config check` and the tables of
//! docs/reference/configuration.md.

use hyperfleet_fleet::settings::{Etcd, PAGE_SIZES};
use hyperfleet_server_kit::settings::SettingKind::{
    Bool, Choice, Duration, File, Number, Objects, Secret, Text,
};
use hyperfleet_server_kit::settings::SettingStatus::{Gone, Renamed};
use hyperfleet_server_kit::settings::{Limits, Masking, Setting, SettingTable, Timeouts, row};

/// The variable that names a database to many programs.
pub(super) const DATABASE_URL: &str = "DATABASE_URL";
/// Longest time that anything may be given, 365 days: what is longer was meant otherwise.
const TIME_MAX: &str = "11months 30days 3h 50m 24s";

pub(super) static TABLE: SettingTable = SettingTable {
    settings: SETTINGS,
    prefix: "HYPERFLEET_",
    other_variables: &["HYPERFLEET_CONFIG"],
    unknown_variable: "is no setting",
    reference: "docs/reference/configuration.md",
    out_of_range: |key, origin, value, least, most| {
        format!("{key} is {value} (from {origin}): set it to between {least} and {most}")
    },
};

/// What a port may be.
const PORTS: Option<(&str, &str)> = Some(("0", "65535"));
const LEVELS: &[&str] = &["debug", "info", "warn", "error"];
const SSL_MODES: &[&str] = &["disable", "require", "verify-ca", "verify-full"];

/// By section. Names are those that operators of the older service know; those that it does not have stand last in
/// their section.
#[rustfmt::skip]
const SETTINGS: &[Setting] = &[
    Setting { flag: Some("server-hostname"), ..row("server.hostname", Text, "", "What this instance is called in its log") },
    Setting { flag: Some("server-host"), ..row("server.host", Text, "localhost", "Address or name to listen on") },
    Setting { range: PORTS, flag: Some("server-port"), ..row("server.port", Number, "8000", "Port to listen on, 0 for a free one") },
    Setting { flag: Some("server-openapi-schema-path"), ..row("server.openapi_schema_path", File, "", "OpenAPI document with the schemas of specs; none: any spec will do") },
    Setting { key: "server.timeouts.read", flag: Some("server-read-timeout"), ..Timeouts::READ },
    Setting { key: "server.timeouts.write", flag: Some("server-write-timeout"), ..Timeouts::WRITE },
    Setting { key: "server.timeouts.idle", ..Timeouts::IDLE },
    Setting { flag: Some("server-https-enabled"), ..row("server.tls.enabled", Bool, "false", "Whether the API speaks TLS") },
    Setting { flag: Some("server-https-cert-file"), ..row("server.tls.cert_file", File, "", "PEM file with its certificate, then those that it is signed by; read again when it changes") },
    Setting { flag: Some("server-https-key-file"), ..row("server.tls.key_file", File, "", "PEM file with the certificate's private key") },
    Setting { flag: Some("server-jwt-enabled"), ..row("server.jwt.enabled", Bool, "true", "Whether callers must present a token") },
    row("server.jwt.configs", Objects, "[]", "Whose tokens are taken; see docs/guides/authentication.md"),
    Setting { flag: Some("server-tenant-enabled"), ..row("server.tenant.enabled", Bool, "false", "Whether requests must say on whose behalf they come") },
    Setting { flag: Some("server-tenant-system-header"), ..row("server.tenant.system_header", Text, "", "Header that marks system identities by saying true") },
    row("server.tenant.dimensions", Objects, "[]", "What a tenant consists of: header, key, required; see docs/guides/tenancy.md"),
    row("server.tenant.enforce", Bool, "false", "Whether callers see and change only what is their tenant's"),
    Setting { key: "server.limits.max_connections", ..Limits::CONNECTIONS },
    Setting { key: "server.limits.max_in_flight", ..Limits::IN_FLIGHT },
    Setting { key: "server.limits.max_buffered_mib", ..Limits::BUFFERED },
    row("server.limits.rate.per_second", Number, "0", "Most requests of one caller in a second, on average; more are answered 429; 0 for any number"),
    row("server.limits.rate.burst", Number, "0", "Most requests of one caller at once; 0 for as many as in one second"),

    Setting { flag: Some("db-dialect"), ..row("database.dialect", Choice(&["postgres"]), "postgres", "Sort of database: there is one") },
    Setting { flag: Some("db-host"), has_file_variable: true, ..row("database.host", Text, "localhost", "Host name, address, or folder of a Unix socket") },
    Setting { range: PORTS, flag: Some("db-port"), has_file_variable: true, ..row("database.port", Number, "5432", "Port of the database") },
    Setting { flag: Some("db-name"), has_file_variable: true, ..row("database.name", Text, "hyperfleet", "Name of the database") },
    Setting { flag: Some("db-username"), has_file_variable: true, ..row("database.username", Text, "hyperfleet", "Who the service is there") },
    Setting { flag: Some("db-password"), has_file_variable: true, ..row("database.password", Secret, "", "Its password; better given in the environment or a file than by this flag") },
    Setting { flag: Some("db-debug"), ..row("database.debug", Bool, "false", "Whether every statement is logged, without its values") },
    Setting { flag: Some("db-ssl-mode"), ..row("database.ssl.mode", Choice(SSL_MODES), "", "How much of TLS towards the database is verified; unset: disable, with database.url what that says") },
    Setting { flag: Some("db-root-cert-file"), ..row("database.ssl.root_cert_file", File, "", "PEM file with the authorities to trust; none: the system's") },
    Setting { range: Some(("1", "200")), flag: Some("db-max-open-connections"), ..row("database.pool.max_connections", Number, "16", "Most connections at a time, divided among the threads; few are faster than many") },
    row("database.pool.max_idle_connections", Number, "10", "Most connections that are kept while nobody needs them"),
    Setting { range: Some(("0s", TIME_MAX)), ..row("database.pool.conn_max_lifetime", Duration, "5m", "How old a connection may become; 0s for any age") },
    Setting { range: Some(("0s", TIME_MAX)), ..row("database.pool.conn_max_idle_time", Duration, "1m", "How long a connection is kept while nobody needs it; 0s for any time") },
    Setting { range: Some(("0s", "1day")), ..row("database.pool.request_timeout", Duration, "30s", "How long one statement may take; 0s for no limit") },
    row("database.pool.conn_retry_attempts", Number, "10", "How often a start tries again to reach the database"),
    Setting { range: Some(("1ms", "1day")), ..row("database.pool.conn_retry_interval", Duration, "3s", "How long it waits in between") },
    Setting { range: Some(("0s", "1day")), ..row("database.pool.advisory_lock_timeout", Duration, "5m", "How long migrate waits for another one to end; less than 1s counts as 5m") },
    Setting { flag: Some("database-url"), has_file_variable: true, common_variable: Some(DATABASE_URL), ..row("database.url", Secret, "", "All of it as postgres://user:password@host:port/name; counts instead of all above but debug, ssl and pool") },

    Setting { flag: Some("log-level"), short_flag: Some('l'), ..row("logging.level", Choice(LEVELS), "info", "What is logged; RUST_LOG overrides it") },
    Setting { flag: Some("log-format"), short_flag: Some('f'), ..row("logging.format", Choice(&["json", "text"]), "json", "How it is written") },
    Setting { flag: Some("log-output"), ..row("logging.output", Choice(&["stdout", "stderr"]), "stdout", "Where it goes") },
    Setting { key: "logging.masking.enabled", flag: Some("log-masking-enabled"), ..Masking::ENABLED },
    Setting { key: "logging.masking.headers", flag: Some("log-masking-sensitive-headers"), ..Masking::HEADERS },
    Setting { key: "logging.masking.fields", flag: Some("log-masking-sensitive-fields"), ..Masking::FIELDS },

    row("tracing.enabled", Bool, "true", "Whether traces are sent to where OTEL_EXPORTER_OTLP_ENDPOINT says"),
    Setting { common_variable: Some("OTEL_SERVICE_NAME"), ..row("tracing.service_name", Text, "hyperfleet-api", "What the service is called in traces") },

    Setting { flag: Some("metrics-host"), ..row("metrics.host", Text, "localhost", "Address or name on which metrics are served") },
    Setting { range: PORTS, flag: Some("metrics-port"), ..row("metrics.port", Number, "9090", "Their port, 0 for a free one") },
    Setting { flag: Some("metrics-tls-enabled"), ..row("metrics.tls.enabled", Bool, "false", "Whether they are served over TLS") },
    Setting { flag: Some("metrics-tls-cert-file"), ..row("metrics.tls.cert_file", File, "", "As server.tls.cert_file, which counts if neither file is named") },
    Setting { flag: Some("metrics-tls-key-file"), ..row("metrics.tls.key_file", File, "", "As server.tls.key_file") },
    Setting { range: Some(("1s", TIME_MAX)), flag: Some("metrics-reconciliation-stuck-threshold"), ..row("metrics.reconciliation_stuck_threshold", Duration, "10m", "How long a resource may stay unreconciled before it counts as stuck") },

    Setting { flag: Some("health-host"), ..row("health.host", Text, "localhost", "Address or name on which probes are answered") },
    Setting { range: PORTS, flag: Some("health-port"), ..row("health.port", Number, "8080", "Their port, 0 for a free one") },
    Setting { flag: Some("health-tls-enabled"), ..row("health.tls.enabled", Bool, "false", "Whether they are answered over TLS") },
    Setting { flag: Some("health-tls-cert-file"), ..row("health.tls.cert_file", File, "", "As server.tls.cert_file, which counts if neither file is named") },
    Setting { flag: Some("health-tls-key-file"), ..row("health.tls.key_file", File, "", "As server.tls.key_file") },
    Setting { range: Some(("1ms", "2m")), flag: Some("health-db-ping-timeout"), ..row("health.db_ping_timeout", Duration, "2s", "How long the database may take to answer before it counts as gone") },
    Setting { range: Some(("1s", "2m")), flag: Some("health-shutdown-timeout"), ..row("health.shutdown_timeout", Duration, "20s", "How long requests under way may take to end once the service ends") },
    Setting { range: Some(("0s", "2m")), ..row("health.shutdown_delay", Duration, "5s", "How long the service, told to end, goes on as before but for saying that it is not ready") },

    row("lists.include_deleted", Bool, "false", "Whether lists show finalizing resources to callers that do not say; for pollers that cannot send includeDeleted"),
    row("audit.retention", Duration, "", "How long entries of the audit trail are kept, 1h at least; unset: for ever"),
    Setting { range: Some(("1h", "30days")), ..row("idempotency.retention", Duration, "24h", "How long an Idempotency-Key is remembered with the answer to its request") },
    Setting { has_file_variable: true, ..row("import.from", Secret, "", "Database of the older service, as postgres://user:password@host:port/name, for `import` alone; its flag --from overrides it") },
    row("fleet.enabled", Bool, "false", "Whether fleet's API is served, too, at /fleet/v1 and /v1-alpha; see docs/operations/fleetd.md"),
    Setting { key: "fleet.etcd.endpoints", ..Etcd::ENDPOINTS },
    Setting { key: "fleet.etcd.username", ..Etcd::USERNAME },
    Setting { key: "fleet.etcd.password_file", ..Etcd::PASSWORD_FILE },
    Setting { key: "fleet.etcd.ca_file", ..Etcd::CA_FILE },
    Setting { key: "fleet.etcd.cert_file", ..Etcd::CERT_FILE },
    Setting { key: "fleet.etcd.key_file", ..Etcd::KEY_FILE },
    Setting { key: "fleet.etcd.server_name", ..Etcd::SERVER_NAME },
    Setting { key: "fleet.etcd.key_prefix", help: "What all of fleet's keys begin with: what fleetd has as etcd_key_prefix", ..Etcd::KEY_PREFIX },
    Setting { key: "fleet.etcd.request_timeout", ..Etcd::REQUEST_TIMEOUT },
    Setting { range: PAGE_SIZES, ..row("fleet.page_size", Number, "100", "Most items of a page of fleet's lists, up to 256") },
    row("fleet.adapter.enabled", Bool, "false", "Whether `serve` runs the fleet adapter, too; needs fleet.enabled. `hyperfleet-api fleet-adapter run` runs it alone and ignores this"),
    row("fleet.adapter.name", Text, "fleet", "Name that the fleet adapter reports under, as in entities[].required_adapters; its units carry it"),
    row("fleet.adapter.api_url", Text, "", "URL of the API, such as https://hyperfleet.example.com; unset: with `serve` its own listener, which must not have TLS"),
    row("fleet.adapter.token_file", File, "", "File with the adapter's token for the API, read again with each request; unset: no token"),
    row("fleet.adapter.workloads", Objects, "[]", "Units that resources of a kind need: kind, unit, file, when, replicas, max_unavailable, min_ready_seconds"),
    Setting { range: Some(("1", "256")), ..row("fleet.adapter.workers", Number, "32", "Resources that the adapter works on at a time") },
    Setting { range: Some(("100ms", "1h")), ..row("fleet.adapter.poll_interval", Duration, "1s", "Interval between lists of resources that are not reconciled") },
    Setting { range: Some(("1s", "1day")), ..row("fleet.adapter.sweep_interval", Duration, "10m", "Interval between lists of all resources, each of which is worked on") },
    Setting { range: Some(("1s", "1day")), ..row("fleet.adapter.report_interval", Duration, "5m", "Interval after which an unchanged report is sent again") },
    Setting { range: Some(("0s", "30days")), ..row("fleet.adapter.orphan_grace", Duration, "10m", "How long units stay whose resource no longer exists") },
    Setting { range: Some(("0", "1000000")), ..row("fleet.adapter.removal_limit.units", Number, "10", "Units that a change may always remove; above both limits removals wait for `hyperfleet-api fleet-adapter approve-removals`") },
    Setting { range: Some(("0", "100")), ..row("fleet.adapter.removal_limit.percent", Number, "50", "Percent of the adapter's units that a change may remove; 100 for no limit") },
    Setting { range: Some(("1s", "10m")), ..row("fleet.adapter.lease_time", Duration, "15s", "How long the lease of a replica lasts that no longer answers: then another one works") },
    row("entities", Objects, "Cluster (validation, dns, pullsecret, hypershift), NodePool (validation, hypershift)", "The kinds of resources; unset: Cluster and NodePool"),

    // Of older versions.
    Setting { status: Renamed("tracing.enabled"), ..row("logging.otel.enabled", Bool, "", "") },
    Setting { flag: Some("metrics-label-metrics-inclusion-duration"), status: Gone("leave it out"), ..row("metrics.label_metrics_inclusion_duration", Text, "", "") },
    Setting { status: Gone("name the adapters of each kind in entities[].required_adapters"), ..row("adapters", Objects, "", "") },
];
