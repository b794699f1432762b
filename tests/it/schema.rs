//! What the schema itself holds, for writers that are not the service.

use hyperfleet_domain::entity_config;
use serde_json::json;

use crate::support::{TestApi, TestDatabase, assert_sound};

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

/// As `pg_restore` and logical replication do.
const WITHOUT_PATH: &str = "SELECT pg_catalog.set_config('search_path', '', false)";

#[tokio::test]
async fn functions_find_their_tables_without_a_search_path() {
    let api = with_cluster().await;
    let cluster = api.cluster("two").await;
    api.nodepool(&cluster, "pool").await;
    let mut connection = api.database.connect().await;
    for sql in [
        WITHOUT_PATH,
        "INSERT INTO public.resources (id, created_at, updated_at, generation, kind, name, created_by, updated_by, spec)
         SELECT gen_random_uuid(), now(), now(), 1, 'Cluster', 'three', 'a', 'a', '{}'",
        "INSERT INTO public.audit_entries (at, resource_id, action, actor, request_id, kind, name, generation_after)
         SELECT now(), id, 'create', 'a', 'r', kind, name, 1 FROM public.resources WHERE name = 'three'",
        "UPDATE public.resources SET labels = '{\"a\": \"b\"}'",
        "UPDATE public.resources SET tenancy = '{\"org\": \"a\"}' WHERE name = 'three'",
        "UPDATE public.resources SET tenancy = '{}' WHERE name = 'three'",
        "SELECT public.has_tenancy(id, '{}'), public.has_dependents(id), public.count_children(id), public.links_of(id),
                public.surroundings(id, NULL, 3, 10) FROM public.resources",
        "SELECT public.changes_end()",
        "SELECT public.begin_audit_era()",
        "INSERT INTO public.resources (id, created_at, updated_at, generation, kind, name, created_by, updated_by, spec)
         SELECT gen_random_uuid(), now(), now(), 1, 'Cluster', 'gone', 'a', 'a', '{}'",
        "DELETE FROM public.resources WHERE name = 'gone'",
    ] {
        let done = sqlx::raw_sql(sql).execute(&mut connection).await;
        assert!(done.is_ok(), "{sql}: {done:?}");
    }
    assert_eq!(api.count("SELECT audit_era()").await.signum(), 1);
    assert_eq!(total(&api, "name like '%25'").await, 3);
    assert_eq!(api.get("/clusters").await.body["total"], 3);
    let recorded = "SELECT count(*) FROM changes WHERE action = 'removed'";
    assert_eq!(api.count(recorded).await, 1);
    // All functions that name more than parts of PostgreSQL were among these.
    let others = "SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace
        AND NOT coalesce(array_to_string(proconfig, ','), '') LIKE '%search_path=public, pg_temp%'
        AND prosrc ~* '\\m(resources|resource_references|changes|changes_removed|audit_entries|resource_counts|audit_era)\\M'";
    assert_eq!(api.count(others).await, 0);
}

#[tokio::test]
async fn restored_rows_are_counted_and_recorded_once() {
    let api = with_cluster().await;
    let mut connection = api.database.connect().await;
    let changes = api.count("SELECT count(*) FROM changes").await;
    for sql in [
        WITHOUT_PATH,
        "INSERT INTO public.resource_counts VALUES ('Cluster', 40, 7)",
        "INSERT INTO public.resources (id, created_at, updated_at, generation, kind, name, created_by, updated_by, spec, tenancy)
         SELECT gen_random_uuid(), now(), now(), 1, 'Cluster', 'restored', 'a', 'a', '{}', '{\"org\": \"a\"}'",
        "INSERT INTO public.tenant_resource_counts VALUES ('{\"org\": \"a\"}', 'Cluster', 40, 7)",
    ] {
        let done = sqlx::raw_sql(sql).execute(&mut connection).await;
        assert!(done.is_ok(), "{sql}: {done:?}");
    }
    let total = api.get("/clusters").await.body["total"].clone();
    assert_eq!(total, 2);
    let of_tenant = "SELECT sum(count)::bigint FROM tenant_resource_counts";
    assert_eq!(api.count(of_tenant).await, 1);
    assert_eq!(api.count("SELECT count(*) FROM changes").await, changes);
}

#[tokio::test]
async fn sequences_behind_their_tables_are_named_and_set() {
    let api = with_cluster().await;
    let mut connection = api.database.connect().await;
    let cluster = api.cluster("two").await;
    for sequence in ["audit_sequence_seq", "changes_position"] {
        let back = format!("SELECT setval('{sequence}', 1, false)");
        let set = sqlx::raw_sql(sqlx::AssertSqlSafe(back)).execute(&mut connection);
        set.await.unwrap();
        let patch = json!({"labels": {"a": sequence}});
        assert_eq!(api.patch(&cluster, patch.clone()).await.status, 500);
        let body = json!({"kind": "Cluster", "name": "three", "spec": {}});
        let answer = api.post("/clusters", body).await;
        // Not 409: the name is free.
        assert_eq!(answer.status, 500, "{}", answer.body);
        let begin = sqlx::raw_sql("SELECT begin_audit_era()");
        begin.execute(&mut connection).await.unwrap();
        assert_eq!(api.patch(&cluster, patch).await.status, 200);
    }
}

#[tokio::test]
async fn the_schema_is_the_first_of_the_search_path() {
    let database = TestDatabase::create_empty().await;
    let mut connection = database.connect().await;
    let name = database.options().get_database().unwrap().to_owned();
    let schema = format!(
        "CREATE SCHEMA \"Hyper Fleet\"; ALTER DATABASE {name} SET search_path = \"Hyper Fleet\", public"
    );
    let made = sqlx::raw_sql(sqlx::AssertSqlSafe(schema)).execute(&mut connection);
    made.await.unwrap();
    let store = database.store();
    store.migrate(std::time::Duration::ZERO).await.unwrap();
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let api = TestApi::spawn_on(registry, database, store, false);
    let cluster = api.cluster("one").await;
    api.nodepool(&cluster, "pool").await;
    api.deleted(&cluster).await;
    let mut connection = api.database.connect().await;
    assert_sound(&mut connection, &entity_config::built_in()).await;
    let elsewhere = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'";
    assert_eq!(api.count(elsewhere).await, 0);
}

/// By a program of the version that has written the file: another one writes views and functions a little differently.
#[tokio::test]
async fn the_schema_file_is_what_the_migrations_make() {
    let written = std::fs::read_to_string("migrations/schema.sql").unwrap();
    let database = TestDatabase::create().await;
    let mut script = std::process::Command::new("scripts/schema");
    // Other programs than the service's driver know fewer parameters.
    let mut url: reqwest::Url = database.url().parse().unwrap();
    let pairs: Vec<_> = url.query_pairs().into_owned().collect();
    let known = pairs.iter().filter(|(name, _)| name == "host");
    url.query_pairs_mut().clear().extend_pairs(known);
    let output = script.arg(url.as_str()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let found = String::from_utf8(output.stdout).unwrap();
    if found.lines().next() != written.lines().next() {
        println!("SKIPPED: migrations/schema.sql is of another version of pg_dump");
        return;
    }
    assert!(found == written, "make schema");
}
