//! Schema documents that the program is started with.

use super::program::Program;
use crate::support::TestDatabase;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi/spec-schemas.yaml");
const EMPTY: &str = "openapi: 3.0.0\npaths: {}\n";

/// Starts `serve` with a configuration, and a schema document beside it.
fn serve(folder: &std::path::Path, url: &str, config: &str, document: Option<&str>) -> Program {
    let file = |name: &str, text: &str| {
        let file = folder.join(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let config = file("config.yaml", config);
    let mut args = vec!["serve", "--config", &config, "--database-url", url];
    args.extend([
        "--server-host",
        "127.0.0.1",
        "--server-port=0",
        "--health-port=0",
        "--metrics-port=0",
        "--server-jwt-enabled=false",
    ]);
    let document = document.map(|text| file("schemas.yaml", text));
    if let Some(document) = &document {
        args.extend(["--server-openapi-schema-path", document]);
    }
    Program::start(&args)
}

#[tokio::test]
async fn a_document_that_cannot_be_used_stops_the_start_and_says_why() {
    let folder = tempfile::tempdir().unwrap();
    // Settings are checked before the database is looked for.
    let url = "postgres://nobody@127.0.0.1:1/none";
    let component =
        |text: &str| format!("openapi: 3.0.3\ncomponents: {{schemas: {{ClusterSpec: {text}}}}}");
    let require =
        "entities: [{kind: A, plural: as, spec_schema_name: ASpec, require_spec_schema: true}]";
    for (config, document, words) in [
        (
            "",
            "a: [".to_owned(),
            vec!["schemas.yaml", "server.openapi_schema_path", "line 2"],
        ),
        (
            "",
            String::new(),
            vec!["schemas.yaml", "not an OpenAPI document"],
        ),
        (
            "",
            "swagger: \"2.0\"".to_owned(),
            vec!["not an OpenAPI document"],
        ),
        (
            "",
            component("{type: object, type: string}"),
            vec!["duplicate entry with key \"type\""],
        ),
        (
            "",
            "x".repeat(16 * 1024 * 1024 + 1),
            vec!["more than 16777216 bytes"],
        ),
        (
            "",
            component("{type: strin}"),
            vec![
                "\"Cluster\"",
                "\"ClusterSpec\"",
                "/components/schemas/ClusterSpec/type",
            ],
        ),
        (
            "",
            component("{$ref: \"#/components/schemas/Gone\"}"),
            vec!["/components/schemas/Gone"],
        ),
        (
            "",
            component("{$ref: \"https://example.com/x\"}"),
            vec!["https://example.com/x"],
        ),
        (
            require,
            EMPTY.to_owned(),
            vec![
                "\"A\" requires the schema \"ASpec\"",
                "add components.schemas.ASpec",
            ],
        ),
    ] {
        let mut program = serve(folder.path(), url, config, Some(&document));
        assert!(!program.ended().await.success());
        let said = program.plain_output();
        for word in words {
            assert!(said.contains(word), "no {word} in: {said}");
        }
    }
    let missing = folder.path().join("nowhere.yaml");
    let config = format!("server: {{openapi_schema_path: {}}}", missing.display());
    let mut program = serve(folder.path(), url, &config, None);
    assert!(!program.ended().await.success());
    let said = program.output();
    assert!(said.contains("nowhere.yaml"), "{said}");
}

#[tokio::test]
async fn the_example_is_served_and_missing_schemas_are_logged() {
    let folder = tempfile::tempdir().unwrap();
    let database = TestDatabase::create().await;
    let example = std::fs::read_to_string(EXAMPLE).unwrap();
    let mut program = serve(folder.path(), &database.url(), "", Some(&example));
    let api = program.serving(database).await;
    let body = serde_json::json!({"kind": "Cluster", "name": "abc", "spec": {}});
    assert_eq!(api.post("/clusters", body).await.status, 400);
    drop(program);

    let require =
        "entities: [{kind: A, plural: as, spec_schema_name: ASpec, require_spec_schema: true}]";
    for (config, document, words) in [
        ("", Some(EMPTY), ["\"Cluster\" names", "\"NodePool\" names"]),
        (
            require,
            None,
            ["requires the schema", "server.openapi_schema_path"],
        ),
    ] {
        let database = TestDatabase::create().await;
        let mut program = serve(folder.path(), &database.url(), config, document);
        let api = program.serving(database).await;
        assert_eq!(api.get("/resources").await.status, 200);
        let said = program.output();
        for word in words {
            let word = word.replace('"', "\\\"");
            assert!(said.contains(&word), "no {word} in: {said}");
        }
    }
}

/// What YAML can say that JSON cannot.
const YAML: &str = "
openapi: 3.0.3
paths: {/x: {get: {responses: {200: {description: d}}}}}
components:
  schemas:
    Base: &base {type: object, maxProperties: 1}
    ClusterSpec: {<<: *base, required: [a]}
";

#[tokio::test]
async fn merged_members_count() {
    let folder = tempfile::tempdir().unwrap();
    let database = TestDatabase::create().await;
    let mut program = serve(folder.path(), &database.url(), "", Some(YAML));
    let api = program.serving(database).await;
    for (spec, status) in [
        (serde_json::json!({"a": 1}), 201),
        (serde_json::json!({"a": 1, "b": 2}), 400),
        (serde_json::json!({"b": 2}), 400),
    ] {
        let body = serde_json::json!({"kind": "Cluster", "name": "abc", "spec": spec});
        assert_eq!(api.post("/clusters", body).await.status, status, "{spec}");
    }
}
