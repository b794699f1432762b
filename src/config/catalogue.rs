//! Every setting by its key: what it takes, where it can come from, and what it is for. One table
//! makes the variables, the flags, `config check` and the tables of docs/configuration.md.

use figment::value::Value;
use humantime_serde::re::humantime::parse_duration;

/// What every variable begins with.
const PREFIX: &str = "HYPERFLEET_";

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Any text; stays text even where it looks like a number.
    Text,
    /// A text that is shown nowhere.
    Secret,
    /// A path.
    File,
    /// A whole number.
    Number,
    /// `true` or `false`.
    Bool,
    /// A number with a unit.
    Duration,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Texts; divided by commas where they come as one.
    List,
    /// Entries with members of their own; in the file alone.
    Objects,
}

impl Kind {
    /// What a value of it is.
    pub(super) fn expected(self) -> String {
        match self {
            Self::Text | Self::Secret | Self::File => "a text".to_owned(),
            Self::Number => "a whole number".to_owned(),
            Self::Bool => "true or false".to_owned(),
            Self::Duration => "a duration such as 30s, 5m or 1h30m".to_owned(),
            Self::Choice(words) => format!("one of: {}", words.join(", ")),
            Self::List => "a list of texts".to_owned(),
            Self::Objects => "a list of entries".to_owned(),
        }
    }
}

/// One setting.
#[derive(Debug)]
pub(super) struct Setting {
    /// Its path in the file, with dots.
    pub(super) key: &'static str,
    pub(super) kind: Kind,
    /// Its flag, without the dashes; not all have one.
    pub(super) flag: Option<&'static str>,
    /// What it is for, for people.
    pub(super) help: &'static str,
}

const fn row(
    key: &'static str,
    kind: Kind,
    flag: Option<&'static str>,
    help: &'static str,
) -> Setting {
    Setting {
        key,
        kind,
        flag,
        help,
    }
}

const LEVELS: &[&str] = &["debug", "info", "warn", "error"];
const SSL_MODES: &[&str] = &["disable", "require", "verify-ca", "verify-full"];

