//! Everything is here as it was there, and the source was only read.

use serde_json::{Value, json};
use sqlx::AssertSqlSafe;

use crate::support::TestDatabase;
use hyperfleet_import::{Error, ImportProgress, ImportStep, PassOptions};

use super::world::{DRY, PLAIN, World, cluster_id, finding_counts, tally, verified, wait_for};

/// What the older service would answer for each resource, from its tables; without its reports.
const ANSWERS: &str = "SELECT jsonb_object_agg(r.id, jsonb_strip_nulls(jsonb_build_object(
        'id', r.id, 'kind', r.kind, 'name', r.name, 'href', r.href, 'generation', r.generation,
        'created_by', r.created_by, 'updated_by', r.updated_by, 'deleted_by', r.deleted_by,
        'owner_references', CASE WHEN r.owner_id IS NOT NULL THEN
            jsonb_build_object('id', r.owner_id, 'kind', r.owner_kind, 'href', r.owner_href) END,
        'tenancy', r.tenancy,
        'labels', (SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM resource_labels l
                   WHERE l.resource_id = r.id)))) FROM resources r";

/// Times of each resource, in microseconds.
const TIMES_THERE: &str = "SELECT jsonb_object_agg(id, jsonb_build_array(
        extract(epoch FROM created_time), extract(epoch FROM updated_time), extract(epoch FROM deleted_time)))
     FROM resources";
const TIMES_HERE: &str = "SELECT jsonb_object_agg(id, jsonb_build_array(
        extract(epoch FROM created_at), extract(epoch FROM updated_at), extract(epoch FROM deleted_at))) FROM resources";

