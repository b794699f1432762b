//! What a leading engine does with units and machines.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hyperfleet_fleet::keys::{KeyStore as _, Range};
use hyperfleet_fleet::registry::{KeyChange, Record, WatchScope, WatchUpdate};
use hyperfleet_fleet_model::unit::DesiredState;

use super::{agree, body, world};
use hyperfleet_testkit::{PATIENCE, until};

#[tokio::test]
async fn units_are_placed_evenly_and_withdrawn_when_inactive() {
    let world = world().await;
    world.machine("m1", &[]).await;
    world.machine("m2", &[]).await;
    world.launch("a.service", &[]).await;
    let engine = world.engine("m1");
    world.until_placed(&[("a.service", "m1")]).await;
    world.launch("b.service", &[]).await;
    world.launch("c.service", &["MachineOf=b.service"]).await;
    let all = [
        ("a.service", "m1"),
        ("b.service", "m2"),
        ("c.service", "m2"),
    ];
    world.until_placed(&all).await;
    let place = world.find("a.service").await.placement.unwrap();
    assert_eq!(Some(place.value.epoch), world.leader().await.map(|l| l.1));
    world.set("b.service", DesiredState::Inactive).await;
    // Its follower moves with it, and waits.
    world.until_placed(&[("a.service", "m1")]).await;
    let reason = "waits for b.service, which is on no machine";
    world.until_explained("c.service", reason).await;
    world.set("b.service", DesiredState::Loaded).await;
    world.until_placed(&all).await;
    engine.stop().await;
}

#[tokio::test]
async fn what_was_on_a_machine_that_is_lost_moves() {
    let world = world().await;
    let lost = world.machine("m1", &[]).await;
    let engine = world.engine("m1");
    for name in ["a.service", "b.service", "c.service"] {
        world.launch(name, &[]).await;
    }
    let on = |m| [("a.service", m), ("b.service", m), ("c.service", m)];
    world.until_placed(&on("m1")).await;
    world.machine("m2", &[]).await;
    let before = world.snapshot().await;
    let mut watch = world
        .registry
        .watch(&WatchScope::Everything, before.revision)
        .unwrap();
    assert_eq!(world.moved("a.service").await, None);
    world.registry.deregister_machine(lost).await.unwrap();
    world.until_placed(&on("m2")).await;
    let why = ("m1".to_owned(), "target Machine(m1) went away".to_owned());
    assert_eq!(world.moved("a.service").await, Some(why));
    // At most one transaction each: never unplaced.
    let mut moved = 0;
    while moved < 3 {
        let told = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap();
        let Ok(WatchUpdate::Changes { changes, .. }) = told else {
            panic!("{told:?}");
        };
        for change in changes {
            if let KeyChange::Placement(_, seen) = change {
                assert!(matches!(seen, Record::Present(_)), "{seen:?}");
                moved += 1;
            }
        }
    }
    engine.stop().await;
}

#[tokio::test]
async fn metadata_that_is_set_while_a_machine_runs_counts() {
    let world = world().await;
    world.machine("m1", &[("zone", "east")]).await;
    world.machine("m2", &[("zone", "west")]).await;
    let engine = world.engine("m1");
    world
        .launch("a.service", &["MachineMetadata=zone=east"])
        .await;
    world.until_placed(&[("a.service", "m1")]).await;
    let labels = |zone: Option<&str>| [("zone".to_owned(), zone.map(str::to_owned))].into();
    let registry = &world.registry;
    registry
        .set_labels("m2", &labels(Some("east")))
        .await
        .unwrap();
    registry.set_labels("m1", &labels(None)).await.unwrap();
    world.until_placed(&[("a.service", "m2")]).await;
    let reason = "target Machine(m1) unable to run unit: local Machine metadata insufficient";
    let why = ("m1".to_owned(), reason.to_owned());
    assert_eq!(world.moved("a.service").await, Some(why));
    registry.set_labels("m2", &labels(None)).await.unwrap();
    world.until_placed(&[]).await;
    let reason = "no machine can run it: MachineMetadata=zone=east: 2 machines (m1, m2)";
    world.until_explained("a.service", reason).await;
    engine.stop().await;
}

