//! The program with authentication on, as a user starts it.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::program::{Folder, Program};
use crate::support::{Answer, Series, TestApi, TestDatabase};

/// What `dev-token` prints, which must be a token and nothing else.
pub(crate) async fn minted(folder: &Path, args: &[&str]) -> String {
    let folder = folder.to_str().unwrap();
    let args = [&["dev-token", "--folder", folder], args].concat();
    let mut program = Program::start(&args);
    assert!(program.ended().await.success(), "{}", program.output());
    let said = program.output();
    let token = said.strip_suffix('\n').unwrap();
    assert_eq!(token.split('.').count(), 3, "{said}");
    assert!(!token.contains(char::is_whitespace), "{said}");
    token.to_owned()
}

async fn create(api: &TestApi, name: &str, token: &str) -> Answer {
    let body = json!({"kind": "Cluster", "name": name, "spec": {}});
    let url = format!("{}/clusters", api.base);
    let request = api.client.post(url).bearer_auth(token);
    Answer::of(request.body(body.to_string()).send().await.unwrap()).await
}

/// A file of settings that takes the tokens of a folder.
fn settings(folder: &Path, more: &str) -> String {
    let file = folder.join("config.yaml");
    let keys = folder.join("token/jwks.json");
    let text = format!(
        "server:
  jwt:
    enabled: true
    configs:
      - issuer_url: http://localhost/dev-token
        jwk_cert_file: {}
        {more}
",
        keys.display()
    );
    std::fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn serve_takes_tokens_of_the_issuers_that_are_set() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("token");
    let token = minted(
        &tokens,
        &["--email", "ada@example.com", "--audience", "api"],
    )
    .await;
    let config = settings(folder.path(), "audience: api");
    let database = TestDatabase::create().await;
    let url = database.url();
    let args = ["serve", "--database-url", &url, "--config", &config];
    let listen = ["--server-host", "127.0.0.1", "--server-port", "0"];
    let mut program = Program::start(&[&args[..], &listen].concat());
    let api = program.serving(database).await;
    assert_eq!(api.get("/clusters").await.problem(), (401, "AUT-001"));
    let made = create(&api, "made", &token).await;
    assert_eq!(made.body["created_by"], "ada@example.com", "{}", made.body);
    // The same key, another time.
    let again = minted(
        &tokens,
        &["--email", "eve@example.com", "--audience", "api"],
    )
    .await;
    assert_eq!(
        create(&api, "again", &again).await.body["created_by"],
        "eve@example.com"
    );
    let other = minted(&tokens, &[]).await;
    assert_eq!(
        create(&api, "other", &other).await.problem(),
        (401, "AUT-002")
    );
    let over = minted(&tokens, &["--audience", "api", "--valid-for", "0s"]).await;
    let answer = create(&api, "over", &over).await;
    // Within the leeway, still.
    assert_eq!(answer.status, 201, "{}", answer.body);
    program.signal(Signal::TERM);
    assert!(program.ended().await.success(), "{}", program.output());
    let said = program.output();
    for token in [&token, &again, &other] {
        let signature = token.rsplit('.').next().unwrap();
        assert!(!said.contains(signature), "a token in the log: {said}");
    }
    assert!(said.contains("\"reason\":\"audience\""), "{said}");
    let key = std::fs::metadata(tokens.join("key.pk8")).unwrap();
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn a_key_that_others_can_read_signs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    minted(folder.path(), &[]).await;
    let key = folder.path().join("key.pk8");
    let allow = |mode| std::fs::set_permissions(&key, std::fs::Permissions::from_mode(mode));
    allow(0o644).unwrap();
    let path = folder.path().to_str().unwrap();
    let mut program = Program::start(&["dev-token", "--folder", path]);
    assert_eq!(program.ended().await.code(), Some(1));
    let said = program.output();
    let advice = format!("chmod 600 '{}'", key.display());
    assert!(said.contains(&advice), "{said}");
    // Nothing that looks like a token.
    assert!(!said.contains("eyJ"), "{said}");
    allow(0o600).unwrap();
    minted(folder.path(), &[]).await;
}

#[tokio::test]
async fn a_token_of_an_issuer_that_no_settings_can_name_is_not_signed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    for (issuer, why) in [
        ("foo", "it is not a URL such as https://issuer.example.com"),
        ("http://issuer.example", "it must be https"),
    ] {
        let args = ["dev-token", "--folder", path.to_str().unwrap()];
        let mut program = Program::start(&[&args[..], &["--issuer", issuer]].concat());
        assert_eq!(program.ended().await.code(), Some(2));
        let said = program.output();
        assert!(said.contains("--issuer") && said.contains(why), "{said}");
        assert!(!path.exists());
    }
    minted(&path, &["--issuer", "https://issuer.example"]).await;
}

