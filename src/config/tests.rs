use std::collections::BTreeSet;
use std::path::Path;

use clap::Parser as _;
use figment::Figment;
use figment::providers::Serialized;
use figment::value::{Dict, Value};
use humantime_serde::re::humantime::format_duration;

use super::catalogue::TABLE;
use super::{Args, Command, Loaded, Settings, SettingsArgs, load, reference};
use hyperfleet_server_kit::settings::{Setting, SettingKind, as_json, as_table};

fn used() -> impl Iterator<Item = &'static Setting> {
    TABLE.settings.iter().filter(|setting| setting.is_used())
}

/// Every path of the defaults that holds a value.
fn paths(above: &str, dict: &Dict, into: &mut BTreeSet<String>) {
    for (name, value) in dict {
        let key = format!("{above}{name}");
        match value {
            Value::Dict(_, inner) => paths(&format!("{key}."), inner, into),
            _ => {
                into.insert(key);
            }
        }
    }
}

#[test]
fn the_catalogue_has_every_setting_and_no_other() {
    let defaults: Dict = Figment::from(Serialized::defaults(Settings::default()))
        .extract()
        .unwrap();
    let mut there = BTreeSet::new();
    paths("", &defaults, &mut there);
    let listed: BTreeSet<_> = used().map(|s| s.key.to_owned()).collect();
    assert_eq!(listed.len(), used().count(), "a setting stands twice");
    assert_eq!(there, listed);
}

#[test]
fn flags_and_variables_have_distinct_origins() {
    let flags: Vec<_> = TABLE.settings.iter().filter_map(|s| s.flag).collect();
    assert_eq!(flags.iter().collect::<BTreeSet<_>>().len(), flags.len());
    let variables = || {
        let settings = TABLE.settings.iter();
        settings
            .flat_map(|s| [TABLE.variable(s), TABLE.file_variable(s)])
            .flatten()
    };
    assert_eq!(
        variables().collect::<BTreeSet<_>>().len(),
        variables().count()
    );
    for setting in used() {
        let is_entries = matches!(setting.kind, SettingKind::Objects);
        assert_eq!(TABLE.variable(setting).is_none(), is_entries);
        assert!(!setting.help.ends_with('.') && !setting.help.is_empty());
        if matches!(setting.kind, SettingKind::Secret) {
            assert!(TABLE.file_variable(setting).is_some(), "{}", setting.key);
        }
    }
}

/// Operators of the older service have these names in their files, variables and scripts.
#[test]
fn names_are_those_that_operators_know() {
    for (key, variable, flag) in [
        (
            "server.tls.enabled",
            "HYPERFLEET_SERVER_TLS_ENABLED",
            Some("server-https-enabled"),
        ),
        (
            "server.timeouts.read",
            "HYPERFLEET_SERVER_TIMEOUTS_READ",
            Some("server-read-timeout"),
        ),
        (
            "database.username",
            "HYPERFLEET_DATABASE_USERNAME",
            Some("db-username"),
        ),
        (
            "database.ssl.root_cert_file",
            "HYPERFLEET_DATABASE_SSL_ROOT_CERT_FILE",
            Some("db-root-cert-file"),
        ),
        (
            "database.pool.max_connections",
            "HYPERFLEET_DATABASE_POOL_MAX_CONNECTIONS",
            Some("db-max-open-connections"),
        ),
        (
            "database.pool.advisory_lock_timeout",
            "HYPERFLEET_DATABASE_POOL_ADVISORY_LOCK_TIMEOUT",
            None,
        ),
        (
            "logging.masking.headers",
            "HYPERFLEET_LOGGING_MASKING_HEADERS",
            Some("log-masking-sensitive-headers"),
        ),
        (
            "tracing.service_name",
            "HYPERFLEET_TRACING_SERVICE_NAME",
            None,
        ),
        (
            "health.db_ping_timeout",
            "HYPERFLEET_HEALTH_DB_PING_TIMEOUT",
            Some("health-db-ping-timeout"),
        ),
    ] {
        let setting = TABLE.find(key).unwrap();
        assert_eq!(TABLE.variable(setting).as_deref(), Some(variable));
        assert_eq!(setting.flag, flag, "{key}");
    }
}

/// The settings of a file, or its errors.
fn loaded(text: &str) -> Result<Loaded, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let args = SettingsArgs {
        config: Some(file.path().to_owned()),
        ..SettingsArgs::default()
    };
    let name = file.path().display().to_string();
    let loaded = load(&args, &Settings::default());
    loaded.map_err(|error| {
        let said = error.source().unwrap().to_string();
        said.replace(&name, "FILE")
    })
}

