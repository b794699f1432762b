//! A pass that ends between two batches is continued by the next one.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::TestDatabase;

use super::world::{PLAIN, World, finding_counts, linked_world, pool_id, state, tally, verified};

/// The state without numbers that depend on how often a row was written.
async fn content(world: &World) -> String {
    let mut state = state(world).await;
    let rows = state.as_array_mut().unwrap();
    rows.truncate(3);
    for row in rows[0].as_array_mut().unwrap() {
        row.as_object_mut().unwrap().remove("revision");
    }
    state.to_string()
}

/// An empty database beside the source of a world.
async fn beside(world: &World) -> World {
    let source = TestDatabase::at(world.source.options());
    World::of(source, TestDatabase::create().await, world.registry.clone())
}

#[tokio::test]
async fn a_pass_that_ends_after_any_batch_is_continued() {
    let complete = linked_world().await;
    let (report, reported) = complete.run_until(PLAIN, |_| false).await;
    let expected = (
        content(&complete).await,
        report.unwrap().verification.target_digest,
    );
    assert!(reported.len() > 4, "{reported:?}");
    for steps in 1..reported.len() {
        let world = beside(&complete).await;
        let seen = AtomicUsize::new(0);
        let is_enough = |_| seen.fetch_add(1, Ordering::Relaxed) + 1 >= steps;
        let first = world.run_until(PLAIN, is_enough).await.0.unwrap();
        assert!(first.interrupted, "{steps}");
        let report = world.run(PLAIN).await;
        assert_eq!(
            (finding_counts(&report), verified(&report)),
            (vec![], [8, 0, 0])
        );
        let found = (content(&world).await, report.verification.target_digest);
        assert_eq!(found, expected, "{steps}");
        let before = state(&world).await;
        assert_eq!(tally(&world.run(PLAIN).await), [0, 0, 8], "{steps}");
        assert_eq!(state(&world).await, before, "{steps}");
    }
}

#[tokio::test]
async fn the_source_may_change_between_the_passes() {
    let world = World::filled(10).await;
    let first = world.run_in_part(15).await;
    // A finalizing cluster, nine others, its three node pools, and a batch of the others'.
    assert_eq!(tally(&first), [20, 0, 0]);
    // Of a resource that is here, and of one that is not.
    world
        .there(&format!(
            "UPDATE resources SET generation = 7 WHERE name = 'cluster-1' OR id = '{}'",
            pool_id(27)
        ))
        .await;
    let last = world.run(PLAIN).await;
    assert_eq!((tally(&last), last.changed), ([20, 0, 20], 1));
    assert_eq!(verified(&last), [40, 0, 0]);
}
