//! Changes of resources and units by users.

use std::time::{Duration, Instant};

use hyperfleet_testkit::until;
use serde_json::Value;

use super::super::cluster::text;
use super::World;
use super::pool::{Pool, invocations};

/// Longest look at all machines that shows one moment: between the replacements of two replicas lies 1 s or more
/// (`min_ready_seconds`). Reports are read at one moment anyway.
const MOMENT: Duration = Duration::from_millis(800);

/// An update takes one replica at a time, and every replica in the end.
pub(super) async fn create_change_delete(world: &mut World, pool: &Pool) {
    let before = pool.assert_runs(world, 1, 3).await;
    let first = invocations(world, &before);
    pool.patch(world, 2, 3).await;
    let (mut reported, mut seen) = (Vec::new(), Vec::new());
    until(
        "the pool is reconciled, with two replicas at every moment",
        async || {
            // Reports cost little to read; systemd is asked by a program on each machine.
            for _ in 0..3 {
                reported.push(world.cluster.reported("active").await.len());
            }
            let since = Instant::now();
            let running = pool.running(world, 3);
            if since.elapsed() < MOMENT {
                seen.push(running);
            }
            world.service.rest.is_reconciled(&pool.path).await
        },
    )
    .await;
    println!("an update of three replicas: active by report {reported:?}, by systemd {seen:?}");
    assert!(reported.iter().chain(&seen).all(|running| *running >= 2));
    assert!(reported.len() >= 5, "too few looks");
    let after = pool.assert_runs(world, 2, 3).await;
    let second = invocations(world, &after);
    for unit in pool.units(3) {
        assert_ne!(
            first[&unit], second[&unit],
            "{unit} runs what it ran before"
        );
    }
}

/// Five replicas that exclude each other on four machines: the condition repeats the engine's reason.
pub(super) async fn more_replicas_than_machines(world: &mut World, pool: &Pool) {
    let before = pool.assert_runs(world, 1, 3).await;
    let first = invocations(world, &before);
    pool.patch(world, 1, 5).await;
    let rest = &world.service.rest;
    let api = world.cluster.api();
    let names_the_cause = async |available: &Value| {
        let mut unplaced = Vec::new();
        for unit in pool.units(5) {
            let view = api.get(&format!("/fleet/v1/units/{unit}/explain")).await;
            let Some((200, view)) = view else {
                return false;
            };
            unplaced.extend(
                view["machineID"]
                    .is_null()
                    .then(|| (unit, text(&view["reason"]))),
            );
        }
        let [(unit, reason)] = &unplaced[..] else {
            return false;
        };
        let message = format!("4 of 5 replicas available: {unit}: {reason}");
        reason.contains("Conflicts: 4 machines")
            && available["reason"] == "NotPlaced"
            && available["message"] == message
    };
    pool.wait_for_report(world, "Available", names_the_cause)
        .await;
    assert!(!rest.is_reconciled(&pool.path).await);
    assert_eq!(pool.running(world, 5), 4);
    pool.patch(world, 1, 3).await;
    let after = pool.until_runs(world, 1, 3).await;
    assert_eq!(
        invocations(world, &after),
        first,
        "the first three were not touched"
    );
    let units = world.cluster.api().list("units").await;
    assert_eq!(units.len(), 3, "{units:?}");
}

/// A destroyed unit of the pool comes back; a unit that is not the adapter's is left unchanged.
pub(super) async fn units_by_hand(world: &mut World, pool: &Pool) {
    let before = pool.assert_runs(world, 1, 3).await;
    let first = invocations(world, &before);
    let destroyed = pool.unit(2);
    world.cluster.destroy(&[&destroyed]).await;
    until("the destroyed unit runs again", async || {
        let active = world.cluster.reported("active").await;
        let machine = active.iter().find(|(unit, _)| *unit == destroyed);
        let machine = machine.map(|(_, id)| world.cluster.machine(id));
        let run = machine.map(|machine| machine.property(&destroyed, "InvocationID"));
        run.is_some_and(|run| !run.is_empty() && run != first[&destroyed])
    })
    .await;
    let after = pool.until_runs(world, 1, 3).await;
    let second = invocations(world, &after);
    for unit in [pool.unit(1), pool.unit(3)] {
        assert_eq!(first[&unit], second[&unit], "{unit}");
    }

    let foreign = pool.unit(4);
    world.cluster.launch(&foreign).await;
    let machine = world.cluster.until_active_on(&foreign).await;
    let placed = [(foreign.clone(), machine)].into();
    let run = invocations(world, &placed);
    pool.patch(world, 1, 4).await;
    pool.wait_for_condition(world, "Applied", ["False", "NameTaken", &foreign])
        .await;
    assert!(!world.service.rest.is_reconciled(&pool.path).await);
    assert_eq!(invocations(world, &placed), run, "the unit of others");
    world.cluster.destroy(&[&foreign]).await;
    pool.until_runs(world, 1, 4).await;
}
