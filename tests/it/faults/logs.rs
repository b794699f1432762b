//! The log of the real program: one line for each request, and no secret in it.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::{Value, json};
use sqlx::postgres::PgConnection;

use super::program::Program;
use crate::support::{Cut, Proxy, TestApi, TestDatabase, until};

/// What must not be seen.
const SECRET: &str = "hunter2";

fn serve(database: &TestDatabase, more: &[&str]) -> Program {
    Program::serve_by_flags(database, more, &[])
}

/// The lines of the request of that id, once it is answered.
async fn lines_of(program: &Program, id: &str) -> Vec<Value> {
    let mut lines = Vec::new();
    until("the request is in the log", async || {
        let said = program.output();
        let all = said.lines().filter_map(|l| serde_json::from_str(l).ok());
        lines = all.filter(|l: &Value| l["request_id"] == id).collect();
        lines.iter().any(|l| l.get("status_code").is_some())
    })
    .await;
    lines
}

async fn ask(api: &TestApi, id: &str, method: &str, path: &str, body: &str) -> u16 {
    let url = format!("{}{path}", api.base);
    let request = api.client.request(method.parse().unwrap(), url);
    let request = request.header("x-request-id", id).body(body.to_owned());
    let request = request.header("user-agent", "tester/1");
    request.send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn every_request_gets_one_line_that_says_what_became_of_it() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    std::fs::write(&file, "server: {hostname: here.example}").unwrap();
    let mut program = serve(&database, &["--config", file.to_str().unwrap()]);
    let api = program.serving(database).await;
    let body = r#"{"kind": "Cluster", "name": "abc", "spec": {}}"#;
    let clusters = "/api/hyperfleet/v1/clusters";
    for (id, method, path, body, status, route, code) in [
        ("made", "POST", "/clusters", body, 201, Some(clusters), None),
        (
            "listed",
            "GET",
            "/clusters?search=name='bcd'",
            "",
            200,
            Some(clusters),
            None,
        ),
        (
            "bad",
            "POST",
            "/clusters",
            "{}",
            400,
            Some(clusters),
            Some("VAL-000"),
        ),
        (
            "wrong",
            "PUT",
            "/clusters",
            "",
            405,
            Some(clusters),
            Some("VAL-008"),
        ),
        ("missing", "GET", "/nowhere", "", 404, None, Some("NTF-000")),
    ] {
        assert_eq!(ask(&api, id, method, path, body).await, status, "{id}");
        let lines = lines_of(&program, id).await;
        let [line] = lines.as_slice() else {
            panic!("{id}: {lines:?}");
        };
        let bare = path.split('?').next().unwrap();
        let expected = json!({
            "level": "info", "message": "answered", "component": "api", "hostname": "here.example",
            "version": env!("CARGO_PKG_VERSION"), "method": method, "path": format!("/api/hyperfleet/v1{bare}"),
            "status_code": status, "user_agent": "tester/1", "request_id": id,
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&line[name], value, "{id}: {line}");
        }
        assert_eq!(line.get("route").and_then(Value::as_str), route, "{line}");
        let code = code.map(|code| format!("HYPERFLEET-{code}"));
        assert_eq!(line.get("code").and_then(Value::as_str), code.as_deref());
        assert!(line["duration_ms"].as_f64().unwrap() >= 0.0, "{line}");
        let peer = line["remote_addr"].as_str().unwrap();
        assert!(peer.starts_with("127.0.0.1:"), "{line}");
        let at = line["timestamp"].as_str().unwrap();
        chrono::DateTime::parse_from_rfc3339(at).unwrap();
        // Where nothing can be done nobody is asked who it is.
        let caller = (![404, 405].contains(&status)).then_some("system@hyperfleet.local");
        assert_eq!(line.get("caller").and_then(Value::as_str), caller, "{line}");
    }
}

