//! What a change takes on disk. The figures stand in `docs/internals/performance.md`.

use serde_json::json;

use super::kinds;
use crate::support::TestApi;

const CHANGES: i64 = 250;

/// Bytes that the rows of the table take with its indexes, for each row. The table is empty afterwards.
async fn bytes_per_change(api: &TestApi) -> i64 {
    let count = api.count("SELECT count(*) FROM changes").await;
    assert!(count >= CHANGES, "{count}");
    let full = api.count("SELECT pg_total_relation_size('changes')").await;
    let mut connection = api.database.connect().await;
    // Deleted rows would stay for as long as any snapshot of the database is older.
    sqlx::raw_sql("TRUNCATE changes")
        .execute(&mut connection)
        .await
        .unwrap();
    let empty = api.count("SELECT pg_total_relation_size('changes')").await;
    (full - empty) / count
}

#[tokio::test]
async fn a_change_takes_few_bytes() {
    let api = TestApi::spawn_with(&kinds()).await;
    let nodes: Vec<_> = (0..20)
        .map(|node| json!({"name": format!("node-{node}"), "zone": "eu-west-1a", "size": "large"}))
        .collect();
    let spec = |size: i64| json!({"size": size, "nodes": nodes});
    let mut paths = Vec::new();
    for number in 0..CHANGES {
        let body = json!({"kind": "Site", "name": format!("site-{number}"), "spec": spec(number), "labels": {"shard": "3"}});
        let made = api.post("/sites", body).await;
        paths.push(format!("/sites/{}", made.id()));
    }
    let bytes = spec(1).to_string().len();
    let created = bytes_per_change(&api).await;
    for path in &paths {
        assert_eq!(api.patch(path, json!({"spec": spec(-1)})).await.status, 200);
    }
    let patched = bytes_per_change(&api).await;
    for path in &paths {
        assert_eq!(api.report(path, "dns", 2, &[]).await.status, 201);
    }
    let reported = bytes_per_change(&api).await;
    for path in &paths {
        assert_eq!(api.report(path, "dns", 2, &[]).await.status, 201);
    }
    assert_eq!(api.count("SELECT count(*) FROM changes").await, 0);
    for path in &paths {
        api.deleted(path).await;
    }
    let deleted = bytes_per_change(&api).await;
    for path in &paths {
        let forced = json!({"reason": "test"});
        let forced = api.post(&format!("{path}/force-delete"), forced).await;
        assert_eq!(forced.status, 204);
    }
    let removed = bytes_per_change(&api).await;
    let sizes = [
        ("POST", created, 2_500),
        ("PATCH of the spec", patched, 2_500),
        ("report, another status", reported, 2_000),
        ("DELETE", deleted, 2_000),
        ("removal", removed, 500),
    ];
    for (what, found, _) in sizes {
        println!("| {what}, spec of {bytes} bytes | {found} |");
    }
    for (what, found, most) in sizes {
        assert!(found <= most, "{what}: {found}");
    }
}
