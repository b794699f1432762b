//! Resources of the REST API that become services on machines: service, fleet adapter, etcd and machines, all
//! of them real.
//!
//! ```text
//! test ─▶ hyperfleet-api serve ─▶ PostgreSQL
//!               ▲
//!         hyperfleet-api fleet-adapter run ─▶ etcd ◀─ fleetd on four machines ─▶ systemd
//! ```
//!
//! The stories of a test share its machines. Each creates a cluster with one node pool, whose services run on three
//! machines, and leaves nothing behind.

mod changes;
mod crashes;
mod failures;
mod pool;
mod rest;
mod service;

use std::time::Instant;

use super::cluster::Cluster;
use pool::Pool;
use service::Service;

struct World {
    cluster: Cluster,
    service: Service,
}

/// Each test has machines of its own, so that the three go on at a time.
#[tokio::test]
async fn resources_of_the_api_become_services_on_machines() {
    let Some(mut world) = World::start().await else {
        return;
    };
    world
        .play("created, changed, deleted", changes::create_change_delete)
        .await;
    world
        .play(
            "more replicas than machines",
            changes::more_replicas_than_machines,
        )
        .await;
    world
        .play(
            "units of others and units destroyed by hand",
            changes::units_by_hand,
        )
        .await;
}

#[tokio::test]
async fn an_adapter_that_crashes_converges_and_leaves_nothing() {
    let Some(mut world) = World::start().await else {
        return;
    };
    world
        .play("the adapter crashes", crashes::at_every_step)
        .await;
}

#[tokio::test]
async fn resources_are_reconciled_after_failures() {
    let Some(mut world) = World::start().await else {
        return;
    };
    world.play("etcd is away", failures::etcd_is_away).await;
    world.play("a machine dies", failures::a_machine_dies).await;
}

impl World {
    /// `None` where it cannot run; the test is skipped then, with a message.
    async fn start() -> Option<Self> {
        let program = service::program()?;
        let cluster = Cluster::boot(4, &[]).await?;
        let service = Service::start(program, &cluster.etcd[0].url()).await;
        Some(Self { cluster, service })
    }

    /// Plays a story on its own pool of three replicas, then deletes the pool. Nothing of it may remain.
    async fn play(&mut self, name: &str, story: impl AsyncFnOnce(&mut Self, &Pool)) {
        let since = Instant::now();
        println!("story: {name}");
        let pool = Pool::create(self, 3).await;
        story(self, &pool).await;
        pool.delete(self).await;
        self.cluster.until_empty().await;
        println!("story: {name}: {:?}", since.elapsed());
    }
}
