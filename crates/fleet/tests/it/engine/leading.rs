//! The gate that keeps older engines from leading.

use std::time::Duration;

use hyperfleet_fleet::engine::VERSION;
use hyperfleet_fleet::registry::{Acquired, EngineGate, Leader};

use super::world;
use hyperfleet_testkit::until;

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
