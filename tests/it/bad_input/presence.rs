//! Members that are missing, unknown, or there twice.

use serde_json::{Value, json};

use super::{assert_malformed, assert_violation, finalizing_cluster, report, routes, with};
use crate::support::{Problem as _, TestApi};

#[tokio::test]
async fn null_is_as_good_as_absent_where_nothing_is_required() {
    let api = TestApi::spawn().await;
    let body =
        json!({"kind": "Cluster", "name": "abc", "spec": {}, "labels": null, "references": null});
    let made = api.post("/clusters", body).await;
    assert_eq!((made.status, &made.body["labels"]), (201, &json!({})));
    let body = json!({
        "kind": "Cluster",
        "name": "maps",
        "spec": {},
        "labels": {},
        "references": {},
    });
    let made_of_maps = api.post("/clusters", body).await;
    assert_eq!(made_of_maps.status, 201, "{}", made_of_maps.body);
    assert_eq!(made_of_maps.body["labels"], json!({}));
    let path = format!("/clusters/{}/statuses", made.id());
    let mut body = report(&api);
    for pointer in [
        "/observed_time",
        "/data",
        "/metadata",
        "/conditions/0/reason",
        "/conditions/0/message",
    ] {
        body = with(&body, pointer, Value::Null);
    }
    let stored = api.put(&path, body).await;
    assert_eq!(stored.status, 201, "{}", stored.body);
    assert_eq!(stored.body["data"], json!({}));
    assert!(stored.body.get("metadata").is_none(), "{}", stored.body);
    assert!(stored.body["conditions"][0].get("reason").is_none());
}

#[tokio::test]
async fn the_reason_of_a_force_delete_is_a_text() {
    let api = TestApi::spawn().await;
    let path = format!("{}/force-delete", finalizing_cluster(&api, "abc").await);
    for wrong in [json!(1), json!(true), json!([]), json!({})] {
        let answer = api.post(&path, json!({"reason": wrong})).await;
        assert_violation(
            &answer,
            "VAL-000",
            "reason",
            "field 'reason' must be a string",
            &wrong.to_string(),
        );
    }
    for none in ["{}", "null", r#"{"reason":null}"#, r#"{"reason":""}"#] {
        let answer = api.send_bytes("POST", &path, none).await;
        assert_violation(&answer, "VAL-000", "reason", "reason is required", none);
    }
}

#[tokio::test]
async fn a_body_is_an_object() {
    let api = TestApi::spawn().await;
    for route in routes(&api).await {
        for body in ["[]", "1", "true", "\"text\"", "[{}]"] {
            let answer = api.send_bytes(route.method, &route.path, body).await;
            let message = if route.method == "PATCH" && body.starts_with('[') {
                "the body must be an object; a list of operations is application/json-patch+json"
            } else {
                "the body must be an object"
            };
            assert_violation(&answer, "VAL-000", "", message, body);
        }
    }
}

#[tokio::test]
async fn members_that_nobody_knows_are_ignored_but_for_patches() {
    let api = TestApi::spawn().await;
    let mut fresh = (0..).map(|number| format!("fresh-{number}"));
    for route in routes(&api).await {
        for (name, value) in [
            ("generation", json!(7)),
            ("ID", json!([null])),
            ("status", json!({"a": 1})),
        ] {
            let mut sent = with(&route.body, &format!("/{name}"), value);
            if let Some(resource_name) = sent.get_mut("name") {
                *resource_name = json!(fresh.next().unwrap());
            }
            let answer = api.send(route.method, &route.path, sent).await;
            if route.method == "PATCH" {
                assert_malformed(&answer, &format!("unknown field \"{name}\""), &route.path);
            } else {
                assert_eq!(answer.status, route.success, "{}", answer.body);
                assert_ne!(answer.body["generation"], 7);
            }
        }
    }
    let path = format!("{}/force-delete", finalizing_cluster(&api, "gone").await);
    let answer = api.post(&path, json!({"reason": "over", "force": 1})).await;
    assert_eq!(answer.status, 204);
}

#[tokio::test]
async fn a_known_member_appears_once() {
    let api = TestApi::spawn().await;
    let mut bodies: Vec<_> = routes(&api)
        .await
        .into_iter()
        .map(|r| (r.method, r.path, r.body))
        .collect();
    let forced = finalizing_cluster(&api, "gone").await;
    bodies.push((
        "POST",
        format!("{forced}/force-delete"),
        json!({"reason": "x"}),
    ));
    for (method, path, body) in bodies {
        for (name, value) in body.as_object().unwrap() {
            let text = body.to_string();
            let twice = format!("{},\"{name}\":{value}}}", &text[..text.len() - 1]);
            let answer = api.send_bytes(method, &path, twice.clone()).await;
            let message = format!("field '{name}' must appear only once");
            assert_violation(&answer, "VAL-000", name, &message, &twice);
            assert_eq!(answer.body["errors"][0]["constraint"], "unique");
        }
    }
    let path = format!("{}/statuses", api.cluster("second").await);
    let body = report(&api).to_string();
    for (once, twice, field) in [
        (
            r#""attempt":1"#,
            r#""attempt":1,"attempt":2"#,
            "metadata.attempt",
        ),
        (
            r#""status":"True","type":"Applied""#,
            r#""status":"True","status":"False","type":"Applied""#,
            "conditions[1].status",
        ),
    ] {
        assert!(body.contains(once), "{body}");
        let answer = api
            .send_bytes("PUT", &path, body.replace(once, twice))
            .await;
        assert_eq!(
            (answer.status, answer.fields()),
            (400, vec![field]),
            "{}",
            answer.body
        );
    }
}
