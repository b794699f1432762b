//! What comes to depend on a resource while its deletion waits for the row.

use serde_json::Value;
use sqlx::AssertSqlSafe;
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

/// A transaction that holds a resource with a lock, and has made something that depends on it.
async fn dependent(api: &TestApi, path: &str, lock: &str, made: &'static str) -> PgConnection {
    let mut holder = api.database.connect().await;
    sqlx::raw_sql("BEGIN").execute(&mut holder).await.unwrap();
    let lock = format!("SELECT FROM resources WHERE id = $1 FOR {lock}");
    for sql in [AssertSqlSafe(lock), AssertSqlSafe(made.to_owned())] {
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
async fn a_child_created_during_a_deletion_is_deleted_too() {
    // The service takes this lock. Other writers take only the lock of the foreign key.
    for lock in ["SHARE", "KEY SHARE"] {
        let busy = Busy::spawn().await;
        let cluster = busy.api.cluster("owner").await;
        let mut holder = dependent(&busy.api, &cluster, lock, CHILD).await;
        let deleted = deleted_meanwhile(&busy.api, &cluster, &mut holder).await;
        assert_eq!(deleted.status, 202, "{lock}: {}", deleted.body);
        let finalizing =
            "SELECT count(*) FROM resources WHERE owner_id = $1 AND deleted_at IS NOT NULL";
        assert_eq!(busy.count(finalizing, &cluster).await, 1, "{lock}");
    }
}

#[tokio::test]
async fn a_link_that_came_while_the_deletion_waited_holds_its_target() {
    for lock in ["NO KEY UPDATE", "KEY SHARE"] {
        let busy = Busy::spawn().await;
        busy.api.cluster("source").await;
        let cluster = busy.api.cluster("target").await;
        let mut holder = dependent(&busy.api, &cluster, lock, LINK).await;
        let refused = deleted_meanwhile(&busy.api, &cluster, &mut holder).await;
        assert_eq!(refused.status, 409, "{lock}: {}", refused.body);
        let found = busy.api.get(&cluster).await;
        assert_eq!(found.body["deleted_time"], Value::Null, "{lock}");
    }
}
