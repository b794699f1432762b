//! What known clients break on: one test per promise.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value, json};

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

fn members(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap()
}

#[tokio::test]
async fn row_1_a_live_resource_has_no_trace_of_deletion() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("alive").await;
    let nodepool = api.nodepool(&cluster, "workers").await;
    let made = api
        .post(
            "/clusters",
            json!({"kind": "Cluster", "name": "another", "spec": {}}),
        )
        .await;
    let patched = api.patch(&cluster, json!({"spec": {"a": 1}})).await;
    let listed = api.get("/clusters").await;
    let everything = api.get("/resources").await;
    let bodies = [
        &made.body,
        &patched.body,
        &api.get(&cluster).await.body,
        &api.get(&nodepool).await.body,
    ];
    for body in bodies
        .into_iter()
        .chain(listed.items())
        .chain(everything.items())
    {
        let body = members(body);
        assert!(!body.contains_key("deleted_time"), "{body:?}");
        assert!(!body.contains_key("deleted_by"), "{body:?}");
    }
}

#[tokio::test]
async fn row_1_a_deleted_resource_says_when_and_by_whom() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("going").await;
    api.deleted(&cluster).await;
    let found = api.get(&cluster).await;
    assert_eq!(found.body["deleted_time"], "2026-01-01T10:00:00Z");
    assert_eq!(found.body["deleted_by"], "system@hyperfleet.local");
}

#[tokio::test]
async fn row_2_a_missing_resource_and_a_missing_route_have_different_codes() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("present").await;
    let nobody = "019b7654-0000-7000-8000-000000000000";
    for (path, code) in [
        (format!("/clusters/{nobody}"), "NTF-001"),
        ("/clusters/no-uuid".to_owned(), "NTF-001"),
        (format!("/clusters/{nobody}/statuses"), "NTF-001"),
        (format!("/clusters/{nobody}/nodepools"), "NTF-001"),
        (format!("{cluster}/nodepools/{nobody}"), "NTF-001"),
        (format!("/resources/{nobody}"), "NTF-001"),
        ("/clusterz".to_owned(), "NTF-000"),
        (format!("{cluster}/status"), "NTF-000"),
        (format!("{cluster}/nodepools/{nobody}/x"), "NTF-000"),
        (String::new(), "NTF-000"),
    ] {
        assert_eq!(api.get(&path).await.problem(), (404, code), "{path}");
    }
}

#[tokio::test]
async fn row_3_statuses_give_back_what_adapters_sent() {
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
async fn row_4_times_are_rfc_3339_and_numbers_are_small_integers() {
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
async fn row_5_authors_look_like_e_mail_addresses() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("authored").await;
    let found = api.get(&cluster).await;
    for name in ["created_by", "updated_by"] {
        assert_eq!(found.body[name], "system@hyperfleet.local", "{name}");
    }
}

#[tokio::test]
async fn row_6_content_types_are_exact() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("typed").await;
    let body = json!({"kind": "Cluster", "name": "made", "spec": {}});
    let reported = api.report(&cluster, "dns", 1, &[]).await;
    for answer in [
        api.get("/clusters").await,
        api.get(&cluster).await,
        api.get(&format!("{cluster}/statuses")).await,
        api.get("/audit").await,
        api.post("/clusters", body).await,
        api.patch(&cluster, json!({"spec": {"a": 1}})).await,
        reported,
        api.delete(&cluster).await,
    ] {
        assert!(answer.status < 300, "{}", answer.body);
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    for answer in [
        api.get("/nowhere").await,
        api.get("/clusters/nobody").await,
        api.get("/clusters?page=0").await,
        api.put("/clusters", json!({})).await,
        api.post("/clusters", json!({})).await,
        api.patch(&cluster, json!({"spec": {}})).await,
    ] {
        assert!(answer.status >= 400, "{}", answer.body);
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json")
        );
    }
}