#[test]
fn a_file_of_the_older_service_works() {
    let loaded = loaded(
        "
server:
  hostname: api-1.example.com
  host: 0.0.0.0
  port: 8000
  timeouts: {read: 5s, write: 30s}
  tls: {enabled: false, cert_file: '', key_file: ''}
  jwt:
    enabled: true
    configs:
      - issuer_url: https://sso.example.com/realms/x
        jwk_cert_url: https://sso.example.com/certs
        jwk_cert_ca_file: ''
        identity_header: X-HyperFleet-Identity
  tenant:
    enabled: true
    system_header: X-HyperFleet-System
    dimensions: [{header: X-HyperFleet-Org, key: org, required: true}]
database:
  dialect: postgres
  host: db
  pool: {max_connections: 50, max_idle_connections: 10, conn_max_lifetime: 5m, conn_max_idle_time: 1m,
         request_timeout: 30s, conn_retry_attempts: 10, conn_retry_interval: 3s, advisory_lock_timeout: 5m}
logging:
  level: info
  masking: {enabled: true, headers: 'Authorization, X-HyperFleet-Identity', fields: [password]}
  otel: {enabled: false}
metrics: {label_metrics_inclusion_duration: 168h, reconciliation_stuck_threshold: 10m}
health: {shutdown_timeout: 20s, db_ping_timeout: 2s}
entities:
",
    )
    .unwrap();
    let settings = &loaded.settings;
    assert_eq!(settings.server.jwt.configs[0].identity_claim, "email");
    assert_eq!(settings.server.jwt.configs[0].header, "Authorization");
    assert_eq!(settings.server.tenant.dimensions[0].key, "org");
    assert_eq!(settings.database.pool.max_connections, 50);
    assert_eq!(
        settings.database.port, 5432,
        "what is not said keeps its default"
    );
    let masked = ["Authorization", "X-HyperFleet-Identity"];
    assert_eq!(settings.logging.masking.headers, masked);
    assert!(!settings.tracing.enabled, "by its older name");
    assert_eq!(settings.entities, None);
    assert_eq!(loaded.notes.len(), 2, "{:?}", loaded.notes);
}

#[test]
fn all_errors_of_a_file_are_reported_together() {
    let errors = loaded(
        "
server:
  prt: 1
  port: 70000
  timeouts: {read: 5, write: soon}
  jwt: {enabled: maybe}
  tls: 5
logging: {level: loud, masking: {headers: [[1]]}}
servers: {}
database: {password: 12345, name: {}}
lists: {include_deleted: null}
",
    )
    .unwrap_err();
    for error in [
        "server.prt (from FILE): there is no such setting; did you mean server.port?",
        "server.timeouts.read (from FILE): \"5\" is not a duration such as 30s, 5m or 1h30m",
        "server.timeouts.write (from FILE): \"soon\" is not a duration",
        "server.jwt.enabled (from FILE): \"maybe\" is not true or false",
        "server.tls (from FILE): must hold settings, such as server.tls.enabled",
        "logging.level (from FILE): \"loud\" is not one of: debug, info, warn, error",
        "logging.masking.headers (from FILE): must be a list of texts",
        "servers (from FILE): there is no such setting; did you mean server?",
        "database.password (from FILE): must be a text: put it in quotes",
        "database.name (from FILE): must be a text: put it in quotes",
    ] {
        assert!(errors.contains(error), "no {error:?} in:\n{errors}");
    }
    assert!(!errors.contains("12345"), "a secret is shown:\n{errors}");
}

#[test]
fn errors_of_types_are_reported_with_their_paths() {
    for (text, words) in [
        (
            "server: {port: 70000}",
            vec!["server.port (from FILE): \"70000\" is not between 0 and 65535"],
        ),
        (
            "server: {jwt: {configs: [{issuer: x}]}}",
            vec![
                "server.jwt.configs[0].issuer (from FILE): there is no such member",
                "did you mean issuer_url?",
            ],
        ),
        (
            "entities: [{kind: A, plurals: as}]",
            vec!["entities[0].plurals (from FILE)", "did you mean plural?"],
        ),
        (
            "entities: [{kind: [A]}]",
            vec!["entities[0].kind (from FILE): invalid type: found sequence, expected a string"],
        ),
        (
            "server: {port: 1, port: 2}",
            vec!["FILE is not a settings file", "duplicate"],
        ),
        ("[1, 2]", vec!["FILE is not a settings file"]),
        ("a: b: c", vec!["FILE is not a settings file"]),
        (
            "server: {timeouts: {read: 10ms}}",
            vec!["server.timeouts.read (from FILE): \"10ms\" is not between 1s"],
        ),
        (
            "database: {pool: {max_connections: 201}}",
            vec!["between 1 and 200"],
        ),
        (
            "server: {limits: {max_in_flight: 0}}",
            vec!["max_in_flight (from FILE): \"0\" is not between 1 and"],
        ),
        (
            "audit: {retention: 59m}",
            vec!["audit.retention (from FILE): \"59m\" is not between 1h"],
        ),
    ] {
        let errors = loaded(text).unwrap_err();
        for word in words {
            assert!(errors.contains(word), "{text}: no {word:?} in: {errors}");
        }
    }
}