#[tokio::test]
async fn every_resource_is_served_as_it_was() {
    let world = World::filled(20).await;
    let report = world.run(PLAIN).await;
    assert_eq!(finding_counts(&report), []);
    assert_eq!(tally(&report), [80, 0, 0]);
    assert_eq!(verified(&report), [80, 0, 0]);
    let kind = |kind: &str| (report.kinds[kind].source, report.kinds[kind].imported);
    assert_eq!((kind("Cluster"), kind("NodePool")), ((20, 20), (60, 60)));
    assert_eq!(
        world.source_value(TIMES_THERE).await,
        world.target_value(TIMES_HERE).await
    );
    let specs = "SELECT jsonb_object_agg(id, spec::text) FROM resources";
    assert_eq!(
        world.source_value(specs).await,
        world.target_value(specs).await
    );
    let older_data = "SELECT jsonb_object_agg(resource_id || adapter, coalesce(data, '{}')::text) FROM adapter_statuses";
    let imported_data =
        "SELECT jsonb_object_agg(resource_id::text || adapter, data::text) FROM adapter_reports";
    assert_eq!(
        world.source_value(older_data).await,
        world.target_value(imported_data).await
    );
    let expected = world.source_value(ANSWERS).await;
    let api = world.serve();
    for (id, expected) in expected.as_object().unwrap() {
        let answer = api.get(&format!("/resources/{id}")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        for (member, expected) in expected.as_object().unwrap() {
            assert_eq!(answer.body[member], *expected, "{member} of {id}");
        }
    }
    // The totals of lists are stored in tables of their own.
    let clusters = api.get("/clusters?includeDeleted=true").await;
    assert_eq!(clusters.body["total"], 20);
    assert_eq!(api.get("/clusters").await.body["total"], 18);
}

#[tokio::test]
async fn settings_of_either_role_change_no_import() {
    let world = World::filled(20).await;
    let mut there = world.source.connect().await;
    world.source.make_unsuitable("serializable").await;
    // The older service's server may be too old for this setting, so that the import cannot name it.
    let name = world.source.options().get_database().unwrap().to_owned();
    let reset = format!("ALTER DATABASE {name} RESET idle_session_timeout");
    let reset = sqlx::raw_sql(AssertSqlSafe(reset)).execute(&mut there);
    reset.await.unwrap();
    world.target.make_unsuitable("serializable").await;
    let report = world.run(PLAIN).await;
    assert_eq!(finding_counts(&report), []);
    assert_eq!(tally(&report), [80, 0, 0]);
    assert_eq!(verified(&report), [80, 0, 0]);
}

#[tokio::test]
async fn conditions_and_reports_are_served_as_they_were() {
    let world = World::filled(2).await;
    world.run(PLAIN).await;
    let api = world.serve();
    let id = cluster_id(1);
    let cluster = api.get(&format!("/clusters/{id}")).await;
    let condition = |kind: &str, status: &str, texts: Value| {
        let mut condition = json!({
            "type": kind, "status": status, "observed_generation": 2,
            "created_time": "2026-01-01T00:00:01.123463Z", "last_updated_time": "2026-01-02T00:00:02.000011Z",
            "last_transition_time": "2026-01-02T00:00:01.000011Z",
        });
        for (member, text) in texts.as_object().unwrap() {
            condition[member] = text.clone();
        }
        condition
    };
    let conditions = json!([
        condition(
            "Reconciled",
            "True",
            json!({"reason": "Because", "message": "of \"this\""})
        ),
        condition(
            "LastKnownReconciled",
            "True",
            json!({"reason": "AllAdaptersReconciled", "message": ""})
        ),
        condition(
            "ValidationSuccessful",
            "False",
            json!({"reason": "", "message": "ö"})
        ),
        condition("HypershiftSuccessful", "True", json!({})),
    ]);
    assert_eq!(cluster.body["status"]["conditions"], conditions);
    let statuses = api.get(&format!("/clusters/{id}/statuses")).await;
    let conditions = json!([
        {"type": "Health", "status": "True", "last_transition_time": "2026-01-04T00:00:00.123456Z"},
        {"type": "Available", "status": "Unknown", "reason": "R", "message": "m",
         "last_transition_time": "2026-01-04T00:00:00Z"},
        {"type": "Applied", "status": "False", "last_transition_time": "2026-01-04T00:00:00Z"},
    ]);
    let report = |adapter: &str, data: Value| {
        json!({
            "adapter": adapter, "observed_generation": 2, "conditions": conditions, "data": data,
            "created_time": "2026-01-02T00:00:01.000011Z", "last_report_time": "2026-01-02T00:00:01.000012Z",
        })
    };
    let mut validation = report(
        "validation",
        json!({"name": "Cluster", "big": 1e25, "list": [1, 2.5]}),
    );
    let metadata =
        json!({"attempt": 3, "job_name": "job", "completed_time": "2026-01-04T00:00:00.999999Z"});
    validation["metadata"] = metadata;
    assert_eq!(
        statuses.body["items"],
        json!([report("hypershift", json!({})), validation])
    );
}

#[tokio::test]
async fn a_dry_run_says_what_would_be_and_writes_nothing() {
    let world = World::filled(5).await;
    let report = world.run(DRY).await;
    assert!(report.dry_run);
    assert_eq!(tally(&report), [20, 0, 0]);
    assert_eq!(report.kinds["Cluster"].imported, 5);
    assert_eq!(verified(&report), [0, 0, 0]);
    let rows =
        "SELECT (SELECT count(*) FROM resources) + (SELECT count(*) FROM imported_resources)";
    assert_eq!(world.target_value(rows).await, 0);
    // After an import it compares, and finds nothing to do.
    world.run(PLAIN).await;
    let report = world.run(DRY).await;
    assert_eq!(
        (tally(&report), verified(&report)),
        ([0, 0, 20], [20, 0, 0])
    );
}

#[tokio::test]
async fn a_role_that_may_only_read_is_enough() {
    let world = World::filled(3).await;
    let role = format!("reader_{}", std::process::id());
    world
        .there(&format!(
            "CREATE ROLE {role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}"
        ))
        .await;
    let source = TestDatabase::at(world.source.options().username(&role));
    let target = TestDatabase::at(world.target.options());
    let reader = World::of(source, target, world.registry.clone());
    let report = reader.run(PLAIN).await;
    assert_eq!(verified(&report), [12, 0, 0]);
    // Of rows that a policy hides nothing is known: they are not taken for removed.
    world
        .there("ALTER TABLE resources ENABLE ROW LEVEL SECURITY")
        .await;
    let refused = reader.try_run(PLAIN).await.unwrap_err();
    assert!(matches!(refused, Error::Failed { .. }), "{refused:?}");
    assert_eq!(
        world.target_value("SELECT count(*) FROM resources").await,
        12
    );
    world
        .there(&format!("DROP OWNED BY {role}; DROP ROLE {role}"))
        .await;
}

#[tokio::test]
async fn each_step_tells_how_far_it_is() {
    let world = World::filled(5).await;
    let (report, reported) = world.run_until(PLAIN, |_| false).await;
    report.unwrap();
    assert_eq!(reported[0].step, ImportStep::List);
    let of = |step| {
        reported
            .iter()
            .filter(move |p| p.step == step)
            .map(|p| (p.done, p.total))
    };
    // By level: five clusters, then 15 node pools.
    let expected = [(5, 20), (12, 20), (19, 20), (20, 20)];
    assert_eq!(of(ImportStep::Import).collect::<Vec<_>>(), expected);
    assert_eq!(of(ImportStep::Compare).next_back(), Some((20, 20)));
}

#[tokio::test]
async fn no_table_of_the_source_is_emptied_meanwhile() {
    let world = World::filled(4).await;
    let truncate = "DO $$ BEGIN
            SET LOCAL lock_timeout = '200ms';
            TRUNCATE adapter_statuses;
        EXCEPTION WHEN lock_not_available THEN NULL; END $$";
    let observe = |progress: ImportProgress| {
        if progress.step == ImportStep::List {
            wait_for(world.there(truncate));
        }
        false
    };
    let report = world.run_until(PLAIN, observe).await.0.unwrap();
    assert_eq!(verified(&report), [16, 0, 0]);
    let reports = "SELECT count(*) FROM adapter_statuses";
    assert_eq!(world.source_value(reports).await, report.reports);
    assert!(report.reports > 0);
}

#[tokio::test]
async fn large_resources_come_in_small_batches() {
    let world = World::empty().await;
    world.there("SELECT fill(20, 0)").await;
    world
        .there("UPDATE resources SET spec = jsonb_build_object('a', repeat('x', 1000000))")
        .await;
    let many = PassOptions {
        batch: 10_000,
        ..PLAIN
    };
    assert_eq!(verified(&world.run(many).await), [20, 0, 0]);
    // Two are finalizing; of the others 17 have more than 16 MiB.
    let batches = "SELECT jsonb_agg(n ORDER BY at) FROM (
        SELECT count(*) AS n, min(position) AS at FROM changes GROUP BY xmin::text) t";
    assert_eq!(world.target_value(batches).await, json!([2, 17, 1]));
}

