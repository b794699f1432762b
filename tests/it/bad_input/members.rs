//! Members of the wrong type.

use serde_json::{Value, json};

use super::{assert_violation, report, with};
use crate::support::{Problem as _, TestApi};

#[tokio::test]
async fn each_member_of_a_new_resource_has_its_type() {
    let api = TestApi::spawn().await;
    let body = json!({"kind": "Cluster", "name": "abc", "spec": {}});
    let texts = [json!(1), json!(true), json!([]), json!({})];
    let objects = [json!(1), json!(true), json!([]), json!("x")];
    let mut cases = Vec::new();
    for (member, wrongs, what) in [
        ("kind", &texts, "field 'kind' must be a string"),
        ("name", &texts, "field 'name' must be a string"),
        ("spec", &objects, "spec field must be an object"),
        ("labels", &objects, "field 'labels' must be an object"),
        (
            "references",
            &objects,
            "field 'references' must be an object",
        ),
    ] {
        cases.extend(
            wrongs
                .iter()
                .map(|wrong| (member, wrong.clone(), member, what)),
        );
    }
    cases.extend([
        ("kind", Value::Null, "kind", "kind is required"),
        ("name", Value::Null, "name", "name is required"),
        ("spec", Value::Null, "spec", "spec field must be an object"),
        (
            "labels",
            json!({"a": 1}),
            "labels",
            "field 'labels' must be a string",
        ),
        (
            "labels",
            json!({"a": {}}),
            "labels",
            "field 'labels' must be a string",
        ),
        (
            "references",
            json!({"a": 1}),
            "references",
            "field 'references' must be an array",
        ),
        (
            "references",
            json!({"a": [1]}),
            "references.a[0]",
            "field 'references.a' must be an object",
        ),
        (
            "references",
            json!({"a": [{"id": 1}]}),
            "references.a[0].id",
            "field 'references.a.id' must be a string",
        ),
    ]);
    for (member, wrong, field, message) in cases {
        let sent = with(&body, &format!("/{member}"), wrong);
        for path in ["/clusters", "/resources"] {
            let answer = api.post(path, sent.clone()).await;
            assert_violation(
                &answer,
                "VAL-000",
                field,
                message,
                &format!("{path} {sent}"),
            );
        }
    }
    assert_eq!(api.get("/clusters").await.body["total"], 0);
}

#[tokio::test]
async fn each_member_of_a_patch_has_its_type() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("abc").await;
    for wrong in [json!(1), json!(true), json!([]), json!("x")] {
        for (member, message) in [
            ("spec", "spec field must be an object"),
            ("labels", "field 'labels' must be an object"),
            ("references", "field 'references' must be an object"),
        ] {
            let answer = api.patch(&cluster, json!({member: wrong})).await;
            assert_violation(
                &answer,
                "VAL-000",
                member,
                message,
                &format!("{member}: {wrong}"),
            );
        }
    }
    let answer = api.patch(&cluster, json!({"spec": null})).await;
    assert_violation(
        &answer,
        "VAL-000",
        "spec",
        "spec field must be an object",
        "null",
    );
    for nothing in [
        json!({}),
        json!({"labels": null}),
        json!({"references": null, "labels": null}),
    ] {
        let answer = api.patch(&cluster, nothing.clone()).await;
        assert_eq!(
            (answer.status, answer.code()),
            (400, "VAL-005"),
            "{nothing}"
        );
        assert_eq!(
            answer.detail(),
            "at least one field must be provided for update"
        );
    }
    let answer = api.send_bytes("PATCH", &cluster, "null").await;
    assert_eq!((answer.status, answer.code()), (400, "VAL-005"));
    assert_eq!(api.get(&cluster).await.body["generation"], 1);
}

/// Where a member of a report stands: as a JSON pointer, and as violations name it.
fn place_of(name: &str) -> (String, String) {
    match name {
        "1" => ("/conditions/1".to_owned(), "conditions[1]".to_owned()),
        "type" | "status" | "reason" | "message" => (
            format!("/conditions/1/{name}"),
            format!("conditions[1].{name}"),
        ),
        "attempt" | "duration" | "job_name" | "job_namespace" | "started_time"
        | "completed_time" => (format!("/metadata/{name}"), format!("metadata.{name}")),
        _ => (format!("/{name}"), name.to_owned()),
    }
}

