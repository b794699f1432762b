//! Whose a unit is: what others have made stays, what the adapter has made comes back and is found again.

use hyperfleet_fleet::SetUnit;
use hyperfleet_fleet_model::unit::{DesiredState, UnitOption};
use serde_json::json;

use super::World;
use crate::support::until;

#[tokio::test]
async fn a_unit_of_somebody_else_is_never_touched() {
    let world = World::start(1).await;
    let (cluster, pool) = world.pool_of(1).await;
    let id = pool.rsplit('/').next().unwrap();
    let name = format!("np-workers-{}@1.service", &id[id.len() - 8..]);
    let theirs = SetUnit {
        options: Some(vec![UnitOption::new("Service", "ExecStart", "/theirs")]),
        desired: Some(DesiredState::Launched),
    };
    world.fleet.set_unit(&name, theirs).await.unwrap();
    let adapter = world.adapter();
    let message = world
        .until_reported(&pool, "Applied", "False", "NameTaken")
        .await;
    assert!(message.starts_with(&name), "{message}");
    world
        .until_reported(&pool, "Available", "False", "NotStored")
        .await;
    world.api.delete(&cluster).await;
    world.until_gone(&pool).await;
    let unit = world.fleet.find_unit(&name).await.unwrap();
    assert_eq!(unit.options[0].value, "/theirs");
    assert_eq!(unit.desired.as_str(), "launched");
    adapter.stop().await;
}

#[tokio::test]
async fn what_was_destroyed_or_stopped_by_hand_comes_back() {
    let world = World::start(2).await;
    let adapter = world.adapter();
    let (_, pool) = world.pool_of(2).await;
    world.until_reconciled(&pool).await;
    let units = world.units().await;
    world.fleet.destroy_unit(&units[0]).await.unwrap();
    let stopped = SetUnit {
        desired: Some(DesiredState::Inactive),
        ..SetUnit::default()
    };
    world.fleet.set_unit(&units[1], stopped).await.unwrap();
    until("both services run again", async || {
        let mut is_stopped = false;
        for machine in &world.machines {
            is_stopped |= !machine.stopped().is_empty();
        }
        is_stopped && world.services().len() == 2 && world.units().await == units
    })
    .await;
    world.until_reconciled(&pool).await;
    adapter.stop().await;
}

#[tokio::test]
async fn an_adapter_killed_repeatedly_converges() {
    let world = World::start(3).await;
    let (cluster, pool) = world.pool_of(3).await;
    kill_until(&world, async || world.services().len() == 3).await;
    let adapter = world.adapter();
    world.until_reconciled(&pool).await;
    let units = world.fleet.list_units(None).await.unwrap().items;
    adapter.kill().await;
    // Another one finds the units, and leaves them as they are.
    let adapter = world.adapter();
    world
        .api
        .patch(&pool, json!({"labels": {"seen": "yes"}}))
        .await;
    world.until_reconciled(&pool).await;
    let after = world.fleet.list_units(None).await.unwrap().items;
    assert_eq!(after, units);
    adapter.kill().await;
    world
        .api
        .patch(&pool, json!({"spec": {"replicas": 3, "version": "2"}}))
        .await;
    kill_until(&world, async || {
        let files = world.machines.iter().map(|machine| {
            machine
                .systemd
                .with(|state| state.running.values().cloned().collect::<Vec<_>>())
        });
        let files: Vec<String> = files.flatten().collect();
        assert!(files.len() >= 2, "one at a time may be down");
        files.len() == 3 && files.iter().all(|file| file.contains("VERSION=2"))
    })
    .await;
    world.api.delete(&cluster).await;
    kill_until(&world, async || world.units().await.is_empty()).await;
    let adapter = world.adapter();
    world.until_gone(&cluster).await;
    assert_eq!(world.services().len(), 0);
    adapter.stop().await;
}

/// Kills adapters shortly after they began to work, a bit later each time, until something holds.
async fn kill_until(world: &World, holds: impl AsyncFn() -> bool) {
    for tries in 1..200 {
        let adapter = world.adapter();
        let lives = std::time::Duration::from_millis(20 * tries);
        // What a killed process has not done is the point: there is no event to wait for.
        tokio::time::sleep(lives).await;
        adapter.kill().await;
        // Its lease runs out, so that the next one works.
        release_lease(world).await;
        if holds().await {
            return;
        }
    }
    panic!("it does not come to an end");
}

async fn release_lease(world: &World) {
    use hyperfleet_fleet::keys::{KeyOperation, KeyStore as _, Transaction};
    let delete = KeyOperation::Delete(format!("{}lease", world.keys_of_adapter()));
    let deleted = world.keys.commit(Transaction {
        then: vec![delete],
        ..Transaction::default()
    });
    deleted.await.unwrap();
}

#[tokio::test]
async fn units_of_a_force_deleted_resource_are_removed() {
    let world = World::start(1).await;
    let adapter = world.adapter();
    let (_, pool) = world.pool_of(1).await;
    world.until_reconciled(&pool).await;
    adapter.stop().await;
    world.api.delete(&pool).await;
    let forced = world
        .api
        .post(&format!("{pool}/force-delete"), json!({"reason": "tested"}))
        .await;
    assert_eq!(forced.status, 204, "{:?}", forced.body);
    let began = std::time::Instant::now();
    let adapter = world.adapter();
    until("its unit is gone", async || world.units().await.is_empty()).await;
    assert!(
        began.elapsed() >= std::time::Duration::from_secs(2),
        "it had its grace period"
    );
    assert_eq!(world.services().len(), 0);
    adapter.stop().await;
}
