//! What `serve` and `migrate` do before there is anything to serve.

use super::program::Program;
use crate::support::TestDatabase;

#[tokio::test]
async fn serve_says_how_to_go_without_authentication() {
    let database = TestDatabase::create().await;
    let url = database.url();
    let mut program = Program::start(&["serve", "--database-url", &url, "--server-port", "0"]);
    assert!(!program.ended().await.success());
    let said = program.said();
    for word in [
        "--server-jwt-enabled=false",
        "HYPERFLEET_SERVER_JWT_ENABLED=false",
        "server.jwt.enabled",
    ] {
        assert!(said.contains(word), "no {word} in: {said}");
    }
}

#[tokio::test]
async fn serve_asks_for_the_migrations_that_are_missing() {
    let database = TestDatabase::create_empty().await;
    let mut program = Program::serve(&database);
    assert!(!program.ended().await.success());
    let said = program.said();
    assert!(
        said.contains("run `hyperfleet-api migrate` first"),
        "{said}"
    );
}

#[tokio::test]
async fn of_two_migrations_at_once_both_succeed() {
    let database = TestDatabase::create_empty().await;
    let url = database.url();
    let mut programs: Vec<_> = (0..2)
        .map(|_| Program::start(&["migrate", "--database-url", &url]))
        .collect();
    for program in &mut programs {
        assert!(program.ended().await.success(), "{}", program.said());
        assert!(
            program.said().contains("The schema is up to date"),
            "{}",
            program.said()
        );
    }
    let mut again = Program::start(&["migrate", "--database-url", &url]);
    assert!(again.ended().await.success(), "{}", again.said());
    assert!(again.said().contains("0 of them new"), "{}", again.said());
    let mut program = Program::serve(&database);
    let api = program.serving(database).await;
    let cluster = api.cluster("abc").await;
    assert_eq!(api.get(&cluster).await.status, 200);
}

#[tokio::test]
async fn a_database_that_is_not_one_is_named() {
    let mut program = Program::start(&["migrate", "--database-url", "mysql://localhost/x"]);
    assert!(!program.ended().await.success());
    let said = program.said();
    assert!(
        said.contains("postgres://user:password@host:port/name"),
        "{said}"
    );
}