#[test]
fn what_older_files_write_is_understood() {
    let loaded = loaded(
        "
server: {port: '8001', jwt: {enabled: 'false'}, tls: {enabled: 'T'}}
database: {pool: {request_timeout: 0, max_connections: '20'}}
tracing: {enabled: false}
logging: {otel: {enabled: true}}
",
    )
    .unwrap();
    let settings = &loaded.settings;
    assert_eq!(settings.server.port, 8001);
    assert!(!settings.server.jwt.enabled && settings.server.tls.enabled);
    assert_eq!(settings.database.pool.max_connections, 20);
    assert!(settings.database.pool.request_timeout.is_zero());
    assert!(
        !settings.tracing.enabled,
        "its own name is the stronger one"
    );
}

#[test]
fn errors_of_every_kind_are_reported_together() {
    let errors = loaded(
        "
entities: {kind: A}
server: {prt: 1, port: 70000, jwt: {configs: [{issuer_url: 'https://a', jwk_cert_urll: x}]}}
health: {port: 70001, shutdown_timeout: 3m}
metrics: {port: soon}
",
    )
    .unwrap_err();
    for error in [
        "server.prt (from FILE): there is no such setting",
        "server.port (from FILE): \"70000\" is not between 0 and 65535",
        "health.port (from FILE): \"70001\" is not between",
        "metrics.port (from FILE): \"soon\" is not a whole number",
        "server.jwt.configs[0].jwk_cert_urll (from FILE): there is no such member; did you mean jwk_cert_url?",
        "entities (from FILE): invalid type",
        "health.shutdown_timeout (from FILE): \"3m\"",
    ] {
        assert!(errors.contains(error), "no {error:?} in:\n{errors}");
    }
}

#[test]
fn what_a_file_that_is_no_settings_file_holds_is_not_repeated() {
    for text in ["hush", "host:5432:*:user:hush", "[hush]", "'hush'\n", "12"] {
        let errors = loaded(text).unwrap_err();
        assert!(
            errors.starts_with("FILE is not a settings file"),
            "{errors}"
        );
        assert!(
            !errors.contains("hush") && !errors.contains("12"),
            "{errors}"
        );
    }
}

#[test]
fn where_traces_were_once_switched_on_nothing_is_passed_over() {
    for text in ["otel:", "otel: {}", "otel: {enabled: }"] {
        let loaded = loaded(&format!("logging:\n  {text}")).unwrap();
        assert!(loaded.settings.tracing.enabled, "{text}");
        assert!(loaded.notes.is_empty(), "{text}: {:?}", loaded.notes);
    }
    for (text, error) in [
        ("otel: true", "logging.otel (from FILE): must hold settings"),
        (
            "otel: {enabled: maybe}",
            "logging.otel.enabled (from FILE): \"maybe\" is not",
        ),
        (
            "otel: {enable: true}",
            "logging.otel.enable (from FILE): there is no such",
        ),
    ] {
        let errors = loaded(&format!("logging:\n  {text}")).unwrap_err();
        assert!(errors.contains(error), "{text}: {errors}");
    }
}

#[test]
fn a_database_is_named_in_one_way() {
    let errors = loaded("database: {url: 'postgres://u@h/n', host: other}").unwrap_err();
    assert!(
        errors.contains(
            "database.url (from FILE) and database.host (from FILE) both name a database"
        ),
        "{errors}"
    );
}

#[test]
fn an_empty_file_says_nothing() {
    for text in ["", "# nothing\n", "server:\n", "server:\n  port:\n"] {
        let loaded = loaded(text).unwrap();
        assert_eq!(loaded.settings, Settings::default(), "{text:?}");
        assert_eq!(loaded.summary(), "", "{text:?}");
    }
}

fn serve_args(flags: &[&str]) -> Result<SettingsArgs, clap::Error> {
    let args = ["hyperfleet-api", "serve"].iter().chain(flags);
    match Args::try_parse_from(args)?.command {
        Command::Serve(args) => Ok(args),
        _ => unreachable!("serve was asked for"),
    }
}