#[tokio::test]
async fn reasons_follow_what_happens() {
    let world = world().await;
    let said = async |reason: &str| world.until_explained("a.service", reason).await;
    world.launch("a.service", &["MachineID=m9"]).await;
    said("there are no machines").await;
    world.machine("m1", &[]).await;
    said("no machine can run it: MachineID=m9: 1 machine (m1)").await;
    world.machine("m9", &[]).await;
    said("not looked at yet: no engine leads").await;
    let key = format!("{}why/a.service", world.prefix());
    world
        .put("why/a.service", r#"{"v":1,"generation":1}"#)
        .await;
    let engine = world.engine("m1");
    said("placed on m9, which has not reported it yet").await;
    // What an engine of an earlier version has left is gone.
    let left = world.store.list(Range::below(&key), 1, None).await.unwrap();
    assert_eq!(left.entries, []);
    world.set("a.service", DesiredState::Inactive).await;
    said("inactive: it needs no machine").await;
    engine.stop().await;
}

#[tokio::test]
async fn units_with_unreadable_records_stay_where_they_are() {
    let world = world().await;
    let lost = world.machine("m1", &[]).await;
    let engine = world.engine("m1");
    world.launch("a.service", &[]).await;
    world.launch("b.service", &["MachineOf=a.service"]).await;
    world
        .until_placed(&[("a.service", "m1"), ("b.service", "m1")])
        .await;
    world.machine("m2", &[]).await;
    // The unit's record is from a newer program.
    world
        .put("want/a.service", r#"{"v":2,"state":"hibernating"}"#)
        .await;
    world.put("want/c.service", r#"{"v":2}"#).await;
    world.put("machine/m3", r#"{"v":2}"#).await;
    world.launch("x.service", &["Conflicts=a.service"]).await;
    let all = [
        ("a.service", "m1"),
        ("b.service", "m1"),
        ("x.service", "m2"),
    ];
    world.until_placed(&all).await;
    // Not even when its machine is lost; nor its follower.
    world.registry.deregister_machine(lost).await.unwrap();
    world.launch("y.service", &[]).await;
    let all = [
        ("a.service", "m1"),
        ("b.service", "m1"),
        ("x.service", "m2"),
        ("y.service", "m2"),
    ];
    world.until_placed(&all).await;
    // Once it can be read again, it is a normal unit.
    world
        .put(
            "want/a.service",
            r#"{"v":1,"state":"loaded","generation":7}"#,
        )
        .await;
    until("all have left the lost machine", async || {
        let places = world.places().await;
        places.len() == 2 && !places.values().any(|machine| machine == "m1")
    })
    .await;
    let reason = "no machine can run it: Conflicts: 1 machine (m2: x.service)";
    world.until_explained("a.service", reason).await;
    engine.stop().await;
}

#[tokio::test]
async fn an_idle_engine_reacts_within_the_time_that_is_promised() {
    let world = world().await;
    world.machine("m1", &[]).await;
    let engine = world.engine("m1");
    world.launch("first.service", &[]).await;
    world.until_placed(&[("first.service", "m1")]).await;
    let revision = world.snapshot().await.revision;
    let mut watch = world
        .registry
        .watch(&WatchScope::Everything, revision)
        .unwrap();
    let mut took = Vec::new();
    for number in 0..50 {
        let name = format!("u{number}.service");
        let begun = Instant::now();
        world.launch(&name, &[]).await;
        'placed: loop {
            let told = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap();
            let Ok(WatchUpdate::Changes { changes, .. }) = told else {
                panic!("{told:?}");
            };
            for change in changes {
                if matches!(change, KeyChange::Placement(unit, Record::Present(_)) if unit == name)
                {
                    break 'placed;
                }
            }
        }
        took.push(begun.elapsed());
    }
    took.sort();
    let (median, last) = (took[25], took[49]);
    println!("from the request to the placement: median {median:?}, worst of 50 {last:?}");
    // On an idle machine it is a fraction of this.
    assert!(median < Duration::from_millis(200), "{took:?}");
    engine.stop().await;
}

#[tokio::test]
async fn ten_thousand_units_are_placed_without_delaying_others() {
    let world = world().await;
    for number in 0..100 {
        world.machine(&format!("m{number:03}"), &[]).await;
    }
    let lost = world.machine("z", &[("disk", "ssd")]).await;
    world
        .launch("urgent.service", &["MachineMetadata=disk=ssd"])
        .await;
    let engine = world.engine("m1");
    world.until_placed(&[("urgent.service", "z")]).await;
    engine.stop().await;
    let creators = (0..10).map(|tens| {
        let world = &world;
        async move {
            for number in 0..1_000 {
                world
                    .launch(&format!("u{tens}-{number:03}.service"), &[])
                    .await;
            }
        }
    });
    futures_util::future::join_all(creators).await;
    let revision = world.snapshot().await.revision;
    let mut watch = world
        .registry
        .watch(&WatchScope::Everything, revision)
        .unwrap();
    let begun = Instant::now();
    let engine = world.engine("m1");
    let (mut places, mut lost_at, mut moved) = (0, None, None);
    let mut lost = Some(lost);
    while places < 10_000 || moved.is_none() {
        let told = tokio::time::timeout(PATIENCE, watch.next()).await.unwrap();
        let Ok(WatchUpdate::Changes { changes, .. }) = told else {
            panic!("{told:?}");
        };
        for change in changes {
            match change {
                KeyChange::Placement(unit, Record::Present(place)) if unit == "urgent.service" => {
                    assert_eq!(place.value.machine, "y");
                    moved = lost_at.map(|at: Instant| (at.elapsed(), places));
                }
                KeyChange::Placement(_, Record::Present(_)) => places += 1,
                _ => {}
            }
        }
        // In the middle of it a machine is lost.
        if places > 100
            && let Some(lost) = lost.take()
        {
            world.machine("y", &[("disk", "ssd")]).await;
            world.registry.deregister_machine(lost).await.unwrap();
            lost_at = Some(Instant::now());
        }
    }
    let (took, placed_before) = moved.unwrap();
    let all = begun.elapsed();
    println!(
        "10,000 units placed in {all:?}; one moved {took:?} after its machine was lost, before {} of them",
        10_000 - placed_before
    );
    assert!(placed_before < 10_000, "it waited for all others");
    let snapshot = world.snapshot().await;
    agree(&snapshot);
    let mut loads: BTreeMap<&str, usize> = BTreeMap::new();
    for place in snapshot.placements.values() {
        *loads.entry(&place.value.machine).or_default() += 1;
    }
    let (least, most) = (loads.values().min().unwrap(), loads.values().max().unwrap());
    assert!(most - least <= 2, "{loads:?}");
    engine.stop().await;
}

#[tokio::test]
async fn what_changes_between_decision_and_write_is_decided_again() {
    let world = world().await;
    world.machine("m1", &[]).await;
    world.machine("m2", &[]).await;
    let engine = world.engine("m1");
    let registry = &world.registry;
    // Users keep changing units that exclude each other.
    for round in 0..30 {
        for name in ["a.service", "b.service"] {
            let lines = ["Conflicts=?.service"];
            match registry.find_unit(name).await.unwrap() {
                None => _ = world.launch(name, &lines).await,
                Some(unit) if round % 3 == 0 => _ = registry.destroy_unit(&unit).await.unwrap(),
                Some(unit) if round % 3 == 1 => {
                    let body = body(&lines[..usize::from(round % 2 == 0)]);
                    let replaced =
                        registry.replace_unit(&unit, &body, DesiredState::Launched, None);
                    replaced.await.unwrap();
                }
                Some(unit) => {
                    let state = DesiredState::ALL[round % 2];
                    registry.set_desired_state(&unit, state).await.unwrap();
                }
            }
        }
        agree(&world.snapshot().await);
    }
    for name in ["a.service", "b.service"] {
        if registry.find_unit(name).await.unwrap().is_none() {
            world.launch(name, &[]).await;
        }
        world.set(name, DesiredState::Launched).await;
    }
    until("both are placed", async || world.places().await.len() == 2).await;
    engine.stop().await;
}
