//! Settings as an operator gives them: the real program, its environment and its files.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// The program with these arguments and no variables but these.
fn run(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperfleet-api"));
    command.args(args).current_dir(folder).env_clear();
    command.envs(variables.iter().copied()).output().unwrap()
}

/// Each setting's value and source, by key.
fn checked(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> (Value, String) {
    let check = [
        "config",
        "check",
        "-o",
        "json",
        "--server-jwt-enabled=false",
    ];
    let args = [&check, args].concat();
    let output = run(folder, &args, variables);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let entries: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let pairs = entries.into_iter().map(|entry| {
        let key = entry["key"].as_str().unwrap().to_owned();
        (key, entry)
    });
    (pairs.collect::<serde_json::Map<_, _>>().into(), said)
}

#[track_caller]
fn refused(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> String {
    let output = run(folder, &[&["config", "check"], args].concat(), variables);
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_is_wrong_with_a_command_line_or_its_settings_ends_it_with_2_and_what_fails_with_1() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.yaml");
    std::fs::write(&file, "server: {port: abc}").unwrap();
    let file = file.to_str().unwrap();
    let without = "--server-jwt-enabled=false";
    // Nobody listens there.
    let database = "postgres://nobody@127.0.0.1:1/none";
    let nowhere = ("HYPERFLEET_DATABASE_POOL_CONN_RETRY_ATTEMPTS", "0");
    for (args, variables, code) in [
        (&["version"][..], &[][..], 0),
        (&["config", "check", without], &[], 0),
        (&["nonsense"], &[], 2),
        (&["serve", "--nonsense"], &[], 2),
        (&["serve", "--log-level", "loud"], &[], 2),
        (&["serve", "--server-port", "abc"], &[], 2),
        (&["serve", "--config", file], &[], 2),
        (&["serve", "--config", "missing.yaml"], &[], 2),
        (&["serve"], &[("HYPERFLEET_SERVER_PORT", "abc")], 2),
        // Without an issuer: what is wrong with all of them together.
        (&["serve"], &[], 2),
        (&["dev", "--server-port", "abc"], &[], 2),
        (&["migrate", "--database-url", "mysql://a/b"], &[], 2),
        (&["openapi", "--config", file], &[], 2),
        (&["migrate", "--database-url", database], &[nowhere], 1),
    ] {
        let output = run(folder.path(), args, variables);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    }
}

#[test]
fn later_sources_win_and_each_value_says_where_it_is_from() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("my.yaml");
    std::fs::write(
        &file,
        "server: {port: 1, host: file}\nhealth: {port: 11}\nlogging: {level: warn}",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let (settings, _) = checked(
        folder.path(),
        &["--config", file, "--server-port", "3"],
        &[
            ("HYPERFLEET_SERVER_PORT", "2"),
            ("HYPERFLEET_SERVER_HOST", "environment"),
            ("HYPERFLEET_LOGGING_LEVEL", ""),
            ("HYPERFLEET_DATABASE_URL", "postgres://u:hush@h/n"),
            ("OTEL_SERVICE_NAME", "by-the-standard"),
        ],
    );
    for (key, value, source) in [
        ("server.port", "3", "--server-port"),
        ("server.host", "environment", "HYPERFLEET_SERVER_HOST"),
        ("health.port", "11", file),
        ("metrics.port", "9090", "default"),
        ("logging.level", "warn", file),
        ("database.url", "***REDACTED***", "HYPERFLEET_DATABASE_URL"),
        (
            "tracing.service_name",
            "by-the-standard",
            "OTEL_SERVICE_NAME",
        ),
    ] {
        assert_eq!(settings[key]["value"], value, "{key}");
        assert_eq!(settings[key]["source"], source, "{key}");
    }
}

#[test]
fn the_custom_variable_counts_only_where_nothing_names_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let custom = ("DATABASE_URL", "postgres://u@custom/n");
    let (settings, _) = checked(folder.path(), &[], &[custom]);
    assert_eq!(settings["database.url"]["source"], "DATABASE_URL");
    let (settings, said) = checked(folder.path(), &["--db-host", "named"], &[custom]);
    assert_eq!(settings["database.url"]["value"], "");
    assert_eq!(settings["database.host"]["value"], "named");
    assert!(said.contains("DATABASE_URL does not count"), "{said}");
}

#[test]
fn what_only_the_start_would_notice_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    for (args, word) in [
        (
            ["--database-url", "mysql://u:hush@h/x"],
            "postgres://user:password@host",
        ),
        (
            ["--database-url", "postgres://u@h/x?sslpassword=hush"],
            "not known: sslpassword",
        ),
        (
            ["--database-url", "postgres://u@h:99999/x"],
            "postgres://user:password@host",
        ),
        (["--db-root-cert-file", "none.pem"], "cannot read none.pem"),
        (["--health-shutdown-timeout", "3m"], "between 1s and 2m"),
    ] {
        let said = refused(folder.path(), &args, &[]);
        assert!(
            said.contains(word) && !said.contains("hush"),
            "{args:?}: {said}"
        );
    }
    let twice = "server: {jwt: {enabled: true, configs: [{issuer_url: 'https://a.example', \
                 jwk_cert_url: 'https://a.example/k', header: X-Org}]}, \
                 tenant: {enabled: true, system_header: X-Sys, dimensions: [{header: x-org, key: o, required: true}]}}";
    std::fs::write(folder.path().join("twice.yaml"), twice).unwrap();
    let said = refused(folder.path(), &["--config", "twice.yaml"], &[]);
    assert!(said.contains("both use the header X-Org"), "{said}");
    let twice = "server: {jwt: {configs: [\
                 {issuer_url: 'https://a.example', jwk_cert_url: 'https://a.example/k', audience: one}, \
                 {issuer_url: 'https://b.example', jwk_cert_url: 'https://b.example/k'}, \
                 {issuer_url: 'https://a.example', jwk_cert_url: 'https://a.example/l', audience: two}]}}";
    std::fs::write(folder.path().join("twice.yaml"), twice).unwrap();
    let said = refused(folder.path(), &["--config", "twice.yaml"], &[]);
    let fault = "server.jwt.configs[2].issuer_url is that of configs[0], too";
    assert!(said.contains(fault), "{said}");
}

