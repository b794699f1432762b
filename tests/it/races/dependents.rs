//! What comes to depend on a resource while its deletion waits for the row.

use serde_json::Value;
use sqlx::postgres::PgConnection;

use super::Busy;
use crate::support::{Answer, TestApi, WAITING, until};

const CHILD: &str = "INSERT INTO resources (id, owner_id, created_at, updated_at, generation, kind, name, created_by,
                                            updated_by, spec)
    VALUES (gen_random_uuid(), $1, now(), now(), 1, 'NodePool', 'late', 'a', 'a', '{}')";
const LINK: &str = "INSERT INTO resource_references (source_id, target_id, ref_type, target_kind)
    SELECT id, $1, 'next', 'Cluster' FROM resources WHERE name = 'source'";

fn id_of(path: &str) -> uuid::Uuid {
    path.rsplit('/').next().unwrap().parse().unwrap()
}

/// A transaction that holds a resource as the service does before it makes something that depends on it, and has
/// made that.
async fn dependent(
    api: &TestApi,
    path: &str,
    lock: &'static str,
    made: &'static str,
) -> PgConnection {
    let mut holder = api.database.connect().await;
    sqlx::raw_sql("BEGIN").execute(&mut holder).await.unwrap();
    for sql in [lock, made] {
        let query = sqlx::query(sql).bind(id_of(path));
        query.execute(&mut holder).await.unwrap();
    }
    holder
}

/// The answer to a deletion that waits until the transaction is committed.
async fn deleted_meanwhile(api: &TestApi, path: &str, holder: &mut PgConnection) -> Answer {
    let (deleted, ()) = tokio::join!(api.delete(path), async {
        until("the deletion waits", async || api.count(WAITING).await == 1).await;
        sqlx::raw_sql("COMMIT").execute(holder).await.unwrap();
    });
    deleted
}

#[tokio::test]
async fn a_child_that_came_while_the_deletion_waited_is_deleted_with_its_parent() {
    let busy = Busy::spawn().await;
    let cluster = busy.api.cluster("owner").await;
    let lock = "SELECT FROM resources WHERE id = $1 FOR SHARE";
    let mut holder = dependent(&busy.api, &cluster, lock, CHILD).await;
    let deleted = deleted_meanwhile(&busy.api, &cluster, &mut holder).await;
    assert_eq!(deleted.status, 202, "{}", deleted.body);
    let finalizing =
        "SELECT count(*) FROM resources WHERE owner_id = $1 AND deleted_at IS NOT NULL";
    assert_eq!(busy.count(finalizing, &cluster).await, 1);
}

#[tokio::test]
async fn a_link_that_came_while_the_deletion_waited_holds_its_target() {
    let busy = Busy::spawn().await;
    busy.api.cluster("source").await;
    let cluster = busy.api.cluster("target").await;
    let lock = "SELECT FROM resources WHERE id = $1 FOR NO KEY UPDATE";
    let mut holder = dependent(&busy.api, &cluster, lock, LINK).await;
    let refused = deleted_meanwhile(&busy.api, &cluster, &mut holder).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    let found = busy.api.get(&cluster).await;
    assert_eq!(found.body["deleted_time"], Value::Null);
}
