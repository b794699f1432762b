//! The tasks of a running adapter.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hyperfleet_adapter::{Kind, Runner, Settings as RunnerSettings};
use hyperfleet_fleet::Fleet;
use hyperfleet_fleet::keys::KeyStore;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::index::Index;
use crate::lease::LeaseKeeper;
use crate::reconcile::FleetAdapter;
use crate::running::Running;

/// How often etcd, engine and machines are checked.
const CONDITION_INTERVAL: Duration = Duration::from_secs(1);
/// Equal checks in a row before all resources are reported again: a short gap between leaders is ignored.
const CONDITION_CHECKS: u32 = 5;

/// Runs an adapter until `stop`. One of several replicas works, the others stand by.
pub async fn run<S: KeyStore>(running: Running<S>, stop: impl Future<Output = ()>) {
    let settings = running.settings.clone();
    let (fleet, api) = (running.fleet.clone(), running.api.clone());
    let keeper = LeaseKeeper::new(
        running.store.clone(),
        format!("{}lease", running.keys),
        running.instance.clone(),
        u32::try_from(settings.lease_time.as_secs()).unwrap_or(u32::MAX),
    );
    let (leads, tenure) = (keeper.leads(), keeper.tenure());
    let (index, woken) = Index::new(settings.name.clone());
    let index = Arc::new(index);
    let runner = RunnerSettings {
        name: settings.name,
        kinds: running.kinds.iter().map(Kind::new).collect(),
        workers: settings.workers,
        poll_interval: settings.poll_interval,
        sweep_interval: settings.sweep_interval,
        report_interval: settings.report_interval,
        grace: running.grace,
    };
    let adapter = Arc::new(FleetAdapter::new(running, Arc::clone(&index), tenure));
    let mut beside = JoinSet::new();
    let (followed, followed_fleet) = (Arc::clone(&index), fleet.clone());
    beside.spawn(async move { followed.follow(&followed_fleet).await });
    let (orphaned, may_remove) = (Arc::clone(&adapter), leads.clone());
    beside.spawn(async move { orphaned.run_orphan_removal(may_remove).await });
    beside.spawn(async move { report_changes(&fleet, &index).await });
    let (release, released) = oneshot::channel::<()>();
    let kept = tokio::spawn(keeper.run(async move {
        let _ = released.await;
    }));
    let runner = Runner::with_lease(api, runner, adapter, leads);
    runner.with_wakes(woken).run(stop).await;
    // Last, so that no other replica works beside this one.
    drop(release);
    let _ = kept.await;
}

/// Reports all resources again when etcd, the engine or all machines disappear or return.
async fn report_changes<S: KeyStore>(fleet: &Fleet<S>, index: &Index) {
    // Nothing is reported of fleet before; from then on it counts as reported.
    index.wait_until_read().await;
    let readiness = fleet.readiness();
    let mut reported = (true, readiness.has_leader, readiness.machines > 0);
    let (mut last, mut checks) = (reported, 0);
    loop {
        let readiness = fleet.readiness();
        let now = (
            fleet.is_connected(),
            readiness.has_leader,
            readiness.machines > 0,
        );
        checks = if now == last { checks + 1 } else { 1 };
        last = now;
        if checks >= CONDITION_CHECKS && now != reported {
            index.wake_all();
            reported = now;
        }
        sleep(CONDITION_INTERVAL).await;
    }
}