#[tokio::test]
async fn damage_here_is_found_and_repaired() {
    let world = World::filled(4).await;
    world.run(PLAIN).await;
    let breaches = [
        "UPDATE resources SET updated_at = updated_at + interval '1 microsecond'",
        "UPDATE resources SET spec = jsonb_set(spec, '{replicas}', '9')",
        "UPDATE resources SET labels = labels || '{\"new\": \"1\"}'",
        "UPDATE resources SET conditions = conditions #- '{0,message}'",
        "UPDATE resources SET generation = generation - 1",
        "UPDATE resources SET created_by = 'other'",
    ];
    for (number, breach) in breaches.into_iter().enumerate() {
        let id = cluster_id(1 + number % 4);
        world
            .damage_target(&format!("{breach} WHERE id = '{id}'"))
            .await;
        let report = world.run(DRY).await;
        assert_eq!(
            (report.changed, verified(&report)),
            (1, [15, 0, 0]),
            "{breach}"
        );
        let report = world.run(PLAIN).await;
        assert_eq!(
            (report.changed, verified(&report)),
            (1, [16, 0, 0]),
            "{breach}"
        );
    }
    let id = cluster_id(1);
    for breach in [
        format!(
            "DELETE FROM adapter_reports WHERE resource_id = '{id}' AND adapter = 'validation'"
        ),
        format!("UPDATE adapter_reports SET data = '{{}}' WHERE resource_id = '{id}'"),
        format!("UPDATE adapter_reports SET conditions = '[]' WHERE resource_id = '{id}'"),
        format!("UPDATE adapter_reports SET metadata = NULL WHERE resource_id = '{id}'"),
    ] {
        world.change_target(&breach).await;
        let report = world.run(PLAIN).await;
        assert_eq!(
            (report.changed, verified(&report)),
            (1, [16, 0, 0]),
            "{breach}"
        );
    }
}
