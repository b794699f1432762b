//! From specs to services, and back.

use serde_json::json;

use super::World;
use crate::support::until;

#[tokio::test]
async fn a_node_pool_becomes_services_that_roll_and_go_with_it() {
    let world = World::start(3).await;
    let adapter = world.adapter();
    let cluster = world.api.make("/clusters", "Cluster", "web").await;
    world.until_reconciled(&cluster).await;
    world
        .until_reported(&cluster, "Available", "True", "NotApplicable")
        .await;
    let pool = world
        .pool(&cluster, "workers", json!({"replicas": 3, "version": "1"}))
        .await;
    world.until_reconciled(&pool).await;
    assert_eq!(world.services().len(), 3);
    for machine in &world.machines {
        assert_eq!(
            machine.running().len(),
            1,
            "the units conflict with each other"
        );
    }
    let statuses = world.api.get(&format!("{pool}/statuses")).await.body;
    let units = &statuses["items"][0]["data"]["units"];
    assert_eq!(units.as_array().unwrap().len(), 3, "{statuses}");
    assert_eq!(units[0]["available"], true);

    let changed = world
        .api
        .patch(&pool, json!({"spec": {"replicas": 3, "version": "2"}}))
        .await;
    assert_eq!(changed.status, 200);
    let has_new_file = |file: &String| file.contains("VERSION=2");
    until("all services run the new file", async || {
        let files = world.machines.iter().map(|machine| {
            machine
                .systemd
                .with(|state| state.running.values().cloned().collect::<Vec<_>>())
        });
        let files: Vec<String> = files.flatten().collect();
        assert!(files.len() >= 2, "one at a time may be down");
        files.len() == 3 && files.iter().all(has_new_file)
    })
    .await;
    world.until_reconciled(&pool).await;

    world
        .api
        .patch(&pool, json!({"spec": {"replicas": 1, "version": "2"}}))
        .await;
    until("the highest replicas stop", async || {
        let services = world.services();
        services.len() == 1 && services.iter().all(|unit| unit.contains("@1."))
    })
    .await;
    world.until_reconciled(&pool).await;
    world.api.delete(&cluster).await;
    world.until_gone(&pool).await;
    world.until_gone(&cluster).await;
    assert_eq!(world.services().len(), 0);
    assert_eq!(world.units().await, [""; 0]);
    adapter.stop().await;
}

#[tokio::test]
async fn an_unplaced_replica_says_why_and_a_lost_one_moves() {
    let mut world = World::start(2).await;
    let adapter = world.adapter();
    let (_, pool) = world.pool_of(3).await;
    let message = world
        .until_reported(&pool, "Available", "False", "NotPlaced")
        .await;
    assert!(
        message.starts_with("2 of 3 replicas available: np-workers-"),
        "{message}"
    );
    assert!(
        message.contains("onflict"),
        "it is the engine's reason: {message}"
    );
    world.add_machine(3);
    world.until_reconciled(&pool).await;
    world.add_machine(4);
    drop(world.machines.remove(0));
    until("the adapter has noticed", async || {
        world.reported(&pool, "Available").await.0 == "False"
    })
    .await;
    world.until_reconciled(&pool).await;
    assert_eq!(world.services().len(), 3);
    adapter.stop().await;
}

#[tokio::test]
async fn resources_without_units_and_failed_templates_say_so() {
    let world = World::start(1).await;
    let adapter = world.adapter();
    let cluster = world.api.make("/clusters", "Cluster", "web").await;
    let spec = json!({"runtime": "kubernetes"});
    let pool = world.pool(&cluster, "elsewhere", spec).await;
    world.until_reconciled(&pool).await;
    for kind in ["Applied", "Available", "Health"] {
        world
            .until_reported(&pool, kind, "True", "NotApplicable")
            .await;
    }
    // It becomes one of ours, and no longer is.
    let ours = json!({"spec": {"runtime": "systemd", "replicas": 1, "version": "1"}});
    world.api.patch(&pool, ours).await;
    until("its service runs", async || world.services().len() == 1).await;
    world.until_reconciled(&pool).await;
    world
        .api
        .patch(&pool, json!({"spec": {"runtime": "kubernetes"}}))
        .await;
    until("its service has stopped", async || {
        world.services().is_empty()
    })
    .await;
    world
        .until_reported(&pool, "Available", "True", "NotApplicable")
        .await;

    let hostile =
        json!({"runtime": "systemd", "replicas": 1, "version": "1\nExecStartPost=/bin/evil"});
    let broken = world.pool(&cluster, "broken", hostile).await;
    let message = world
        .until_reported(&broken, "Applied", "False", "TemplateFailed")
        .await;
    assert!(
        message.contains("${resource.spec.version}: the value has the control character"),
        "{message}"
    );
    world.api.delete(&cluster).await;
    for path in [&pool, &broken, &cluster] {
        world.until_gone(path).await;
    }
    adapter.stop().await;
}
