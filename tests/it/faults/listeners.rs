//! The listeners of health and metrics, and what they say from the start to the end.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use sqlx::ConnectOptions as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::hold_resources;
use super::program::{Folder, Program};
use super::restart::{Order, Server};
use crate::support::{
    Answer, Problem as _, TestApi, TestDatabase, WAITING, http_client, store, until,
};

const OK: &str = "{\"status\":\"ok\"}\n";

/// Free ports, with a pause before the end.
const PAUSING: &str = "{health: {port: 0, shutdown_delay: 30s}, metrics: {port: 0}}";

/// Asks a listener; `None` if it cannot be reached.
async fn ask(address: &str, method: &str, path: &str) -> Option<Answer> {
    let url = format!("http://{address}{path}");
    let request = http_client().request(method.parse().unwrap(), url);
    Some(Answer::of(request.send().await.ok()?).await)
}

async fn get(address: &str, path: &str) -> Answer {
    ask(address, "GET", path).await.expect("an answer")
}

fn text(answer: &Answer) -> &str {
    std::str::from_utf8(&answer.bytes).unwrap()
}

fn not_ready(reason: &str) -> String {
    format!("{{\"reason\":\"{reason}\",\"status\":\"not_ready\"}}\n")
}

/// How many migrations this program has.
fn migrations() -> usize {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap());
    // Not schema.sql, which shows what they make together.
    let is_migration = |name: &str| name.starts_with(|first: char| first.is_ascii_digit());
    files
        .filter(|file| is_migration(file.file_name().to_str().unwrap()))
        .count()
}

/// Waits until `/readyz` says this.
async fn until_readyz(address: &str, status: u16, body: &str) {
    until(&format!("/readyz says {body}"), async || {
        let answer = get(address, "/readyz").await;
        answer.status == status && text(&answer) == body
    })
    .await;
}