/// Every setting, by section. Names are those that operators of the older service know
/// (hyperfleet-ops.md rule 2.2); those that it does not have stand last in their section.
#[rustfmt::skip]
pub(super) const CATALOGUE: &[Setting] = &[
    row("server.hostname", Kind::Text, Some("server-hostname"), "What this instance is called in its log"),
    row("server.host", Kind::Text, Some("server-host"), "Address or name to listen on"),
    row("server.port", Kind::Number, Some("server-port"), "Port to listen on, 0 for a free one"),
    row("server.openapi_schema_path", Kind::File, Some("server-openapi-schema-path"), "OpenAPI document with the schemas of specs; none: any spec will do"),
    row("server.timeouts.read", Kind::Duration, Some("server-read-timeout"), "How long a client may take to send the head of a request, and then its body"),
    row("server.timeouts.write", Kind::Duration, Some("server-write-timeout"), "How long an answer may wait for its client to go on reading"),
    row("server.timeouts.idle", Kind::Duration, None, "How long a connection is kept open for the next request"),
    row("server.tls.enabled", Kind::Bool, Some("server-https-enabled"), "Whether the API speaks TLS"),
    row("server.tls.cert_file", Kind::File, Some("server-https-cert-file"), "PEM file with its certificate, then those that it is signed by; read again when it changes"),
    row("server.tls.key_file", Kind::File, Some("server-https-key-file"), "PEM file with the certificate's private key"),
    row("server.jwt.enabled", Kind::Bool, Some("server-jwt-enabled"), "Whether callers must present a token"),
    row("server.jwt.configs", Kind::Objects, None, "Whose tokens are taken; see docs/authentication.md"),
    row("server.tenant.enabled", Kind::Bool, Some("server-tenant-enabled"), "Whether requests must say on whose behalf they come"),
    row("server.tenant.system_header", Kind::Text, Some("server-tenant-system-header"), "Header that marks system identities by saying true"),
    row("server.tenant.dimensions", Kind::Objects, None, "What a tenant consists of: header, key, required; see docs/tenancy.md"),
    row("server.tenant.enforce", Kind::Bool, None, "Whether callers see and change only what is their tenant's"),
    row("server.limits.max_connections", Kind::Number, None, "Most connections at a time; more wait until one is closed"),
    row("server.limits.max_in_flight", Kind::Number, None, "Most requests under way at a time; more are answered 503"),
    row("server.limits.max_buffered_mib", Kind::Number, None, "Most MiB of large bodies and answers that are held for clients at a time; more are answered 503"),
    row("server.limits.rate.per_second", Kind::Number, None, "Most requests of one caller in a second, on average; more are answered 429; 0 for any number"),
    row("server.limits.rate.burst", Kind::Number, None, "Most requests of one caller at once; 0 for as many as in one second"),

    row("database.dialect", Kind::Choice(&["postgres"]), Some("db-dialect"), "Sort of database: there is one"),
    row("database.host", Kind::Text, Some("db-host"), "Host name, address, or folder of a Unix socket"),
    row("database.port", Kind::Number, Some("db-port"), "Port of the database"),
    row("database.name", Kind::Text, Some("db-name"), "Name of the database"),
    row("database.username", Kind::Text, Some("db-username"), "Who the service is there"),
    row("database.password", Kind::Secret, Some("db-password"), "Its password; better given in the environment or a file than by this flag"),
    row("database.debug", Kind::Bool, Some("db-debug"), "Whether every statement is logged, without its values"),
    row("database.ssl.mode", Kind::Choice(SSL_MODES), Some("db-ssl-mode"), "How much of TLS towards the database is verified; unset: disable, with database.url what that says"),
    row("database.ssl.root_cert_file", Kind::File, Some("db-root-cert-file"), "PEM file with the authorities to trust; none: the system's"),
    row("database.pool.max_connections", Kind::Number, Some("db-max-open-connections"), "Most connections at a time, divided among the threads; few are faster than many"),
    row("database.pool.max_idle_connections", Kind::Number, None, "Most connections that are kept while nobody needs them"),
    row("database.pool.conn_max_lifetime", Kind::Duration, None, "How old a connection may become; 0s for any age"),
    row("database.pool.conn_max_idle_time", Kind::Duration, None, "How long a connection is kept while nobody needs it; 0s for any time"),
    row("database.pool.request_timeout", Kind::Duration, None, "How long one statement may take; 0s for no limit"),
    row("database.pool.conn_retry_attempts", Kind::Number, None, "How often a start tries again to reach the database"),
    row("database.pool.conn_retry_interval", Kind::Duration, None, "How long it waits in between"),
    row("database.pool.advisory_lock_timeout", Kind::Duration, None, "How long migrate waits for another one to end; less than 1s counts as 5m"),
    row("database.url", Kind::Secret, Some("database-url"), "All of it as postgres://user:password@host:port/name; counts instead of all above but debug, ssl and pool"),

    row("logging.level", Kind::Choice(LEVELS), Some("log-level"), "What is logged; RUST_LOG overrides it"),
    row("logging.format", Kind::Choice(&["json", "text"]), Some("log-format"), "How it is written"),
    row("logging.output", Kind::Choice(&["stdout", "stderr"]), Some("log-output"), "Where it goes"),
    row("logging.masking.enabled", Kind::Bool, Some("log-masking-enabled"), "Whether values that look secret are left out"),
    row("logging.masking.headers", Kind::List, Some("log-masking-sensitive-headers"), "Headers whose values are left out, beside those of tokens and identities"),
    row("logging.masking.fields", Kind::List, Some("log-masking-sensitive-fields"), "Members of bodies and parameters whose values are left out: those with one of these in their name"),

    row("tracing.enabled", Kind::Bool, None, "Whether traces are sent to where OTEL_EXPORTER_OTLP_ENDPOINT says"),
    row("tracing.service_name", Kind::Text, None, "What the service is called in traces"),

    row("metrics.host", Kind::Text, Some("metrics-host"), "Address or name on which metrics are served"),
    row("metrics.port", Kind::Number, Some("metrics-port"), "Their port, 0 for a free one"),
    row("metrics.tls.enabled", Kind::Bool, Some("metrics-tls-enabled"), "Whether they are served over TLS"),
    row("metrics.tls.cert_file", Kind::File, Some("metrics-tls-cert-file"), "As server.tls.cert_file, which counts if neither file is named"),
    row("metrics.tls.key_file", Kind::File, Some("metrics-tls-key-file"), "As server.tls.key_file"),
    row("metrics.reconciliation_stuck_threshold", Kind::Duration, Some("metrics-reconciliation-stuck-threshold"), "How long a resource may stay unreconciled before it counts as stuck"),

    row("health.host", Kind::Text, Some("health-host"), "Address or name on which probes are answered"),
    row("health.port", Kind::Number, Some("health-port"), "Their port, 0 for a free one"),
    row("health.tls.enabled", Kind::Bool, Some("health-tls-enabled"), "Whether they are answered over TLS"),
    row("health.tls.cert_file", Kind::File, Some("health-tls-cert-file"), "As server.tls.cert_file, which counts if neither file is named"),
    row("health.tls.key_file", Kind::File, Some("health-tls-key-file"), "As server.tls.key_file"),
    row("health.db_ping_timeout", Kind::Duration, Some("health-db-ping-timeout"), "How long the database may take to answer before it counts as gone"),
    row("health.shutdown_timeout", Kind::Duration, Some("health-shutdown-timeout"), "How long requests under way may take to end once the service ends"),
    row("health.shutdown_delay", Kind::Duration, None, "How long the service, told to end, goes on as before but for saying that it is not ready"),

    row("lists.include_deleted", Kind::Bool, None, "Whether lists show finalizing resources to callers that do not say; for pollers that cannot send includeDeleted"),
    row("audit.retention", Kind::Duration, None, "How long entries of the audit trail are kept, 1h at least; unset: for ever"),
    row("fleet.enabled", Kind::Bool, None, "Whether fleet's API is served, too, at /fleet/v1 and /v1-alpha; see docs/fleet-running.md"),
    row("fleet.etcd.endpoints", Kind::List, None, "URLs of the servers of etcd that fleet's units and machines are kept in; all http, or all https"),
    row("fleet.etcd.username", Kind::Text, None, "User to log in to etcd as"),
    row("fleet.etcd.password_file", Kind::File, None, "File with its password"),
    row("fleet.etcd.ca_file", Kind::File, None, "PEM file with the authorities of etcd's certificates; needed for https"),
    row("fleet.etcd.cert_file", Kind::File, None, "PEM file with the certificate to show to etcd"),
    row("fleet.etcd.key_file", Kind::File, None, "PEM file with its private key"),
    row("fleet.etcd.server_name", Kind::Text, None, "Name that etcd's certificates are for, if not that of its URLs"),
    row("fleet.etcd.key_prefix", Kind::Text, None, "What all of fleet's keys begin with: what fleetd has as etcd_key_prefix"),
    row("fleet.etcd.request_timeout", Kind::Duration, None, "How long a call to etcd may take"),
    row("fleet.page_size", Kind::Number, None, "Most items of a page of fleet's lists, up to 256"),
    row("entities", Kind::Objects, None, "The kinds of resources; unset: Cluster and NodePool"),
];

