//! What this service has itself is never touched.

use hyperfleet_import::{Error, ImportTarget};
use serde_json::{Value, json};

use super::world::{DRY, PLAIN, World, cluster_id, finding_counts, pool_id, tally, verified};
use crate::support::{TestApi, TestDatabase};

/// Serves the database of a world that goes on.
fn served(world: &World) -> TestApi {
    let target = TestDatabase::at(world.target.options());
    let store = target.store();
    TestApi::spawn_on(world.registry.clone(), target, store, false)
}

#[tokio::test]
async fn resources_of_others_stay_as_they_are() {
    let world = World::filled(3).await;
    let api = served(&world);
    let own = api.cluster("of-our-own").await;
    let taken = api.cluster("cluster-2").await;
    let before = api.get(&taken).await.body;
    let report = world.run(PLAIN).await;
    assert_eq!(
        finding_counts(&report),
        [("name_taken", 1), ("no_parent", 3)]
    );
    assert_eq!((tally(&report), verified(&report)), ([8, 0, 0], [8, 0, 0]));
    assert_eq!(api.get(&taken).await.body, before);
    assert_eq!(api.get(&own).await.status, 200);
    // A later run does not take them for resources that the source has removed.
    let report = world.run(PLAIN).await;
    assert_eq!(tally(&report), [0, 0, 8]);
    assert_eq!(api.get("/clusters").await.body["total"], 4);
}

