//! Rows that rules refuse are listed, and the rest is imported.

use super::world::{DRY, PLAIN, World, cluster_id, finding_counts, pool_id, tally, verified};

/// Rows that nobody could create here: each an update of one that `fill` has made.
const ODD: &str = "
    ALTER TABLE resource_labels DROP CONSTRAINT resource_labels_resource_id_fkey;
    ALTER TABLE resource_conditions DROP CONSTRAINT resource_conditions_resource_id_fkey;
    UPDATE resources SET id = 'no-uuid' WHERE name = 'cluster-1';
    UPDATE resources SET kind = 'Unheard' WHERE name = 'cluster-2';
    UPDATE resources SET name = 'Cluster_3' WHERE name = 'cluster-3';
    UPDATE resources SET spec = jsonb_build_object('a', repeat('x', 1100000)) WHERE name = 'cluster-4';
    UPDATE resources SET created_time = 'infinity' WHERE name = 'cluster-5';
    UPDATE resource_conditions SET status = 'Maybe' WHERE type = 'Reconciled'
        AND resource_id = (SELECT id FROM resources WHERE name = 'cluster-6');
    UPDATE resources SET tenancy = '{\"org\": \"of many words\"}' WHERE name = 'cluster-7';
    INSERT INTO resource_labels SELECT id, 'a/b/c', '' FROM resources WHERE name = 'cluster-8';";

#[tokio::test]
async fn the_rest_is_imported() {
    let world = World::filled(12).await;
    world.there(ODD).await;
    let expected = [
        ("column", 1),
        ("conditions", 1),
        ("id", 1),
        ("labels", 1),
        ("name", 1),
        // Three of each of the eight.
        ("no_parent", 24),
        // Those of the reports of the two that are now something else.
        ("orphan_report", 4),
        ("spec", 1),
        ("tenancy", 1),
        ("unknown_kind", 1),
    ];
    let dry = world.run(DRY).await;
    assert_eq!(finding_counts(&dry), expected);
    let report = world.run(PLAIN).await;
    assert_eq!(finding_counts(&report), expected);
    assert_eq!(
        (tally(&report), verified(&report)),
        ([16, 0, 0], [16, 0, 0])
    );
    assert_eq!(
        (
            report.kinds["Cluster"].refused,
            report.kinds["Unheard"].refused
        ),
        (7, 1)
    );
    let listed = &report.listed;
    let named = |code: &str| listed.iter().find(|f| f.reason.code() == code).unwrap();
    assert_eq!(
        (named("id").id.as_str(), named("id").name.as_str()),
        ("no-uuid", "cluster-1")
    );
    assert_eq!(named("name").name, "Cluster_3");
    assert_eq!(named("unknown_kind").kind, "Unheard");
    // What is mended later comes later, with what depends on it.
    world
        .there("UPDATE resources SET name = 'cluster-3' WHERE name = 'Cluster_3'")
        .await;
    let report = world.run(PLAIN).await;
    assert_eq!(
        (tally(&report), verified(&report)),
        ([4, 0, 16], [20, 0, 0])
    );
}

#[tokio::test]
async fn a_resource_that_becomes_bad_keeps_its_older_state_here() {
    let world = World::filled(2).await;
    world.run(PLAIN).await;
    let huge = "jsonb_build_object('a', repeat('x', 1100000))";
    world
        .there(&format!(
            "UPDATE resources SET spec = {huge}, generation = 9 WHERE name = 'cluster-1'"
        ))
        .await;
    for _ in 0..2 {
        let report = world.run(PLAIN).await;
        assert_eq!(
            (finding_counts(&report), tally(&report)),
            (vec![("spec", 1)], [0, 0, 7])
        );
        assert_eq!(verified(&report), [7, 0, 0]);
    }
    let generation = format!(
        "SELECT generation FROM resources WHERE id = '{}'",
        cluster_id(1)
    );
    assert_eq!(world.target_value(&generation).await, 2);
    world
        .there("UPDATE resources SET spec = '{}' WHERE name = 'cluster-1'")
        .await;
    let report = world.run(PLAIN).await;
    assert_eq!(
        (finding_counts(&report), tally(&report)),
        (vec![], [0, 0, 8])
    );
    assert_eq!(world.target_value(&generation).await, 9);
}

