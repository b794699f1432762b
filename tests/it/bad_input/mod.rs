//! Every invalid input gets a response that names its violation: 4xx, as a problem, never 5xx.

mod collected;
mod garbled;
mod limits;
mod members;
mod numbers;
mod presence;
mod raw;
mod sizes;
mod text;

use serde_json::{Value, json};

use crate::support::{Answer, Problem as _, TestApi};

/// A route that reads a body, with one that it takes.
struct Route {
    method: &'static str,
    path: String,
    body: Value,
    success: u16,
}

/// Every route that reads a body, on resources that are there. Each body is taken as often as it
/// is sent, but for its name.
async fn routes(api: &TestApi) -> Vec<Route> {
    let cluster = api.cluster("present").await;
    let nodepool = api.nodepool(&cluster, "pool").await;
    let flat_nodepool = format!("/nodepools/{}", id_of(&nodepool));
    let route = |method, path: String, body, success| Route {
        method,
        path,
        body,
        success,
    };
    let new = |kind| json!({"kind": kind, "name": "fresh", "spec": {}, "labels": {"a": "b"}, "references": {}});
    let change = json!({"spec": {"size": 1}, "labels": {"a": "b"}, "references": {}});
    vec![
        route("POST", "/clusters".into(), new("Cluster"), 201),
        route("POST", "/resources".into(), new("Cluster"), 201),
        route("POST", format!("{cluster}/nodepools"), new("NodePool"), 201),
        route("PATCH", cluster.clone(), change.clone(), 200),
        route("PATCH", nodepool.clone(), change.clone(), 200),
        route("PATCH", flat_nodepool, change.clone(), 200),
        route(
            "PATCH",
            format!("/resources/{}", id_of(&cluster)),
            change,
            200,
        ),
        route("PUT", format!("{cluster}/statuses"), report(api), 201),
        route("PUT", format!("{nodepool}/statuses"), report(api), 201),
    ]
}

fn id_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap()
}

/// A report with everything in it.
fn report(api: &TestApi) -> Value {
    let conditions = ["Available", "Applied", "Health"].map(|kind| {
        json!({"type": kind, "status": "True", "reason": "Because", "message": "all is well"})
    });
    json!({
        "adapter": "validation",
        "observed_generation": 1,
        "observed_time": api.clock.now(),
        "conditions": conditions,
        "data": {"any": "thing"},
        "metadata": {
            "attempt": 1, "duration": "1s", "job_name": "job", "job_namespace": "ns",
            "started_time": "2026-01-01T09:00:00Z", "completed_time": "2026-01-01T09:01:00Z",
        },
    })
}

/// A finalizing cluster, for requests to force it out.
async fn finalizing_cluster(api: &TestApi, name: &str) -> String {
    let cluster = api.cluster(name).await;
    assert_eq!(api.delete(&cluster).await.status, 202);
    cluster
}

/// The body with one member set to something else.
fn with(body: &Value, pointer: &str, value: Value) -> Value {
    let mut body = body.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    match body.pointer_mut(parent).unwrap() {
        Value::Object(members) => _ = members.insert(name.to_owned(), value),
        Value::Array(elements) => elements[name.parse::<usize>().unwrap()] = value,
        other => panic!("{other} has no members"),
    }
    body
}

/// Checks that the response is a problem with that code and one violation.
#[track_caller]
fn assert_violation(answer: &Answer, code: &str, field: &str, message: &str, what: &str) {
    assert_eq!(
        (answer.status, answer.code()),
        (400, code),
        "{what}: {}",
        answer.body
    );
    assert_eq!(answer.fields(), [field], "{what}: {}", answer.body);
    assert_eq!(answer.body["errors"][0]["message"], message, "{what}");
    assert_eq!(answer.detail(), message, "{what}");
}

/// Checks that the answer is that of JSON that cannot be read.
#[track_caller]
fn assert_malformed(answer: &Answer, part: &str, what: &str) {
    let found = (answer.status, answer.code());
    assert_eq!(found, (400, "VAL-006"), "{what}: {}", answer.body);
    assert!(
        answer.detail().contains(part),
        "{what}: {}",
        answer.detail()
    );
}