#[tokio::test]
async fn row_7_errors_are_complete_problems() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("taken").await;
    let taken = json!({"kind": "Cluster", "name": "taken", "spec": {}});
    for (answer, kind, title) in [
        (api.get("/nowhere").await, "not-found", "Endpoint Not Found"),
        (
            api.get("/clusters/nobody").await,
            "not-found",
            "Resource Not Found",
        ),
        (
            api.post("/clusters", json!({})).await,
            "validation-error",
            "Validation Failed",
        ),
        (
            api.post("/clusters", Value::Null).await,
            "malformed-request",
            "Malformed Request",
        ),
        (
            api.patch(&cluster, json!({})).await,
            "bad-request",
            "Bad Request",
        ),
        (
            api.post("/clusters", taken).await,
            "conflict",
            "Resource Conflict",
        ),
        (
            api.post(&format!("{cluster}/force-delete"), json!({"reason": "r"}))
                .await,
            "conflict",
            "State Conflict",
        ),
        (
            api.delete("/clusters").await,
            "method-not-allowed",
            "Method Not Allowed",
        ),
    ] {
        let body = &answer.body;
        assert_eq!(
            body["type"],
            format!("https://api.hyperfleet.io/errors/{kind}")
        );
        assert_eq!(body["title"], title);
        assert_eq!(body["status"], answer.status);
        assert_eq!(body["timestamp"], "2026-01-01T10:00:00Z");
        assert!(
            body["code"].as_str().unwrap().starts_with("HYPERFLEET-"),
            "{body}"
        );
        assert!(!answer.detail().is_empty(), "{body}");
        assert!(
            body["instance"]
                .as_str()
                .unwrap()
                .starts_with("/api/hyperfleet/v1/"),
            "{body}"
        );
        assert!(!body["trace_id"].as_str().unwrap().is_empty(), "{body}");
        for error in body["errors"].as_array().into_iter().flatten() {
            for name in ["field", "message", "constraint"] {
                assert!(error[name].is_string(), "{error}");
            }
        }
    }
}

#[tokio::test]
async fn row_8_lists_are_newest_first_in_pages_of_twenty() {
    let api = TestApi::spawn().await;
    for number in 0..25 {
        api.cluster(&format!("cluster-{number:02}")).await;
        api.clock.advance(1);
    }
    let first = api.get("/clusters").await;
    let second = api.get("/clusters?page=2").await;
    assert_eq!(first.body["page"], 1);
    assert_eq!(first.body["size"], 20);
    assert_eq!(second.body["size"], 5);
    assert_eq!(first.body["total"], 25);
    let names = [first.column("name"), second.column("name")].concat();
    let newest_first: Vec<_> = (0..25)
        .rev()
        .map(|number| format!("cluster-{number:02}"))
        .collect();
    assert_eq!(names, newest_first);
    assert_eq!(api.get("/clusters?size=101").await.problem().0, 400);
    assert_eq!(api.get("/clusters?size=0").await.problem().0, 400);
    assert_eq!(
        api.get("/clusters?nobody=knows&this=one").await.body,
        first.body
    );
}

#[tokio::test]
async fn row_9_a_new_resource_has_both_conditions_at_its_generation() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("fresh").await;
    let found = api.get(&cluster).await;
    let conditions = found.body["status"]["conditions"].as_array().unwrap();
    let types: Vec<_> = conditions.iter().map(|c| c["type"].clone()).collect();
    assert_eq!(types, ["Reconciled", "LastKnownReconciled"]);
    for condition in conditions {
        assert_eq!(condition["status"], "False");
        assert_eq!(condition["observed_generation"], 1);
    }
}

#[tokio::test]
async fn row_9_reconciled_is_as_recent_as_the_stalest_report() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("moving").await;
    for round in 0..3 {
        api.clock.advance(60);
        let stalest = json!(api.clock.now());
        for adapter in ["validation", "dns", "pullsecret", "hypershift"] {
            assert_eq!(api.report(&cluster, adapter, 1, &[]).await.status, 201);
            api.clock.advance(1);
        }
        let found = api.get(&cluster).await;
        let reconciled = found.condition("Reconciled");
        assert_eq!(reconciled["last_updated_time"], stalest, "round {round}");
    }
}

