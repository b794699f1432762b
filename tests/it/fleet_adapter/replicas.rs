//! Several replicas of the adapter.

use serde_json::json;

use super::{World, start};
use crate::support::until;

#[tokio::test]
async fn of_two_replicas_one_works_and_the_other_takes_over() {
    let world = World::start(1).await;
    let first = start(world.running("replica-1"));
    let (_, pool) = world.pool_of(1).await;
    world.until_reconciled(&pool).await;
    let second = start(world.running("replica-2"));
    let instance = async || {
        let statuses = world.api.get(&format!("{pool}/statuses")).await.body;
        statuses["items"][0]["data"]["adapter_instance"].clone()
    };
    world
        .api
        .patch(&pool, json!({"spec": {"replicas": 1, "version": "2"}}))
        .await;
    world.until_reconciled(&pool).await;
    assert_eq!(instance().await, "replica-1");
    first.kill().await;
    world
        .api
        .patch(&pool, json!({"spec": {"replicas": 1, "version": "3"}}))
        .await;
    until("the other replica has reported", async || {
        instance().await == "replica-2"
    })
    .await;
    world.until_reconciled(&pool).await;
    second.stop().await;
}