#[tokio::test]
async fn a_bad_report_does_not_refuse_its_resource() {
    let world = World::filled(2).await;
    let bad = |column: &str, value: &str, resource: &str| {
        format!(
            "UPDATE adapter_statuses SET {column} = {value} WHERE resource_id = '{resource}' AND adapter = 'validation'"
        )
    };
    world
        .there(&bad("conditions", "'[{\"type\": \"A\"}]'", &cluster_id(1)))
        .await;
    world
        .there(&bad("observed_generation", "0", &pool_id(1)))
        .await;
    world
        .there(&bad("last_report_time", "'-infinity'", &pool_id(2)))
        .await;
    world.there("INSERT INTO adapter_statuses SELECT 'x', created_time, updated_time, 'Cluster', 'gone', adapter,
        1, last_report_time, conditions FROM adapter_statuses LIMIT 1").await;
    for expected in [[8, 0, 0], [0, 0, 5]] {
        let report = world.run(PLAIN).await;
        assert_eq!(
            finding_counts(&report),
            [("orphan_report", 1), ("report", 3)]
        );
        assert_eq!((tally(&report), verified(&report)), (expected, [5, 0, 3]));
        // An orphan is no refusal.
        assert_eq!(report.refused, 3);
        let adapters = report
            .listed
            .iter()
            .filter(|f| f.refused)
            .map(|f| f.adapter.as_deref());
        assert!(adapters.eq([Some("validation"); 3]));
    }
    let id = cluster_id(1);
    let adapters =
        format!("SELECT jsonb_agg(adapter) FROM adapter_reports WHERE resource_id = '{id}'");
    assert_eq!(
        world.target_value(&adapters).await,
        serde_json::json!(["hypershift"])
    );
}

#[tokio::test]
async fn references_without_rule_or_target_are_refused_singly() {
    let kinds = [
        crate::support::linked(
            &[("wif", "WifConfig", 0, 0)],
            crate::support::root("Cluster", "clusters", &["dns"]),
        ),
        crate::support::root("WifConfig", "wifconfigs", &[]),
    ];
    let world = World::with_kinds(&kinds).await;
    world.there("SELECT fill(3, 0)").await;
    world
        .there(
            "INSERT INTO resources (id, kind, name, created_by, updated_by, spec)
        SELECT '01990000-0009-7000-8000-00000000000' || n, 'WifConfig', name, 'a', 'b', '{}'
        FROM (VALUES (1, 'good'), (2, 'B A D')) w (n, name)",
        )
        .await;
    world.there("INSERT INTO resource_references
        SELECT c.id, 'wif', w.id, 'WifConfig' FROM resources c, resources w WHERE c.kind = 'Cluster' AND w.kind = 'WifConfig'
        UNION ALL SELECT c.id, 'other', w.id, 'WifConfig' FROM resources c, resources w
        WHERE c.name = 'cluster-1' AND w.name = 'good'").await;
    let report = world.run(PLAIN).await;
    let expected = [("name", 1), ("reference_target", 3), ("reference_type", 1)];
    assert_eq!(
        (finding_counts(&report), report.references),
        (expected.to_vec(), 3)
    );
    assert_eq!(verified(&report), [1, 0, 3]);
    // They are retried until they can be written.
    world.there("UPDATE resources SET name = 'mended' WHERE name = 'B A D'; DELETE FROM resource_references WHERE ref_type = 'other'").await;
    let report = world.run(PLAIN).await;
    assert_eq!(
        (finding_counts(&report), tally(&report), verified(&report)),
        (vec![], [1, 0, 4], [5, 0, 0])
    );
}

#[tokio::test]
async fn what_another_program_alters_while_it_is_written_differs() {
    let world = World::filled(2).await;
    world
        .change_target(&format!(
            "CREATE FUNCTION alter_author() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN NEW.created_by := 'other'; RETURN NEW; END $$;
             CREATE TRIGGER alter_author BEFORE INSERT ON resources FOR EACH ROW
                 WHEN (NEW.id = '{}') EXECUTE FUNCTION alter_author()",
            cluster_id(1)
        ))
        .await;
    let report = world.run(PLAIN).await;
    assert_eq!(verified(&report), [7, 1, 0]);
    let difference = &report.verification.differences[0];
    assert_eq!(
        (difference.kind.as_str(), difference.id.to_string()),
        ("Cluster", cluster_id(1))
    );
    assert_ne!(difference.source, difference.target);
    world
        .change_target("DROP TRIGGER alter_author ON resources")
        .await;
    assert_eq!(verified(&world.run(PLAIN).await), [8, 0, 0]);
}

#[tokio::test]
async fn another_kind_of_an_imported_resource_is_refused() {
    let world = World::filled(2).await;
    world.run(PLAIN).await;
    let id = pool_id(1);
    world
        .there(&format!(
            "UPDATE resources SET kind = 'Unheard' WHERE id = '{id}';
             DELETE FROM adapter_statuses WHERE resource_id = '{id}'"
        ))
        .await;
    let report = world.run(PLAIN).await;
    assert_eq!(
        (finding_counts(&report), verified(&report)),
        (vec![("unknown_kind", 1)], [7, 0, 0])
    );
    let kind = format!("SELECT kind FROM resources WHERE id = '{id}'");
    assert_eq!(world.target_value(&kind).await, "NodePool");
}

#[tokio::test]
async fn a_path_without_a_route_is_reported() {
    let world = World::filled(1).await;
    world
        .there(&format!(
            "UPDATE resources SET href = '/api/hyperfleet/v1/a/1/b/2/c/3' WHERE id = '{}'",
            pool_id(1)
        ))
        .await;
    let report = world.run(PLAIN).await;
    assert_eq!(
        (finding_counts(&report), report.refused),
        (vec![("href", 1)], 0)
    );
    assert_eq!(verified(&report), [4, 0, 0]);
}