/// Values of all other types.
fn none_of(what: &str) -> Vec<Value> {
    match what {
        "a string" => vec![json!(1), json!(true), json!([]), json!({})],
        "an object" => vec![json!(1), json!("x"), json!([]), json!(true)],
        "an array" => vec![json!(1), json!("x"), json!({}), json!(true)],
        "a number" => vec![json!("1"), json!(true), json!([]), json!({})],
        _ => vec![
            json!(1.5),
            json!(1e3),
            json!(1_i64 << 31),
            json!(-1_i64 << 40),
        ],
    }
}

#[tokio::test]
async fn each_member_of_a_report_has_its_type() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("abc").await;
    let path = format!("{cluster}/statuses");
    let body = report(&api);
    let texts = ["adapter", "observed_time"].into_iter();
    let texts = texts.chain(["type", "status", "reason", "message"]);
    let texts = texts.chain(["duration", "job_name", "job_namespace", "started_time"]);
    let numbers = ["observed_generation", "attempt"].into_iter();
    let objects = ["data", "metadata", "1"].into_iter();
    for (names, what) in [
        (
            texts.chain(["completed_time"]).collect::<Vec<_>>(),
            "a string",
        ),
        (numbers.clone().collect(), "a number"),
        (
            numbers.collect(),
            "an integer of at most 2147483647, without a fraction or an exponent",
        ),
        (objects.collect(), "an object"),
        (vec!["conditions"], "an array"),
    ] {
        for name in names {
            let (pointer, field) = place_of(name);
            for wrong in none_of(what) {
                let answer = api.put(&path, with(&body, &pointer, wrong.clone())).await;
                let message = format!("field '{}' must be {what}", field.replace("[1]", ""));
                let what = format!("{pointer}: {wrong}");
                assert_violation(&answer, "VAL-000", &field, &message, &what);
            }
        }
    }
    assert_eq!(api.get(&path).await.body["total"], 0);
}

#[tokio::test]
async fn a_report_says_who_when_and_what() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("abc").await;
    let path = format!("{cluster}/statuses");
    let body = report(&api);
    let status = |status: &str| {
        format!(
            "invalid status value '{status}' for condition at index 1 (type: Applied): must be 'True', 'False', or 'Unknown'"
        )
    };
    for (pointer, wrong, field, message) in [
        (
            "/adapter",
            json!(""),
            "adapter",
            "adapter is required".to_owned(),
        ),
        (
            "/adapter",
            json!(" \t\u{a0}"),
            "adapter",
            "adapter is required".to_owned(),
        ),
        (
            "/adapter",
            json!(null),
            "adapter",
            "adapter is required".to_owned(),
        ),
        (
            "/observed_generation",
            json!(0),
            "observed_generation",
            "observed_generation must be >= 1".to_owned(),
        ),
        (
            "/observed_generation",
            json!(-1),
            "observed_generation",
            "observed_generation must be >= 1".to_owned(),
        ),
        (
            "/observed_generation",
            json!(null),
            "observed_generation",
            "observed_generation must be >= 1".to_owned(),
        ),
        (
            "/conditions/1/type",
            json!(""),
            "conditions[1].type",
            "condition type cannot be empty at index 1".to_owned(),
        ),
        (
            "/conditions/1/type",
            json!(null),
            "conditions[1].type",
            "condition type cannot be empty at index 1".to_owned(),
        ),
        (
            "/conditions/1/type",
            json!("Available"),
            "conditions[1].type",
            "duplicate condition type 'Available' at index 1".to_owned(),
        ),
        (
            "/conditions/1/status",
            json!("true"),
            "conditions[1].status",
            status("true"),
        ),
        (
            "/conditions/1/status",
            json!(""),
            "conditions[1].status",
            status(""),
        ),
        (
            "/conditions/1/status",
            json!(null),
            "conditions[1].status",
            status(""),
        ),
    ] {
        let answer = api.put(&path, with(&body, pointer, wrong.clone())).await;
        assert_violation(
            &answer,
            "VAL-000",
            field,
            &message,
            &format!("{pointer}: {wrong}"),
        );
    }
    assert_eq!(api.get(&path).await.body["total"], 0);
}
