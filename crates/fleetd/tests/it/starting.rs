//! Starts on a real systemd: those that it refuses, and the kinds of units that it has without a file.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use hyperfleet_testkit::until;

use super::agent::Machine;
use super::fleet_socket::{FleetSocket, SLEEP};

const TRUE: [&str; 2] = ["Service Type=oneshot", "Service ExecStart=/bin/true"];

async fn current(api: &FleetSocket, unit: &str) -> Value {
    let (_, unit) = api.get(&format!("/fleet/v1/units/{unit}")).await.unwrap();
    unit["currentState"].clone()
}

#[tokio::test]
async fn units_start_once_what_they_trigger_is_loaded() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let fleetd = machine.start().await;
    let api = fleetd.api();
    let home = machine.systemd.home();
    let path = format!("Path PathExists={}/path", home.display());
    let socket = format!("Socket ListenStream={}/socket", home.display());
    let other = format!("Socket ListenStream={}/other", home.display());
    for (unit, lines, triggered) in [
        ("a.timer", &["Timer OnActiveSec=1h"][..], "a.service"),
        ("b.path", &[&path], "b.service"),
        ("c.socket", &[&socket], "c.service"),
        (
            "d.socket",
            &[&other, "Socket Service=z.service"],
            "z.service",
        ),
    ] {
        api.put(unit, lines, "launched").await;
        let why = format!("it triggers {triggered}, which is not loaded");
        api.until_explained(unit, &why).await;
        assert_eq!(current(&api, unit).await, "loaded", "{unit}");
        assert!(machine.is(unit, "inactive"), "{unit}");
        let refused = || {
            let log = fleetd.output();
            log.matches(&format!("unit starting unit={unit}")).count()
        };
        until("its pauses have become long", async || refused() >= 3).await;
        api.put(triggered, &TRUE, "loaded").await;
        api.until_state(unit, "active").await;
        api.until_explained(unit, "and launched there").await;
        assert_eq!(current(&api, unit).await, "launched", "{unit}");
    }
}

#[tokio::test]
async fn an_unmet_assert_is_a_failure_and_a_condition_is_none() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let fleetd = machine.start().await;
    let api = fleetd.api();
    let go = machine.systemd.home().join("go");
    let [assert, condition] =
        ["Assert", "Condition"].map(|kind| format!("Unit {kind}PathExists={}", go.display()));
    api.put("a.service", &[&assert, SLEEP[0]], "launched").await;
    api.put("b.service", &[&condition, SLEEP[0]], "launched")
        .await;
    let manual = ["Unit RefuseManualStart=true", SLEEP[0]];
    api.put("c.service", &manual, "launched").await;
    let missing = ["Unit Requires=missing.service", SLEEP[0]];
    api.put("d.service", &missing, "launched").await;
    let fails = ["Service Type=oneshot", "Service ExecStart=/bin/false"];
    api.put("e.service", &fails, "launched").await;
    for (unit, why) in [
        ("a.service", "an Assert…= option is not met"),
        ("b.service", "and launched there"),
        ("c.service", "may be requested by dependency only"),
        ("d.service", "missing.service not found"),
    ] {
        api.until_explained(unit, why).await;
    }
    // It has run, and fleet does not run it again.
    api.until_state("e.service", "failed").await;
    for (unit, is) in [
        ("a.service", "loaded"),
        ("b.service", "launched"),
        ("c.service", "loaded"),
        ("d.service", "loaded"),
        ("e.service", "launched"),
    ] {
        assert_eq!(current(&api, unit).await, is, "{unit}");
    }
    std::fs::write(&go, "").unwrap();
    api.until_state("a.service", "active").await;
    assert!(machine.is("b.service", "inactive"));
}

#[tokio::test]
async fn slices_are_units_like_others() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let fleetd = machine.start().await;
    let api = fleetd.api();
    let tasks = |unit: &str| machine.systemd.property(unit, "TasksMax");
    api.put("lim.slice", &["Slice TasksMax=77"], "launched")
        .await;
    api.until_state("lim.slice", "active").await;
    assert_eq!(tasks("lim.slice"), "77");
    // systemd makes the other slice for this unit.
    let inside = [SLEEP[0], "Service Slice=used.slice"];
    api.put("a.service", &inside, "launched").await;
    api.until_state("a.service", "active").await;
    let pid = machine.main_pid("a.service");
    assert!(machine.is("used.slice", "active"));
    api.put("used.slice", &["Slice TasksMax=88"], "launched")
        .await;
    api.until_state("used.slice", "active").await;
    assert_eq!(tasks("used.slice"), "88");
    assert_eq!(machine.main_pid("a.service"), pid);
    // The root of all slices is systemd's own.
    api.put("-.slice", &["Slice TasksMax=99"], "loaded").await;
    api.until_explained("-.slice", "from systemd itself").await;
    assert_ne!(tasks("-.slice"), "99");
    for unit in ["lim.slice", "a.service", "used.slice", "-.slice"] {
        api.destroy(unit).await;
    }
    until("nothing is left", async || {
        api.list("state").await.is_empty() && machine.is("lim.slice", "inactive")
    })
    .await;
    assert_ne!(tasks("lim.slice"), "77");
}

#[tokio::test]
async fn the_longest_name_runs_and_a_longer_one_is_refused() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let fleetd = machine.start().await;
    let api = fleetd.api();
    let longest = format!("{}.service", "a".repeat(247));
    let lines = [SLEEP[0], "Install WantedBy=default.target"];
    api.put(&longest, &lines, "launched").await;
    api.until_state(&longest, "active").await;
    assert_ne!(machine.main_pid(&longest), "0");
    let file = machine.systemd.home().join("units").join(&longest);
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    api.destroy(&longest).await;
    until("it is gone", async || {
        api.list("state").await.is_empty() && !file.exists()
    })
    .await;
    let longer = format!("a{longest}");
    let (status, message) = api.try_put(&longer, &lines, "launched").await.unwrap();
    assert_eq!(status, 400);
    assert!(
        message.contains("exceeds maximum length (255)"),
        "{message}"
    );
}

/// Without it, the client that destroys the unit waits and shows no reason.
#[tokio::test]
async fn a_unit_that_systemd_does_not_stop_says_why() {
    let Some(machine) = Machine::new().await else {
        return;
    };
    let fleetd = machine.start().await;
    let api = fleetd.api();
    let manual = ["Unit RefuseManualStop=true", SLEEP[0]];
    api.put("a.service", &manual, "launched").await;
    api.until_state("a.service", "active").await;
    api.destroy("a.service").await;
    until("its state has the error", async || {
        let error = api.state("a.service").await["error"].clone();
        error
            .as_str()
            .is_some_and(|error| error.contains("dependency only"))
    })
    .await;
}
