//! Tenancy as operators configure it, in a file.

use std::io::Write as _;

use serde_json::json;
use tempfile::NamedTempFile;

use super::program::Program;
use crate::support::TestDatabase;

const GOOD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/tenancy.yaml");

const BAD: &str = "
server:
  jwt: {enabled: false}
  tenant:
    enabled: true
    system_header: Authorization
    dimensions:
      - {header: X-Org, key: org}
      - {header: x-org, key: ''}
";

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[tokio::test]
async fn the_program_serves_tenants_as_the_example_describes_them() {
    let database = TestDatabase::create().await;
    let url = database.url();
    let mut args = vec!["serve", "--config", GOOD, "--database-url", &url];
    args.extend(["--server-host", "127.0.0.1", "--server-port", "0"]);
    args.push("--server-jwt-enabled=false");
    let mut program = Program::start(&args);
    let api = program.serving(database).await;
    let nobody = api.get("/clusters").await;
    assert_eq!(nobody.status, 403, "{}", nobody.body);
    let acme = api.speaking(&[("x-hyperfleet-org", "acme")]);
    let beta = api.speaking(&[("x-hyperfleet-org", "beta")]);
    let system = api.speaking(&[("x-hyperfleet-system", "true")]);
    let made = acme.made("/clusters", "Cluster", "ours").await;
    assert_eq!(made.body["tenancy"], json!({"org": "acme"}));
    let path = format!("/clusters/{}", made.id());
    assert_eq!(acme.get(&path).await.status, 200);
    assert_eq!(beta.get(&path).await.status, 404);
    assert_eq!(system.get(&path).await.status, 200);
}

#[tokio::test]
async fn invalid_tenancy_settings_are_reported_together_first() {
    for command in ["serve", "dev"] {
        // No database could be reached: none is asked for.
        let file = file(BAD);
        let path = file.path().to_str().unwrap();
        let nowhere = "postgres://nobody@127.0.0.1:1/nothing";
        let mut program = Program::start(&[command, "--config", path, "--database-url", nowhere]);
        assert!(!program.ended().await.success());
        let said = program.output();
        for (setting, text) in [
            ("system_header", "must not be Authorization"),
            (
                "dimensions[1].header",
                "is also the header of another dimension",
            ),
            ("dimensions[1].key", "is required"),
            ("dimensions", "needs one at least with required: true"),
        ] {
            let line = format!("server.tenant.{setting} (from {path}): {text}");
            assert!(
                said.contains(&line),
                "{command} does not say {line}: {said}"
            );
        }
    }
    let file = file("server: {jwt: {enabled: false}, tenant: {enforce: true}}");
    let path = file.path().to_str().unwrap();
    let mut program = Program::start(&["serve", "--config", path]);
    assert!(!program.ended().await.success());
    let line = format!("server.tenant.enforce (from {path}): needs server.tenant.enabled: true");
    assert!(program.output().contains(&line), "{}", program.output());
}