#[test]
fn flags_win_and_are_named_as_sources() {
    let args = serve_args(&[
        "--server-port=8010",
        "--server-jwt-enabled=false",
        "--server-https-enabled",
        "-l",
        "debug",
        "--log-masking-sensitive-headers",
        "A, B",
        "--metrics-label-metrics-inclusion-duration=1h",
    ])
    .unwrap();
    let loaded = load(&args, &Settings::default()).unwrap();
    assert_eq!(
        loaded.notes,
        ["metrics.label_metrics_inclusion_duration \
          (from --metrics-label-metrics-inclusion-duration) has no effect: leave it out"]
    );
    let settings = &loaded.settings;
    assert_eq!(settings.server.port, 8010);
    assert!(settings.server.tls.enabled && !settings.server.jwt.enabled);
    assert_eq!(settings.logging.masking.headers, ["A", "B"]);
    let origin = loaded.origin("server.port").unwrap();
    assert_eq!(origin.to_string(), "--server-port");
    let args = serve_args(&["--server-port", "x"]).unwrap();
    let error = load(&args, &Settings::default()).unwrap_err();
    assert_eq!(
        error.source().unwrap().to_string(),
        "server.port (from --server-port): \"x\" is not a whole number"
    );
    assert!(serve_args(&["--log-level", "loud"]).is_err());
    assert!(serve_args(&["--no-such-flag"]).is_err());
}

#[test]
fn secrets_are_redacted_in_output() {
    let loaded = loaded("database: {password: hush-1, name: visible-name}").unwrap();
    let url = super::tests::loaded("database: {url: 'postgres://u:hush-2@h/n'}").unwrap();
    let printed = as_table(&url.effective()) + &url.summary();
    assert!(
        !printed.contains("hush") && printed.contains("***REDACTED***"),
        "{printed}"
    );
    let printed = format!(
        "{}\n{}\n{}",
        loaded.summary(),
        as_table(&loaded.effective()),
        as_json(&loaded.effective())
    );
    assert!(!printed.contains("hush"), "{printed}");
    assert!(printed.contains("***REDACTED***") && printed.contains("visible-name"));
}

#[test]
fn secrets_are_in_nothing_that_settings_can_be_printed_as() {
    let args = serve_args(&["--db-password=hush-1", "--db-host=visible-host"]).unwrap();
    let settings = load(&args, &Settings::default()).unwrap().settings;
    assert_eq!(settings.database.password.expose(), "hush-1");
    let mut with_url = settings.clone();
    with_url.database.url = Some("postgres://u:hush-2@h/n".to_owned().into());
    let printed = format!(
        "{args:?} {settings:?} {with_url:?} {}",
        serde_json::to_string(&[&settings, &with_url]).unwrap()
    );
    assert!(!printed.contains("hush"), "{printed}");
    assert!(printed.contains("visible-host") && printed.contains("db-password"));
    let none = serde_json::to_value(Settings::default()).unwrap();
    assert_eq!(none["database"]["password"], "");
}

/// `make config-reference` renews it.
#[test]
fn the_tables_of_the_documentation_are_those_of_the_code() {
    let document = std::fs::read_to_string(Path::new("docs/reference/configuration.md")).unwrap();
    let tables = document
        .split_once("<!-- settings -->\n")
        .and_then(|(_, rest)| rest.split_once("<!-- /settings -->"))
        .map(|(tables, _)| tables);
    assert_eq!(
        tables,
        Some(reference().as_str()),
        "run `make config-reference`"
    );
}

#[test]
fn the_minimum_of_audit_retention_is_that_of_the_domain() {
    let minimum = format_duration(hyperfleet_audit::RETENTION_MIN).to_string();
    let range = TABLE.find("audit.retention").unwrap().range;
    assert_eq!(range.unwrap().0, minimum);
}

#[test]
fn the_default_of_entities_names_the_built_in_kinds() {
    let kinds = hyperfleet_domain::entity_config::built_in().into_iter();
    let kinds = kinds.map(|kind| format!("{} ({})", kind.kind, kind.required_adapters.join(", ")));
    let default = TABLE.find("entities").unwrap().default;
    assert_eq!(default, kinds.collect::<Vec<_>>().join(", "));
}

#[test]
fn the_name_of_the_link_stands_for_the_command() {
    for (arguments, is_adapter) in [
        (&["/usr/bin/hyperfleet-fleet-adapter", "run"][..], true),
        (&["hyperfleet-fleet-adapter", "run"], true),
        (&["hyperfleet-api", "fleet-adapter", "run"], true),
        (&["hyperfleet-api", "serve"], false),
    ] {
        let arguments = hyperfleet_fleet_adapter::command::with_command_of_name(
            arguments.iter().map(Into::into),
        );
        let args = Args::try_parse_from(arguments).unwrap();
        let found = matches!(args.command, Command::FleetAdapter(_));
        assert_eq!(found, is_adapter, "{args:?}");
    }
}
