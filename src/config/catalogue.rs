//! Defines every setting of `hyperfleet-api`. The table makes the variables, the flags, `config check` and the tables
//! of docs/reference/configuration.md.

use hyperfleet_fleet::settings::{Etcd, PAGE_SIZES};
use hyperfleet_server_kit::settings::SettingKind::{
    Bool, Choice, Duration, File, Number, Objects, Secret, Text,
};
use hyperfleet_server_kit::settings::SettingStatus::{Gone, Renamed};
use hyperfleet_server_kit::settings::{
    LimitSettings, RedactionSettings, Setting, SettingTable, Timeouts, row,
};

/// Longest duration of most settings: a longer one is a mistake.
const TIME_MAX: &str = "365days";

pub(super) static TABLE: SettingTable = SettingTable {
    settings: SETTINGS,
    prefix: "HYPERFLEET_",
    other_variables: &["HYPERFLEET_CONFIG"],
    reference: "docs/reference/configuration.md",
};

const PORTS: Option<(&str, &str)> = Some(("0", "65535"));
const LEVELS: &[&str] = &["debug", "info", "warn", "error"];
const SSL_MODES: &[&str] = &["disable", "require", "verify-ca", "verify-full"];

/// By section. Operators know these names from the older service; settings that it lacks come last in their section.
#[rustfmt::skip]
const SETTINGS: &[Setting] = &[
    Setting { flag: Some("server-hostname"), ..row("server.hostname", Text, "", "Instance name in logs") },
    Setting { flag: Some("server-host"), ..row("server.host", Text, "localhost", "Address or name to listen on") },
    Setting { range: PORTS, flag: Some("server-port"), ..row("server.port", Number, "8000", "Port to listen on, 0 for a free one") },
    Setting { flag: Some("server-openapi-schema-path"), ..row("server.openapi_schema_path", File, "", "OpenAPI document with the schemas of specs; unset: specs are not checked") },
    Setting { key: "server.timeouts.read", flag: Some("server-read-timeout"), ..Timeouts::READ },
    Setting { key: "server.timeouts.write", flag: Some("server-write-timeout"), ..Timeouts::WRITE },
    Setting { key: "server.timeouts.idle", ..Timeouts::IDLE },
    Setting { flag: Some("server-https-enabled"), ..row("server.tls.enabled", Bool, "false", "Use TLS on the API listener") },
    Setting { flag: Some("server-https-cert-file"), ..row("server.tls.cert_file", File, "", "PEM file with the certificate and its intermediate certificates; read again when it changes") },
    Setting { flag: Some("server-https-key-file"), ..row("server.tls.key_file", File, "", "PEM file with the certificate's private key") },
    Setting { flag: Some("server-jwt-enabled"), ..row("server.jwt.enabled", Bool, "true", "Require a token of every caller") },
    row("server.jwt.configs", Objects, "[]", "Issuers of accepted tokens; see docs/guides/authentication.md"),
    Setting { flag: Some("server-tenant-enabled"), ..row("server.tenant.enabled", Bool, "false", "Read the tenant of a request from its headers") },
    Setting { flag: Some("server-tenant-system-header"), ..row("server.tenant.system_header", Text, "", "Header that marks system identities with the value true") },
    row("server.tenant.dimensions", Objects, "[]", "Tenant dimensions: header, key, required; see docs/guides/tenancy.md"),
    row("server.tenant.enforce", Bool, "false", "Restrict callers to the resources of their tenant"),
    Setting { key: "server.limits.max_connections", ..LimitSettings::CONNECTIONS },
    Setting { key: "server.limits.max_in_flight", ..LimitSettings::IN_FLIGHT },
    Setting { key: "server.limits.max_buffered_mib", ..LimitSettings::BUFFERED },
    row("server.limits.rate.per_second", Number, "0", "Average requests per second of one caller; beyond it requests get 429; 0 for no limit"),
    row("server.limits.rate.burst", Number, "0", "Requests that one caller may send in a burst; 0 for as many as per second"),

    Setting { flag: Some("db-dialect"), ..row("database.dialect", Choice(&["postgres"]), "postgres", "Database dialect") },
    Setting { flag: Some("db-host"), has_file_variable: true, ..row("database.host", Text, "localhost", "Host name, address, or folder of a Unix socket") },
    Setting { range: PORTS, flag: Some("db-port"), has_file_variable: true, ..row("database.port", Number, "5432", "Port of the database") },
    Setting { flag: Some("db-name"), has_file_variable: true, ..row("database.name", Text, "hyperfleet", "Name of the database") },
    Setting { flag: Some("db-username"), has_file_variable: true, ..row("database.username", Text, "hyperfleet", "Database user") },
    Setting { flag: Some("db-password"), has_file_variable: true, ..row("database.password", Secret, "", "Password of the database user; safer in a variable or a file than in this flag") },
    Setting { flag: Some("db-debug"), ..row("database.debug", Bool, "false", "Log every statement, without its values") },
    Setting { flag: Some("db-ssl-mode"), ..row("database.ssl.mode", Choice(SSL_MODES), "", "TLS mode of connections to the database; unset: the mode in database.url, otherwise disable") },
    Setting { flag: Some("db-root-cert-file"), ..row("database.ssl.root_cert_file", File, "", "PEM file with the authorities to trust; unset: the authorities of the system") },
    Setting { range: Some(("1", "200")), flag: Some("db-max-open-connections"), ..row("database.pool.max_connections", Number, "16", "Maximum number of connections, divided among the threads; few are faster than many") },
    row("database.pool.max_idle_connections", Number, "10", "Maximum number of idle connections"),
    Setting { range: Some(("0s", TIME_MAX)), ..row("database.pool.conn_max_lifetime", Duration, "5m", "Age after which a connection is closed; 0s for no limit") },
    Setting { range: Some(("0s", TIME_MAX)), ..row("database.pool.conn_max_idle_time", Duration, "1m", "Idle time after which a connection is closed; 0s for no limit") },
    Setting { range: Some(("0s", "1day")), ..row("database.pool.request_timeout", Duration, "30s", "Timeout of a statement; 0s for no limit") },
    row("database.pool.conn_retry_attempts", Number, "10", "Number of retries to reach the database at startup"),
    Setting { range: Some(("1ms", "1day")), ..row("database.pool.conn_retry_interval", Duration, "3s", "Interval between retries to reach the database at startup") },
    Setting { range: Some(("0s", "1day")), ..row("database.pool.advisory_lock_timeout", Duration, "5m", "How long `migrate` waits for another `migrate`; less than 1s counts as 5m") },
    Setting { flag: Some("database-url"), has_file_variable: true, ..row("database.url", Secret, "", "Database URL, postgres://user:password@host:port/name; replaces the settings above except debug, ssl and pool") },

    Setting { flag: Some("log-level"), short_flag: Some('l'), ..row("logging.level", Choice(LEVELS), "info", "Log level; RUST_LOG overrides it") },
    Setting { flag: Some("log-format"), short_flag: Some('f'), ..row("logging.format", Choice(&["json", "text"]), "json", "Log format") },
    Setting { flag: Some("log-output"), ..row("logging.output", Choice(&["stdout", "stderr"]), "stdout", "Where the log is written") },
    Setting { key: "logging.masking.enabled", flag: Some("log-masking-enabled"), ..RedactionSettings::ENABLED },
    Setting { key: "logging.masking.headers", flag: Some("log-masking-sensitive-headers"), ..RedactionSettings::HEADERS },
    Setting { key: "logging.masking.fields", flag: Some("log-masking-sensitive-fields"), ..RedactionSettings::FIELDS },

    row("tracing.enabled", Bool, "true", "Send traces to OTEL_EXPORTER_OTLP_ENDPOINT"),
    row("tracing.service_name", Text, "hyperfleet-api", "Service name in traces"),

    Setting { flag: Some("metrics-host"), ..row("metrics.host", Text, "localhost", "Address or name that the metrics listener uses") },
    Setting { range: PORTS, flag: Some("metrics-port"), ..row("metrics.port", Number, "9090", "Port of the metrics listener, 0 for a free one") },
    Setting { flag: Some("metrics-tls-enabled"), ..row("metrics.tls.enabled", Bool, "false", "Use TLS on the metrics listener") },
    Setting { flag: Some("metrics-tls-cert-file"), ..row("metrics.tls.cert_file", File, "", "Like server.tls.cert_file; if neither file of this listener is set, it uses the files of server.tls") },
    Setting { flag: Some("metrics-tls-key-file"), ..row("metrics.tls.key_file", File, "", "Like server.tls.key_file") },
    Setting { range: Some(("1s", TIME_MAX)), flag: Some("metrics-reconciliation-stuck-threshold"), ..row("metrics.reconciliation_stuck_threshold", Duration, "10m", "How long a resource may stay unreconciled before it counts as stuck") },

    Setting { flag: Some("health-host"), ..row("health.host", Text, "localhost", "Address or name that the health listener uses") },
    Setting { range: PORTS, flag: Some("health-port"), ..row("health.port", Number, "8080", "Port of the health listener, 0 for a free one") },
    Setting { flag: Some("health-tls-enabled"), ..row("health.tls.enabled", Bool, "false", "Use TLS on the health listener") },
    Setting { flag: Some("health-tls-cert-file"), ..row("health.tls.cert_file", File, "", "Like server.tls.cert_file; if neither file of this listener is set, it uses the files of server.tls") },
    Setting { flag: Some("health-tls-key-file"), ..row("health.tls.key_file", File, "", "Like server.tls.key_file") },
    Setting { range: Some(("1ms", "2m")), flag: Some("health-db-ping-timeout"), ..row("health.db_ping_timeout", Duration, "2s", "Timeout for the database's answer to a readiness check") },
    Setting { range: Some(("1s", "2m")), flag: Some("health-shutdown-timeout"), ..row("health.shutdown_timeout", Duration, "20s", "How long requests in progress may take during shutdown") },
    Setting { range: Some(("0s", "2m")), ..row("health.shutdown_delay", Duration, "5s", "How long the service continues to accept requests after the signal to stop, while it reports that it is not ready") },

    row("lists.include_deleted", Bool, "false", "Include finalizing resources in lists by default, for pollers that cannot send includeDeleted"),
    Setting { range: Some(("1h", "36500days")), ..row("audit.retention", Duration, "", "Retention of entries of the audit trail; unset: forever") },
    Setting { range: Some(("1h", TIME_MAX)), ..row("history.retention", Duration, "168h", "Retention of changes of resources, for their history and for watches that continue after an earlier position") },
    Setting { range: Some(("1h", "30days")), ..row("idempotency.retention", Duration, "24h", "How long an Idempotency-Key is stored with the response to its request") },
    Setting { has_file_variable: true, ..row("import.from", Secret, "", "URL of the database of the Go HyperFleet API, postgres://user:password@host:port/name, for `import`; the flag --from overrides it") },
    row("fleet.enabled", Bool, "false", "Serve fleet's API at /fleet/v1 and /v1-alpha; see docs/operations/fleetd.md"),
    Setting { key: "fleet.etcd.endpoints", ..Etcd::ENDPOINTS },
    Setting { key: "fleet.etcd.username", ..Etcd::USERNAME },
    Setting { key: "fleet.etcd.password_file", ..Etcd::PASSWORD_FILE },
    Setting { key: "fleet.etcd.ca_file", ..Etcd::CA_FILE },
    Setting { key: "fleet.etcd.cert_file", ..Etcd::CERT_FILE },
    Setting { key: "fleet.etcd.key_file", ..Etcd::KEY_FILE },
    Setting { key: "fleet.etcd.server_name", ..Etcd::SERVER_NAME },
    Setting { key: "fleet.etcd.key_prefix", help: "Prefix of fleet's keys in etcd, the same as etcd_key_prefix of fleetd", ..Etcd::KEY_PREFIX },
    Setting { key: "fleet.etcd.request_timeout", ..Etcd::REQUEST_TIMEOUT },
    Setting { range: PAGE_SIZES, ..row("fleet.page_size", Number, "100", "Maximum number of items on a page of fleet's lists") },
    row("fleet.adapter.enabled", Bool, "false", "Run the fleet adapter in `serve`; needs fleet.enabled. `hyperfleet-api fleet-adapter run` ignores this"),
    row("fleet.adapter.name", Text, "fleet", "Adapter name in reports, as in entities[].required_adapters; its units carry it"),
    row("fleet.adapter.api_url", Text, "", "URL of the API, such as https://hyperfleet.example.com; unset: with `serve` its own listener, which must not have TLS"),
    row("fleet.adapter.token_file", File, "", "File with the adapter's token for the API, read again with each request; unset: no token"),
    row("fleet.adapter.workloads", Objects, "[]", "Units that resources of a kind need: kind, unit, file, when, replicas, max_unavailable, min_ready_seconds"),
    Setting { range: Some(("1", "256")), ..row("fleet.adapter.workers", Number, "32", "Number of resources that the adapter works on at a time") },
    Setting { range: Some(("100ms", "1h")), ..row("fleet.adapter.poll_interval", Duration, "1s", "Interval between lists of resources that are not reconciled, while they cannot be watched") },
    Setting { range: Some(("1s", "1day")), ..row("fleet.adapter.sweep_interval", Duration, "10m", "Interval between passes over all resources") },
    Setting { range: Some(("1s", "1day")), ..row("fleet.adapter.report_interval", Duration, "5m", "Interval after which an unchanged report is sent again") },
    Setting { range: Some(("0s", "30days")), ..row("fleet.adapter.orphan_grace", Duration, "10m", "How long units remain after their resource was removed") },
    Setting { range: Some(("0", "1000000")), ..row("fleet.adapter.removal_limit.units", Number, "10", "Number of units that a change may remove whatever their share; a removal above both limits waits for `hyperfleet-api fleet-adapter approve-removals`") },
    Setting { range: Some(("0", "100")), ..row("fleet.adapter.removal_limit.percent", Number, "50", "Maximum share of the adapter's units that a change may remove, in percent; 100 for no limit") },
    Setting { range: Some(("1s", "10m")), ..row("fleet.adapter.lease_time", Duration, "15s", "Lease of the working replica; another one takes over when it expires") },
    row("entities", Objects, "Cluster (validation, dns, pullsecret, hypershift), NodePool (validation, hypershift)", "The kinds of resources; unset: Cluster and NodePool"),

    // Of older versions.
    Setting { status: Renamed("tracing.enabled"), ..row("logging.otel.enabled", Bool, "", "") },
    Setting { flag: Some("metrics-label-metrics-inclusion-duration"), status: Gone("leave it out"), ..row("metrics.label_metrics_inclusion_duration", Text, "", "") },
    Setting { status: Gone("name the adapters of each kind in entities[].required_adapters"), ..row("adapters", Objects, "", "") },
];