#[tokio::test]
async fn a_dry_run_is_one_line_that_says_so() {
    let database = TestDatabase::create().await;
    let mut program = serve(&database, &[]);
    let api = program.serving(database).await;
    let cluster = api.cluster("abc").await;
    api.deleted(&cluster).await;
    let forced = format!("{cluster}/force-delete?dryRun=true");
    let reason = r#"{"reason": "it hangs"}"#;
    for (id, method, path, body, status) in [
        ("forced", "POST", &*forced, reason, 200),
        ("refused", "POST", "/clusters?dryRun=true", "{}", 400),
        (
            "misspelled",
            "DELETE",
            &format!("{cluster}?dryrun=true"),
            "",
            400,
        ),
    ] {
        assert_eq!(ask(&api, id, method, path, body).await, status, "{id}");
        let lines = lines_of(&program, id).await;
        let [line] = lines.as_slice() else {
            panic!("{id}: {lines:?}");
        };
        assert_eq!(line["dry_run"], true, "{line}");
        assert_eq!(line["caller"], "system@hyperfleet.local", "{line}");
    }
    assert_eq!(ask(&api, "real", "DELETE", &cluster, "").await, 202);
    let lines = lines_of(&program, "real").await;
    assert!(
        lines.iter().all(|line| line.get("dry_run").is_none()),
        "{lines:?}"
    );
}

/// The only line of a request about the force-delete.
async fn force_deletion(program: &Program, request_id: &str) -> Value {
    let mut lines = lines_of(program, request_id).await;
    lines.retain(|line| line["message"] == "Force-deleting resource");
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines.remove(0)
}

#[tokio::test]
async fn a_force_delete_logs_one_line_with_reason_and_children() {
    let database = TestDatabase::create().await;
    let mut program = serve(&database, &[]);
    let api = program.serving(database).await;
    let cluster = api.cluster("abc").await;
    let nodepools = [
        api.nodepool(&cluster, "abc").await,
        api.nodepool(&cluster, "bcd").await,
    ];
    api.deleted(&cluster).await;
    let path = format!("{cluster}/force-delete");
    let reason = r#"{"reason": "it hangs"}"#;
    assert_eq!(ask(&api, "forced", "POST", &path, reason).await, 204);
    let line = force_deletion(&program, "forced").await;
    let expected = json!({
        "resource_kind": "Cluster", "reason": "it hangs", "caller": "system@hyperfleet.local",
        "action": "force_delete", "children": 2, "committed": true,
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&line[name], value, "{name}: {line}");
    }
    assert!(cluster.ends_with(line["resource_id"].as_str().unwrap()));
    let mut named: Vec<_> = line["child_resource_ids"]
        .as_str()
        .unwrap()
        .split(' ')
        .collect();
    let mut expected = nodepools
        .iter()
        .map(|path| path.rsplit('/').next().unwrap())
        .collect::<Vec<_>>();
    named.sort_unstable();
    expected.sort_unstable();
    assert_eq!(named, expected);
    assert_eq!(
        line.get("owner_resource_ids"),
        None,
        "no owner went with it"
    );
}

