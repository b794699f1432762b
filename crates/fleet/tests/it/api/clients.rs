//! Clients that are not ours to change: the calls of the older system's own, and a dynamic one that knows the
//! discovery document alone.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::cluster::{fleet_of, launch, until_on};
use super::{error, unit};
use hyperfleet_testkit::{Answer, PATIENCE, TestFleet, until};

/// As the older client sends requests: `alt=json` at each of them, names with every `@` encoded.
async fn stock(fleet: &TestFleet, method: &str, path: &str, body: &Value) -> Answer {
    let sign = if path.contains('?') { '&' } else { '?' };
    let path = format!("/fleet/v1/{path}{sign}alt=json");
    let mut headers = vec![
        ("user-agent", "google-api-go-client/0.5"),
        ("accept-encoding", "gzip"),
    ];
    if method == "PUT" {
        headers.push(("content-type", "application/json"));
    }
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let answer = fleet.send(method, &path, &headers, &body).await;
    // It knows no other.
    if !answer.bytes.is_empty() {
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert!(answer.body.is_object(), "{answer:?}");
    }
    answer
}

#[tokio::test]
async fn the_calls_of_the_older_client_are_answered_as_it_knows_them() {
    let fleet = TestFleet::spawn().await;
    let nothing = Value::Null;
    let (template, instance) = ("units/web%40.service", "units/web%401.service");
    // list-machines, list-units and list-unit-files where there is nothing yet.
    for path in ["machines", "state", "units"] {
        let page = stock(&fleet, "GET", path, &nothing).await;
        assert_eq!((page.status, &*page.bytes), (200, &b"{}"[..]), "{path}");
    }
    let mut reports = fleet.machine("0f1e2d3c4b5a69788796a5b4c3d2e1f0").await;
    // submit: the client detects a missing unit by the number in the error.
    for path in [template, instance] {
        let absent = stock(&fleet, "GET", path, &nothing).await;
        assert_eq!(absent.body, error(404, "unit does not exist"));
        let mut wanted = unit("/bin/true");
        let name = path.strip_prefix("units/").unwrap().replace("%40", "@");
        wanted["name"] = json!(name);
        let created = stock(&fleet, "PUT", path, &wanted).await;
        assert_eq!((created.status, created.bytes.len()), (201, 0));
        let unit = stock(&fleet, "GET", path, &nothing).await.body;
        assert_eq!(
            (&unit["currentState"], &unit["name"]),
            (&json!("inactive"), &json!(name))
        );
    }
    // start: first the state, then what has come of it.
    let refused = stock(
        &fleet,
        "PUT",
        template,
        &json!({"desiredState": "launched", "name": "web@.service"}),
    )
    .await;
    assert_eq!(
        refused.body,
        error(400, "cannot activate template \"web@.service\"")
    );
    let started = stock(
        &fleet,
        "PUT",
        instance,
        &json!({"desiredState": "launched", "name": "web@1.service"}),
    )
    .await;
    assert_eq!((started.status, started.bytes.len()), (204, 0));
    fleet
        .place("web@1.service", "0f1e2d3c4b5a69788796a5b4c3d2e1f0")
        .await;
    fleet.report(&mut reports, &["web@1.service"]).await;
    let unit = stock(&fleet, "GET", instance, &nothing).await.body;
    assert_eq!(
        (&unit["currentState"], &unit["desiredState"]),
        (&json!("launched"), &json!("launched"))
    );
    // It crashes if what is launched has no state.
    let state = stock(&fleet, "GET", "state/web%401.service", &nothing).await;
    assert_eq!(
        (state.status, &state.body["systemdActiveState"]),
        (200, &json!("active"))
    );
    // list-units asks for what it shows of each.
    let units = stock(&fleet, "GET", "units", &nothing).await.body;
    let machines = stock(&fleet, "GET", "machines", &nothing).await.body;
    assert_eq!(
        units["units"][1]["machineID"],
        machines["machines"][0]["id"]
    );
    let states = stock(&fleet, "GET", "state?unitName=&machineID=", &nothing)
        .await
        .body;
    assert_eq!(states["states"][0]["name"], "web@1.service");
    // destroy.
    for path in [template, instance] {
        let gone = stock(&fleet, "DELETE", path, &nothing).await;
        assert_eq!((gone.status, gone.bytes.len()), (204, 0));
    }
    assert_eq!(stock(&fleet, "GET", "units", &nothing).await.bytes, b"{}");
}

