//! Leadership when processes stop, die, or freeze.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::registry::{MachineRecord, Registered, Registry, Snapshot};
use rustix::process::Signal;

use super::program::{Fleetd, Place};
use hyperfleet_testkit::until;

/// A lease of 100 seconds, longer than any wait.
const LONG: (&str, &str) = ("engine_reconcile_interval", "20");
/// A lease of two seconds.
const SHORT: (&str, &str) = ("engine_reconcile_interval", "400ms");

/// Two fleetd with one machine for units. The first leads.
async fn two(place: &Place, interval: (&str, &str)) -> (Fleetd, Fleetd, Registry<EtcdKeys>) {
    let registry = place.registry().await;
    let machine = MachineRecord {
        address: String::new(),
        ip: "10.0.0.1".into(),
        metadata: BTreeMap::new(),
        version: "1".into(),
        halted: false,
        capacity: BTreeMap::new(),
    };
    let registered = registry.register_machine("far", &machine, 600).await;
    assert!(matches!(registered, Ok(Registered::As(_))));
    let first = place.start_as("m1", &[interval]);
    first.until_serving().await;
    until_led(place, &registry, "m1").await;
    let second = place.start_as("m2", &[interval]);
    second.until_serving().await;
    (first, second, registry)
}

async fn until_led(place: &Place, registry: &Registry<EtcdKeys>, by: &str) {
    until(&format!("{by} leads"), async || {
        place.leader(registry).await.as_deref() == Some(by)
    })
    .await;
}

/// Launches a unit and waits until it is placed.
async fn launch(fleetd: &Fleetd, registry: &Registry<EtcdKeys>, unit: &str) -> Snapshot {
    fleetd.launch(unit).await;
    let mut seen = Snapshot::default();
    until(&format!("{unit} is placed"), async || {
        seen = registry.snapshot().await.unwrap();
        seen.placements.contains_key(unit)
    })
    .await;
    seen
}

#[tokio::test]
async fn a_graceful_stop_hands_over_at_once() {
    let place = Place::new().await;
    let (mut first, mut second, registry) = two(&place, LONG).await;
    launch(&second, &registry, "a.service").await;
    let since = Instant::now();
    first.stop().await;
    until_led(&place, &registry, "m2").await;
    println!(
        "handed over after {:?}, the process ended included",
        since.elapsed()
    );
    let seen = launch(&second, &registry, "b.service").await;
    assert!(seen.placements["a.service"].value.epoch < seen.placements["b.service"].value.epoch);
    second.stop().await;
    let seen = registry.snapshot().await.unwrap();
    assert!(seen.leader.is_none(), "the last leader has resigned");
}

#[tokio::test]
async fn one_that_is_killed_is_followed_within_its_lease() {
    let place = Place::new().await;
    let (mut first, mut second, registry) = two(&place, SHORT).await;
    let since = Instant::now();
    first.signal(Signal::KILL);
    first.ended().await;
    until_led(&place, &registry, "m2").await;
    println!("followed after {:?}, with a lease of 2 s", since.elapsed());
    launch(&second, &registry, "a.service").await;
    second.stop().await;
}

#[tokio::test]
async fn a_leader_frozen_beyond_its_lease_changes_nothing() {
    let place = Place::new().await;
    let (mut first, mut second, registry) = two(&place, SHORT).await;
    let before = launch(&second, &registry, "a.service").await;
    // A decision for the frozen engine, which does not know that it was deposed.
    first.signal(Signal::STOP);
    second.launch("b.service").await;
    until_led(&place, &registry, "m2").await;
    let term = registry.snapshot().await.unwrap().leader.unwrap().created;
    launch(&second, &registry, "c.service").await;
    until("b.service is placed", async || {
        registry
            .snapshot()
            .await
            .unwrap()
            .placements
            .contains_key("b.service")
    })
    .await;
    let frozen = registry.snapshot().await.unwrap();
    first.signal(Signal::CONT);
    first.until_output("leadership ended").await;
    first.until_serving().await;
    // It answers with the other one's decisions, and decides nothing.
    let after = launch(&first, &registry, "d.service").await;
    assert_eq!(after.leader, frozen.leader);
    for unit in ["b.service", "c.service"] {
        assert_eq!(after.placements[unit], frozen.placements[unit], "{unit}");
    }
    assert_eq!(
        after.placements["a.service"],
        before.placements["a.service"]
    );
    for unit in ["b.service", "c.service", "d.service"] {
        assert_eq!(after.placements[unit].value.epoch, term, "{unit}");
    }
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn one_without_an_engine_serves_and_leads_never() {
    let place = Place::new().await;
    let registry = place.registry().await;
    let mut fleetd = place.start_as("m1", &[("disable_engine", "true")]);
    fleetd.until_serving().await;
    fleetd.launch("a.service").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let seen = registry.snapshot().await.unwrap();
    assert!(seen.leader.is_none() && seen.engine_version.is_none());
    fleetd.stop().await;
}
