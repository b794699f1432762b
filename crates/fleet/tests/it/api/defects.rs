//! Defects of the older server's API. Each test fails with its behaviour.

use serde_json::{Value, json};

use super::{error, unit};
use hyperfleet_testkit::{TestFleet, engine_settings, run_engine, until};

fn options(options: &[(&str, &str, &str)]) -> Value {
    let options = options.iter();
    let options = options.map(|(s, n, v)| json!({"section": s, "name": n, "value": v}));
    json!({"options": options.collect::<Vec<_>>()})
}

fn with_state(mut unit: Value, state: &str) -> Value {
    unit["desiredState"] = json!(state);
    unit
}

/// It answered 201, and the machine that got the template was wedged.
#[tokio::test]
async fn a_template_is_not_launched_when_it_is_created() {
    let fleet = TestFleet::spawn().await;
    let message = "cannot activate template \"t@.service\"";
    for state in ["launched", "loaded"] {
        let refused = fleet
            .put("/units/t@.service", &with_state(unit("1"), state))
            .await;
        assert_eq!(refused.body, error(400, message), "{state}");
    }
    assert_eq!(
        fleet.get("/units").await.bytes,
        b"{}",
        "nothing was created"
    );
    assert_eq!(fleet.put("/units/t@.service", &unit("1")).await.status, 201);
    let refused = fleet
        .put("/units/t@.service", &json!({"desiredState": "launched"}))
        .await;
    assert_eq!(refused.body, error(400, message));
    let refused = fleet
        .put("/units/t@.service", &with_state(unit("2"), "launched"))
        .await;
    assert_eq!(refused.body, error(400, message), "replaced");
}

/// It answered 500 when the unit was created. When it was there, it stored the word, and the unit was lost.
#[tokio::test]
async fn a_desired_state_that_there_is_not_is_refused() {
    let fleet = TestFleet::spawn().await;
    for state in ["active", "Launched", "launched ", "0"] {
        let refused = fleet
            .put("/units/a.service", &with_state(unit("1"), state))
            .await;
        assert_eq!(refused.status, 400, "created as {state}: {refused:?}");
    }
    assert_eq!(fleet.put("/units/a.service", &unit("1")).await.status, 201);
    for state in ["active", "Launched", "launched ", "0"] {
        let refused = fleet
            .put("/units/a.service", &json!({"desiredState": state}))
            .await;
        assert_eq!(refused.status, 400, "updated to {state}: {refused:?}");
        let message = refused.body["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("inactive, loaded, or launched"),
            "{message}"
        );
    }
    assert_eq!(
        fleet.get("/units/a.service").await.body["desiredState"],
        "inactive"
    );
}

/// It ended the connection.
#[tokio::test]
async fn null_among_options_is_refused() {
    let fleet = TestFleet::spawn().await;
    let refused = fleet
        .put("/units/a.service", &json!({"options": [null]}))
        .await;
    assert_eq!(refused.status, 400, "{refused:?}");
    let message = refused.body["error"]["message"].as_str().unwrap();
    let expected = "unable to decode body: options[0]: invalid type: null";
    assert!(message.starts_with(expected), "{message}");
}

/// It ended the connection.
#[tokio::test]
async fn a_state_that_there_is_not_is_not_found() {
    let fleet = TestFleet::spawn().await;
    for name in ["no.service", "no", "%25", "a%40b.service"] {
        let answer = fleet.get(&format!("/fleet/v1/state/{name}")).await;
        assert_eq!(
            answer.body,
            error(404, "unit state does not exist"),
            "{name}"
        );
    }
}

/// It gave that of any machine, each time another.
#[tokio::test]
async fn of_several_machines_the_lowest_speaks_for_a_unit() {
    let fleet = TestFleet::spawn().await;
    for id in ["m2", "m10", "m3"] {
        let mut reports = fleet.machine(id).await;
        fleet.report(&mut reports, &["a.service"]).await;
    }
    let state = fleet.get("/state/a.service").await.body;
    assert_eq!(state["machineID"], "m10");
}

/// It checked options only when the unit was created.
#[tokio::test]
async fn a_file_is_checked_when_it_is_replaced_too() {
    let fleet = TestFleet::spawn().await;
    let bad = options(&[
        ("X-Fleet", "MachineID", "m1"),
        ("X-Fleet", "Conflicts", "b.service"),
    ]);
    let message = "MachineID cannot be used with Conflicts";
    let refused = fleet.put("/units/a.service", &bad).await;
    assert_eq!(refused.body, error(400, message), "created");
    assert_eq!(fleet.put("/units/a.service", &unit("1")).await.status, 201);
    let refused = fleet.put("/units/a.service", &bad).await;
    assert_eq!(refused.body, error(400, message), "replaced");
    let stored = fleet.get("/units/a.service").await.body;
    assert_eq!(stored["options"], unit("1")["options"]);
}