#[tokio::test]
async fn each_listener_serves_its_own_paths_and_problems() {
    let database = TestDatabase::create().await;
    let mut program = Program::serve(&database);
    let (health, metrics) = (
        program.address("health").await,
        program.address("metrics").await,
    );
    let api = program.serving(database).await;
    for path in ["/healthz", "/readyz"] {
        let answer = get(&health, path).await;
        assert_eq!((answer.status, text(&answer)), (200, OK), "{path}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        let head = ask(&health, "HEAD", path).await.unwrap();
        assert_eq!((head.status, head.bytes.len()), (200, 0));
    }
    let scraped = get(&metrics, "/metrics").await;
    let kind = Some("text/plain; version=0.0.4; charset=utf-8");
    assert_eq!(
        (scraped.status, scraped.header("content-type")),
        (200, kind)
    );
    for (address, path) in [
        (&health, "/metrics"),
        (&metrics, "/readyz"),
        (&metrics, "/"),
    ] {
        let answer = get(address, path).await;
        assert_eq!((answer.status, answer.code()), (404, "NTF-000"), "{path}");
        assert_eq!(answer.body["instance"], path);
    }
    for (address, path) in [(&health, "/readyz"), (&metrics, "/metrics")] {
        let answer = ask(address, "POST", path).await.unwrap();
        assert_eq!((answer.status, answer.code()), (405, "VAL-008"), "{path}");
        assert_eq!(answer.header("allow"), Some("GET, HEAD"));
    }
    assert_eq!(api.get("/healthz").await.problem(), (404, "NTF-000"));
}

#[tokio::test]
async fn a_schema_that_is_too_old_is_waited_for() {
    let database = TestDatabase::create_empty().await;
    let store = database.store();
    let mut program = Program::serve(&database);
    let (health, address) = (
        program.address("health").await,
        program.address("api").await,
    );
    let lack = format!(
        "the database lacks {} migrations that this program needs: run `hyperfleet-api migrate`",
        migrations()
    );
    until_readyz(&health, 503, &not_ready(&lack)).await;
    assert_eq!(text(&get(&health, "/healthz").await), OK);
    let early = get(&address, "/api/hyperfleet/v1/clusters").await;
    assert_eq!((early.status, early.code()), (503, "SVC-001"));
    assert!(early.header("retry-after").is_some());
    assert_eq!(early.detail(), lack);
    assert_eq!(
        get(&address, "/api/hyperfleet/v1/openapi").await.status,
        200
    );
    store.migrate(Duration::ZERO).await.unwrap();
    until_readyz(&health, 200, OK).await;
    let api = program.serving(database).await;
    api.cluster("abc").await;
    let said = program.output();
    assert_eq!(said.matches(&lack).count(), 1, "{said}");
}

#[tokio::test]
async fn readiness_follows_the_database() {
    let server = Server::new();
    let url = server.order(Order::Start).await;
    let database = TestDatabase::at(url.parse().unwrap());
    store(database.options())
        .migrate(Duration::ZERO)
        .await
        .unwrap();
    let settings = "{database: {pool: {conn_retry_interval: 200ms, conn_retry_attempts: 1000}}, \
                     health: {port: 0, shutdown_delay: 0s}, metrics: {port: 0}}";
    server.order(Order::Stop).await;
    let mut program = Program::serve_with(&database, settings, &[]);
    let health = program.address("health").await;
    until_readyz(
        &health,
        503,
        &not_ready("Database connection not available"),
    )
    .await;
    server.order(Order::Start).await;
    until_readyz(&health, 200, OK).await;
    server.order(Order::Stop).await;
    until_readyz(&health, 503, &not_ready("database unavailable")).await;
    assert_eq!(text(&get(&health, "/healthz").await), OK);
    server.order(Order::Start).await;
    until_readyz(&health, 200, OK).await;
    let api = program.serving(database).await;
    assert_eq!(api.get("/clusters").await.status, 200);
    program.signal(Signal::TERM);
    assert!(program.ended().await.success(), "{}", program.output());
    server.order(Order::Stop).await;
}

#[tokio::test]
async fn a_slow_database_makes_the_service_unready() {
    let database = TestDatabase::create().await;
    let settings =
        "{health: {port: 0, shutdown_delay: 0s, db_ping_timeout: 300ms}, metrics: {port: 0}}";
    let mut program = Program::serve_with(&database, settings, &[]);
    let health = program.address("health").await;
    until_readyz(&health, 200, OK).await;
    // Another transaction holds what the probe asks for.
    let mut holder = database.connect().await;
    sqlx::raw_sql("BEGIN; LOCK TABLE _sqlx_migrations IN ACCESS EXCLUSIVE MODE")
        .execute(&mut holder)
        .await
        .unwrap();
    until_readyz(&health, 503, &not_ready("database ping timeout")).await;
    let api = program.serving(database).await;
    assert_eq!(api.get("/clusters").await.status, 200);
    sqlx::raw_sql("ROLLBACK")
        .execute(&mut holder)
        .await
        .unwrap();
    until_readyz(&health, 200, OK).await;
}

#[tokio::test]
async fn a_schema_that_is_newer_than_the_program_is_served_from() {
    let database = TestDatabase::create().await;
    let newer =
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (99990101000000, 'of the next version', true, '\\x00', 1)";
    let mut connection = database.connect().await;
    sqlx::raw_sql(newer).execute(&mut connection).await.unwrap();
    let mut program = Program::serve(&database);
    let health = program.address("health").await;
    until_readyz(&health, 200, OK).await;
}

#[tokio::test]
async fn a_port_in_use_is_reported_with_the_flag_to_change() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    // Nothing listens there: it must not be asked for.
    let database = "postgres://nobody@127.0.0.1:1/nothing".parse().unwrap();
    let database = TestDatabase::at(database);
    for listener in ["server", "health", "metrics"] {
        let flag = format!("--{listener}-port");
        let mut args = vec!["--health-host", "127.0.0.1", "--metrics-host", "127.0.0.1"];
        args.extend([&*flag, &port]);
        let free = ["--health-port", "--metrics-port"].into_iter();
        args.extend(
            free.filter(|other| *other != flag)
                .flat_map(|other| [other, "0"]),
        );
        let mut program = Program::serve_with(&database, "{}", &args);
        assert_eq!(program.ended().await.code(), Some(1));
        let said = program.output();
        let words =
            format!("cannot listen on 127.0.0.1:{port}: it is in use; choose another with {flag}");
        assert!(said.contains(&words), "no {words} in: {said}");
        assert!(
            !said.contains("waiting for") && !said.contains("panic"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn dev_starts_nothing_when_a_port_is_in_use() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for flag in ["--server-port", "--health-port", "--metrics-port"] {
        let folder = Folder::new();
        let mut flags = vec![flag, &*port];
        if flag != "--server-port" {
            flags.extend(["--server-port", "0"]);
        }
        let mut program = Program::dev_with(&folder, &flags, &[]);
        assert_eq!(program.ended().await.code(), Some(1));
        assert!(program.output().contains(flag), "{}", program.output());
        assert!(!folder.data().exists(), "a PostgreSQL was made");
    }
}

#[tokio::test]
async fn a_signal_during_the_start_ends_it_cleanly() {
    let database = TestDatabase::create_empty().await;
    for signal in [Signal::TERM, Signal::INT] {
        let mut program = Program::serve(&database);
        let health = program.address("health").await;
        until("it waits for the schema", async || {
            get(&health, "/readyz").await.bytes.len() > 60
        })
        .await;
        program.signal(signal);
        assert_eq!(
            program.ended().await.code(),
            Some(0),
            "{}",
            program.output()
        );
    }
}

/// Sends a request over a connection that stays open.
async fn sent(api: &TestApi, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(api.address()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn shutdown_drains_and_a_second_signal_ends_it_immediately() {
    let database = TestDatabase::create().await;
    let mut program = Program::serve_with(&database, PAUSING, &[]);
    let health = program.address("health").await;
    let api = program.serving(database).await;
    let before = api.get("/clusters").await;
    assert_eq!((before.status, before.header("connection")), (200, None));
    program.signal(Signal::TERM);
    let over = "{\"reason\":\"Application is shutting down\",\"status\":\"shutting_down\"}\n";
    until_readyz(&health, 503, over).await;
    assert_eq!(text(&get(&health, "/healthz").await), OK);
    let during = api.get("/clusters").await;
    assert_eq!(
        (during.status, during.header("connection")),
        (200, Some("close"))
    );
    let since = Instant::now();
    program.signal(Signal::TERM);
    assert_eq!(program.ended().await.code(), Some(1));
    assert!(
        since.elapsed() < Duration::from_secs(20),
        "{:?}",
        since.elapsed()
    );
}

#[tokio::test]
async fn a_stop_waits_for_requests_and_not_for_idle_connections() {
    // Longer than the test has patience: nothing of this may be waited for.
    let settings = "{server: {timeouts: {read: 10m, idle: 10m}}, metrics: {port: 0}, \
                     health: {port: 0, shutdown_delay: 0s, shutdown_timeout: 2m}}";
    let database = TestDatabase::create().await;
    let mut program = Program::serve_with(&database, settings, &[]);
    let health = program.address("health").await;
    let api = program.serving(database).await;
    let cluster = api.cluster("held").await;
    let idle = [
        sent(&api, "").await,
        sent(&api, "GET /api/hyperfleet HTTP/1.1\r\nHost: x\r\n\r\n").await,
        sent(&api, "GET /api/hyperfleet HT").await,
    ];
    let mut holder = hold_resources(&api.database).await;
    let patch = api.patch(&cluster, json!({"spec": {"last": true}}));
    let (answer, ()) = tokio::join!(patch, async {
        until("the patch waits", async || api.count(WAITING).await == 1).await;
        program.signal(Signal::TERM);
        until("it takes no new connections", async || {
            program.output().contains("completing requests in progress")
        })
        .await;
        assert_eq!(get(&health, "/readyz").await.status, 503);
        until("connections are refused", async || {
            TcpStream::connect(api.address()).await.is_err()
        })
        .await;
        sqlx::raw_sql("COMMIT").execute(&mut holder).await.unwrap();
    });
    assert_eq!(
        (answer.status, &answer.body["spec"]),
        (200, &json!({"last": true}))
    );
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(
        program.ended().await.code(),
        Some(0),
        "{}",
        program.output()
    );
    assert!(
        program.output().contains("all requests completed"),
        "{}",
        program.output()
    );
    drop(idle);
}

#[tokio::test]
async fn what_takes_too_long_at_the_end_is_cut_and_said() {
    let settings =
        "{health: {port: 0, shutdown_delay: 0s, shutdown_timeout: 1s}, metrics: {port: 0}}";
    let database = TestDatabase::create().await;
    let mut program = Program::serve_with(&database, settings, &[]);
    let api = program.serving(database).await;
    let cluster = api.cluster("held").await;
    let mut holder = hold_resources(&api.database).await;
    let request = format!("DELETE /api/hyperfleet/v1{cluster} HTTP/1.1\r\nHost: x\r\n\r\n");
    let cut = sent(&api, &request).await;
    until("the delete waits", async || api.count(WAITING).await == 1).await;
    program.signal(Signal::TERM);
    assert_eq!(program.ended().await.code(), Some(1));
    let said = program.output();
    assert!(said.contains("1 requests were cut"), "{said}");
    drop(cut);
    sqlx::raw_sql("ROLLBACK")
        .execute(&mut holder)
        .await
        .unwrap();
}

#[tokio::test]
async fn migrate_status_says_what_is_there_and_what_is_missing() {
    let database = TestDatabase::create_empty().await;
    let run = async |args: &[&str]| Program::run(&database, args).await;
    let (code, said) = run(&["migrate", "status"]).await;
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("missing  20261127200000 baseline"), "{said}");
    let missing = format!("0 applied, {} missing, 0 unknown", migrations());
    assert!(said.contains(&missing), "{said}");
    assert_eq!(run(&["migrate"]).await.0, Some(0));
    let mut connection = database.connect().await;
    let newer =
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (99990101000000, 'of the next version', true, '\\x00', 1)";
    sqlx::raw_sql(newer).execute(&mut connection).await.unwrap();
    // Standard output has the answer alone; the log is elsewhere, wherever that of the service goes.
    let command = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hyperfleet-api"));
        command.args([
            "migrate",
            "status",
            "-o",
            "json",
            "--database-url",
            &database.url(),
        ]);
        command.args(["--log-output", "stdout", "--db-debug=true"]);
        command
    };
    let output = command().output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(!output.stderr.is_empty(), "there is no log");
    // The reader may have left.
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let unread = command().stdout(writer).output().unwrap();
    assert_eq!(unread.status.code(), Some(0), "{unread:?}");
    let status: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&status["applied"], &status["missing"]),
        (&json!(migrations() + 1), &json!(0))
    );
    let last = json!({"version": 99_990_101_000_000_i64, "name": "of the next version", "state": "unknown"});
    assert_eq!(status["migrations"].as_array().unwrap().last(), Some(&last));
    let older =
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                 VALUES (20261121000000, 'resources', true, '\\x00', 1)";
    sqlx::raw_sql(older).execute(&mut connection).await.unwrap();
    let (code, said) = run(&["migrate"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("of release 0.1"), "{said}");
    let wrong = database
        .options()
        .database("nothing_here")
        .to_url_lossy()
        .to_string();
    let mut program = Program::start(&["migrate", "status", "--database-url", &wrong]);
    assert_eq!(program.ended().await.code(), Some(1));
}

#[tokio::test]
async fn migrate_status_waits_for_a_database_only_if_asked_to() {
    let url = "postgres://nobody@127.0.0.1:1/none";
    let args = ["migrate", "status", "--database-url", url];
    // Whatever waits, waits longer than any test.
    let variables = [("HYPERFLEET_DATABASE_POOL_CONN_RETRY_INTERVAL", "1day")];
    let mut program = Program::start_with(&args, &variables);
    assert_eq!(program.ended().await.code(), Some(1));
    let said = program.output();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("cannot use the database"), "{said}");
    assert_eq!(said.matches("Connection refused").count(), 1, "{said}");

    let program = Program::start_with(&[&args[..], &["--wait"]].concat(), &variables);
    until("it waits", async || {
        program.output().contains("waiting for the database")
    })
    .await;
    let said = program.output();
    assert_eq!(said.matches("Connection refused").count(), 1, "{said}");
}

#[tokio::test]
async fn a_migration_waits_for_another_one_only_so_long() {
    let database = TestDatabase::create_empty().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, "database: {pool: {advisory_lock_timeout: 1s}}").unwrap();
    let file = file.to_str().unwrap();
    // As another program would: every `migrate` takes this lock first.
    let name: String = database.options().get_database().unwrap().to_owned();
    let mut holder = database.connect().await;
    sqlx::query("SELECT pg_advisory_lock($1)")
        .bind(migration_lock(&name))
        .execute(&mut holder)
        .await
        .unwrap();
    let url = database.url();
    let mut program = Program::start(&["migrate", "--config", file, "--database-url", &url]);
    assert_eq!(program.ended().await.code(), Some(1));
    let said = program.output();
    for word in ["waited 1 s for a lock", "advisory_lock_timeout"] {
        assert!(said.contains(word), "no {word} in: {said}");
    }
}

/// The number of the lock that sqlx takes for a database.
fn migration_lock(database: &str) -> i64 {
    let mut crc = u32::MAX;
    for byte in database.bytes() {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
        }
    }
    0x3d32_ad9e * i64::from(!crc)
}
