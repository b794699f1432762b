//! Units: creating, replacing, changing, destroying, reading; and the defects of the older server.

use serde_json::{Value, json};

use super::{error, unit};
use hyperfleet_testkit::TestFleet;

const JSON: &str = "application/json";

#[tokio::test]
async fn a_unit_is_created_read_replaced_changed_and_destroyed() {
    let fleet = TestFleet::spawn().await;
    let path = "/fleet/v1/units/web%401.service";
    let created = fleet.put(path, &unit("/bin/one")).await;
    assert_eq!((created.status, created.bytes.len()), (201, 0));
    let stored = json!({
        "currentState": "inactive",
        "desiredState": "inactive",
        "name": "web@1.service",
        "options": [{"name": "ExecStart", "section": "Service", "value": "/bin/one"}],
    });
    assert_eq!(fleet.get(path).await.body, stored);
    assert_eq!(
        fleet.get("/v1-alpha/units/web@1.service").await.body,
        stored
    );
    assert_eq!(fleet.get("/units").await.body, json!({"units": [stored]}));

    let launched = fleet.put(path, &json!({"desiredState": "launched"})).await;
    assert_eq!((launched.status, launched.bytes.len()), (204, 0));
    // The same file again is no other file.
    let mut same = unit("/bin/one");
    same["desiredState"] = json!("loaded");
    assert_eq!(fleet.put(path, &same).await.status, 204);
    assert_eq!(fleet.get(path).await.body["desiredState"], "loaded");
    let replaced = fleet.put(path, &unit("/bin/two")).await;
    assert_eq!((replaced.status, replaced.bytes.len()), (201, 0));
    let now = fleet.get(path).await.body;
    assert_eq!(now["options"][0]["value"], "/bin/two");
    assert_eq!(now["desiredState"], "inactive", "as it was left out");

    let headers = [("content-type", "text/plain")];
    let destroyed = fleet.send("DELETE", path, &headers, "{nothing").await;
    assert_eq!((destroyed.status, destroyed.bytes.len()), (204, 0));
    let gone = error(404, "unit does not exist");
    assert_eq!(fleet.get(path).await.body, gone);
    assert_eq!(fleet.delete(path).await.body, gone);
    assert_eq!(fleet.get("/units").await.bytes, b"{}");
}

#[tokio::test]
async fn a_body_needs_exactly_one_content_type() {
    let fleet = TestFleet::spawn().await;
    let only = "only acceptable Content-Type is application/json";
    for (types, message) in [
        (vec![], Some("expected 1 Content-Type, got 0")),
        (vec![JSON, JSON], Some("expected 1 Content-Type, got 2")),
        (vec!["text/plain"], Some(only)),
        (vec!["Application/JSON"], Some(only)),
        (vec!["application/jsonx"], Some(only)),
        (vec![""], Some(only)),
        (vec!["application/json; charset=utf-8"], None),
        (vec![" application/json ;x"], None),
    ] {
        let headers: Vec<_> = types.iter().map(|t| ("content-type", *t)).collect();
        let body = unit("1").to_string();
        let answer = fleet.send("PUT", "/units/a.service", &headers, &body).await;
        match message {
            Some(message) => assert_eq!(answer.body, error(415, message), "{types:?}"),
            None => assert_ne!(answer.status, 415, "{types:?}"),
        }
    }
}