#[tokio::test]
async fn a_resource_with_an_imported_id_stays() {
    let world = World::filled(2).await;
    let id = cluster_id(1);
    world.change_target(&format!("INSERT INTO resources (id, created_at, updated_at, generation, kind, name, created_by, updated_by, spec)
        VALUES ('{id}', now(), now(), 5, 'Cluster', 'other', 'a', 'b', '{{}}')")).await;
    let report = world.run(PLAIN).await;
    assert_eq!(finding_counts(&report), [("id_taken", 1), ("no_parent", 3)]);
    let name = format!("SELECT name FROM resources WHERE id = '{id}'");
    assert_eq!(world.target_value(&name).await, "other");
}

#[tokio::test]
async fn what_was_changed_here_stays_changed() {
    let world = World::filled(3).await;
    world.run(PLAIN).await;
    let api = served(&world);
    let (one, two) = (
        format!("/clusters/{}", cluster_id(1)),
        format!("/clusters/{}", cluster_id(2)),
    );
    for path in [&one, &two] {
        let patched = api.patch(path, json!({"spec": {"here": true}})).await;
        assert_eq!(patched.status, 200, "{}", patched.body);
    }
    for _ in 0..2 {
        let report = world.run(PLAIN).await;
        assert_eq!(
            (finding_counts(&report), tally(&report), verified(&report)),
            (vec![("changed_here", 2)], [0, 0, 10], [10, 0, 0])
        );
        assert_eq!(report.listed[0].name, "cluster-1");
        world
            .there("UPDATE resources SET generation = 9 WHERE name = 'cluster-1'")
            .await;
    }
    assert_eq!(api.get(&one).await.body["spec"], json!({"here": true}));
    // The source removes it, too.
    world
        .there(&format!(
            "DELETE FROM resources WHERE '{}' IN (id, owner_id)",
            cluster_id(2)
        ))
        .await;
    world
        .there("DELETE FROM adapter_statuses WHERE resource_id NOT IN (SELECT id FROM resources)")
        .await;
    // A dry run does not know what must stay.
    assert_eq!(world.run(DRY).await.removed, 4);
    let report = world.run(PLAIN).await;
    assert_eq!(report.removed, 3);
    assert!(
        finding_counts(&report).contains(&("needed_here", 1)),
        "{:?}",
        finding_counts(&report)
    );
    assert_eq!(api.get(&two).await.status, 200);
}

#[tokio::test]
async fn a_resource_that_changed_here_keeps_its_name() {
    let world = World::filled(2).await;
    world.run(PLAIN).await;
    let api = served(&world);
    let id = cluster_id(1);
    let path = format!("/clusters/{id}");
    let patched = api.patch(&path, json!({"labels": {"here": "yes"}})).await;
    assert_eq!(patched.status, 200);
    // There it is being deleted meanwhile, and its name has passed on.
    world.there(&format!("UPDATE resources SET deleted_time = now(), deleted_by = 'x' WHERE id = '{id}';
        INSERT INTO resources SELECT '01ffffff-0000-7000-8000-000000000001', created_time, updated_time,
        NULL, kind, name, NULL, created_by, updated_by, NULL, NULL, NULL, NULL, spec, 1, tenancy
        FROM resources WHERE id = '{id}'")).await;
    let report = world.run(PLAIN).await;
    assert_eq!(
        finding_counts(&report),
        vec![("changed_here", 1), ("name_taken", 1)]
    );
    let here = api.get(&path).await;
    assert_eq!(
        (here.status, &here.body["labels"]["here"]),
        (200, &json!("yes"))
    );
}

#[tokio::test]
async fn a_parent_stays_while_it_has_a_child_of_our_own() {
    let world = World::filled(2).await;
    world.run(PLAIN).await;
    let api = served(&world);
    let cluster = format!("/clusters/{}", cluster_id(1));
    let pool = api.nodepool(&cluster, "new").await;
    world
        .there(&format!(
            "DELETE FROM resources WHERE '{}' IN (id, owner_id)",
            cluster_id(1)
        ))
        .await;
    world
        .there("DELETE FROM adapter_statuses WHERE resource_id NOT IN (SELECT id FROM resources)")
        .await;
    let report = world.run(PLAIN).await;
    assert_eq!(
        (finding_counts(&report), report.removed),
        (vec![("needed_here", 1)], 3)
    );
    assert_eq!(
        (api.get(&pool).await.status, api.get(&cluster).await.status),
        (200, 200)
    );
}

#[tokio::test]
async fn what_was_removed_here_does_not_come_back() {
    let world = World::filled(2).await;
    world.run(PLAIN).await;
    let id = pool_id(1);
    world
        .change_target(&format!("DELETE FROM resources WHERE id = '{id}'"))
        .await;
    let report = world.run(PLAIN).await;
    assert_eq!(
        (finding_counts(&report), tally(&report)),
        (vec![("removed_here", 1)], [0, 0, 7])
    );
    assert_eq!(verified(&report), [7, 0, 0]);
    let count = format!("SELECT count(*) FROM resources WHERE id = '{id}'");
    assert_eq!(world.target_value(&count).await, Value::from(0));
}

#[tokio::test]
async fn another_source_and_another_import_are_refused() {
    let world = World::filled(1).await;
    world.run(PLAIN).await;
    // Ids are UUIDs: no two services have the same.
    let other = World::empty().await;
    other
        .there(
            "INSERT INTO resources (id, kind, name, created_by, updated_by, spec)
             VALUES (gen_random_uuid(), 'Cluster', 'other', 'a', 'b', '{}')",
        )
        .await;
    let elsewhere = World::of(
        other.source,
        TestDatabase::at(world.target.options()),
        world.registry.clone(),
    );
    let refused = elsewhere.try_run(PLAIN).await.unwrap_err();
    assert!(matches!(refused, Error::OtherSource), "{refused:?}");
    let _locked = ImportTarget::open(&world.target.options()).await.unwrap();
    let refused = world.try_run(PLAIN).await.unwrap_err();
    assert!(matches!(refused, Error::Busy), "{refused:?}");
}

#[tokio::test]
async fn a_database_that_is_none_of_the_older_service_is_refused() {
    let world = World::empty().await;
    let wrong = World::of(
        TestDatabase::create().await,
        TestDatabase::at(world.target.options()),
        world.registry.clone(),
    );
    let refused = wrong.try_run(PLAIN).await.unwrap_err();
    assert!(
        matches!(refused, Error::UnknownSource { .. }),
        "{refused:?}"
    );
    let says = refused.to_string();
    assert!(
        says.contains("\"resource_labels\" does not exist"),
        "{says}"
    );
    world
        .there("ALTER TABLE resources DROP COLUMN tenancy CASCADE")
        .await;
    let says = world.try_run(PLAIN).await.unwrap_err().to_string();
    assert!(says.contains("column r.tenancy does not exist"), "{says}");
}
