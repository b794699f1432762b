//! Leadership, and how it passes from one engine to another.

use std::time::{Duration, Instant};

use hyperfleet_fleet::engine::Settings;
use hyperfleet_fleet::engine::VERSION;
use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::registry::{
    Acquired, EngineGate, Error, Leader, MachineRecord, Registered, Registry,
};
use hyperfleet_fleet_model::unit::DesiredState;
use rustix::process::Signal;

use super::{World, world};
use hyperfleet_testkit::{TestEtcd, etcd_settings, until};

#[tokio::test]
async fn of_two_engines_one_decides() {
    let world = world().await;
    world.machine("m1", &[]).await;
    let first = world.engine("m1");
    world.until_led_by("m1").await;
    let second = world.engine("m2");
    for number in 0..20 {
        world.launch(&format!("u{number}.service"), &[]).await;
    }
    until("all are placed", async || world.places().await.len() == 20).await;
    let (leader, epoch) = world.leader().await.unwrap();
    assert_eq!(leader, "m1");
    let places = world.snapshot().await.placements;
    assert!(places.values().all(|place| place.value.epoch == epoch));
    second.stop().await;
    assert_eq!(world.leader().await, Some((leader, epoch)));
    first.stop().await;
    assert_eq!(world.leader().await, None);
}

#[tokio::test]
async fn after_a_clean_stop_another_leads_at_once() {
    let world = world().await;
    world.machine("m1", &[]).await;
    let first = world.engine("m1");
    world.until_led_by("m1").await;
    let second = world.engine("m2");
    // Its lease would keep others away for a minute.
    let begun = Instant::now();
    first.stop().await;
    world.until_led_by("m2").await;
    let took = begun.elapsed();
    println!("led by another {took:?} after a clean stop");
    assert!(took < Duration::from_secs(20), "{took:?}");
    world.launch("a.service", &[]).await;
    world.until_placed(&[("a.service", "m1")]).await;
    second.stop().await;
}

#[tokio::test]
async fn when_a_leader_is_lost_another_leads_within_its_lease() {
    let world = world().await;
    world.machine("m1", &[]).await;
    let first = world.engine_with("m1", 3);
    world.until_led_by("m1").await;
    let second = world.engine_with("m2", 3);
    world.launch("a.service", &[]).await;
    world.until_placed(&[("a.service", "m1")]).await;
    // Not while it lives, however long that is.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(world.leader().await.unwrap().0, "m1");
    let begun = Instant::now();
    drop(first);
    world.launch("b.service", &[]).await;
    world.until_led_by("m2").await;
    let took = begun.elapsed();
    println!("led by another {took:?} after the loss of a leader with a lease of 3 s");
    world
        .until_placed(&[("a.service", "m1"), ("b.service", "m1")])
        .await;
    second.stop().await;
}

#[tokio::test]
async fn behind_a_newer_engine_an_older_one_stands_by() {
    let world = world().await;
    world.machine("m1", &[]).await;
    let engine = world.engine("m1");
    world.until_led_by("m1").await;
    world.launch("a.service", &[]).await;
    world.until_placed(&[("a.service", "m1")]).await;
    // A newer engine wants to lead: the older one ends its term by itself.
    assert_eq!(
        world.registry.pass_gate(VERSION + 1).await.unwrap(),
        EngineGate::Open
    );
    until("nobody leads", async || world.leader().await.is_none()).await;
    world.launch("b.service", &[]).await;
    let newer = Leader {
        id: "m9".into(),
        version: VERSION + 1,
    };
    let acquired = world.registry.acquire_leadership(&newer, 60).await.unwrap();
    let Acquired::Leading(leading) = acquired else {
        panic!("{acquired:?}");
    };
    world.registry.resign(leading).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(world.leader().await, None, "the gate is closed");
    // Until an operator who returns to the older version resets it.
    let version = format!(r#"{{"v":1,"version":{VERSION}}}"#);
    world.put("engine/version", &version).await;
    world.until_led_by("m1").await;
    world
        .until_placed(&[("a.service", "m1"), ("b.service", "m1")])
        .await;
    engine.stop().await;
}

#[tokio::test]
async fn an_engine_goes_on_when_etcd_is_killed_and_comes_back() {
    let mut server = TestEtcd::start().await;
    let mut settings = etcd_settings(&server.url());
    settings.request_timeout = Duration::from_secs(2);
    let world = World::new(EtcdKeys::connect(settings).await.unwrap());
    world.machine("m1", &[]).await;
    let first = world.engine_with("m1", 5);
    let second = world.engine_with("m2", 5);
    for number in 0..200 {
        world.launch(&format!("u{number}.service"), &[]).await;
        if number == 100 {
            until("some are placed", async || !world.places().await.is_empty()).await;
        }
    }
    server.kill();
    until("requests fail", async || {
        world.registry.snapshot().await.is_err()
    })
    .await;
    server.resume().await;
    until("etcd answers", async || {
        world.registry.snapshot().await.is_ok()
    })
    .await;
    until("all are placed", async || {
        let snapshot = world.registry.snapshot().await;
        snapshot.is_ok_and(|snapshot| snapshot.placements.len() == 200)
    })
    .await;
    world.launch("late.service", &[]).await;
    world.set("u1.service", DesiredState::Inactive).await;
    until("it reacts as before", async || {
        let places = world.places().await;
        places.contains_key("late.service") && !places.contains_key("u1.service")
    })
    .await;
    super::agree(&world.snapshot().await);
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn where_etcd_stood_still_units_stay_on_machines_that_come_back() {
    let server = TestEtcd::start().await;
    let mut settings = etcd_settings(&server.url());
    settings.request_timeout = Duration::from_secs(1);
    let world = World::new(EtcdKeys::connect(settings).await.unwrap());
    let agents = ["m1", "m2"].map(|id| {
        let registry = world.registry.clone();
        tokio::spawn(async move { agent(registry, id).await })
    });
    let engine = world.engine_of(Settings {
        machine_lease: Duration::from_secs(10),
        ..super::settings("m1", 3)
    });
    for name in ["a.service", "b.service", "c.service"] {
        world.launch(name, &[]).await;
    }
    until("all are placed", async || world.places().await.len() == 3).await;
    let before = world.snapshot().await;
    server.signal(Signal::STOP);
    // Longer than any lease.
    tokio::time::sleep(Duration::from_secs(6)).await;
    server.signal(Signal::CONT);
    until("the machines are there again", async || {
        let now = world.registry.snapshot().await;
        now.is_ok_and(|now| {
            let mut machines = now.machines.iter();
            now.machines.len() == 2
                && machines.all(|(id, m)| m.created > before.machines[id].created)
        })
    })
    .await;
    world.until_led_by("m1").await;
    world.launch("late.service", &[]).await;
    until("it decides again", async || {
        world.places().await.contains_key("late.service")
    })
    .await;
    let mut after = world.snapshot().await.placements;
    after.remove("late.service");
    assert_eq!(after, before.placements, "nothing was taken away");
    // A machine that does not come back is lost all the same.
    let [_, lost] = agents;
    lost.abort();
    until("all have left it", async || {
        world.places().await.values().all(|machine| machine == "m1")
    })
    .await;
    engine.stop().await;
}

/// Keeps a machine registered, as its agent would.
async fn agent(registry: Registry<EtcdKeys>, id: &str) {
    loop {
        let registered = registry
            .register_machine(id, &MachineRecord::default(), 3)
            .await;
        if let Ok(Registered::As(registration)) = registered {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if let Err(Error::Unregistered) = registry.renew_machine(&registration).await {
                    break;
                }
            }
        } else {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}
