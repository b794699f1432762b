//! etcd goes away and comes back.

use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_testkit::{TestEtcd, etcd_settings};
use serde_json::json;

use super::World;

#[tokio::test]
async fn without_etcd_health_falls_and_what_is_available_stays_so() {
    let mut etcd = TestEtcd::start().await;
    let keys = EtcdKeys::prepare(etcd_settings(&etcd.url())).unwrap();
    let world = World::start_on(keys, 2).await;
    let adapter = world.adapter();
    let (_, pool) = world.pool_of(2).await;
    world.until_reconciled(&pool).await;
    etcd.kill();
    world
        .until_reported(&pool, "Health", "False", "EtcdUnavailable")
        .await;
    world
        .until_reported(&pool, "Available", "True", "ReplicasAvailable")
        .await;
    assert_eq!(world.services().len(), 2);
    // A change waits, and says so.
    world
        .api
        .patch(&pool, json!({"spec": {"replicas": 2, "version": "2"}}))
        .await;
    world
        .until_reported(&pool, "Available", "False", "EtcdUnavailable")
        .await;
    etcd.resume().await;
    world
        .until_reported(&pool, "Health", "True", "Healthy")
        .await;
    world.until_reconciled(&pool).await;
    assert_eq!(world.services().len(), 2);
    adapter.stop().await;
}
