//! Settings as an operator gives them: the real program, its environment and its files.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The program with these arguments and no variables.
fn program(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hyperfleet-api"));
    command.args(args).current_dir(folder).env_clear();
    command
}

/// The program with these arguments and no variables but these.
fn run(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = program(folder, args);
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
fn invalid_arguments_exit_with_2_and_failures_with_1() {
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
fn a_custom_variable_is_used_if_nothing_names_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let custom = ("DATABASE_URL", "postgres://u@custom/n");
    let (settings, _) = checked(folder.path(), &[], &[custom]);
    assert_eq!(settings["database.url"]["source"], "DATABASE_URL");
    let (settings, said) = checked(folder.path(), &["--db-host", "named"], &[custom]);
    assert_eq!(settings["database.url"]["value"], "");
    assert_eq!(settings["database.host"]["value"], "named");
    assert!(said.contains("DATABASE_URL is ignored"), "{said}");
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
            ["--database-url", "postgres://u:12/hush@h/x"],
            "has an @ after its host",
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
                 {issuer_url: 'https://a.example', jwk_cert_url: 'https://a.example/k', audience: two}, \
                 {issuer_url: 'https://a.example', jwk_cert_url: 'https://a.example/k', audience: one, header: X-T}, \
                 {issuer_url: 'https://a.example', jwk_cert_url: 'https://a.example/l', audience: one}]}}";
    std::fs::write(folder.path().join("twice.yaml"), twice).unwrap();
    let said = refused(folder.path(), &["--config", "twice.yaml"], &[]);
    assert_eq!(said.matches("issuer_url (from").count(), 1, "{said}");
    let error =
        "server.jwt.configs[3].issuer_url (from twice.yaml) is also the issuer_url of configs[0]";
    assert!(said.contains(error), "{said}");
}

#[test]
fn a_note_that_nobody_reads_changes_no_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("wrong.yaml"), "server: {port: abc}").unwrap();
    let database = ("DATABASE_URL", "postgres://u@custom/n");
    let without = "--server-jwt-enabled=false";
    for (args, code) in [
        (&["config", "check", without, "--db-host", "named"][..], 0),
        (&["config", "check", "--config", "wrong.yaml"], 2),
        (&["dev-token", "--folder", "/dev/null/no-folder"], 1),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = program(folder.path(), args);
        let command = command.envs([database]).stdout(Stdio::null());
        let status = command.stderr(writer).status().unwrap();
        assert_eq!(status.code(), Some(code), "{args:?}");
    }
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
    // An existing file without settings is not ignored either.
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
    // Another file than was meant: what it holds is not repeated.
    let wrong = [("HYPERFLEET_DATABASE_PORT_FILE", secret.to_str().unwrap())];
    let said = refused(folder.path(), &[], &wrong);
    assert!(said.contains("its content is not a whole number"), "{said}");
    assert!(!said.contains("pass word"), "{said}");
    let gone = [("HYPERFLEET_DATABASE_PASSWORD_FILE", "gone")];
    let said = refused(folder.path(), &[], &gone);
    assert!(
        said.contains("HYPERFLEET_DATABASE_PASSWORD_FILE: gone"),
        "{said}"
    );
    assert!(said.contains("cannot read gone"), "{said}");
}

#[test]
fn misspelt_variables_are_logged_except_those_of_kubernetes() {
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
        "note: HYPERFLEET_SERVR_PORT is not a setting; did you mean HYPERFLEET_SERVER_PORT?",
        "note: logging.otel.enabled (from HYPERFLEET_LOGGING_OTEL_ENABLED) is now tracing.enabled",
    ];
    assert_eq!(notes, expected);
}

#[test]
fn what_kubernetes_says_of_its_services_is_no_setting() {
    let folder = tempfile::tempdir().unwrap();
    let made = [
        ("HYPERFLEET_SERVER_PORT", "tcp://10.0.0.1:8000"),
        ("HYPERFLEET_METRICS_PORT", "tcp://10.0.0.2:9090"),
        ("HYPERFLEET_HEALTH_PORT", "udp://10.0.0.3:8080"),
        ("HYPERFLEET_DATABASE_PORT", "tcp://10.0.0.4:5432"),
    ];
    let (settings, said) = checked(folder.path(), &[], &made);
    for (name, key, port) in [
        (made[0].0, "server.port", "8000"),
        (made[1].0, "metrics.port", "9090"),
        (made[2].0, "health.port", "8080"),
        (made[3].0, "database.port", "5432"),
    ] {
        assert_eq!(settings[key]["value"], port, "{key}");
        assert_eq!(settings[key]["source"], "default", "{key}");
        let note = format!("note: {name} is ignored: Kubernetes sets it");
        assert!(said.contains(&note), "no {note:?} in: {said}");
    }
    // What it never says is a slip.
    let slip = [(
        "HYPERFLEET_DATABASE_POOL_MAX_CONNECTIONS",
        "tcp://10.0.0.1:1",
    )];
    let said = refused(folder.path(), &[], &slip);
    assert!(said.contains("is not a whole number"), "{said}");
}

