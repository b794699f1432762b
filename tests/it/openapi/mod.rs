//! The OpenAPI document as it is served: what it says is what the server does.

mod contract;
mod page;

use serde_json::{Value, json};

use crate::support::{Answer, TestApi, child, root};

const METHODS: [&str; 8] = [
    "get", "post", "put", "patch", "delete", "options", "trace", "brew",
];

/// Asks a path below the host.
async fn ask(api: &TestApi, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
    let host = api.base.strip_suffix("/api/hyperfleet/v1").unwrap();
    let method = method.to_uppercase().parse().unwrap();
    let mut request = api.client.request(method, format!("{host}{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    Answer::of(request.send().await.unwrap()).await
}

async fn document(api: &TestApi) -> Value {
    api.get("/openapi").await.body
}

#[tokio::test]
async fn the_document_is_json_of_openapi_3_0_3() {
    let api = TestApi::spawn().await;
    let answer = api.get("/openapi").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert!(answer.header("x-request-id").is_some());
    assert_eq!(answer.header("vary"), Some("Accept-Encoding"));
    let document = answer.body;
    assert_eq!(document["openapi"], "3.0.3");
    assert_eq!(document["info"]["title"], "HyperFleet API");
    assert_eq!(document["info"]["version"], "1.2.3");
    assert_eq!(document["paths"].as_object().unwrap().len(), 33);
    let packed = ask(
        &api,
        "get",
        "/api/hyperfleet/v1/openapi",
        &[("accept-encoding", "gzip")],
    );
    assert_eq!(packed.await.header("content-encoding"), Some("gzip"));
}

#[tokio::test]
async fn each_described_method_is_served_and_each_other_is_refused() {
    let api = TestApi::spawn_with(&[
        root("Top", "tops", &["a"]),
        child("Top", "cascade", root("Middle", "middles", &[])),
        child("Middle", "restrict", root("Bottom", "bottoms", &["b"])),
    ])
    .await;
    let document = document(&api).await;
    let paths = document["paths"].as_object().unwrap();
    assert_eq!(paths.len(), 5 + 7 + 7 * 5);
    for (template, item) in paths {
        let segments = template
            .split('/')
            .map(|s| if s.starts_with('{') { "nobody" } else { s });
        let path = segments.collect::<Vec<_>>().join("/");
        let mut allow: Vec<_> = item
            .as_object()
            .unwrap()
            .keys()
            .map(|m| m.to_uppercase())
            .collect();
        if allow.contains(&"GET".to_owned()) {
            allow.push("HEAD".to_owned());
        }
        allow.sort();
        for method in METHODS {
            let answer = ask(&api, method, &path, &[]).await;
            let at = format!("{method} {path}: {}", answer.body);
            if item[method].is_null() {
                assert_eq!(answer.problem(), (405, "VAL-008"), "{at}");
                assert_eq!(answer.header("allow"), Some(&*allow.join(", ")), "{at}");
            } else {
                assert_ne!(answer.status, 405, "{at}");
                assert_ne!(answer.problem(), (404, "NTF-000"), "{at}");
                assert!(
                    !item[method]["responses"][answer.status.to_string()].is_null(),
                    "{at}"
                );
            }
        }
    }
}

#[tokio::test]
async fn configured_kinds_are_in_the_document_and_others_are_not() {
    let api = TestApi::spawn_with(&[root("Channel", "channels", &[])]).await;
    let document = document(&api).await;
    let schemas = document["components"]["schemas"].as_object().unwrap();
    assert!(schemas.contains_key("ChannelCreateRequest") && !schemas.contains_key("Cluster"));
    let create = &document["paths"]["/api/hyperfleet/v1/channels"]["post"];
    assert_eq!(create["operationId"], json!("postChannel"));
}

/// What the program prints, without settings of the machine that it runs on.
fn printed(args: &[&str]) -> String {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hyperfleet-api"));
    for (name, _) in std::env::vars() {
        if name.starts_with("HYPERFLEET_") {
            command.env_remove(name);
        }
    }
    let output = command.arg("openapi").args(args).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_program_prints_the_document_of_the_configured_kinds() {
    let committed = include_str!("../../../openapi/openapi.yaml");
    assert!(
        printed(&["--config", "/dev/null"]) == committed,
        "run `make openapi`"
    );
    let json = printed(&["--format", "json", "--config", "examples/entities.yaml"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.contains_key("/api/hyperfleet/v1/channels/{channel_id}/versions"));
}