/// It took what stood behind a newline for another option.
#[tokio::test]
async fn an_option_is_one_option_whatever_its_parts_hold() {
    let fleet = TestFleet::spawn().await;
    for (section, name, value) in [
        ("Service", "ExecStart", "/bin/true\nExecStopPost=/bin/evil"),
        (
            "Service",
            "ExecStart",
            "/bin/true\r\n[X-Fleet]\nGlobal=true",
        ),
        ("Service", "A\nExecStart", "/bin/evil"),
        ("Service", "A=B", "1"),
        ("Service]\n[X-Fleet", "Global", "true"),
        ("X-Fleet]", "Global", "true"),
        ("Service", "[X-Fleet]\nGlobal", "true"),
        ("Service", "ExecStart", "a\0b"),
    ] {
        let refused = fleet
            .put("/units/a.service", &options(&[(section, name, value)]))
            .await;
        assert_eq!(
            refused.status, 400,
            "{section:?} {name:?} {value:?}: {refused:?}"
        );
        assert!(
            !refused.body["error"]["message"]
                .as_str()
                .unwrap()
                .is_empty()
        );
    }
    assert_eq!(fleet.get("/units").await.bytes, b"{}");
    // A value that goes on in the next line says so.
    let goes_on = options(&[("Service", "ExecStart", "/bin/true \\\n  --more")]);
    assert_eq!(fleet.put("/units/a.service", &goes_on).await.status, 201);
    assert_eq!(
        fleet.get("/units/a.service").await.body["options"],
        goes_on["options"]
    );
}

/// It took outer blanks for a change each time.
#[tokio::test]
async fn blanks_around_a_value_make_no_other_unit() {
    let fleet = TestFleet::spawn().await;
    let blank = with_state(
        options(&[("Service", "ExecStart", "  /bin/true ")]),
        "loaded",
    );
    assert_eq!(fleet.put("/units/a.service", &blank).await.status, 201);
    assert_eq!(fleet.put("/units/a.service", &blank).await.status, 204);
}

/// It accepted a name without a stem.
#[tokio::test]
async fn a_name_has_a_stem() {
    let fleet = TestFleet::spawn().await;
    let refused = fleet.put("/units/.service", &unit("1")).await;
    assert_eq!(refused.status, 400, "{refused:?}");
}

/// A removed state blanked those of other machines.
#[tokio::test]
async fn a_machine_that_goes_takes_its_own_states_only() {
    let fleet = TestFleet::spawn().await;
    let mut first = fleet.machine("m1").await;
    let mut second = fleet.machine("m2").await;
    fleet.report(&mut first, &["a.service"]).await;
    fleet.report(&mut second, &["a.service"]).await;
    fleet.report(&mut first, &[]).await;
    let state = fleet.get("/state/a.service").await.body;
    assert_eq!(state["machineID"], "m2");
}

/// Nothing told why a unit was nowhere.
#[tokio::test]
async fn a_unit_that_is_nowhere_has_a_reason() {
    let fleet = TestFleet::spawn().await;
    let _machine = fleet.machine("m1").await;
    for (name, key, value) in [
        ("peer.service", "MachineOf", "no.service"),
        ("b.service", "MachineOf", "c.service"),
        ("c.service", "MachineOf", "b.service"),
        ("picky.service", "MachineMetadata", "disk=ssd"),
    ] {
        let wanted = with_state(options(&[("X-Fleet", key, value)]), "launched");
        let path = format!("/units/{name}");
        assert_eq!(fleet.put(&path, &wanted).await.status, 201);
    }
    let (registry, settings) = (fleet.registry.clone(), engine_settings("e1"));
    let engine = tokio::spawn(run_engine(registry, settings, std::future::pending()));
    for (name, words) in [
        ("peer", "waits for no.service, which is on no machine"),
        ("b", "b.service → c.service → b.service"),
        ("picky", "no machine can run it: MachineMetadata=disk=ssd"),
    ] {
        let path = format!("/units/{name}.service/explain");
        until(&format!("{name}: {words}"), async || {
            let why = fleet.get(&path).await;
            assert_eq!(why.status, 200);
            why.body["reason"].as_str().unwrap().contains(words)
        })
        .await;
    }
    engine.abort();
}
