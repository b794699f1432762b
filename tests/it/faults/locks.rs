//! A lock that another transaction does not give back.

use hyperfleet::domain::entity_config;
use serde_json::json;

use crate::support::{TestApi, TestDatabase};

/// For every later connection.
const IMPATIENT: &str = "DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET lock_timeout = 100', current_database());
END $$";

#[tokio::test]
async fn a_client_that_waits_for_a_lock_in_vain_learns_that() {
    let database = TestDatabase::create().await;
    let mut other = database.connect().await;
    sqlx::raw_sql(IMPATIENT).execute(&mut other).await.unwrap();
    let registry = entity_config::registry(&entity_config::built_in()).unwrap();
    let store = database.store();
    let api = TestApi::spawn_on(registry, database, store, false);
    let cluster = api.cluster("held").await;
    let hold = "BEGIN; SELECT FROM resources FOR UPDATE";
    sqlx::raw_sql(hold).execute(&mut other).await.unwrap();
    let answer = api.patch(&cluster, json!({"spec": {"size": 1}})).await;
    assert_eq!(answer.problem(), (503, "SVC-001"), "{}", answer.body);
    assert_eq!(
        answer.detail(),
        "another transaction holds what the request needs: send it again later"
    );
    let wait = answer.header("retry-after").expect("Retry-After");
    assert!(wait.parse::<u32>().unwrap() > 0);
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    let answer = api.patch(&cluster, json!({"spec": {"size": 1}})).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
}