#[tokio::test]
async fn a_body_that_is_not_a_unit_is_refused_with_the_path() {
    let fleet = TestFleet::spawn().await;
    let headers = [("content-type", JSON)];
    let put = async |body: &str| fleet.send("PUT", "/units/a.service", &headers, body).await;
    for (body, start) in [
        ("", "EOF while parsing a value"),
        ("{", "EOF while parsing an object"),
        ("null", "invalid type: null"),
        ("{}{}", "trailing characters"),
        (r#"{"options":"x"}"#, "options: invalid type: string"),
        (
            r#"{"desiredState":1}"#,
            "desiredState: invalid type: integer",
        ),
    ] {
        let refused = put(body).await;
        assert_eq!(refused.status, 400, "{body}");
        let message = refused.body["error"]["message"].as_str().unwrap();
        let expected = format!("unable to decode body: {start}");
        assert!(message.starts_with(&expected), "{body}: {message}");
    }
    let nothing = "unit does not exist and options field empty";
    for body in ["{}", r#"{"options":[]}"#] {
        assert_eq!(put(body).await.body, error(409, nothing), "{body}");
    }
    let body = r#"{"options":[{"section":"Service","name":"ExecStart","value":"x","y":[]}],"name":"a.service"}"#;
    assert_eq!(put(body).await.status, 201);
    let nothing = "must provide DesiredState to update existing unit";
    for body in ["{}", r#"{"options":[]}"#, r#"{"desiredState":null}"#] {
        assert_eq!(put(body).await.body, error(409, nothing), "{body}");
    }
    assert_eq!(put(r#"{"desiredState":"launched"}"#).await.status, 204);
    let other = put(r#"{"name":"b.service","desiredState":"loaded"}"#).await;
    let message = r#"name in URL "a.service" differs from unit name in request body "b.service""#;
    assert_eq!(other.body, error(400, message));
}

#[tokio::test]
async fn names_are_checked_by_writes_and_not_by_reads() {
    let fleet = TestFleet::spawn().await;
    for (name, message) in [
        ("a", "unit name must contain \".\""),
        ("a.xyz", "invalid unit type: \"xyz\""),
        ("a%25b.service", "invalid character '%' in unit name"),
        ("@a.service", "unit name cannot start in \"@\""),
    ] {
        let path = format!("/units/{name}");
        assert_eq!(fleet.put(&path, &unit("1")).await.body, error(400, message));
        let gone = error(404, "unit does not exist");
        assert_eq!(fleet.get(&path).await.body, gone, "{name}");
        assert_eq!(fleet.delete(&path).await.body, gone, "{name}");
        let explained = fleet.get(&format!("{path}/explain")).await;
        assert_eq!(explained.body, gone, "{name}");
    }
    // What a path decodes to, once.
    let twice = fleet.put("/units/a%2540b.service", &unit("1")).await;
    assert_eq!(twice.body, error(400, "invalid character '%' in unit name"));
    assert_eq!(
        fleet.put("/units/a%5Cx2d.service", &unit("1")).await.status,
        201
    );
    assert_eq!(
        fleet.get("/units").await.body["units"][0]["name"],
        "a\\x2d.service"
    );
}

#[tokio::test]
async fn the_largest_unit_is_taken_and_a_larger_body_is_not() {
    let fleet = TestFleet::spawn().await;
    // As many options, and as much text, as there may be; every character written in the longest way.
    let value = "\\u0061".repeat(20);
    let option = format!(
        r#"{{"section":"{}","name":"A","value":"{value}"}}"#,
        "\\u0053".repeat(40)
    );
    let options = vec![option; 1000].join(",");
    let body = format!(r#"{{"options":[{options}]}}"#);
    let headers = [("content-type", JSON)];
    let taken = fleet.send("PUT", "/units/a.service", &headers, &body).await;
    assert_eq!(taken.status, 201, "{} bytes: {taken:?}", body.len());
    let larger = format!("{body}{}", " ".repeat(1024 * 1024));
    let refused = fleet
        .send("PUT", "/units/b.service", &headers, &larger)
        .await;
    let message = "Request body must be at most 1048576 bytes";
    assert_eq!(refused.body, error(413, message));
    let many = format!(
        r#"{{"options":[{}]}}"#,
        vec![r#"{"section":"S","name":"A"}"#; 1001].join(",")
    );
    let refused = fleet.send("PUT", "/units/b.service", &headers, &many).await;
    assert_eq!(refused.status, 400, "{refused:?}");
}

#[tokio::test]
async fn a_running_unit_names_its_machine_and_a_global_none() {
    let fleet = TestFleet::spawn().await;
    let mut reports = fleet.machine("m1").await;
    let global = json!({"options": [{"section": "X-Fleet", "name": "Global", "value": "true"}], "desiredState": "launched"});
    assert_eq!(fleet.put("/units/all.service", &global).await.status, 201);
    let mut wanted = unit("1");
    wanted["desiredState"] = json!("launched");
    assert_eq!(fleet.put("/units/one.service", &wanted).await.status, 201);
    fleet.place("one.service", "m1").await;
    let one = fleet.get("/units/one.service").await.body;
    assert_eq!(
        (&one["currentState"], &one["machineID"]),
        (&json!("inactive"), &json!("m1"))
    );
    fleet
        .report(&mut reports, &["one.service", "all.service"])
        .await;
    let one = fleet.get("/units/one.service").await.body;
    assert_eq!(one["currentState"], "launched");
    let all = fleet.get("/units/all.service").await.body;
    let list = fleet.get("/units").await.body["units"].clone();
    for global in [&all, &list[0]] {
        let members: Vec<_> = global.as_object().unwrap().keys().collect();
        assert_eq!(members, ["desiredState", "name", "options"]);
    }
}

#[tokio::test]
async fn explain_says_why_a_unit_is_nowhere_and_where_it_is() {
    let fleet = TestFleet::spawn().await;
    fleet.machine("m1").await;
    let west = json!({"options": [{"section": "X-Fleet", "name": "MachineMetadata", "value": "zone=west"}],
        "desiredState": "launched"});
    assert_eq!(fleet.put("/units/a.service", &west).await.status, 201);
    let why = fleet.get("/fleet/v1/units/a.service/explain").await.body;
    let reason = why["reason"].as_str().unwrap();
    assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}");
    let refusals =
        json!([{"count": 1, "machines": ["m1"], "requirement": "MachineMetadata=zone=west"}]);
    let expected = json!({
        "currentState": "inactive",
        "desiredState": "launched",
        "name": "a.service",
        "blocked": true,
        "reason": reason,
        "refusals": refusals,
    });
    assert_eq!(why, expected);
    fleet.place("a.service", "m1").await;
    let why = fleet.get("/units/a.service/explain").await.body;
    assert_eq!(
        (&why["machineID"], &why["refusals"]),
        (&json!("m1"), &Value::Null)
    );
    assert!(why["reason"].as_str().unwrap().contains("m1"), "{why}");
}
