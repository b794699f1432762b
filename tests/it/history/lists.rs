//! Lists of a moment, with resources that another writer has changed since.

use serde_json::{Value, json};
use sqlx::Connection as _;

use super::{kinds, text};
use crate::support::TestApi;

#[tokio::test]
async fn what_another_writer_renamed_is_listed_under_its_former_name() {
    let api = TestApi::spawn_with(&kinds()).await;
    for name in ["a", "b", "c"] {
        api.make("/sites", "Site", name).await;
    }
    let then = text(api.clock.now());
    let mut connection = api.database.connect().await;
    for sql in [
        "UPDATE resources SET name = 'z', generation = 2 WHERE name = 'a'",
        "UPDATE resources SET deleted_at = clock_timestamp(), deleted_by = 'x' WHERE name = 'b'",
        "DELETE FROM resources WHERE name = 'c'",
        "INSERT INTO resources (id, kind, name, spec, generation, created_at, created_by, updated_at, updated_by)
         SELECT gen_random_uuid(), kind, 'new', spec, 1, created_at, created_by, updated_at, updated_by
         FROM resources WHERE name = 'z'",
    ] {
        let done = sqlx::raw_sql(sql).execute(&mut connection).await;
        done.unwrap();
    }
    connection.close().await.unwrap();
    let names = async |list: &str| {
        let answer = api.get(list).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.body["total"], json!(answer.items().len()), "{list}");
        let names = answer.items().iter().map(|item| item["name"].clone());
        names.collect::<Vec<Value>>()
    };
    for deleted in ["", "&includeDeleted=true"] {
        for order in ["name", "name,generation"] {
            let list = format!("/sites?order={order}{deleted}");
            let listed = names(&format!("{list}&at={then}")).await;
            assert_eq!(listed, ["a", "b", "c"], "{list}");
        }
    }
    assert_eq!(names("/sites?order=name").await, ["new", "z"]);
}

/// Runs the statements as another program would.
async fn run(api: &TestApi, statements: impl IntoIterator<Item = &str>) {
    let mut connection = api.database.connect().await;
    for sql in statements {
        let done = sqlx::raw_sql(sqlx::AssertSqlSafe(sql))
            .execute(&mut connection)
            .await;
        done.unwrap();
    }
    connection.close().await.unwrap();
}

/// The names of all sites at a moment in each order, which is the same one.
async fn listed(api: &TestApi, at: &str) -> Vec<String> {
    let mut lists = Vec::new();
    for order in ["name", "created_time%20desc", "name,generation"] {
        let answer = api.get(&format!("/sites?order={order}&at={at}")).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let names = answer.items().iter().map(|item| item["name"].as_str());
        let mut names: Vec<_> = names.map(|name| name.unwrap().to_owned()).collect();
        assert_eq!(answer.body["total"], json!(names.len()), "{order}");
        names.sort();
        lists.push(names);
    }
    assert!(lists.iter().all(|names| *names == lists[0]), "{lists:?}");
    lists.remove(0)
}

#[tokio::test]
async fn a_change_with_an_earlier_time_still_comes_last() {
    let api = TestApi::spawn_with(&kinds()).await;
    let mut paths = Vec::new();
    for name in ["a", "b"] {
        paths.push(api.make("/sites", "Site", name).await);
    }
    let begin = text(api.clock.now());
    api.clock.advance(1_800);
    let then = text(api.clock.now());
    api.clock.advance(1_800);
    for path in &paths {
        assert_eq!(
            api.patch(path, json!({"spec": {"size": 1}})).await.status,
            200
        );
    }
    let earlier =
        format!("UPDATE changes SET at = '{begin}' WHERE action = 'removed' OR name = 'z'");
    let changes = [
        "UPDATE resources SET name = 'z' WHERE name = 'a'",
        "DELETE FROM resources WHERE name = 'b'",
        &earlier,
    ];
    run(&api, changes).await;
    assert_eq!(listed(&api, &then).await, ["a", "b"]);
    assert_eq!(listed(&api, &text(api.clock.now())).await, ["z"]);
}

#[tokio::test]
async fn what_was_there_before_its_time_of_creation_is_listed() {
    let api = TestApi::spawn_with(&kinds()).await;
    api.make("/sites", "Site", "a").await;
    let copy = "INSERT INTO resources (id, kind, name, spec, generation, created_at, created_by, updated_at, updated_by)
                SELECT gen_random_uuid(), kind, 'ahead', spec, 1, created_at + interval '1 day', created_by, updated_at, updated_by
                FROM resources";
    api.clock.advance(60);
    let then = text(api.clock.now());
    run(
        &api,
        [
            copy,
            "UPDATE changes SET at = (SELECT min(at) FROM changes)",
        ],
    )
    .await;
    assert_eq!(listed(&api, &then).await, ["a", "ahead"]);
}

#[tokio::test]
async fn an_id_of_another_kind_then_is_in_no_list_of_the_kind() {
    let api = TestApi::spawn_with(&kinds()).await;
    let path = api.make("/sites", "Site", "a").await;
    let id = path.rsplit('/').next().unwrap();
    let again = format!(
        "INSERT INTO resources (id, kind, name, spec, generation, created_at, created_by, updated_at, updated_by)
         VALUES ('{id}', 'Rack', 'a', '{{}}', 1, now(), 'x', now(), 'x')"
    );
    run(&api, ["DELETE FROM resources", &*again]).await;
    let then = "SELECT to_char(clock_timestamp(), 'YYYY-MM-DD\"T\"HH24:MI:SS.USZ')";
    let mut connection = api.database.connect().await;
    let then: String = sqlx::query_scalar(then)
        .fetch_one(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    run(&api, ["DELETE FROM resources"]).await;
    api.clock.advance(60);
    assert_eq!(listed(&api, &then).await, [""; 0]);
    let racks = api.get(&format!("/racks?at={then}")).await;
    assert_eq!(racks.body["total"], 1, "{}", racks.body);
}
