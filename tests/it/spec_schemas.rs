//! Specs are checked against the schema of their kind.

use hyperfleet_domain::entity_config::{self, EntityConfig};
use hyperfleet_domain::schema::SchemaDocument;
use serde_json::{Value, json};

use crate::support::{Answer, TestApi, TestDatabase, child, root};

const EXAMPLE: &str = include_str!("../../openapi/spec-schemas.yaml");

/// The built-in kinds with the schemas of the example.
async fn with_example() -> TestApi {
    with(
        &entity_config::built_in(),
        yaml_serde::from_str(EXAMPLE).unwrap(),
    )
    .await
}

async fn with(kinds: &[EntityConfig], document: Value) -> TestApi {
    let registry = entity_config::registry(kinds).unwrap();
    let document = SchemaDocument::parse(document).unwrap();
    let attached = entity_config::attach(registry, kinds, Some(&document)).unwrap();
    let database = TestDatabase::create().await;
    let store = database.store();
    TestApi::spawn_on(attached.registry, database, store, false)
}

fn good() -> Value {
    json!({
        "platform": {"project": "project-1", "region": "europe-west4"},
        "release": {"version": "4.20.3"},
        "maintenance": null,
    })
}

fn cluster(name: &str, spec: &Value) -> Value {
    json!({"kind": "Cluster", "name": name, "spec": spec})
}

/// `field: message (constraint)` of every violation, sorted.
fn violations(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.problem(), (400, "VAL-000"), "{}", answer.body);
    assert_eq!(answer.body["title"], "Validation Failed");
    let text = |violation: &Value, name: &str| violation[name].as_str().unwrap().to_owned();
    let violations = answer.body["errors"].as_array().unwrap().iter();
    let mut violations: Vec<_> = violations
        .map(|f| {
            let (field, message) = (text(f, "field"), text(f, "message"));
            format!("{field}: {message} ({})", text(f, "constraint"))
        })
        .collect();
    violations.sort();
    violations
}

#[tokio::test]
async fn the_result_of_a_computed_patch_fits_the_schema() {
    let api = with_example().await;
    let made = api.post("/clusters", cluster("abc", &good())).await;
    for path in [
        format!("/clusters/{}", made.id()),
        format!("/resources/{}", made.id()),
    ] {
        let remove = json!([{"op": "remove", "path": "/spec/release"}]);
        for refused in [
            api.merge(&path, json!({"spec": {"release": null}})).await,
            api.operate(&path, remove).await,
        ] {
            let missing = "spec.release: property \"release\" is missing (required)";
            assert_eq!(violations(&refused), [missing]);
        }
    }
    let path = format!("/clusters/{}", made.id());
    let region = json!({"spec": {"platform": {"region": "us-central1"}}});
    let patched = api.merge(&path, region).await;
    assert_eq!(patched.status, 200, "{}", patched.body);
    assert_eq!(patched.body["spec"]["platform"]["project"], "project-1");
}

#[tokio::test]
async fn violations_of_a_spec_are_reported_with_other_violations() {
    let api = with_example().await;
    let spec = json!({
        "platform": {"project": "p", "region": "mars"},
        "networking": {"dns_server": "1.2.3"},
        "maintenance": {"from": "now", "hours": 25},
        "replicas": 3,
    });
    let answer = api.post("/clusters", cluster("A", &spec)).await;
    assert_eq!(
        violations(&answer),
        [
            "name: name must be at least 3 characters (min_length)",
            "spec.maintenance.from: string doesn't match the format \"date-time\" (format)",
            "spec.maintenance.hours: number must be at most 24 (max)",
            "spec.networking.dns_server: string doesn't match the format \"ipv4\" (format)",
            "spec.platform.project: minimum string length is 6 (min_length)",
            "spec.platform.region: value is not one of the allowed values [\"europe-west1\",\"europe-west4\",\"us-central1\"] (enum)",
            "spec.release: property \"release\" is missing (required)",
            "spec: property \"replicas\" is unsupported (enum)",
        ]
    );
    assert_eq!(answer.detail(), "Request body validation failed");
    let mut one = good();
    one["release"]["version"] = json!("four");
    let answer = api.post("/clusters", cluster("abc", &one)).await;
    assert_eq!(
        answer.detail(),
        "string doesn't match the regular expression \"^[0-9]+\\.[0-9]+\\.[0-9]+$\""
    );
    assert_eq!(api.rows().await, 0, "something was stored");
}

