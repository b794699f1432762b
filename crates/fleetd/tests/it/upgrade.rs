//! The release before and this one on one etcd: each reads what the other wrote, and leads when the other ends.
//! `make test-upgrade` builds the release before (`scripts/previous-release`).

use std::path::{Path, PathBuf};

use hyperfleet_fleet::engine::VERSION;
use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::registry::Registry;
use serde_json::Value;

use super::program::{CURRENT, Fleetd, Place};
use hyperfleet_testkit::{SimulatedMachine, until};

/// The program of the release before.
fn previous() -> Option<PathBuf> {
    let programs = std::env::var_os("PREVIOUS_RELEASE").map(PathBuf::from);
    if programs.is_none() {
        println!("SKIPPED: PREVIOUS_RELEASE names no folder of programs: make test-upgrade");
    }
    Some(programs?.join("fleetd"))
}

async fn until_led(place: &Place, registry: &Registry<EtcdKeys>, by: &str) {
    until(&format!("{by} leads"), async || {
        place.leader(registry).await.as_deref() == Some(by)
    })
    .await;
}

/// Puts a unit by one of them, and waits until both know that it runs.
async fn runs(name: &str, by: &Fleetd, both: [&Fleetd; 2], machine: &SimulatedMachine) {
    by.launch(name).await;
    until(&format!("{name} runs"), async || {
        machine.running().contains(name)
    })
    .await;
    let is_launched = |units: &[Value]| {
        let unit = units.iter().find(|unit| unit["name"] == name);
        unit.is_some_and(|unit| unit["currentState"] == "launched" && unit["machineID"] == "far")
    };
    until(&format!("both say the same of {name}"), async || {
        let one = both[0].api().list("units").await;
        let other = both[1].api().list("units").await;
        one == other && is_launched(&one)
    })
    .await;
}

#[tokio::test]
async fn releases_take_turns_on_one_etcd() {
    let Some(previous) = previous() else { return };
    let place = Place::new().await;
    let registry = place.registry().await;
    // An agent of this release: its orders come from either engine.
    let machine = SimulatedMachine::start(place.registry().await, "far", 60);

    let mut older = place.start_of(&previous, "m1");
    until_led(&place, &registry, "m1").await;
    let version = registry.snapshot().await.unwrap().engine_version;
    let version = version
        .expect("the version of an engine that leads")
        .value
        .version;
    let mut newer = place.start_of(Path::new(CURRENT), "m2");
    newer.until_serving().await;
    older.until_serving().await;
    runs("a.service", &older, [&older, &newer], &machine).await;
    runs("b.service", &newer, [&older, &newer], &machine).await;

    older.stop().await;
    until_led(&place, &registry, "m2").await;
    older = place.start_of(&previous, "m1");
    older.until_serving().await;
    runs("c.service", &older, [&older, &newer], &machine).await;
    older.api().destroy("a.service").await;
    until("a.service is gone", async || {
        !machine.running().contains("a.service")
    })
    .await;

    // The way back. An older engine stands by once a newer one has led.
    newer.stop().await;
    if version == VERSION {
        until_led(&place, &registry, "m1").await;
        runs("d.service", &older, [&older, &older], &machine).await;
    }
    for unit in ["b.service", "c.service"] {
        assert!(machine.running().contains(unit), "{unit}");
        assert!(!machine.stopped().iter().any(|name| name == unit), "{unit}");
    }
    older.stop().await;
}