/// The setting with that key.
pub(super) fn setting(key: &str) -> Option<&'static Setting> {
    CATALOGUE.iter().find(|setting| setting.key == key)
}

impl Setting {
    /// The first part of its key.
    pub(super) fn section(&self) -> &'static str {
        self.key.split('.').next().unwrap_or_default()
    }

    /// The variable that gives it; none for what only the file can give.
    pub(super) fn variable(&self) -> Option<String> {
        let name = || format!("{PREFIX}{}", self.key.replace('.', "_").to_uppercase());
        (self.kind != Kind::Objects).then(name)
    }

    /// The variable that names a file to read it from: for secrets, and what comes with them.
    pub(super) fn file_variable(&self) -> Option<String> {
        let is_told_with_secrets = matches!(
            self.key,
            "database.host" | "database.port" | "database.name" | "database.username"
        );
        let variable = self.variable()?;
        (self.kind == Kind::Secret || is_told_with_secrets).then(|| variable + "_FILE")
    }

    /// Its value from a text, as variables and flags give it.
    ///
    /// # Errors
    ///
    /// What it must be, to follow its name.
    pub(super) fn read(&self, text: &str) -> Result<Value, String> {
        let value = match self.kind {
            Kind::Number => text
                .parse::<u64>()
                .map(Value::from)
                .map_err(|_| not(text, &self.kind.expected()))?,
            Kind::Bool => truth(text)
                .map(Value::from)
                .ok_or_else(|| not(text, &self.kind.expected()))?,
            _ => Value::from(text),
        };
        self.check(value)
    }

    /// Its value as the file gives it.
    ///
    /// # Errors
    ///
    /// What it must be, to follow its name. Secrets are not repeated.
    pub(super) fn check(&self, value: Value) -> Result<Value, String> {
        match (self.kind, value) {
            (Kind::Objects, value) => Ok(value),
            (Kind::List, Value::String(_, text)) => Ok(split(&text)),
            (Kind::List, Value::Array(tag, items)) => {
                let is_text = |item: &Value| item.as_str().is_some();
                if items.iter().all(is_text) {
                    Ok(Value::Array(tag, items))
                } else {
                    Err("must be a list of texts".to_owned())
                }
            }
            (Kind::List, _) => Err("must be a list of texts".to_owned()),
            (Kind::Number | Kind::Bool, Value::String(_, text)) => self.read(&text),
            (Kind::Number, value) if value.to_u128().is_some() => Ok(value),
            (Kind::Bool, value) if value.to_bool().is_some() => Ok(value),
            (Kind::Number | Kind::Bool, value) => Err(not(&shown(&value), &self.kind.expected())),
            (Kind::Text | Kind::Secret | Kind::File, value) if value.as_str().is_some() => {
                Ok(value)
            }
            (Kind::Text | Kind::Secret | Kind::File, _) => {
                Err("must be a text: put it in quotes".to_owned())
            }
            (Kind::Duration, value) => {
                // Without a unit nothing but 0, which needs none, means the same to everybody.
                let text = shown(&value);
                match parse_duration(&text) {
                    Ok(time) if value.as_str().is_some() || time.is_zero() => Ok(Value::from(text)),
                    _ => Err(not(&text, &self.kind.expected())),
                }
            }
            (Kind::Choice(words), value) => {
                let text = shown(&value);
                if words.contains(&text.as_str()) {
                    Ok(value)
                } else {
                    Err(not(&text, &self.kind.expected()))
                }
            }
        }
    }
}

/// What operators of the older service write for a truth value.
fn truth(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "1" => Some(true),
        "false" | "f" | "0" => Some(false),
        _ => None,
    }
}

fn not(given: &str, expected: &str) -> String {
    format!("\"{given}\" is not {expected}")
}

fn split(text: &str) -> Value {
    let items = text.split(',').map(str::trim).filter(|t| !t.is_empty());
    Value::from(items.map(Value::from).collect::<Vec<_>>())
}

/// A value as people write it.
pub(super) fn shown(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    if let Some(truth) = value.to_bool() {
        return truth.to_string();
    }
    if let Some(number) = value.to_u128() {
        return number.to_string();
    }
    match value {
        Value::Array(_, items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Num(_, number) => number.to_f64().map_or_else(String::new, |n| n.to_string()),
        Value::Dict(_, _) => "an object".to_owned(),
        _ => String::new(),
    }
}
