//! Requests that change this database while a run is in progress.

use hyperfleet_import::{ImportProgress, ImportReport, ImportStep};
use serde_json::json;
use sqlx::AssertSqlSafe;

use super::world::{
    PLAIN, World, cluster_id, finding_counts, linked_world, pool_id, tally, verified, wait_for,
};

/// A run, and a transaction that is open when it begins and is committed once the run waits for it.
async fn run_beside(world: &World, change: &str) -> ImportReport {
    let mut other = world.target.connect().await;
    let change = AssertSqlSafe(format!("BEGIN; {change}"));
    sqlx::raw_sql(change).execute(&mut other).await.unwrap();
    let commit = async {
        world.until_blocked().await;
        sqlx::raw_sql("COMMIT").execute(&mut other).await.unwrap();
    };
    tokio::join!(world.run(PLAIN), commit).0
}

fn touch(id: &str) -> String {
    format!("UPDATE resources SET revision = revision + 1 WHERE id = '{id}'")
}

#[tokio::test]
async fn a_resource_that_changes_while_it_is_removed_stays() {
    let world = World::filled(2).await;
    world.run(PLAIN).await;
    let id = cluster_id(1);
    world
        .there(&format!(
            "DELETE FROM resources WHERE '{id}' IN (id, owner_id);
             DELETE FROM adapter_statuses WHERE resource_id NOT IN (SELECT id FROM resources)"
        ))
        .await;
    let report = run_beside(&world, &touch(&id)).await;
    assert_eq!(
        (finding_counts(&report), report.removed),
        (vec![("needed_here", 1)], 3)
    );
    let here = format!("SELECT count(*) FROM resources WHERE id = '{id}'");
    assert_eq!(world.target_value(&here).await, 1);
}

#[tokio::test]
async fn a_resource_that_changes_while_it_is_written_stays_changed() {
    let world = World::filled(2).await;
    world.run(PLAIN).await;
    let id = cluster_id(1);
    world
        .there(&format!(
            "UPDATE resources SET generation = 9 WHERE id = '{id}'"
        ))
        .await;
    let report = run_beside(&world, &touch(&id)).await;
    assert_eq!(finding_counts(&report), [("changed_here", 1)]);
    assert_eq!(verified(&report), [7, 0, 0]);
    let generation = format!("SELECT generation FROM resources WHERE id = '{id}'");
    assert_eq!(world.target_value(&generation).await, 2);
}

#[tokio::test]
async fn a_name_that_is_taken_while_its_batch_is_written_is_refused() {
    let world = World::filled(2).await;
    let own = "INSERT INTO resources (id, created_at, updated_at, generation, kind, name, created_by, updated_by, spec)
        VALUES (gen_random_uuid(), now(), now(), 1, 'Cluster', 'cluster-1', 'a', 'b', '{}')";
    let report = run_beside(&world, own).await;
    assert_eq!(
        finding_counts(&report),
        [("name_taken", 1), ("no_parent", 3)]
    );
    assert_eq!((tally(&report), verified(&report)), ([4, 0, 0], [4, 0, 0]));
}

#[tokio::test]
async fn a_child_whose_parent_is_removed_meanwhile_differs() {
    let world = World::filled(2).await;
    world.run(PLAIN).await;
    let id = cluster_id(1);
    world
        .there(&format!(
            "INSERT INTO resources (id, kind, name, owner_id, created_by, updated_by, spec)
             VALUES ('01990000-0001-7000-8000-00000000ffff', 'NodePool', 'late', '{id}', 'a', 'b', '{{}}')"
        ))
        .await;
    let removal = format!("DELETE FROM resources WHERE '{id}' IN (id, owner_id)");
    let report = run_beside(&world, &removal).await;
    assert_eq!(verified(&report)[1], 1);
    let report = world.run(PLAIN).await;
    assert_eq!(
        finding_counts(&report),
        [("no_parent", 1), ("removed_here", 4)]
    );
    assert_eq!(verified(&report), [4, 0, 0]);
}

#[tokio::test]
async fn a_resource_removed_during_a_write_does_not_come_back() {
    let world = World::filled(2).await;
    world.run(PLAIN).await;
    let id = pool_id(1);
    world
        .there(&format!(
            "UPDATE resources SET generation = 9 WHERE id = '{id}'"
        ))
        .await;
    let removal = format!("DELETE FROM resources WHERE id = '{id}'");
    let report = run_beside(&world, &removal).await;
    assert_eq!(verified(&report), [7, 1, 0]);
    let report = world.run(PLAIN).await;
    assert_eq!(finding_counts(&report), [("removed_here", 1)]);
    let here = format!("SELECT count(*) FROM resources WHERE id = '{id}'");
    assert_eq!(world.target_value(&here).await, 0);
}

/// A run, with a change right before its references are written.
async fn run_with_change(world: &World, change: &str) -> ImportReport {
    let observe = |progress: ImportProgress| {
        if progress.step == ImportStep::Import && progress.done == progress.total {
            wait_for(world.change_target(change));
        }
        false
    };
    world.run_until(PLAIN, observe).await.0.unwrap()
}

#[tokio::test]
async fn a_resource_that_changes_before_its_references_come_gets_none() {
    let world = linked_world().await;
    let id = cluster_id(1);
    let report = run_with_change(&world, &touch(&id)).await;
    assert_eq!(
        (finding_counts(&report), report.references),
        (vec![("changed_here", 1)], 6)
    );
    assert_eq!(verified(&report), [7, 0, 0]);
    let references = format!("SELECT count(*) FROM resource_references WHERE source_id = '{id}'");
    assert_eq!(world.target_value(&references).await, 0);
}

#[tokio::test]
async fn resources_whose_target_is_removed_meanwhile_differ() {
    let world = linked_world().await;
    let removal = "DELETE FROM resources WHERE name = 'wif-2'";
    let report = run_with_change(&world, removal).await;
    assert_eq!(verified(&report)[1], 3);
    let report = world.run(PLAIN).await;
    assert_eq!(
        finding_counts(&report),
        [("reference_target", 2), ("removed_here", 1)]
    );
    let of_first = world
        .serve()
        .get(&format!("/clusters/{}", cluster_id(1)))
        .await;
    let links = of_first.body["references"]["wif"].as_array().unwrap();
    assert_eq!(links.len(), 1);
    assert_eq!(links[0]["kind"], json!("WifConfig"));
}