#[test]
fn a_variable_that_is_no_text_is_not_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "HYPERFLEET_SERVER_HOST",
        "HYPERFLEET_DATABASE_PASSWORD_FILE",
        "HYPERFLEET_LOGGING_OTEL_ENABLED",
        "DATABASE_URL",
    ] {
        let mut check = program(folder.path(), &["config", "check"]);
        let output = check.env(name, OsStr::from_bytes(b"hush\xff")).output();
        let output = output.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        let error = format!("(from {name}): must be a text in UTF-8");
        assert!(said.contains(&error) && !said.contains("hush"), "{said}");
    }
}

#[test]
fn no_password_of_an_address_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let issuer = "server: {jwt: {configs: [{issuer_url: 'https://a.example', \
                  jwk_cert_url: 'https://user:hush@a.example/k'}]}}";
    std::fs::write(folder.path().join("issuer.yaml"), issuer).unwrap();
    for jwt in ["true", "false"] {
        let jwt = format!("--server-jwt-enabled={jwt}");
        for command in [&["config", "check"][..], &["serve"], &["migrate"]] {
            let args = [command, &["--config", "issuer.yaml", &jwt]].concat();
            let output = run(folder.path(), &args, &[]);
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8(said).unwrap();
            assert_eq!(output.status.code(), Some(2), "{said}");
            let error = "jwk_cert_url (from issuer.yaml) must not have a user or a password";
            assert_eq!(said.matches(error).count(), 1, "{said}");
            assert!(!said.contains("hush"), "{said}");
        }
    }
}

#[test]
fn settings_of_tls_count_beside_a_url_that_says_nothing_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let url = |query: &str| format!("--database-url=postgres://u@h/n{query}");
    let mode = "--db-ssl-mode=verify-full";
    let (settings, _) = checked(folder.path(), &[&url(""), mode], &[]);
    assert_eq!(settings["database.ssl.mode"]["value"], "verify-full");
    let args = [&url(""), "--db-root-cert-file=none.pem"];
    let said = refused(folder.path(), &args, &[]);
    assert!(said.contains("cannot read none.pem"), "{said}");
}

#[test]
fn every_invalid_value_of_every_source_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let text = "
server: {port: soon, jwt: {configs: 5}, openapi_schema_path: none.yaml}
health: {tls: {enabled: true}, shutdown_timeout: 3m}
database: {ssl: {root_cert_file: none.pem}}
";
    std::fs::write(folder.path().join("bad.yaml"), text).unwrap();
    for (file, errors) in [
        (
            "bad.yaml",
            &[
                "server.port (from bad.yaml): \"soon\" is not a whole number",
                "server.jwt.configs (from bad.yaml): invalid type: found unsigned int `5`, expected a sequence",
                "health.shutdown_timeout (from bad.yaml): \"3m\" is not between 1s and 2m",
                "metrics.port (from --metrics-port): \"x\"",
            ][..],
        ),
        (
            "none.yaml",
            &[
                "cannot read none.yaml",
                "metrics.port (from --metrics-port)",
            ],
        ),
    ] {
        let args = ["--config", file, "--metrics-port=x"];
        let said = refused(folder.path(), &args, &[]);
        for error in errors {
            assert!(said.contains(error), "no {error:?} in:\n{said}");
        }
        assert_eq!(said.lines().count(), 1 + errors.len(), "{said}");
    }
}

#[test]
fn health_and_metrics_with_the_api_certificate_are_noted() {
    let folder = tempfile::tempdir().unwrap();
    let key = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    std::fs::write(folder.path().join("cert.pem"), key.cert.pem()).unwrap();
    std::fs::write(
        folder.path().join("key.pem"),
        key.signing_key.serialize_pem(),
    )
    .unwrap();
    let args = [
        "--server-https-cert-file=cert.pem",
        "--server-https-key-file=key.pem",
        "--metrics-tls-enabled",
    ];
    let (_, said) = checked(folder.path(), &args, &[]);
    let note = "note: metrics.tls names no files: it uses the files of server.tls\n";
    assert_eq!(said, note);
}