/// Entries of the audit trail that are not sealed yet, and sessions that are not idle.
const UNFINISHED: &str = "SELECT (SELECT count(*) FROM audit_entries) -
    (SELECT coalesce(sum(entries), 0)::bigint FROM audit_passes) +
    (SELECT count(*) FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle')";

#[tokio::test]
async fn an_unanswered_force_delete_logs_no_commit() {
    let database = TestDatabase::create().await;
    let proxy = Proxy::start(database.options());
    let through = TestDatabase::at(proxy.options(database.options()));
    let mut program = serve(&through, &[]);
    let api = program.serving(database).await;
    let cluster = api.cluster("abc").await;
    api.deleted(&cluster).await;
    // The background commits through the proxy, too, while there are entries to seal.
    until("every entry is sealed", async || {
        api.count(UNFINISHED).await == 0
    })
    .await;
    proxy.reset(Some(Cut::AfterCommit));
    let path = format!("{cluster}/force-delete");
    let reason = r#"{"reason": "it hangs"}"#;
    assert_eq!(ask(&api, "forced", "POST", &path, reason).await, 503);
    assert_eq!(proxy.cuts(), 1);
    let line = force_deletion(&program, "forced").await;
    assert_eq!(line["committed"], false, "{line}");
    assert!(cluster.ends_with(line["resource_id"].as_str().unwrap()));
    // The database has committed all the same, and the trail has the truth.
    until("the trail has the force-delete", async || {
        let forced = "SELECT count(*) FROM audit_entries WHERE action = 'force_delete'";
        api.count(forced).await == 1
    })
    .await;
    assert!(!api.has(&cluster).await);
}

#[tokio::test]
async fn an_adapter_that_the_kind_does_not_require_is_named_once() {
    let database = TestDatabase::create().await;
    let mut program = serve(&database, &[]);
    let api = program.serving(database).await;
    let report = async |path: &str, adapter: &str| {
        let conditions = ["Available", "Applied", "Health"];
        let conditions = conditions.map(|kind| json!({"type": kind, "status": "True"}));
        let body = json!({"adapter": adapter, "observed_generation": 1, "conditions": conditions});
        let answer = api.put(&format!("{path}/statuses"), body).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
    };
    for name in ["abc", "bcd"] {
        let cluster = api.cluster(name).await;
        for adapter in ["dns", "dsn", "dsn"] {
            report(&cluster, adapter).await;
        }
    }
    let nodepool = api.nodepool(&api.cluster("cde").await, "abc").await;
    report(&nodepool, "dsn").await;
    // Lines are written in the order of requests: that of this one stands behind them all.
    assert_eq!(ask(&api, "last", "GET", &nodepool, "").await, 200);
    lines_of(&program, "last").await;
    let said = program.output();
    let lines = said
        .lines()
        .filter_map(|l| serde_json::from_str::<Value>(l).ok());
    let warnings: Vec<_> = lines.filter(|l| l["level"] == "warn").collect();
    let named: Vec<_> = warnings
        .iter()
        .map(|l| [&l["resource_kind"], &l["adapter"]].map(|text| text.as_str().unwrap()))
        .collect();
    assert_eq!(
        named,
        [["Cluster", "dsn"], ["NodePool", "dsn"]],
        "{warnings:?}"
    );
    assert_eq!(
        warnings[0]["required_adapters"],
        "validation, dns, pullsecret, hypershift"
    );
}

#[tokio::test]
async fn no_secret_is_logged_at_any_level() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    let text = "logging: {level: debug}
database: {debug: true}
server: {jwt: {configs: [{issuer_url: 'https://issuer.example', jwk_cert_url: 'https://issuer.example/keys',
    header: X-Our-Token, identity_header: X-Our-Identity}]}}";
    std::fs::write(&file, text).unwrap();
    let mut program = serve(&database, &["--config", file.to_str().unwrap()]);
    let api = program.serving(database).await;
    let url = format!("{}/clusters?token={SECRET}&page=1", api.base);
    let mut request = api.client.post(url).header("x-request-id", "told");
    for name in [
        "authorization",
        "cookie",
        "x-api-key",
        "x-our-token",
        "x-our-identity",
    ] {
        request = request.header(name, SECRET);
    }
    let body = json!({"kind": "Cluster", "name": "plain-name", "spec": {"adminPassword": SECRET, "size": 3}});
    let answer = request.body(body.to_string()).send().await.unwrap();
    assert_eq!(answer.status(), 201);
    // By a search whose value goes to the database, too.
    let search = format!("/clusters?search=name='{SECRET}'");
    assert_eq!(ask(&api, "asked", "GET", &search, "").await, 200);
    lines_of(&program, "asked").await;
    let lines = lines_of(&program, "told").await;
    let of = |message: &str| {
        let found = lines.iter().find(|l| l["message"] == message);
        found.unwrap_or_else(|| panic!("no \"{message}\": {lines:?}"))
    };
    assert!(
        of("came")["headers"]
            .as_str()
            .unwrap()
            .contains("x-our-token")
    );
    assert_eq!(of("came")["query"], "token=***REDACTED***&page=1");
    let body: Value = serde_json::from_str(of("its body")["body"].as_str().unwrap()).unwrap();
    assert_eq!(
        body["spec"],
        json!({"adminPassword": "***REDACTED***", "size": 3})
    );
    let statement = of("statement");
    let sql = statement["sql"].as_str().unwrap();
    assert!(sql.contains("INSERT INTO resources"), "{sql}");
    assert!(statement["duration_ms"].as_f64().unwrap() > 0.0);
    let said = program.output();
    let told: Vec<_> = said.lines().filter(|line| line.contains(SECRET)).collect();
    // The name `search` marks no secret: its value is logged unchanged, and nowhere else.
    assert!(
        told.iter()
            .all(|line| line.contains("\"message\":\"came\"") && line.contains("asked")),
        "{told:?}"
    );
}

/// Locks one row, so that changes of it wait.
async fn hold(database: &TestDatabase, cluster: &str) -> PgConnection {
    let mut holder = database.connect().await;
    let id: uuid::Uuid = cluster.rsplit('/').next().unwrap().parse().unwrap();
    sqlx::raw_sql("BEGIN").execute(&mut holder).await.unwrap();
    let lock = sqlx::query("SELECT FROM resources WHERE id = $1 FOR UPDATE").bind(id);
    lock.execute(&mut holder).await.unwrap();
    holder
}

