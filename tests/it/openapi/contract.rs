//! Answers fit the schemas that the document gives for them.

use serde_json::{Value, json};

use super::document;
use crate::support::{Answer, JSON_PATCH, MERGE_PATCH, TestApi};

/// Headers of repeated requests, of reports that are not stored, and of instances that follow changes.
const SOMETIMES: [&str; 3] = ["Hyperfleet-Position", "Idempotency-Replayed", "Warning"];

/// The server with what it says of itself.
struct Contract {
    api: TestApi,
    document: Value,
}

impl Contract {
    async fn of(api: TestApi) -> Self {
        let document = document(&api).await;
        Self { api, document }
    }

    /// Sends a request; the answer must be one that the document describes.
    async fn send(&self, method: &str, path: &str, body: Value) -> Answer {
        let answer = self.api.send(method, path, body).await;
        self.check(method, path, answer)
    }

    /// Checks that the document describes the answer.
    fn check(&self, method: &str, path: &str, answer: Answer) -> Answer {
        let at = format!("{method} {path}: {} {}", answer.status, answer.body);
        let operation = self.operation(&method.to_lowercase(), path);
        let responses = &operation["responses"];
        let range = &responses[format!("{}XX", answer.status / 100)];
        let described = responses.get(answer.status.to_string()).unwrap_or(range);
        let described = self.resolved(described);
        assert!(!described.is_null(), "{at} is not described");
        let headers = described["headers"].as_object().unwrap().keys();
        let is_dry_run = path.contains("dryRun=");
        let is_left_out = |name: &str| SOMETIMES.contains(&name) || is_dry_run && name == "ETag";
        for name in headers.filter(|name| !is_left_out(name)) {
            assert!(answer.header(name).is_some(), "{at} has no {name}");
        }
        let Some(kinds) = described["content"].as_object() else {
            assert!(
                answer.bytes.is_empty() && answer.header("content-type").is_none(),
                "{at}"
            );
            return answer;
        };
        let kind = answer.header("content-type").unwrap();
        let schema = &kinds.get(kind).unwrap_or_else(|| panic!("{at}: {kind}"))["schema"];
        self.assert_fits(schema, &answer.body, &at);
        answer
    }

    fn assert_fits(&self, schema: &Value, body: &Value, at: &str) {
        let root = json!({"allOf": [schema], "components": self.document["components"]});
        let validator = jsonschema::draft4::new(&root).unwrap();
        let errors: Vec<_> = validator.iter_errors(body).map(|f| f.to_string()).collect();
        assert!(errors.is_empty(), "{at}: {errors:?}");
    }

    fn operation(&self, method: &str, path: &str) -> &Value {
        let path = path.split('?').next().unwrap();
        let paths = self.document["paths"].as_object().unwrap();
        let fits = |template: &str| {
            let template = template.strip_prefix("/api/hyperfleet/v1").unwrap_or("");
            let both = template.split('/').zip(path.split('/'));
            template.split('/').count() == path.split('/').count()
                && both.into_iter().all(|(a, b)| a == b || a.starts_with('{'))
        };
        let found = paths.iter().find(|(template, _)| fits(template));
        &found.unwrap_or_else(|| panic!("{path} is not described")).1[method]
    }

    fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        let reference = value["$ref"].as_str().and_then(|r| r.strip_prefix('#'));
        reference.map_or(value, |pointer| self.document.pointer(pointer).unwrap())
    }
}

fn report(generation: i32) -> Value {
    json!({
        "adapter": "validation",
        "observed_generation": generation,
        "conditions": [
            {"type": "Available", "status": "True", "reason": "", "message": "m"},
            {"type": "Applied", "status": "Unknown"},
            {"type": "Health", "status": "False"},
        ],
        "data": {"any": [1, null]},
        "metadata": {"attempt": 1, "started_time": "2026-01-01T10:00:00Z"},
    })
}

