//! What `serve` and `migrate` do before there is anything to serve.

use sqlx::ConnectOptions as _;

use super::program::{FREE_PORTS, Program};
use crate::support::{TestDatabase, until};

#[tokio::test]
async fn serve_without_an_issuer_says_what_to_do() {
    let database = TestDatabase::create().await;
    let url = database.url();
    let mut program = Program::start(&["serve", "--database-url", &url, "--server-port", "0"]);
    assert!(!program.ended().await.success());
    let said = program.output();
    for word in [
        "server.jwt.configs requires at least one issuer when jwt is enabled",
        "--server-jwt-enabled=false",
        "HYPERFLEET_SERVER_JWT_ENABLED=false",
        "server.jwt.enabled",
    ] {
        assert!(said.contains(word), "no {word} in: {said}");
    }
}

#[tokio::test]
async fn of_two_migrations_at_once_both_succeed() {
    let database = TestDatabase::create_empty().await;
    let url = database.url();
    let mut programs: Vec<_> = (0..2)
        .map(|_| Program::start(&["migrate", "--database-url", &url]))
        .collect();
    for program in &mut programs {
        assert!(program.ended().await.success(), "{}", program.output());
        assert!(
            program.output().contains("The schema is up to date"),
            "{}",
            program.output()
        );
    }
    let mut again = Program::start(&["migrate", "--database-url", &url]);
    assert!(again.ended().await.success(), "{}", again.output());
    let said = again.output();
    assert!(said.contains("0 more than before"), "{said}");
    let mut program = Program::serve(&database);
    let api = program.serving(database).await;
    let cluster = api.cluster("abc").await;
    assert_eq!(api.get(&cluster).await.status, 200);
}

#[tokio::test]
async fn a_database_that_is_not_one_is_named() {
    let mut program = Program::start(&["migrate", "--database-url", "mysql://localhost/x"]);
    assert!(!program.ended().await.success());
    let said = program.output();
    assert!(
        said.contains("postgres://user:password@host:port/name"),
        "{said}"
    );
}

/// Starts `serve` with these arguments and gives what it says when it refuses to.
async fn refusal(args: &[&str]) -> String {
    let mut program = Program::start(args);
    assert!(!program.ended().await.success(), "{}", program.output());
    program.plain_output()
}

#[tokio::test]
async fn a_refused_login_ends_the_start_without_the_password() {
    let database = TestDatabase::create_empty().await;
    let options = database.options().password("hush");
    for (options, missing) in [
        (
            options.clone().username("nobody_here"),
            "role \"nobody_here\"",
        ),
        (
            options.clone().database("nothing_here"),
            "database \"nothing_here\"",
        ),
    ] {
        let url = options.to_url_lossy().to_string();
        let since = std::time::Instant::now();
        let said = refusal(&["migrate", "--database-url", &url]).await;
        for word in [missing, " at ", " as user ", "--database-url"] {
            assert!(said.contains(word), "no {word} in: {said}");
        }
        assert!(!said.contains("hush"), "{said}");
        // Once only, and not after ten attempts of three seconds each.
        assert!(said.matches(missing).count() <= 2, "{said}");
        assert!(since.elapsed().as_secs() < 20, "{:?}", since.elapsed());
    }
}

#[tokio::test]
async fn settings_that_make_no_sense_are_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    let file = file.to_str().unwrap();
    for (text, words) in [
        (
            "audit: {retention: 0s}",
            vec!["audit.retention", file, "\"0s\" is not between 1h"],
        ),
        ("server: {port: abc}", vec!["server.port", file, "abc"]),
        (
            "database: {pool: {max_connections: 201}}",
            vec!["max_connections", "\"201\" is not between 1 and 200"],
        ),
        (
            "database: {pool: {max_connections: 0}}",
            vec!["max_connections", "\"0\" is not between 1 and 200"],
        ),
        ("nonsense: 1", vec!["nonsense", file]),
    ] {
        std::fs::write(file, text).unwrap();
        let said = refusal(&["migrate", "--config", file]).await;
        for word in words {
            assert!(said.contains(word), "{text}: no {word} in: {said}");
        }
    }
    let mut program = Program::start_with(&["migrate"], &[("HYPERFLEET_SERVER_PORT", "abc")]);
    assert!(!program.ended().await.success());
    let said = program.output();
    assert!(said.contains("HYPERFLEET_SERVER_PORT"), "{said}");
}

#[tokio::test]
async fn an_unusable_address_is_distinguished_from_one_in_use() {
    let database = TestDatabase::create().await;
    let url = database.url();
    let said = refusal(&[
        "serve",
        "--database-url",
        &url,
        "--server-jwt-enabled",
        "false",
        "--server-host",
        "host.invalid",
    ])
    .await;
    assert!(said.contains("--server-host"), "{said}");
    assert!(!said.contains("in use"), "{said}");
}

#[tokio::test]
async fn an_older_program_leaves_a_newer_schema_as_it_is() {
    let database = TestDatabase::create().await;
    let mut connection = database.connect().await;
    let newer =
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (99990101000000, 'of the next version', true, '\\x00', 1)";
    sqlx::raw_sql(newer).execute(&mut connection).await.unwrap();
    let mut program = Program::start(&["migrate", "--database-url", &database.url()]);
    assert!(program.ended().await.success(), "{}", program.output());
    let said = program.output();
    assert!(said.contains("newer than this program, by 1"), "{said}");
    let mut program = Program::serve(&database);
    let api = program.serving(database).await;
    assert_eq!(api.get("/clusters").await.status, 200);
}

#[tokio::test]
async fn no_more_connections_stay_open_than_are_allowed() {
    let database = TestDatabase::create().await;
    let args = ["--db-max-open-connections", "1"];
    let mut program = Program::serve_with(&database, FREE_PORTS, &args);
    let api = program.serving(database).await;
    let ours = "SELECT count(*) FROM pg_stat_activity
                WHERE datname = current_database() AND application_name = 'hyperfleet-api'";
    let count = async || api.count(ours).await;
    // One for requests, and one for background work, which seals the audit trail.
    let both = async || {
        assert_eq!(api.get("/clusters").await.status, 200);
        count().await == 2
    };
    until("both are open", both).await;
    for _ in 0..8 {
        assert_eq!(api.get("/clusters").await.status, 200);
        assert!(count().await <= 2);
    }
}