/// Waits until a statement has waited for the row for that number of seconds.
async fn until_somebody_waits(database: &TestDatabase, seconds: f64) {
    let mut connection = database.connect().await;
    let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                   AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > $1 * interval '1 s'";
    until("a statement waits for the row", async || {
        let waiting = sqlx::query_scalar::<_, i64>(waiting).bind(seconds);
        waiting.fetch_one(&mut connection).await.unwrap() > 0
    })
    .await;
}

#[tokio::test]
async fn slow_statements_are_logged_without_their_values() {
    let database = TestDatabase::create().await;
    let mut program = serve(&database, &[]);
    let api = program.serving(database).await;
    // Whether the name is taken is unknown before this has ended.
    let mut holder = api.database.connect().await;
    let name = "BEGIN; INSERT INTO resources (id, kind, name, generation, created_at, updated_at, created_by, updated_by,
            spec) VALUES (gen_random_uuid(), 'Cluster', 'abc', 1, now(), now(), 'x', 'x', '{}')";
    sqlx::raw_sql(name).execute(&mut holder).await.unwrap();
    let body = format!(r#"{{"kind": "Cluster", "name": "abc", "spec": {{"word": "{SECRET}"}}}}"#);
    let (status, ()) = tokio::join!(ask(&api, "slow", "POST", "/clusters", &body), async {
        until_somebody_waits(&api.database, 0.3).await;
        sqlx::raw_sql("ROLLBACK")
            .execute(&mut holder)
            .await
            .unwrap();
    });
    assert_eq!(status, 201);
    let lines = lines_of(&program, "slow").await;
    let told = lines.iter().find(|l| l["message"] == "slow statement");
    let told = told.unwrap_or_else(|| panic!("{lines:?}"));
    assert_eq!(told["level"], "warn");
    assert!(told["duration_ms"].as_f64().unwrap() > 200.0, "{told}");
    assert!(
        told["sql"]
            .as_str()
            .unwrap()
            .contains("INSERT INTO resources"),
        "{told}"
    );
    assert!(!program.output().contains(SECRET), "{}", program.output());
    assert!(!program.output().contains("\"message\":\"statement\""));
}

#[tokio::test]
async fn a_client_that_leaves_gets_its_line_too() {
    let database = TestDatabase::create().await;
    let mut program = serve(&database, &[]);
    let api = program.serving(database).await;
    let cluster = api.cluster("abc").await;
    let _holder = hold(&api.database, &cluster).await;
    let mut client = TcpStream::connect(api.address()).unwrap();
    let body = r#"{"spec": {"a": 1}}"#;
    let head = format!(
        "PATCH /api/hyperfleet/v1{cluster} HTTP/1.1\r\nhost: a\r\nx-request-id: gone\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    client.write_all(head.as_bytes()).unwrap();
    until_somebody_waits(&api.database, 0.0).await;
    drop(client);
    let lines = lines_of(&program, "gone").await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["status_code"], 499);
    assert_eq!(lines[0]["message"], "the client left");
    assert_eq!(lines[0]["route"], "/api/hyperfleet/v1/clusters/{id}");
}

#[tokio::test]
async fn the_cause_of_an_error_is_in_the_log_line_of_its_request() {
    let database = TestDatabase::create().await;
    let mut program = serve(&database, &[]);
    let api = program.serving(database).await;
    let broken = "ALTER TABLE audit_entries RENAME TO lost";
    let mut connection = api.database.connect().await;
    sqlx::raw_sql(broken)
        .execute(&mut connection)
        .await
        .unwrap();
    assert_eq!(ask(&api, "broken", "GET", "/audit", "").await, 500);
    let lines = lines_of(&program, "broken").await;
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["level"], "error");
    assert_eq!(lines[0]["message"], "failed");
    assert_eq!(lines[0]["code"], "HYPERFLEET-INT-001");
    let error = lines[0]["error"].as_str().unwrap();
    assert!(error.contains("list the audit trail"), "{error}");
    assert!(
        error.contains("\"audit_entries\" does not exist"),
        "{error}"
    );
}