/// Asks for a unit as the older client waits: four times a second, until its current state is this.
async fn wait_as_stock(fleet: &TestFleet, unit: &str, state: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = stock(fleet, "GET", &format!("units/{unit}"), &Value::Null).await;
        if found.body["currentState"] == state {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{unit} is not {state}: {found:?}"
        );
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

/// Its `restart` sets the unit to loaded, waits until it is launched, sets it to launched and waits again.
#[tokio::test]
async fn the_older_client_restarts_units_and_stops_them() {
    let (fleet, machines) = fleet_of(&["m1"]).await;
    launch(&fleet, "a.service", &[]).await;
    until_on(&fleet, "a.service", "m1").await;
    let systemd = &machines[0].systemd;
    let count = |word: &str| {
        let call = format!("{word} a.service");
        systemd.with(|state| state.calls.iter().filter(|made| **made == call).count())
    };
    wait_as_stock(&fleet, "a.service", "launched").await;
    for restarts in 1..=3 {
        for state in ["loaded", "launched"] {
            let body = json!({"desiredState": state, "name": "a.service"});
            let set = stock(&fleet, "PUT", "units/a.service", &body).await;
            assert_eq!(set.status, 204);
            wait_as_stock(&fleet, "a.service", "launched").await;
        }
        // One order after the other, or both as one.
        until("it has restarted", async || {
            count("stop") + count("restart") == restarts
                && machines[0].running().contains("a.service")
        })
        .await;
    }
    let body = json!({"desiredState": "loaded", "name": "a.service"});
    assert_eq!(
        stock(&fleet, "PUT", "units/a.service", &body).await.status,
        204
    );
    wait_as_stock(&fleet, "a.service", "loaded").await;
    assert!(machines[0].running().is_empty());
    // Others see what is.
    let unit = fleet.get("/fleet/v1/units/a.service").await.body;
    assert_eq!(unit["currentState"], "loaded");
}

#[tokio::test]
async fn everything_that_the_discovery_document_describes_answers() {
    let fleet = TestFleet::spawn().await;
    let mut reports = fleet.machine("m1").await;
    fleet.put("/units/a.service", &unit("1")).await;
    fleet.report(&mut reports, &["a.service"]).await;
    let document = fleet.get("/fleet/v1/discovery").await.body;
    assert_eq!(fleet.get("/v1-alpha/discovery").await.body, document);
    let base = document["basePath"].as_str().unwrap();
    let mut called = 0;
    for resource in document["resources"].as_object().unwrap().values() {
        for (name, method) in resource["methods"].as_object().unwrap() {
            let path = method["path"]
                .as_str()
                .unwrap()
                .replace("{unitName}", "a.service");
            let verb = method["httpMethod"].as_str().unwrap();
            // At the end: others need the unit.
            if verb == "DELETE" {
                continue;
            }
            let body = json!({"desiredState": "inactive"});
            let answer = match verb {
                "PUT" => fleet.put(&format!("{base}{path}"), &body).await,
                verb => fleet.send(verb, &format!("{base}{path}"), &[], "").await,
            };
            called += 1;
            assert_eq!(answer.status / 100, 2, "{name} {path}: {answer:?}");
            assert_described(&document, &method["response"], &answer.body, name);
        }
    }
    assert_eq!(called, 6);
    assert_eq!(
        fleet.delete(&format!("{base}units/a.service")).await.status,
        204
    );
}

/// Everything in an answer stands in its schema.
fn assert_described(document: &Value, schema: &Value, value: &Value, what: &str) {
    let Some(reference) = schema["$ref"].as_str() else {
        assert!(
            schema.is_null() && value.is_null() || value.is_string() || schema["type"] == "object"
        );
        return;
    };
    let properties = &document["schemas"][reference]["properties"];
    for (member, value) in value.as_object().unwrap() {
        let property = &properties[member];
        assert!(
            property.is_object(),
            "{what}: {member} is not in {reference}"
        );
        for item in value.as_array().into_iter().flatten() {
            assert_described(document, &property["items"], item, what);
        }
    }
}

#[tokio::test]
async fn every_operation_answers_as_the_document_says() {
    let fleet = TestFleet::spawn().await;
    let mut reports = fleet.machine("m1").await;
    fleet.put("/units/a.service", &unit("1")).await;
    fleet.report(&mut reports, &["a.service"]).await;
    let document = fleet.get("/fleet/v1/openapi").await.body;
    let mut called = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        // This server runs on no machine; those of fleetd are tested there.
        if path.ends_with("/status") || path.ends_with("/journal") {
            assert_eq!(
                fleet
                    .get(&path.replace("{unitName}", "a.service"))
                    .await
                    .status,
                501
            );
            continue;
        }
        let path = format!(
            "/fleet/v1{}",
            path.replace("{unitName}", "a.service")
                .replace("{machineID}", "m1")
        );
        for method in item
            .as_object()
            .unwrap()
            .keys()
            .filter(|method| *method != "delete")
        {
            if path.ends_with("/stop") {
                let loaded = json!({"desiredState": "loaded"});
                fleet.put("/units/a.service", &loaded).await;
            }
            let answer = match method.as_str() {
                "get" => fleet.get(&path).await,
                "put" => fleet.put(&path, &json!({"desiredState": "launched"})).await,
                "post" => fleet.send("POST", &path, &[], "{}").await,
                method => fleet.send(&method.to_uppercase(), &path, &[], "[]").await,
            };
            called += 1;
            assert_eq!(answer.status / 100, 2, "{method} {path}: {answer:?}");
            let said = &item[method]["responses"][answer.status.to_string()];
            let schema = &said["content"]["application/json"]["schema"];
            assert_eq!(schema.is_null(), answer.bytes.is_empty(), "{method} {path}");
            if !schema.is_null() {
                let mut schema = schema.clone();
                schema["components"] = document["components"].clone();
                let validator = jsonschema::draft4::new(&schema).unwrap();
                let faults: Vec<_> = validator
                    .iter_errors(&answer.body)
                    .map(|f| f.to_string())
                    .collect();
                assert!(faults.is_empty(), "{method} {path}: {faults:?}");
            }
        }
    }
    assert_eq!(called, 18);
}

struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

/// Runs the example against an endpoint, with a text at its standard input.
async fn run(endpoint: &str, arguments: &[&str], input: &str) -> Ran {
    let mut command = Command::new("../../examples/fleet-client");
    command.args(["--endpoint", endpoint]).args(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let input = input.to_owned();
    // The mirror goes on meanwhile.
    let ended = tokio::task::spawn_blocking(move || {
        let mut child = command.spawn().expect("python3");
        // Not all commands read it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    });
    let ended = ended.await.unwrap();
    Ran {
        code: ended.status.code(),
        out: String::from_utf8(ended.stdout).unwrap(),
        err: String::from_utf8(ended.stderr).unwrap(),
    }
}

#[tokio::test]
async fn the_example_works_over_tcp_and_a_unix_socket() {
    let mode = std::fs::metadata("../../examples/fleet-client")
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o111, 0o111);
    let fleet = TestFleet::spawn().await;
    let local = format!("unix://{}", fleet.socket().display());
    let file =
        "# a comment\n[Unit]\nDescription = Web\n\n[Service]\nExecStart=/bin/web --port=80\n";
    for endpoint in [fleet.base.as_str(), &local] {
        let set = run(endpoint, &["set", "web@1.service", "launched", "-"], file).await;
        assert_eq!((set.code, set.err.as_str()), (Some(0), ""), "{endpoint}");
        let got = run(endpoint, &["get", "web@1.service"], "").await;
        let unit: Value = serde_json::from_str(&got.out).unwrap();
        let options = json!([
            {"name": "Description", "section": "Unit", "value": "Web"},
            {"name": "ExecStart", "section": "Service", "value": "/bin/web --port=80"},
        ]);
        assert_eq!(
            (&unit["desiredState"], &unit["options"]),
            (&json!("launched"), &options)
        );
        assert_eq!(
            run(endpoint, &["set", "web@1.service", "inactive"], "")
                .await
                .code,
            Some(0)
        );
        let list = run(endpoint, &["list"], "").await;
        let listed: Vec<Value> = list
            .out
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        assert_eq!(
            (listed.len(), &listed[0]["desiredState"]),
            (1, &json!("inactive"))
        );
        for what in ["state", "machines"] {
            let list = run(endpoint, &["list", what], "").await;
            assert_eq!((list.code, list.out.as_str()), (Some(0), ""), "{what}");
        }
        assert_eq!(
            run(endpoint, &["destroy", "web@1.service"], "").await.code,
            Some(0)
        );
        let gone = run(endpoint, &["destroy", "web@1.service"], "").await;
        assert_eq!(gone.code, Some(1));
        assert_eq!(gone.err, "fleet-client: 404 unit does not exist\n");
    }
    let nobody = run("unix:///nowhere/fleet.sock", &["list"], "").await;
    assert_eq!(nobody.code, Some(2), "{}", nobody.err);
}

#[tokio::test]
async fn the_example_reads_every_page() {
    let fleet = TestFleet::unconnected(hyperfleet_testkit::shared_etcd().await, 2, |_| {});
    fleet.connect().await;
    for name in ["a", "b", "c", "d", "e"] {
        fleet
            .put(&format!("/units/{name}.service"), &unit("1"))
            .await;
    }
    let list = run(&fleet.base, &["list", "units"], "").await;
    assert_eq!(list.out.lines().count(), 5, "{}", list.err);
}
