//! Failures of machines and etcd, and their effects on resources.

use hyperfleet_testkit::until;
use reqwest::Method;
use serde_json::Value;

use super::super::cluster::Placed;
use super::World;
use super::pool::{Pool, invocations};

/// While etcd is away, the report says so and keeps the last known state of the services, which keep running.
pub(super) async fn etcd_is_away(world: &mut World, pool: &Pool) {
    let before = pool.assert_runs(world, 1, 3).await;
    let (first, processes) = (
        invocations(world, &before),
        world.cluster.processes(&before),
    );
    // An adapter that has just started knows of no other state of etcd.
    world.service.restart_adapter().await;
    world.cluster.etcd[0].kill();
    pool.wait_for_condition(
        world,
        "Health",
        ["False", "EtcdUnavailable", "services keep running"],
    )
    .await;
    let available = world.service.rest.reported(&pool.path, "Available").await;
    assert_eq!(available["status"], "True", "{available}");
    assert_eq!(available["reason"], "ReplicasAvailable", "{available}");
    assert!(world.service.rest.is_reconciled(&pool.path).await);
    assert_eq!(invocations(world, &before), first);
    world.cluster.etcd[0].resume().await;
    pool.wait_for_condition(world, "Health", ["True", "Healthy", "an engine leads"])
        .await;
    let after = pool.until_runs(world, 1, 3).await;
    assert_eq!(invocations(world, &after), first);
    assert_eq!(world.cluster.processes(&after), processes);
}

/// The machine of the leading engine dies: until another engine leads, no unit moves, and the report names the
/// lost machine.
pub(super) async fn a_machine_dies(world: &mut World, pool: &Pool) {
    let dying = world.cluster.settled_leader().await;
    let before = move_a_replica_to(world, pool, dying).await;
    let first = invocations(world, &before);
    let id = world.cluster.machines[dying].id.clone();
    let (lost, _) = before.iter().find(|(_, machine)| *machine == id).unwrap();
    world.cluster.endpoint = (dying + 1) % 4;
    world.cluster.machines[dying].kill();
    let words = format!("2 of 3 replicas available: {lost}");
    let names_the_machine = async |available: &Value| {
        let message = available["message"].as_str().unwrap_or_default();
        available["status"] == "False" && message.contains(&words) && message.contains(&id)
    };
    pool.wait_for_report(world, "Available", names_the_machine)
        .await;
    assert!(!world.service.rest.is_reconciled(&pool.path).await);
    let after = pool.until_runs(world, 1, 3).await;
    assert!(after.iter().all(|(_, machine)| *machine != id), "{after:?}");
    let second = invocations(world, &after);
    for (unit, run) in &second {
        assert_eq!(run == &first[unit], unit != lost, "{unit}");
    }
    world.cluster.machines[dying].boot_again().await;
    world.cluster.until_members(&world.cluster.ids()).await;
}

/// Makes a machine the only one on which a replica finds room when its machine is lost. Returns where the
/// replicas run then.
async fn move_a_replica_to(world: &World, pool: &Pool, index: usize) -> Placed {
    let placed = pool.assert_runs(world, 1, 3).await;
    let target = &world.cluster.machines[index].id;
    if placed.iter().any(|(_, id)| id == target) {
        return placed;
    }
    let (unit, id) = placed.first().unwrap();
    let cordon = async |method: Method| {
        let path = format!("/fleet/v1/machines/{id}/cordon");
        let response = world.cluster.api().request(method, &path).await;
        assert!(response.status().is_success(), "{response:?}");
    };
    cordon(Method::PUT).await;
    world.cluster.destroy(&[unit]).await;
    until("the replica runs on the machine", async || {
        let active = world.cluster.reported("active").await;
        active.contains(&(unit.clone(), target.clone()))
    })
    .await;
    cordon(Method::DELETE).await;
    pool.until_runs(world, 1, 3).await
}