#[test]
fn only_changed_settings_can_be_printed() {
    let folder = tempfile::tempdir().unwrap();
    // The second one says what the default says.
    let flags = ["--server-port=1", "--health-port=8080", "--changed"];
    let (settings, _) = checked(folder.path(), &flags, &[]);
    let keys = settings.as_object().unwrap().keys();
    assert_eq!(
        keys.collect::<BTreeSet<_>>(),
        BTreeSet::from([&"server.jwt.enabled".to_owned(), &"server.port".to_owned()])
    );
    let (all, _) = checked(folder.path(), &[], &[]);
    let kinds = all["entities"]["value"].as_str().unwrap();
    assert!(kinds.starts_with("Cluster (validation, dns, "), "{kinds}");
}

#[test]
fn no_error_hides_another() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.yaml");
    for (text, words) in [
        (
            "server: {tenant: {enforce: true, system_header: Cookie, dimensions: [{header: ' '}]}}",
            &[
                "server.tenant.enforce (from wrong.yaml): needs",
                "server.tenant.system_header (from wrong.yaml): must not be Cookie",
                "server.tenant.dimensions[0].header (from wrong.yaml): is not a valid header name",
            ][..],
        ),
        (
            "server: {tls: {enabled: true}}",
            &[
                "server.tls.cert_file is not set",
                "server.tls.key_file is not set",
            ],
        ),
        (
            "health: {tls: {enabled: true, cert_file: a.pem, key_file: b.pem}}",
            &["cannot read a.pem", "cannot read b.pem"],
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let args = ["--config", "wrong.yaml", "--server-jwt-enabled=false"];
        let said = refused(folder.path(), &args, &[]);
        for word in words {
            assert!(said.contains(word), "no {word} in: {said}");
        }
    }
}

#[test]
fn each_error_is_one_line_that_names_its_source() {
    let folder = tempfile::tempdir().unwrap();
    let text = "\
server:
  host: a
  tenant:
    enabled: true
    dimensions:
      - header: X-Org
        key: org
        required: false
  jwt:
    configs:
      - issuer_url: https://issuer.example
        identity_claim_pattern: (
      - issuer_url: http://issuer.example
        jwk_cert_file: none.json
entities:
  - kind: Rack
    plural: racks
    references:
      - ref_type: zone
        target_kind: Zone
  - kind: Shelf
    plural: Shelves
    required_adapters: [dns, dns]
fleet:
  enabled: true
  etcd:
    endpoints: [etcd:2379, 'ftp://etcd']
";
    std::fs::write(folder.path().join("bad.yaml"), text).unwrap();
    let said = refused(folder.path(), &["--config", "bad.yaml"], &[]);
    let errors = [
        "server.tenant.system_header: is required",
        "server.tenant.dimensions (from bad.yaml): needs one at least",
        "server.jwt.configs[0].jwk_cert_url (from bad.yaml) or jwk_cert_file is required",
        "server.jwt.configs[0].identity_claim_pattern (from bad.yaml) cannot be used: unclosed group",
        "server.jwt.configs[1].issuer_url (from bad.yaml) must be https",
        "server.jwt.configs[1].jwk_cert_file (from bad.yaml) none.json: ",
        "entities[0].references[0] (from bad.yaml): entity kind \"Rack\" references the kind \"Zone\"",
        "entities[1].plural (from bad.yaml): entity kind \"Shelf\" has the plural \"Shelves\"",
        "entities[1].required_adapters (from bad.yaml): entity kind \"Shelf\" requires adapters \"dns\" and \"dns\", which would share",
        "fleet.etcd.endpoints (from bad.yaml): \"etcd:2379\" is no server",
        "fleet.etcd.endpoints (from bad.yaml): \"ftp://etcd\" is no server",
    ];
    for error in errors {
        assert!(
            said.contains(&format!("\n  - {error}")),
            "no {error:?} in:\n{said}"
        );
    }
    assert_eq!(said.lines().count(), 1 + errors.len(), "{said}");
}

#[test]
fn programs_read_the_version_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let output = program(folder.path(), &["version", "-o", "json"]).output();
    let version: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    for member in ["commit", "build_time"] {
        assert_ne!(version[member].as_str().unwrap(), "", "{version}");
    }
}

#[test]
fn whoever_reads_the_output_may_have_left() {
    let folder = tempfile::tempdir().unwrap();
    for args in [&["version"][..], &["config", "reference"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = program(folder.path(), args);
        let output = command.stdout(writer).stderr(Stdio::piped()).output();
        let output = output.unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(
            (output.status.code(), said.as_str()),
            (Some(0), ""),
            "{args:?}"
        );
    }
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
    let error = "entities[0].parent_kind (from bad.yaml): entity kind \"A\" has the parent_kind";
    assert!(said.contains(error), "{said}");
    // JWT is on, and there is no issuer: both errors are reported.
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
