//! Times of many units.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream;
use hyperfleet_testkit::until;

use super::cluster::{Cluster, busy_time, files, names, units_on};
use super::fleet_socket::SLEEP;

const UNITS: usize = 300;
/// Parallel requests.
const CLIENTS: usize = 8;

#[tokio::test]
async fn three_hundred_units_come_move_and_go() {
    let Some(mut cluster) = Cluster::boot(3, &[]).await else {
        return;
    };
    let units = names("u", UNITS);
    let api = cluster.api();
    let since = Instant::now();
    let submitting = stream::iter(&units).for_each_concurrent(CLIENTS, async |unit| {
        api.put(unit, &SLEEP, "launched").await;
    });
    submitting.await;
    let submitted = since.elapsed();
    let active = cluster.until_active(UNITS).await;
    let started = since.elapsed();
    println!("{UNITS} units: submitted in {submitted:?}, all active after {started:?}");
    for id in cluster.ids() {
        let here = units_on(&active, &id);
        assert_eq!(here.len(), UNITS / 3, "machines share them");
    }
    cluster.processes(&active);

    let leader = cluster.settled_leader().await;
    cluster.endpoint = leader;
    let since = Instant::now();
    cluster.machines[(leader + 1) % 3].kill();
    cluster.until_members(&cluster.ids()).await;
    let missed = since.elapsed();
    cluster.until_active(UNITS).await;
    let moved = since.elapsed();
    println!(
        "{} units: machine missed after {missed:?}, all active elsewhere after {moved:?}",
        UNITS / 3
    );
    assert!(moved < missed + Duration::from_secs(30), "{moved:?}");

    let api = cluster.api();
    let since = Instant::now();
    let destroying = stream::iter(&units).for_each_concurrent(CLIENTS, async |unit| {
        api.destroy(unit).await;
    });
    destroying.await;
    let destroyed = since.elapsed();
    until("no machine has any", async || {
        cluster
            .machines
            .iter()
            .all(|machine| files(machine).is_empty())
    })
    .await;
    let gone = since.elapsed();
    cluster.until_empty().await;
    println!("{UNITS} units: destroyed in {destroyed:?}, gone after {gone:?}");
    let left = cluster.machines[leader].run(&["systemctl", "list-units", "--plain", "u*.service"]);
    let left = String::from_utf8(left.stdout).unwrap();
    assert!(!left.contains(".service"), "{left}");
    assert!(
        started < Duration::from_secs(10) + busy_time(30),
        "{started:?}"
    );
    assert!(gone < Duration::from_secs(10) + busy_time(20), "{gone:?}");
}
