//! Changes that would remove most of what there is wait for an operator.

use hyperfleet_fleet_adapter::approval;
use serde_json::json;

use super::World;
use crate::support::until;

#[tokio::test]
async fn a_change_that_would_remove_most_units_waits_for_an_operator() {
    let world = World::start(4).await;
    let adapter = world.adapter();
    let cluster = world.api.make("/clusters", "Cluster", "web").await;
    let mut pools = Vec::new();
    for name in ["a", "b", "c", "d"] {
        pools.push(
            world
                .pool(&cluster, name, json!({"replicas": 4, "version": "1"}))
                .await,
        );
    }
    for pool in &pools {
        world.until_reconciled(pool).await;
    }
    assert_eq!(world.services().len(), 16);
    world.api.delete(&cluster).await;
    for pool in &pools {
        let message = world
            .until_reported(pool, "Finalized", "False", "RemovalHeld")
            .await;
        assert!(
            message.starts_with("16 units of 16 would be removed"),
            "{message}"
        );
        assert!(message.contains(approval::COMMAND), "{message}");
    }
    assert_eq!(world.services().len(), 16, "not one of them was stopped");
    approval::approve(&world.keys, &world.keys_of_adapter())
        .await
        .unwrap();
    for path in pools.iter().chain([&cluster]) {
        world.until_gone(path).await;
    }
    until("no unit is left", async || world.units().await.is_empty()).await;
    adapter.stop().await;
}
