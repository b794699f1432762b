//! Rules that derive conditions, as the real program reads them from its configuration.

use serde_json::json;

use super::program::Program;
use crate::support::{TestDatabase, until};

/// Starts to serve with a configuration file.
fn start(database: &TestDatabase, file: &str) -> Program {
    let url = database.url();
    let mut args = vec!["serve", "--database-url", &url, "--config", file];
    args.extend(["--server-host", "127.0.0.1", "--server-port", "0"]);
    args.extend([
        "--health-port=0",
        "--metrics-port=0",
        "--server-jwt-enabled=false",
    ]);
    Program::start(&args)
}

#[tokio::test]
async fn the_example_of_kinds_is_served_and_its_rules_apply() {
    let database = TestDatabase::create().await;
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/entities.yaml");
    let mut program = start(&database, example);
    let api = program.serving(database).await;
    let cluster = api.cluster("abc").await;
    let made = api.get(&cluster).await;
    assert_eq!(made.condition("Degraded")["message"], "unhealthy: []");
    let conditions = [
        ("Available", "True"),
        ("Applied", "True"),
        ("Health", "False"),
    ];
    let conditions = conditions.map(|(kind, status)| json!({"type": kind, "status": status}));
    let body = json!({
        "adapter": "dns", "observed_generation": 1,
        "conditions": conditions, "data": {"zone": "z1"},
    });
    let reported = api.put(&format!("{cluster}/statuses"), body).await;
    assert_eq!(reported.status, 201, "{}", reported.body);
    let seen = api.get(&cluster).await;
    let says = |kind: &str| {
        let condition = seen.condition(kind);
        let text = |member: &str| condition[member].as_str().unwrap().to_owned();
        (text("status"), text("reason"), text("message"))
    };
    let expected = |status: &str, reason: &str, message: &str| {
        (status.to_owned(), reason.to_owned(), message.to_owned())
    };
    assert_eq!(
        says("DnsPublished"),
        expected("True", "ZoneKnown", "zone: z1")
    );
    assert_eq!(
        says("Degraded"),
        expected("True", "AdapterUnhealthy", "unhealthy: [\"dns\"]")
    );
}

#[tokio::test]
async fn a_failed_rule_is_logged_once_per_change_without_values() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    let text = "entities: [{kind: Cluster, plural: clusters, required_adapters: [dns], conditions: [{type: Frail,
        when: {expression: 'true'}, output: {status: {expression: resource.spec.plain + 1},
        reason: {expression: 'null'}, message: {expression: 'null'}}}]}]";
    std::fs::write(&file, text).unwrap();
    let mut program = start(&database, file.to_str().unwrap());
    let api = program.serving(database).await;
    let body = json!({"kind": "Cluster", "name": "abc", "spec": {"plain": "hunter2"}});
    let made = api.post("/clusters", body).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let told = || program.output().matches("condition rule failed").count();
    until("the rule is logged", async || told() > 0).await;
    api.deleted(&format!("/clusters/{}", made.id())).await;
    until("it is logged again", async || told() > 1).await;
    let said = program.output();
    assert_eq!(told(), 2, "{said}");
    for word in ["Frail", made.id(), "does not work on values of these types"] {
        assert!(said.contains(word), "no {word} in: {said}");
    }
    assert!(!said.contains("hunter2"), "{said}");
}

#[tokio::test]
async fn a_hostile_rule_is_only_a_configuration_error() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    let rule = |kind: &str, when: &str| {
        format!(
            "    - {{type: {kind}, when: {{expression: '{when}'}}, output: {{status: {{expression: 'true'}}, \
             reason: {{expression: '\"\"'}}, message: {{expression: '\"\"'}}}}}}\n"
        )
    };
    let rules = [
        ("Brackets", "(".repeat(5000) + "true" + &")".repeat(5000)),
        ("Nested", "(".repeat(900) + "true" + &")".repeat(900)),
        ("Sums", vec!["1"; 20_000].join("+")),
        ("Signs", "!".repeat(5000) + "true"),
        (
            "Loops",
            "statuses.all(s, ".repeat(90) + "true" + &")".repeat(90),
        ),
        (
            "Doubled",
            "[\"x\"]".to_owned() + &".map(x, x + x)".repeat(100),
        ),
        (
            "Pattern",
            "resource.name.matches(\"(a{1000}){1000}\")".to_owned(),
        ),
        ("Unknown", "env.HOME == \"\"".to_owned()),
    ];
    let lines: Vec<_> = rules.iter().map(|(kind, when)| rule(kind, when)).collect();
    let text = format!(
        "entities:\n- kind: Cluster\n  plural: clusters\n  conditions:\n{}",
        lines.concat()
    );
    std::fs::write(&file, text).unwrap();
    let mut program = start(&database, file.to_str().unwrap());
    assert!(!program.ended().await.success(), "{}", program.output());
    let said = program.plain_output();
    for (kind, _) in &rules {
        let fault = format!("has the condition \"{kind}\", whose when.expression ");
        assert!(said.contains(&fault), "no {kind} in: {said}");
    }
    assert!(!said.contains("overflow"), "{said}");

    // A key that is not known is refused, too.
    std::fs::write(
        &file,
        "entities: [{kind: A, plural: as, conditions: [{typ: B}]}]",
    )
    .unwrap();
    let mut program = start(&database, file.to_str().unwrap());
    assert!(!program.ended().await.success(), "{}", program.output());
    let said = program.output();
    assert!(said.contains("typ"), "{said}");
}