/// What a program says that waits for a database in vain: on standard output, and on standard error.
fn in_vain(logging: &str, variables: &[(&str, &str)]) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    let text = format!(
        "logging: {{{logging}}}\nserver: {{port: 0, jwt: {{enabled: false}}}}
health: {{port: 0}}\nmetrics: {{port: 0}}
database: {{pool: {{conn_retry_attempts: 1, conn_retry_interval: 10ms}}}}"
    );
    std::fs::write(&file, text).unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hyperfleet-api"));
    command.args([
        "serve",
        "--database-url",
        "postgres://nobody@127.0.0.1:1/none",
    ]);
    command.arg("--config").arg(file);
    let output = command.envs(variables.iter().copied()).output().unwrap();
    assert!(!output.status.success());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

#[test]
fn the_log_goes_to_the_configured_output_in_its_format() {
    let waiting = "waiting for the database";
    let (stdout, stderr) = in_vain("", &[]);
    let line = stdout.lines().find(|line| line.contains(waiting)).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["level"], "warn");
    assert!(
        line["message"].as_str().unwrap().starts_with(waiting),
        "{line}"
    );
    assert_eq!(stderr, "");

    let (stdout, stderr) = in_vain("output: stderr, format: text", &[]);
    assert_eq!(stdout, "");
    assert!(stderr.contains(&format!("  WARN {waiting}")), "{stderr}");

    for (logging, variables) in [
        ("level: error", &[][..]),
        ("", &[("RUST_LOG", "error")]),
        ("level: error", &[("RUST_LOG", "")]),
    ] {
        let (stdout, _) = in_vain(logging, variables);
        assert_eq!(stdout.lines().count(), 1, "{stdout}");
    }
    let overridden = in_vain("level: error", &[("RUST_LOG", "warn")]);
    assert!(overridden.0.contains(waiting), "{overridden:?}");
}

#[test]
fn the_error_that_ends_the_program_is_a_line_of_its_log() {
    let (stdout, stderr) = in_vain("", &[]);
    let last: Value = serde_json::from_str(stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["level"], "error");
    assert_eq!(last["message"], "ended by an error");
    assert_eq!(last["component"], "api");
    let error = last["error"].as_str().unwrap();
    assert!(error.starts_with("cannot use the database"), "{error}");
    assert_eq!(stderr, "");

    let (stdout, stderr) = in_vain("output: stderr, format: text", &[]);
    assert_eq!(stdout, "");
    let last = stderr.lines().last().unwrap();
    let mark = " ERROR ended by an error error=\"cannot use the database";
    assert!(last.contains(mark), "{last}");
}

#[test]
fn standard_error_says_why_it_ended_without_a_log() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hyperfleet-api"));
    command.args([
        "serve",
        "--database-url",
        "postgres://nobody@127.0.0.1:1/none",
    ]);
    command.args([
        "--server-jwt-enabled=false",
        "--server-port=0",
        "--health-port=0",
        "--metrics-port=0",
    ]);
    command.env("HYPERFLEET_DATABASE_POOL_CONN_RETRY_ATTEMPTS", "0");
    let output = command.stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with("hyperfleet-api: cannot use the database"),
        "{stderr}"
    );
}

#[test]
fn invalid_and_silencing_log_filters_are_reported() {
    let (stdout, stderr) = in_vain("", &[("RUST_LOG", "hyperfleet=loud")]);
    let note = stdout.lines().find(|line| line.contains("RUST_LOG"));
    let note: Value = serde_json::from_str(note.unwrap()).unwrap();
    assert_eq!(note["level"], "warn");
    let message = note["message"].as_str().unwrap();
    assert!(
        message.starts_with("RUST_LOG is ignored: \"hyperfleet=loud\" is invalid"),
        "{message}"
    );
    assert!(stdout.contains("waiting for the database"), "{stdout}");
    assert_eq!(stderr, "");

    // A level that is misspelt is the name of a library to the filter.
    let (stdout, stderr) = in_vain("", &[("RUST_LOG", "inof")]);
    assert_eq!(stdout, "");
    let said: Vec<_> = stderr.lines().collect();
    assert!(
        said[0].contains("the log shows nothing of this program"),
        "{stderr}"
    );
    assert!(
        said[1].starts_with("hyperfleet-api: cannot use the database"),
        "{stderr}"
    );
    assert_eq!(said.len(), 2);

    let (stdout, stderr) = in_vain("", &[("RUST_LOG", "off")]);
    assert_eq!(stdout, "");
    assert!(stderr.starts_with("hyperfleet-api: cannot use"), "{stderr}");
}
