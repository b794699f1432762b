//! An ordinary database role is enough: the owner of the database, without any right on the server.

use rustix::process::Signal;
use serde_json::json;
use sqlx::AssertSqlSafe;

use super::program::{FREE_PORTS, Program};
use crate::support::TestDatabase;

async fn ends_well(args: &[&str]) {
    let mut program = Program::start(args);
    let status = program.ended().await;
    assert!(status.success(), "{args:?}: {}", program.output());
}

#[tokio::test]
async fn the_owner_of_the_database_can_migrate_serve_watch_and_verify() {
    let database = TestDatabase::create_empty().await;
    let mut admin = database.connect().await;
    let name = database.options().get_database().unwrap().to_owned();
    let role = format!("{name}_owner");
    let make = format!(
        "CREATE ROLE {role} LOGIN PASSWORD 'ordinary' NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION;
         ALTER DATABASE {name} OWNER TO {role}"
    );
    let created = sqlx::raw_sql(AssertSqlSafe(make)).execute(&mut admin).await;
    created.unwrap();
    let owned = database.options().username(&role).password("ordinary");
    let owned = TestDatabase::at(owned);
    let url = owned.url();
    ends_well(&["migrate", "--database-url", &url]).await;

    let mut program = Program::serve_with(&owned, FREE_PORTS, &[]);
    let api = program.serving(owned).await;
    // Another role's transaction, whose state the owner may not see.
    let open = "BEGIN; LOCK TABLE resources IN ACCESS SHARE MODE; SELECT pg_current_xact_id()";
    sqlx::raw_sql(open).execute(&mut admin).await.unwrap();
    let mut watch = reqwest::get(format!("{}/clusters?watch=true", api.base))
        .await
        .unwrap();
    assert_eq!(watch.status(), 200);
    let new = json!({"kind": "Cluster", "name": "seen", "spec": {}});
    assert_eq!(api.post("/clusters", new).await.status, 201);
    let mut seen = String::new();
    while !seen.contains(r#""ADDED""#) {
        let chunk = watch.chunk().await.unwrap().expect("the watch goes on");
        seen.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    assert!(seen.contains(r#""seen""#), "{seen}");
    drop(watch);
    sqlx::raw_sql("ROLLBACK").execute(&mut admin).await.unwrap();
    program.signal(Signal::TERM);
    assert!(program.ended().await.success(), "{}", program.output());
    ends_well(&["audit", "verify", "--database-url", &url]).await;
    let remove = format!("REASSIGN OWNED BY {role} TO CURRENT_USER; DROP ROLE {role}");
    let removed = sqlx::raw_sql(AssertSqlSafe(remove))
        .execute(&mut admin)
        .await;
    removed.unwrap();
}