#[tokio::test]
async fn a_complete_life_is_as_the_document_says() {
    let contract = Contract::of(TestApi::spawn().await).await;
    let send =
        async |method: &str, path: &str, body: Value| contract.send(method, path, body).await;
    let spec = json!({"region": "eu"});
    let body = json!({"kind": "Cluster", "name": "one", "spec": spec, "labels": {"a": "b"}});
    let made = send("POST", "/clusters", body).await;
    let cluster = format!("/clusters/{}", made.id());
    let body = json!({"kind": "NodePool", "name": "two", "spec": {}});
    let made = send("POST", &format!("{cluster}/nodepools"), body.clone()).await;
    let flat = format!("/nodepools/{}", made.id());
    let any = format!("/resources/{}", made.id());
    let nested = format!("{cluster}{flat}");
    for path in [&cluster, &nested, &flat, &any] {
        assert_eq!(send("GET", path, Value::Null).await.status, 200);
        let body = json!({"labels": {"c": path.len().to_string()}});
        assert_eq!(send("PATCH", path, body).await.status, 200);
        let generation = send("GET", path, Value::Null).await.body["generation"]
            .as_i64()
            .unwrap();
        let generation = i32::try_from(generation).unwrap();
        let statuses = format!("{path}/statuses");
        assert_eq!(send("PUT", &statuses, report(generation)).await.status, 201);
        assert_eq!(
            send("PUT", &statuses, report(generation + 1)).await.status,
            204
        );
        assert_eq!(send("GET", &statuses, Value::Null).await.status, 200);
        let explain = format!("{path}/explain");
        assert_eq!(send("GET", &explain, Value::Null).await.status, 200);
    }
    for list in [
        "/clusters",
        "/nodepools",
        "/resources",
        &format!("{cluster}/nodepools"),
    ] {
        let list = format!("{list}?size=1&order=name&search=generation%20%3E%200");
        assert_eq!(send("GET", &list, Value::Null).await.status, 200);
    }
    let reason = json!({"reason": "gone"});
    for path in [&nested, &cluster] {
        let force = format!("{path}/force-delete");
        assert_eq!(send("POST", &force, reason.clone()).await.status, 409);
        assert_eq!(send("DELETE", path, Value::Null).await.status, 202);
        assert_eq!(send("PATCH", path, json!({"labels": {}})).await.status, 409);
        let explain = format!("{path}/explain");
        assert_eq!(send("GET", &explain, Value::Null).await.status, 200);
        assert_eq!(send("POST", &force, reason.clone()).await.status, 204);
        assert_eq!(send("GET", path, Value::Null).await.status, 404);
    }
    assert_eq!(send("GET", "/audit", Value::Null).await.status, 200);
}

#[tokio::test]
async fn dry_runs_are_as_the_document_says() {
    let contract = Contract::of(TestApi::spawn().await).await;
    let cluster = contract.api.cluster("one").await;
    let gone = contract.api.cluster("two").await;
    contract.api.deleted(&gone).await;
    let body = json!({"kind": "Cluster", "name": "three", "spec": {}});
    let statuses = format!("{cluster}/statuses");
    for (method, path, body, status) in [
        ("POST", "/clusters", body, 201),
        ("PATCH", &cluster, json!({"spec": {"a": 1}}), 200),
        ("DELETE", &cluster, Value::Null, 202),
        (
            "POST",
            &format!("{gone}/force-delete"),
            json!({"reason": "x"}),
            200,
        ),
        ("PUT", &statuses, report(1), 201),
        ("POST", "/clusters", json!({}), 400),
    ] {
        let path = format!("{path}?dryRun=true");
        let answer = contract.send(method, &path, body).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert_eq!(answer.body["dry_run"].is_object(), status < 300, "{path}");
    }
    // In the text of 204 only: generators would take its type for the one of every report.
    let path = format!("{statuses}?dryRun=true");
    let answer = contract.api.send("PUT", &path, report(2)).await;
    let responses = &contract.operation("put", &path)["responses"];
    let text = responses["204"]["description"].as_str().unwrap();
    assert!(text.contains("200") && responses["200"].is_null(), "{text}");
    assert_eq!(answer.status, 200, "{}", answer.body);
    let schema = json!({"$ref": "#/components/schemas/DryRunAnswer"});
    contract.assert_fits(&schema, &answer.body, &path);
}