#[tokio::test]
async fn every_way_to_write_a_spec_is_checked() {
    let api = with_example().await;
    let made = api.post("/clusters", cluster("abc", &good())).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let id = made.id();
    let pool = json!({"kind": "NodePool", "name": "pool", "spec": {"replicas": 1, "machine_type": "n2-standard-4"}});
    let nested = format!("/clusters/{id}/nodepools");
    let pool = api.post(&nested, pool).await;
    assert_eq!(pool.status, 201, "{}", pool.body);
    let pool = pool.id();
    let bad_pool = json!({"replicas": 501, "machine_type": "n2-standard-4"});
    let create = json!({"kind": "NodePool", "name": "other", "spec": bad_pool});
    let too_many = ["spec.replicas: number must be at most 500 (max)"];
    assert_eq!(
        violations(&api.post(&nested, create.clone()).await),
        too_many
    );
    let change = json!({"spec": bad_pool});
    for path in [
        format!("/nodepools/{pool}"),
        format!("/clusters/{id}/nodepools/{pool}"),
        format!("/resources/{pool}"),
    ] {
        assert_eq!(
            violations(&api.patch(&path, change.clone()).await),
            too_many,
            "{path}"
        );
    }
    let change = json!({"spec": {}, "labels": {"-": "x"}});
    let all = violations(&api.patch(&format!("/clusters/{id}"), change).await);
    assert_eq!(all.len(), 3, "{all:?}");
    let bad = api.post("/resources", cluster("def", &json!({}))).await;
    assert_eq!(violations(&bad).len(), 2);
    // What was stored is what was good.
    let stored = api.get(&format!("/nodepools/{pool}")).await;
    assert_eq!(stored.body["spec"]["replicas"], 1);
    assert_eq!(stored.body["generation"], 1);
    let better = json!({"spec": {"replicas": 0, "machine_type": "n2-standard-8", "image": null}});
    for (path, generation) in [
        (format!("/resources/{pool}"), 2),
        (format!("/nodepools/{pool}"), 2),
    ] {
        let answer = api.patch(&path, better.clone()).await;
        assert_eq!(
            (answer.status, &answer.body["generation"]),
            (200, &json!(generation)),
            "{path}"
        );
    }
}

/// A schema that came later, or became stricter, is about what is written from then on.
#[tokio::test]
async fn stored_resources_stay_usable_after_a_schema_change() {
    let before = TestApi::spawn().await;
    let path = before.cluster("abc").await;
    let database = before.database;
    let kinds = entity_config::built_in();
    let registry = entity_config::registry(&kinds).unwrap();
    let document = SchemaDocument::parse(yaml_serde::from_str(EXAMPLE).unwrap()).unwrap();
    let attached = entity_config::attach(registry, &kinds, Some(&document)).unwrap();
    let store = database.store();
    let api = TestApi::spawn_on(attached.registry, database, store, false);
    let labelled = api.patch(&path, json!({"labels": {"a": "b"}})).await;
    assert_eq!(labelled.status, 200, "{}", labelled.body);
    let resent = api.patch(&path, json!({"spec": {}})).await;
    assert_eq!(violations(&resent).len(), 2);
    assert_eq!(api.report(&path, "dns", 2, &[]).await.status, 201);
    api.deleted(&path).await;
}

#[tokio::test]
async fn a_kind_without_a_schema_takes_any_spec() {
    let thing = EntityConfig {
        spec_schema_name: "ThingSpec".to_owned(),
        require_spec_schema: true,
        ..root("Thing", "things", &[])
    };
    let part = EntityConfig {
        spec_schema_name: "NotThere".to_owned(),
        ..child("Thing", "cascade", root("Part", "parts", &[]))
    };
    let document =
        json!({"openapi": "3.1.0", "components": {"schemas": {"ThingSpec": {"maxProperties": 0}}}});
    let api = with(&[thing, part, root("Free", "frees", &[])], document).await;
    let thing = api.make("/things", "Thing", "thing").await;
    let spec = json!({"any": ["thing"]});
    for (list, kind, status) in [
        ("/things".to_owned(), "Thing", 400),
        (format!("{thing}/parts"), "Part", 201),
        ("/frees".to_owned(), "Free", 201),
    ] {
        let body = json!({"kind": kind, "name": "x", "spec": spec});
        let answer = api.post(&list, body).await;
        assert_eq!(answer.status, status, "{kind}: {}", answer.body);
    }
}
