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