#[tokio::test]
async fn row_10_a_probe_for_labels_that_nobody_has_finds_nothing() {
    let api = TestApi::spawn().await;
    api.cluster("labelled").await;
    let probe = "/clusters?search=labels.non_existing_label%3D%27value%27&size=1";
    let answer = api.get(probe).await;
    assert_eq!((answer.status, &answer.body["total"]), (200, &json!(0)));
}

#[tokio::test]
async fn row_10_labels_and_names_are_searched_for() {
    let api = TestApi::spawn().await;
    for (name, zone) in [("prod-1", "a"), ("prod-2", "b"), ("stage-1", "a")] {
        let labels = json!({"env": &name[..4], "zone": zone});
        let body = json!({"kind": "Cluster", "name": name, "spec": {}, "labels": labels});
        assert_eq!(api.post("/clusters", body).await.status, 201);
        api.clock.advance(1);
    }
    for (search, found) in [
        (
            "labels.env%3D%27prod%27%20and%20labels.zone%3D%27a%27",
            vec!["prod-1"],
        ),
        ("name%20%3D%20%27stage-1%27", vec!["stage-1"]),
        ("name%20like%20%27prod%25%27", vec!["prod-2", "prod-1"]),
    ] {
        let list = api.get(&format!("/clusters?search={search}")).await;
        assert_eq!(list.column("name"), found, "{search}");
    }
}

#[tokio::test]
async fn row_11_each_required_adapter_gets_a_condition_of_its_own() {
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

#[tokio::test]
async fn row_12_reports_are_created_again_and_again() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("reported").await;
    assert_eq!(api.report(&cluster, "dns", 1, &[]).await.status, 201);
    api.clock.advance(1);
    assert_eq!(api.report(&cluster, "dns", 1, &[]).await.status, 201);
    let discarded = api.report(&cluster, "dns", 2, &[]).await;
    assert_eq!((discarded.status, discarded.bytes.len()), (204, 0));
    assert_eq!(discarded.header("content-type"), None);
}

#[tokio::test]
async fn row_12_a_report_needs_three_conditions() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("reported").await;
    for missing in ["Available", "Applied", "Health"] {
        let conditions: Vec<_> = ["Health", "Applied", "Available", "Finalized"]
            .iter()
            .filter(|kind| **kind != missing)
            .map(|kind| json!({"type": kind, "status": "True"}))
            .collect();
        let body = json!({"adapter": "dns", "observed_generation": 1, "conditions": conditions});
        let answer = api.put(&format!("{cluster}/statuses"), body).await;
        assert_eq!(answer.problem(), (400, "VAL-000"), "{missing}");
        assert_eq!(
            answer.detail(),
            format!(
                "missing mandatory condition '{missing}': all adapters must report Available, Applied, and Health"
            )
        );
    }
    assert_eq!(
        api.get(&format!("{cluster}/statuses")).await.body["total"],
        0
    );
}

#[tokio::test]
async fn row_13_the_last_finalized_report_removes_the_resource() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("going").await;
    let deleted = api.deleted(&cluster).await;
    assert_eq!(deleted.body, api.get(&cluster).await.body);
    assert!(deleted.body["deleted_time"].is_string());
    for adapter in ["validation", "dns", "pullsecret", "hypershift"] {
        assert_eq!(api.get(&cluster).await.status, 200, "before {adapter}");
        api.finalize(&cluster, &[adapter], 2).await;
    }
    assert_eq!(api.get(&cluster).await.problem(), (404, "NTF-001"));
}

#[tokio::test]
async fn row_14_a_create_must_say_its_kind() {
    let api = TestApi::spawn().await;
    let answer = api
        .post("/clusters", json!({"name": "kindless", "spec": {}}))
        .await;
    assert_eq!(answer.problem(), (400, "VAL-000"));
    assert_eq!(answer.detail(), "kind is required");
}

#[tokio::test]
async fn row_15_reports_cannot_be_posted() {
    let api = TestApi::spawn().await;
    let cluster = api.cluster("reported").await;
    let answer = api.post(&format!("{cluster}/statuses"), json!({})).await;
    assert_eq!(answer.problem(), (405, "VAL-008"));
    assert_eq!(answer.header("allow"), Some("GET, HEAD, PUT"));
}