#[test]
fn the_usual_file_is_found_and_a_named_one_counts_instead() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("configs")).unwrap();
    std::fs::write(
        folder.path().join("configs/config.yaml"),
        "server: {port: 1}",
    )
    .unwrap();
    std::fs::write(folder.path().join("named.yaml"), "health: {port: 2}").unwrap();
    let (settings, _) = checked(folder.path(), &[], &[]);
    assert_eq!(settings["server.port"]["value"], "1");
    let (settings, _) = checked(folder.path(), &[], &[("HYPERFLEET_CONFIG", "named.yaml")]);
    assert_eq!(settings["server.port"]["value"], "8000");
    assert_eq!(settings["health.port"]["value"], "2");
    let said = refused(folder.path(), &["--config", "nowhere.yaml"], &[]);
    assert!(said.contains("cannot read nowhere.yaml"), "{said}");
    // One that is there but no settings file is not passed over either.
    std::fs::write(folder.path().join("configs/config.yaml"), "server: [").unwrap();
    let said = refused(folder.path(), &[], &[]);
    assert!(
        said.contains("configs/config.yaml is not a settings file"),
        "{said}"
    );
}

#[test]
fn secrets_can_be_read_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("password");
    std::fs::write(&secret, "pass word\r\n").unwrap();
    std::fs::write(folder.path().join("host"), "db.example.com\n").unwrap();
    std::fs::write(folder.path().join("port"), "6432\n").unwrap();
    let variables = [
        (
            "HYPERFLEET_DATABASE_PASSWORD_FILE",
            secret.to_str().unwrap(),
        ),
        ("HYPERFLEET_DATABASE_HOST_FILE", "host"),
        ("HYPERFLEET_DATABASE_PORT_FILE", "port"),
    ];
    let (settings, _) = checked(folder.path(), &[], &variables);
    assert_eq!(settings["database.host"]["value"], "db.example.com");
    assert_eq!(settings["database.port"]["value"], "6432");
    assert_eq!(settings["database.password"]["value"], "***REDACTED***");
    let source = settings["database.password"]["source"].as_str().unwrap();
    assert!(
        source.starts_with("HYPERFLEET_DATABASE_PASSWORD_FILE: "),
        "{source}"
    );

    let both = [variables[0], ("HYPERFLEET_DATABASE_PASSWORD", "hush")];
    let said = refused(folder.path(), &[], &both);
    assert!(
        said.contains("are both set") && !said.contains("hush"),
        "{said}"
    );
    let gone = [("HYPERFLEET_DATABASE_PASSWORD_FILE", "gone")];
    let said = refused(folder.path(), &[], &gone);
    assert!(
        said.contains("HYPERFLEET_DATABASE_PASSWORD_FILE: gone"),
        "{said}"
    );
    assert!(said.contains("cannot read gone"), "{said}");
}

#[test]
fn variables_that_look_like_a_slip_are_told_and_those_of_kubernetes_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let (_, said) = checked(
        folder.path(),
        &[],
        &[
            ("HYPERFLEET_SERVR_PORT", "1"),
            ("HYPERFLEET_API_SERVICE_HOST", "10.0.0.1"),
            ("HYPERFLEET_API_PORT", "tcp://10.0.0.1:8000"),
            ("HYPERFLEET_LOGGING_OTEL_ENABLED", "false"),
        ],
    );
    let notes: Vec<_> = said.lines().collect();
    let expected = [
        "note: logging.otel.enabled (from HYPERFLEET_LOGGING_OTEL_ENABLED) is now tracing.enabled",
        "note: HYPERFLEET_SERVR_PORT is no setting; did you mean HYPERFLEET_SERVER_PORT?",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn kinds_schemas_and_issuers_are_checked_too() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("bad.yaml"),
        "entities: [{kind: A, plural: as, parent_kind: Missing}]",
    )
    .unwrap();
    let said = refused(folder.path(), &["--config", "bad.yaml"], &[]);
    assert!(
        said.contains("the configured entities do not fit together"),
        "{said}"
    );
    // JWT is on, and there is no issuer: both faults at once.
    let said = refused(
        folder.path(),
        &["--server-openapi-schema-path", "none.yaml"],
        &[],
    );
    assert!(said.contains("none.yaml"), "{said}");
    assert!(
        said.contains("server.jwt.configs requires at least one issuer"),
        "{said}"
    );
}

#[test]
fn shells_complete_commands_and_flags() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = run(folder.path(), &["completion", shell], &[]);
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{shell}");
        for word in ["hyperfleet-api", "migrate", "db-max-open-connections"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
}
