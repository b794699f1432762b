//! Fleet's API beside the service's own: what becomes of either without its store.

use rustix::process::Signal;
use serde_json::Value;

use super::program::Program;
use super::until;
use crate::support::{TestDatabase, TestEtcd, fresh_prefix, http_client};

async fn get(url: &str) -> (u16, Value) {
    let answer = http_client().get(url).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

#[tokio::test]
async fn the_service_and_fleet_are_served_also_without_etcd() {
    let mut etcd = TestEtcd::start().await;
    let database = TestDatabase::create().await;
    let settings = format!(
        "{{health: {{port: 0, shutdown_delay: 0s}}, metrics: {{port: 0}}, \
           fleet: {{enabled: true, page_size: 7, etcd: {{endpoints: ['{}'], key_prefix: '{}'}}}}}}",
        etcd.url(),
        fresh_prefix()
    );
    let mut program = Program::serve_with(&database, &settings, &[]);
    let (api, health) = (
        program.address("api").await,
        program.address("health").await,
    );
    let _api = program.serving(database).await;
    let machines = format!("http://{api}/fleet/v1/machines");
    until("fleet is served", async || get(&machines).await.0 == 200).await;
    assert_eq!(get(&machines).await.1, serde_json::json!({}));
    // Without the prefix these paths are the service's own.
    assert_eq!(get(&format!("http://{api}/machines")).await.0, 404);

    etcd.kill();
    until("fleet says that etcd is away", async || {
        get(&machines).await.0 == 503
    })
    .await;
    let (_, body) = get(&machines).await;
    let away = "fleet server unable to communicate with etcd";
    assert_eq!(body["error"]["message"], away);
    let clusters = format!("http://{api}/api/hyperfleet/v1/clusters");
    assert_eq!(get(&clusters).await.0, 200);
    assert_eq!(get(&format!("http://{health}/readyz")).await.0, 200);
    etcd.resume().await;
    until("fleet is served again", async || {
        get(&machines).await.0 == 200
    })
    .await;
    program.signal(Signal::TERM);
    assert!(program.ended().await.success(), "{}", program.output());
}

#[tokio::test]
async fn fleet_is_not_there_unless_it_is_asked_for() {
    let database = TestDatabase::create().await;
    let mut program = Program::serve(&database);
    let api = program.address("api").await;
    let _api = program.serving(database).await;
    let answer = http_client()
        .get(format!("http://{api}/fleet/v1/machines"))
        .send()
        .await;
    assert_eq!(answer.unwrap().status().as_u16(), 404);
}

#[test]
fn unusable_settings_of_fleet_end_the_start() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hyperfleet-api"));
    command
        .env_clear()
        .args(["config", "check", "--server-jwt-enabled=false"]);
    command
        .env("HYPERFLEET_FLEET_ENABLED", "true")
        .env("HYPERFLEET_FLEET_ETCD_ENDPOINTS", "https://etcd:2379")
        .env("HYPERFLEET_FLEET_ETCD_KEY_PREFIX", "/");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    for fault in [
        "fleet.etcd.ca_file: https to etcd requires",
        "fleet.etcd.key_prefix (from HYPERFLEET_FLEET_ETCD_KEY_PREFIX) is \"/\"",
    ] {
        assert!(said.contains(fault), "no {fault:?} in: {said}");
    }
}