#[tokio::test]
async fn patches_of_every_format_are_as_the_document_says() {
    let contract = Contract::of(TestApi::spawn().await).await;
    let path = contract.api.cluster("one").await;
    let content = &contract.operation("patch", &path)["requestBody"]["content"];
    let types: Vec<_> = content.as_object().unwrap().keys().collect();
    assert_eq!(types, ["application/json", JSON_PATCH, MERGE_PATCH]);
    let stale = json!([{"op": "test", "path": "/spec/a", "value": 2}]);
    for (media_type, body, status) in [
        (
            MERGE_PATCH,
            json!({"spec": {"a": 1}, "labels": {"b": null}}),
            200,
        ),
        (
            JSON_PATCH,
            json!([{"op": "add", "path": "/labels/b", "value": "c"}]),
            200,
        ),
        (JSON_PATCH, stale, 409),
    ] {
        contract.assert_fits(&content[media_type]["schema"], &body, media_type);
        let answer = contract.api.patch_as(media_type, &path, &body).await;
        assert_eq!(contract.check("PATCH", &path, answer).status, status);
    }
}

#[tokio::test]
async fn refusals_are_as_the_document_says() {
    let contract = Contract::of(TestApi::spawn().await).await;
    let body = |kind: &str, name: &str| json!({"kind": kind, "name": name, "spec": {}});
    let taken = contract
        .send("POST", "/clusters", body("Cluster", "taken"))
        .await;
    let cluster = format!("/clusters/{}", taken.id());
    let large = json!({"reason": "x".repeat(1_100_000)});
    for (method, path, body, status) in [
        ("POST", "/clusters", body("Cluster", "taken"), 409),
        (
            "POST",
            "/clusters",
            json!({"name": "A", "labels": {"-": ""}}),
            400,
        ),
        ("POST", "/clusters", json!([]), 400),
        ("POST", "/nodepools", body("NodePool", "one"), 422),
        ("POST", "/resources", body("NodePool", "one"), 422),
        (
            "POST",
            "/clusters/nobody/nodepools",
            body("NodePool", "one"),
            404,
        ),
        (
            "POST",
            "/clusters/nobody/force-delete",
            json!({"reason": "r"}),
            404,
        ),
        ("POST", "/clusters/nobody/force-delete", large, 413),
        ("PATCH", &cluster, json!({}), 400),
        ("PATCH", &cluster, json!({"name": "x"}), 400),
        (
            "PUT",
            &format!("{cluster}/statuses"),
            json!({"adapter": ""}),
            400,
        ),
        ("DELETE", "/clusters/nobody", Value::Null, 404),
        ("GET", "/clusters?size=0&page=x", Value::Null, 400),
        ("GET", "/clusters?search=x", Value::Null, 400),
        ("GET", "/clusters/nobody/nodepools", Value::Null, 404),
        ("GET", "/resources?kind=Nothing", Value::Null, 400),
        ("GET", "/audit?action=drop", Value::Null, 400),
        (
            "GET",
            &format!("{cluster}?fields=nothing"),
            Value::Null,
            400,
        ),
    ] {
        let answer = contract.send(method, path, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
    }
}

#[tokio::test]
async fn sparse_answers_are_as_the_document_says() {
    let contract = Contract::of(TestApi::spawn().await).await;
    contract.api.cluster("sparse").await;
    let parameter = &contract.document["components"]["parameters"]["QueryParams.fields"];
    for name in parameter["schema"]["items"]["enum"].as_array().unwrap() {
        let path = format!("/clusters?fields={}", name.as_str().unwrap());
        let answer = contract.api.get(&path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let schema = json!({"$ref": "#/components/schemas/SparseResource"});
        contract.assert_fits(&schema, &answer.items()[0], &path);
    }
}