#[tokio::test]
async fn dev_with_authentication_says_how_to_call_it() {
    let data = Folder::new();
    let folder = tempfile::tempdir().unwrap();
    let token = minted(&folder.path().join("token"), &[]).await;
    let config = settings(folder.path(), "");
    let path = data.data();
    let mut program = Program::start(&[
        "dev",
        "--data-dir",
        path.to_str().unwrap(),
        "--server-port",
        "0",
        "--config",
        &config,
    ]);
    let api = program.serving(data.database()).await;
    assert_eq!(api.get("/clusters").await.problem(), (401, "AUT-001"));
    let made = create(&api, "made", &token).await;
    assert_eq!(
        made.body["created_by"], "developer@localhost",
        "{}",
        made.body
    );
    let said = program.output();
    for words in [
        "on: tokens of http://localhost/dev-token",
        "dev-token)",
        "demo adapter     off (callers need a token",
        "Authorization: Bearer $TOKEN",
    ] {
        assert!(said.contains(words), "no {words} in: {said}");
    }
}

#[tokio::test]
async fn every_invalid_setting_is_named_before_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    let text = json!({"server": {"jwt": {"enabled": true, "configs": [
        {"issuer_url": "http://issuer.example", "jwk_cert_url": "https://issuer.example/keys"},
        {"issuer_url": "https://issuer.example", "jwk_cert_file": "/nowhere/jwks.json", "header": "Cookie"},
    ]}}});
    std::fs::write(&file, text.to_string()).unwrap();
    for command in ["serve", "dev"] {
        let mut program = Program::start(&[command, "--config", file.to_str().unwrap()]);
        assert!(!program.ended().await.success());
        let said = program.output();
        for (setting, words) in [
            ("server.jwt.configs[0].issuer_url", "must be https"),
            ("server.jwt.configs[1].jwk_cert_file", "/nowhere/jwks.json"),
            ("server.jwt.configs[1].header", "Cookie"),
        ] {
            let words = format!("{setting} (from {}) {words}", file.display());
            assert!(said.contains(&words), "no {words} in: {said}");
        }
    }
}

#[tokio::test]
async fn an_unreachable_issuer_does_not_stop_the_start() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    let text = json!({"server": {"jwt": {"configs": [
        {"issuer_url": "https://issuer.example", "jwk_cert_url": format!("http://{address}/keys")},
    ]}}});
    std::fs::write(&file, text.to_string()).unwrap();
    let database = TestDatabase::create().await;
    let url = database.url();
    let args = [
        "serve",
        "--database-url",
        &url,
        "--config",
        file.to_str().unwrap(),
    ];
    let listen = ["--server-host", "127.0.0.1", "--server-port", "0"];
    let mut program = Program::start(&[&args[..], &listen].concat());
    let api = program.serving(database).await;
    assert_eq!(api.get("/clusters").await.problem(), (401, "AUT-001"));
    let said = program.output();
    assert!(said.contains("cannot be reached"), "{said}");
    assert_eq!(api.send("GET", "/openapi", Value::Null).await.status, 200);
}

#[tokio::test]
async fn whatever_can_be_counted_is_there_at_0_right_after_the_start() {
    let folder = tempfile::tempdir().unwrap();
    minted(&folder.path().join("token"), &[]).await;
    let config = settings(folder.path(), "");
    let database = TestDatabase::create().await;
    let url = database.url();
    let args = ["serve", "--database-url", &url, "--config", &config];
    let listen = ["--server-port=0", "--health-port=0", "--metrics-port=0"];
    let mut program = Program::start(&[&args[..], &listen].concat());
    let metrics = program.address("metrics").await;
    let api = program.serving(database).await;
    let scrape = api.client.get(format!("http://{metrics}/metrics")).send();
    let text = scrape.await.unwrap().text().await.unwrap();
    let series = Series::read(&text);
    for (name, labels) in [
        ("requests_refused_total", &[("reason", "rate")][..]),
        ("requests_refused_total", &[("reason", "in_flight")]),
        ("auth_failures_total", &[("reason", "missing")]),
        ("auth_failures_total", &[("reason", "signature")]),
        (
            "jwks_refreshes_total",
            &[
                ("issuer", "http://localhost/dev-token"),
                ("outcome", "unreadable"),
            ],
        ),
        (
            "reports_total",
            &[("resource_type", "cluster"), ("outcome", "rejected")],
        ),
        (
            "reports_total",
            &[
                ("resource_type", "nodepool"),
                ("outcome", "discarded_stale_time"),
            ],
        ),
        (
            "reconciliation_started_total",
            &[("resource_type", "cluster"), ("is_delete", "true")],
        ),
        ("audit_entries_total", &[("action", "force_delete")]),
        ("hard_deletes_total", &[("resource_type", "nodepool")]),
        ("force_deletes_total", &[("resource_type", "cluster")]),
        ("panics_total", &[]),
        ("log_lines_dropped_total", &[]),
        ("trace_export_errors_total", &[]),
    ] {
        let name = format!("hyperfleet_api_{name}");
        let found = series.iter().find(|s| s.name == name && s.has(labels));
        assert_eq!(found.map(|s| s.value), Some(0.0), "{name} {labels:?}");
    }
    let errors = [("operation", "update"), ("error_type", "timeout")];
    let name = "hyperfleet_db_errors_total";
    assert!(series.iter().any(|s| s.name == name && s.has(&errors)));
}
