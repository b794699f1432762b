//! Machines and their metadata.

use serde_json::{Value, json};

use super::error;
use hyperfleet_testkit::TestFleet;

async fn patch(fleet: &TestFleet, body: &str) -> (u16, Value) {
    // Whatever is said of the body.
    let headers = [("content-type", "text/plain")];
    let answer = fleet
        .send("PATCH", "/fleet/v1/machines", &headers, body)
        .await;
    if answer.status == 204 {
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert!(answer.bytes.is_empty());
    }
    (answer.status, answer.body)
}

#[tokio::test]
async fn metadata_is_set_over_what_the_machine_says_and_taken_away() {
    let fleet = TestFleet::spawn().await;
    fleet.machine("m1").await;
    let machine = |metadata: Value| json!({"machines": [{"id": "m1", "metadata": metadata, "primaryIP": "192.0.2.7", "version": "1"}]});
    let path = "/fleet/v1/machines";
    assert_eq!(fleet.get(path).await.body, machine(json!({"zone": "east"})));
    let body = r#"[{"op":"add","path":"/m1/metadata/disk","value":{"value":"ssd"}},
                   {"op":"replace","path":"/m1/metadata/zone","value":{"value":"west"}}]"#;
    assert_eq!(patch(&fleet, body).await, (204, Value::Null));
    let now = machine(json!({"disk": "ssd", "zone": "west"}));
    assert_eq!(fleet.get(path).await.body, now);
    let body = r#"[{"op":"remove","path":"/m1/metadata/zone"},{"op":"remove","path":"/m1/metadata/disk"}]"#;
    assert_eq!(patch(&fleet, body).await.0, 204);
    let bare = json!({"machines": [{"id": "m1", "primaryIP": "192.0.2.7", "version": "1"}]});
    assert_eq!(fleet.get(path).await.body, bare);
    let body = r#"[{"op":"add","path":"/m1/metadata/zone","value":{"value":"north"}}]"#;
    assert_eq!(patch(&fleet, body).await.0, 204);
    assert_eq!(
        fleet.get(path).await.body,
        machine(json!({"zone": "north"}))
    );
}

#[tokio::test]
async fn all_changes_are_checked_before_the_first_is_made() {
    let fleet = TestFleet::spawn().await;
    fleet.machine("m1").await;
    let good = r#"{"op":"add","path":"/m1/metadata/a","value":{"value":"1"}}"#;
    for (bad, message) in [
        (
            r#"{"op":"set","path":"x"}"#,
            "[1].op: unknown variant `set`, expected one of `add`, `remove`, `replace` at line 1 column 71",
        ),
        (
            r#"{"op":"add","path":"/m1/metadata/a b"}"#,
            "machine metadata path invalid",
        ),
        (
            r#"{"op":"add","path":"/m1/metadata/a"}"#,
            "invalid value: add and replace require a value",
        ),
        (
            r#"{"op":"add","path":"/m1/metadata/a","value":"1"}"#,
            "[1].value: invalid type: string \"1\", expected an object at line 1 column 107",
        ),
    ] {
        let refused = patch(&fleet, &format!("[{good},{bad}]")).await;
        assert_eq!(refused, (400, error(400, message)), "{bad}");
    }
    // What makes no key is found by the registry, and before anything is done, too.
    let long = "x".repeat(5000);
    let too_long =
        format!(r#"{{"op":"add","path":"/m1/metadata/b","value":{{"value":"{long}"}}}}"#);
    for bad in [&*too_long, r#"{"op":"remove","path":"/a b/metadata/b"}"#] {
        assert_eq!(patch(&fleet, &format!("[{good},{bad}]")).await.0, 400);
    }
    let machines = fleet.get("/machines").await.body;
    assert_eq!(machines["machines"][0]["metadata"], json!({"zone": "east"}));
}

#[tokio::test]
async fn nothing_to_do_is_done_and_the_machine_need_not_be_there() {
    let fleet = TestFleet::spawn().await;
    for body in ["[]", "null"] {
        assert_eq!(patch(&fleet, body).await.0, 204, "{body}");
    }
    for body in ["", "[", "{}", "[] trailing"] {
        assert_eq!(patch(&fleet, body).await.0, 400, "{body}");
    }
    let body = r#"[{"op":"add","path":"/later/metadata/a","value":{"value":"1"}}]"#;
    assert_eq!(patch(&fleet, body).await.0, 204);
    assert_eq!(fleet.get("/machines").await.bytes, b"{}", "it is not shown");
    fleet.machine("later").await;
    let machines = fleet.get("/machines").await.body;
    let metadata = &machines["machines"][0]["metadata"];
    assert_eq!(*metadata, json!({"a": "1", "zone": "east"}));
}

#[tokio::test]
async fn pages_of_other_sites_change_nothing() {
    let fleet = TestFleet::spawn().await;
    for (site, status) in [
        ("cross-site", 403),
        ("same-site", 403),
        ("same-origin", 204),
        ("none", 204),
    ] {
        let headers = [("sec-fetch-site", site)];
        let answer = fleet.send("POST", "/fleet/v1/resume", &headers, "").await;
        assert_eq!(answer.status, status, "{site}");
    }
    let headers = [("sec-fetch-site", "cross-site")];
    let answer = fleet.send("GET", "/fleet/v1/machines", &headers, "").await;
    assert_eq!(answer.status, 200, "the browser keeps it from the page");
}
