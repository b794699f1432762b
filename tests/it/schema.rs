//! What the schema itself holds, for writers that are not the service.

use hyperfleet::domain::entity_config;
use serde_json::json;

use crate::support::{TestApi, assert_sound};

/// A cluster that is in the database, and has no reports.
async fn with_cluster() -> TestApi {
    let api = TestApi::spawn().await;
    api.cluster("one").await;
    api
}

#[tokio::test]
async fn the_service_gives_the_columns_that_follow_from_conditions() {
    const LEFT_TO_TRIGGERS: &str =
        "SELECT count(*) FROM resources WHERE computed_revision <> revision";
    let api = with_cluster().await;
    let [alone, owner] = [api.cluster("alone").await, api.cluster("owner").await];
    let pool = api.nodepool(&owner, "pool").await;
    assert_eq!(api.report(&alone, "dns", 1, &[]).await.status, 201);
    let spec = json!({"spec": {"replicas": 2}});
    assert_eq!(api.patch(&pool, spec).await.status, 200);
    api.deleted(&alone).await;
    api.deleted(&owner).await;
    let changed = "SELECT count(*) FROM resources WHERE revision > 1";
    assert_eq!(api.count(changed).await, 3);
    assert_eq!(api.count(LEFT_TO_TRIGGERS).await, 0);
    assert_sound(
        &mut api.database.connect().await,
        &entity_config::built_in(),
    )
    .await;
}

async fn total(api: &TestApi, search: &str) -> i64 {
    let answer = api.get(&format!("/clusters?search={search}")).await;
    assert_eq!(answer.status, 200, "{search}: {}", answer.body);
    answer.body["total"].as_i64().unwrap()
}

#[tokio::test]
async fn searches_find_conditions_that_an_operator_has_changed() {
    const CHANGE: &str = r#"UPDATE resources SET conditions = '[
        {"type": "Reconciled", "status": "True", "observed_generation": 1, "created_time": "2026-01-01T10:00:00Z",
         "last_updated_time": "2031-01-01T10:00:00Z", "last_transition_time": "2032-01-01T10:00:00Z"},
        {"type": "LastKnownReconciled", "status": "True", "observed_generation": 7, "created_time": "2026-01-01T10:00:00Z",
         "last_updated_time": "2026-01-01T10:00:00Z", "last_transition_time": "2026-01-01T10:00:00Z"}]'"#;
    let api = with_cluster().await;
    let searches = [
        "status.conditions.Reconciled='True'",
        "status.conditions.Reconciled.last_updated_time>'2030-01-01T10:00:00Z'",
        "status.conditions.Reconciled.last_transition_time>'2030-01-01T10:00:00Z'",
        "status.conditions.LastKnownReconciled.observed_generation=7",
    ];
    for search in searches {
        assert_eq!(total(&api, search).await, 0, "{search}");
    }
    let mut connection = api.database.connect().await;
    let change = sqlx::raw_sql(CHANGE);
    change.execute(&mut connection).await.unwrap();
    for search in searches {
        assert_eq!(total(&api, search).await, 1, "{search}");
    }
}

#[tokio::test]
async fn rows_that_no_program_could_read_are_refused() {
    let api = with_cluster().await;
    let mut connection = api.database.connect().await;
    for sql in [
        "UPDATE resources SET generation = 0",
        "UPDATE resources SET kind = ''",
        "UPDATE resources SET name = ''",
        "UPDATE resources SET owner_id = id",
        "UPDATE resources SET deleted_at = now()",
        "UPDATE resources SET deleted_by = 'a'",
        "UPDATE resources SET tenancy = '[]'",
        "UPDATE resources SET labels = '[]'",
        // Otherwise the trigger fails first, which computes columns from them.
        "UPDATE resources SET conditions = '{}', computed_revision = 2",
        "UPDATE resources SET spec = 'null'",
        "INSERT INTO adapter_reports SELECT id, now(), now(), 0, 'a', '[]', '{}', '{}' FROM resources",
        "INSERT INTO adapter_reports SELECT id, now(), now(), 1, '', '[]', '{}', '{}' FROM resources",
        "INSERT INTO adapter_reports SELECT id, now(), now(), 1, 'a', '{}', '{}', '{}' FROM resources",
        "INSERT INTO adapter_reports SELECT id, now(), now(), 1, 'a', '[]', '[]', '{}' FROM resources",
        "INSERT INTO adapter_reports SELECT id, now(), now(), 1, 'a', '[]', '{}', '[]' FROM resources",
        "INSERT INTO audit_entries (at, resource_id, action, actor, request_id, kind, name)
         SELECT now(), id, 'made', 'a', 'r', kind, name FROM resources",
        "INSERT INTO audit_entries (at, resource_id, action, actor, request_id, kind, name, tenancy)
         SELECT now(), id, 'create', 'a', 'r', kind, name, '[]' FROM resources",
    ] {
        let refused = sqlx::raw_sql(sql).execute(&mut connection).await;
        let error = refused.expect_err(sql);
        let error = error.as_database_error().unwrap();
        assert!(error.is_check_violation(), "{sql}: {error}");
    }
    // What may be missing may still be missing.
    let report =
        "INSERT INTO adapter_reports SELECT id, now(), now(), 1, 'a', '[]', '{}' FROM resources";
    let made = sqlx::raw_sql(report).execute(&mut connection).await;
    assert_eq!(made.unwrap().rows_affected(), 1);
}
