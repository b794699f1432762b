//! A later run brings what has changed since; an interrupted one is continued.

use super::world::{
    PLAIN, World, cluster_id, finding_counts, linked_world, pool_id, state, tally, verified,
};

#[tokio::test]
async fn a_later_pass_writes_only_what_changed() {
    let world = World::filled(10).await;
    world.run(PLAIN).await;
    let [one, two, three, four] = [1, 2, 3, 4].map(cluster_id);
    let changes = [
        format!("UPDATE resources SET spec = '{{\"new\": 1}}', generation = 9 WHERE id = '{one}'"),
        format!("INSERT INTO resource_labels VALUES ('{two}', 'more', 'x')"),
        format!(
            "UPDATE resource_conditions SET status = 'False' WHERE resource_id = '{three}' AND type = 'Reconciled'"
        ),
        format!(
            "UPDATE adapter_statuses SET data = '{{\"x\": 2}}' WHERE resource_id = '{four}' AND adapter = 'validation'"
        ),
    ];
    for change in changes {
        world.there(&change).await;
        let report = world.run(PLAIN).await;
        assert_eq!((report.changed, report.unchanged), (1, 39), "{change}");
        assert_eq!(verified(&report), [40, 0, 0], "{change}");
    }
    world
        .there(
            "INSERT INTO resources SELECT '01990000-0000-7000-8000-00000000ffff', created_time, updated_time,
                 NULL, kind, 'another', NULL, created_by, updated_by, NULL, NULL, NULL, NULL, spec, 1, '{}'
             FROM resources WHERE name = 'cluster-1'",
        )
        .await;
    let report = world.run(PLAIN).await;
    assert_eq!((report.added, report.changed, report.unchanged), (1, 0, 40));
    assert_eq!(verified(&report), [41, 0, 0]);
}

#[tokio::test]
async fn what_the_source_has_removed_goes() {
    let world = World::filled(4).await;
    world.run(PLAIN).await;
    // A cluster with its three node pools, and one more node pool.
    let (cluster, pool) = (cluster_id(2), pool_id(1));
    world
        .there(&format!(
            "DELETE FROM resources WHERE owner_id = '{cluster}' OR id IN ('{cluster}', '{pool}')"
        ))
        .await;
    world.there("DELETE FROM adapter_statuses s WHERE NOT EXISTS (SELECT FROM resources r WHERE r.id = s.resource_id)").await;
    let report = world.run(PLAIN).await;
    assert_eq!(
        (tally(&report), verified(&report)),
        ([0, 5, 11], [11, 0, 0])
    );
    assert_eq!(report.kinds["NodePool"].imported, 8);
    let left = "SELECT (SELECT count(*) FROM resources) || ' ' || (SELECT count(*) FROM imported_resources)
                || ' ' || (SELECT sum(count) FROM resource_counts)";
    assert_eq!(world.target_value(left).await, "11 11 11");
}

