//! What known clients break on, beyond the rules of the conformance suite.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::support::TestApi;

/// Every time in an answer, wherever it stands.
fn times(value: &Value) -> Vec<(&str, &Value)> {
    match value {
        Value::Object(members) => members
            .iter()
            .flat_map(|(name, value)| {
                let own = Some((name.as_str(), value)).filter(|_| name.ends_with("_time"));
                own.into_iter().chain(times(value))
            })
            .collect(),
        Value::Array(items) => items.iter().flat_map(times).collect(),
        _ => Vec::new(),
    }
}

fn is_rfc3339(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.parse::<DateTime<Utc>>().is_ok() && text.ends_with('Z'))
}

fn is_int32(value: &Value) -> bool {
    value.as_i64().is_some_and(|n| i32::try_from(n).is_ok())
}

#[tokio::test]
async fn statuses_return_what_adapters_sent() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("reported").await;
    let data = json!({
        "namespace": {"status": "Active", "name": "ns-1", "uid": null},
        "list": [1, 2.5, "three", true, {"nested": []}],
        "big": 9_007_199_254_740_993_i64,
        "html": "<a>&",
    });
    let report = json!({
        "adapter": "cl-namespace",
        "observed_generation": 1,
        "conditions": [
            {"type": "Applied", "status": "True"},
            {"type": "Health", "status": "Unknown", "reason": "", "message": "not yet"},
            {"type": "Available", "status": "False", "reason": "Waiting"},
        ],
        "data": data,
    });
    let answer = api.put(&format!("{cluster}/statuses"), report).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let listed = api.get(&format!("{cluster}/statuses")).await;
    let [item] = listed.items() else {
        panic!("{}", listed.body)
    };
    assert_eq!(*item, answer.body);
    assert_eq!(item["adapter"], "cl-namespace");
    assert_eq!(item["data"], data);
    let at = "2026-01-01T10:00:00Z";
    let conditions = json!([
        {"type": "Applied", "status": "True", "last_transition_time": at},
        {"type": "Health", "status": "Unknown", "reason": "", "message": "not yet", "last_transition_time": at},
        {"type": "Available", "status": "False", "reason": "Waiting", "last_transition_time": at},
    ]);
    assert_eq!(item["conditions"], conditions);
}

#[tokio::test]
async fn times_are_rfc_3339_and_numbers_have_32_bits() {
    let api = TestApi::spawn().await;
    api.clock
        .set("2026-01-01T10:00:00.123456Z".parse().unwrap());
    let cluster = api.cluster("exact").await;
    api.report(&cluster, "dns", 1, &[]).await;
    api.deleted(&cluster).await;
    let found = api.get(&cluster).await.body;
    let listed = api.get("/clusters?includeDeleted=true").await.body;
    let statuses = api.get(&format!("{cluster}/statuses")).await.body;
    let audit = api.get("/audit").await.body;
    for body in [&found, &listed, &statuses] {
        let times = times(body);
        assert!(times.len() >= 2, "{body}");
        for (name, time) in times {
            assert!(is_rfc3339(time), "{name}: {time}");
        }
    }
    assert_eq!(found["deleted_time"], "2026-01-01T10:00:00.123456Z");
    assert!(is_int32(&found["generation"]));
    for condition in found["status"]["conditions"].as_array().unwrap() {
        assert!(is_int32(&condition["observed_generation"]), "{condition}");
    }
    assert!(is_int32(&statuses["items"][0]["observed_generation"]));
    for list in [&listed, &statuses, &audit] {
        for name in ["page", "size", "total"] {
            assert!(is_int32(&list[name]), "{name} of {list}");
        }
    }
}

#[tokio::test]
async fn each_required_adapter_has_its_own_condition() {
    let kind = crate::support::root("Cluster", "clusters", &["cl-namespace", "dns"]);
    let api = TestApi::spawn_with(&[kind]).await;
    let cluster = api.cluster("adapted").await;
    let body = json!({
        "adapter": "cl-namespace",
        "observed_generation": 1,
        "conditions": [
            {"type": "Available", "status": "True", "reason": "NamespaceReady", "message": "it is there"},
            {"type": "Applied", "status": "True"},
            {"type": "Health", "status": "True"},
        ],
    });
    let answer = api.put(&format!("{cluster}/statuses"), body).await;
    assert_eq!(answer.status, 201, "{}", answer.body);
    let found = api.get(&cluster).await;
    let condition = found.condition("ClNamespaceSuccessful");
    assert_eq!(condition["status"], "True");
    assert_eq!(condition["reason"], "NamespaceReady");
    assert_eq!(condition["message"], "it is there");
    assert_eq!(condition["observed_generation"], 1);
    let conditions = found.body["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 3, "{conditions:?}");
}