#[tokio::test]
async fn a_name_passes_from_a_deleted_resource_to_a_new_one() {
    let world = World::filled(3).await;
    world.run(PLAIN).await;
    let id = cluster_id(1);
    // The new id comes before the older one.
    world.there(&format!("UPDATE resources SET deleted_time = now(), deleted_by = 'x' WHERE id = '{id}';
        INSERT INTO resources SELECT '01980000-0000-7000-8000-000000000001', created_time, updated_time,
        NULL, kind, name, NULL, created_by, updated_by, NULL, NULL, NULL, NULL, spec, 1, tenancy
        FROM resources WHERE id = '{id}'")).await;
    let report = world.run(PLAIN).await;
    assert_eq!(
        (finding_counts(&report), tally(&report), verified(&report)),
        (vec![], [1, 0, 12], [13, 0, 0])
    );
    // Now the older one is gone, and the new one is replaced, too.
    world
        .there(&format!(
            "DELETE FROM resources WHERE owner_id = '{id}' OR id = '{id}';
        DELETE FROM adapter_statuses WHERE resource_id NOT IN (SELECT id FROM resources);
        UPDATE resources SET id = '01970000-0000-7000-8000-000000000001' WHERE id LIKE '0198%'"
        ))
        .await;
    let report = world.run(PLAIN).await;
    assert_eq!(
        (finding_counts(&report), tally(&report), verified(&report)),
        (vec![], [1, 5, 8], [9, 0, 0])
    );
}

#[tokio::test]
async fn a_name_and_a_parent_that_were_changed_by_hand_come_too() {
    let world = World::filled(3).await;
    world.run(PLAIN).await;
    let (cluster, pool) = (cluster_id(1), pool_id(1));
    let parent = cluster_id(2);
    world
        .there(&format!(
            "UPDATE resources SET name = 'renamed' WHERE id IN ('{cluster}', '{pool}');
             UPDATE resources SET owner_id = '{parent}', href = NULL WHERE id = '{pool}'"
        ))
        .await;
    let report = world.run(PLAIN).await;
    assert_eq!((finding_counts(&report), report.changed), (vec![], 2));
    assert_eq!(verified(&report), [12, 0, 0]);
    let api = world.serve();
    let moved = api
        .get(&format!("/clusters/{parent}/nodepools/{pool}"))
        .await;
    assert_eq!(
        (moved.status, &moved.body["name"]),
        (200, &"renamed".into())
    );
}

#[tokio::test]
async fn a_pass_without_differences_writes_nothing() {
    let world = linked_world().await;
    // Refused parts are retried, and like the rest not written again.
    world.there("INSERT INTO resource_references SELECT c.id, 'other', w.id, 'WifConfig' FROM resources c, resources w
        WHERE c.name = 'cluster-1' AND w.name = 'wif-1'; UPDATE adapter_statuses SET observed_generation = 0
        WHERE adapter = 'validation' AND resource_id LIKE '%2'").await;
    let report = world.run(PLAIN).await;
    assert_eq!((tally(&report), verified(&report)), ([8, 0, 0], [6, 0, 2]));
    let before = state(&world).await;
    let report = world.run(PLAIN).await;
    assert_eq!(
        (report.changed, report.reports, report.references),
        (0, 0, 0)
    );
    assert_eq!((report.unchanged, verified(&report)), (6, [6, 0, 2]));
    assert_eq!(state(&world).await, before);
}

#[tokio::test]
async fn references_are_written_when_their_targets_are_here() {
    let world = linked_world().await;
    let report = world.run(PLAIN).await;
    assert_eq!(
        (
            finding_counts(&report),
            verified(&report),
            report.references
        ),
        (vec![], [8, 0, 0], 8)
    );
    // A target goes by force, and takes the references to it along: no row of their resources changes.
    world.there("DELETE FROM resource_references WHERE target_id LIKE '%2'; DELETE FROM resources WHERE name = 'wif-2'").await;
    let report = world.run(PLAIN).await;
    assert_eq!((tally(&report), verified(&report)), ([0, 1, 7], [7, 0, 0]));
    // One more reference.
    world.there("INSERT INTO resources (id, kind, name, created_by, updated_by, spec)
        VALUES ('01990000-0009-7000-8000-000000000003', 'WifConfig', 'wif-3', 'a', 'b', '{}');
        INSERT INTO resource_references SELECT id, 'wif', '01990000-0009-7000-8000-000000000003', 'WifConfig'
        FROM resources WHERE name = 'cluster-5'").await;
    let report = world.run(PLAIN).await;
    assert_eq!((tally(&report), verified(&report)), ([1, 0, 7], [8, 0, 0]));
    let cluster = cluster_id(5);
    let api = world.serve();
    let links = api.get(&format!("/clusters/{cluster}")).await.body["references"]["wif"].clone();
    assert_eq!(links.as_array().unwrap().len(), 2);
    let href = "/api/hyperfleet/v1/wifconfigs/01990000-0009-7000-8000-000000000001";
    assert_eq!(links[0]["href"], href);
}

#[tokio::test]
async fn a_target_stays_while_a_changed_resource_refers_to_it() {
    let world = linked_world().await;
    world.run(PLAIN).await;
    let source = cluster_id(1);
    let change = format!("UPDATE resources SET revision = revision + 1 WHERE id = '{source}'");
    world.change_target(&change).await;
    world.there("DELETE FROM resource_references WHERE target_id LIKE '%2'; DELETE FROM resources WHERE name = 'wif-2'").await;
    let references = "SELECT count(*) FROM resource_references WHERE target_id::text LIKE '%2'";
    for _ in 0..2 {
        let report = world.run(PLAIN).await;
        assert_eq!(
            (finding_counts(&report), report.removed),
            (vec![("changed_here", 1), ("needed_here", 1)], 0)
        );
        // Of the resource that was changed here.
        assert_eq!(world.target_value(references).await, 1);
    }
    // Once nothing that was changed here refers to it, it goes with the other reference.
    world
        .change_target(&format!(
            "DELETE FROM resource_references WHERE source_id = '{source}' AND target_id::text LIKE '%2'"
        ))
        .await;
    let report = world.run(PLAIN).await;
    assert_eq!((finding_counts(&report), report.removed), (vec![], 1));
    assert_eq!(verified(&report), [7, 0, 0]);
}
