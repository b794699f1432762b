//! The conformance suite against the real program: every rule holds, a broken rule is found, nothing is left behind.
#![allow(clippy::unwrap_used, reason = "a test that fails, panics")]

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::{Arc, Weak};

use actix_web::{App, HttpRequest, HttpResponse, HttpServer, web};
use hyperfleet_conformance::{CheckOutcome, Row, RunReport, Target, rules, run};
use hyperfleet_testkit::{Answer, RunningProgram, http_client};
use tempfile::TempDir;
use tokio::sync::{Mutex, Notify};

/// `hyperfleet-api dev` with the example kinds, on a database of its own.
struct Server {
    base: String,
    _program: RunningProgram,
    _folder: TempDir,
}

impl Server {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // PostgreSQL may run as another user.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hyperfleet-api"));
        command
            .args(["dev", "--no-demo-adapter"])
            .arg("--data-dir")
            .arg(folder.path().join("postgres"));
        command.args([
            "--server-port",
            "0",
            "--health-port",
            "0",
            "--metrics-port",
            "0",
        ]);
        command.args(["--config", "examples/entities.yaml"]);
        for (name, _) in std::env::vars() {
            if name.starts_with("HYPERFLEET_") && name != "HYPERFLEET_PG_BINDIR" {
                command.env_remove(name);
            }
        }
        command.env_remove("DATABASE_URL");
        let mut program = RunningProgram::start(command);
        let address = |said: &str| {
            let (_, rest) = said.split_once("curl -s http://")?;
            Some(rest.split_once('/')?.0.to_owned())
        };
        let address = program.until_found("it serves", address).await;
        Self {
            base: format!("http://{address}"),
            _program: program,
            _folder: folder,
        }
    }

    /// How many resources there are, finalizing ones, too.
    async fn resources(&self) -> i64 {
        let url = format!(
            "{}/api/hyperfleet/v1/resources?includeDeleted=true&size=1",
            self.base
        );
        let answer = Answer::of(http_client().get(url).send().await.unwrap()).await;
        answer.body["total"].as_i64().unwrap()
    }
}

fn target(base: &str) -> Target {
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
    Target {
        base: base.to_owned(),
        token: None,
        headers: Vec::new(),
        cluster_adapters: names(&["validation", "dns", "pullsecret", "hypershift"]),
        nodepool_adapters: names(&["validation", "hypershift"]),
        lists_include_deleted: false,
    }
}

async fn play(target: Target, only: &[&str]) -> RunReport {
    let only: Vec<_> = only.iter().map(ToString::to_string).collect();
    run(target, &only, std::future::pending(), |_| {})
        .await
        .unwrap()
}

/// The server of the groups that run at this moment: the last one stops it.
static SHARED: Mutex<Weak<Server>> = Mutex::const_new(Weak::new());

async fn shared() -> Arc<Server> {
    let mut shared = SHARED.lock().await;
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(Server::start().await);
    *shared = Arc::downgrade(&server);
    server
}

/// A test for each group of rules: what stands before the dot of their ids.
macro_rules! groups {
    ($($test:ident: $group:literal),+) => {
        const GROUPS: &[&str] = &[$($group),+];

        $(
            #[tokio::test]
            async fn $test() {
                every_rule_holds($group).await;
            }
        )+
    };
}

groups! {
    children: "children",
    conditions: "conditions",
    create: "create",
    delete: "delete",
    errors: "errors",
    fields: "fields",
    force: "force",
    headers: "headers",
    json: "json",
    kinds: "kinds",
    labels: "labels",
    leases: "leases",
    lists: "lists",
    order: "order",
    pages: "pages",
    patch: "patch",
    read: "read",
    reports: "reports",
    routes: "routes",
    search: "search",
    search_faults: "search-fault"
}

async fn every_rule_holds(group: &str) {
    let server = shared().await;
    let report = play(target(&server.base), &[group]).await;
    assert_eq!(report.ids(CheckOutcome::Differs), [""; 0], "{report}");
    assert_eq!(report.ids(CheckOutcome::Skipped), [""; 0], "{report}");
    assert!(report.left_behind.is_empty(), "{report}");
}

#[test]
fn every_rule_belongs_to_a_group_with_a_test() {
    let group = |rule: &str| rule.split('.').next().unwrap_or_default().to_owned();
    let groups: BTreeSet<_> = rules().iter().map(|rule| group(rule)).collect();
    let tested: BTreeSet<_> = GROUPS.iter().map(ToString::to_string).collect();
    assert_eq!(groups, tested);
}

#[tokio::test]
async fn an_interrupted_run_leaves_nothing() {
    let server = Server::start().await;
    let interrupted = Notify::new();
    let mut rows = 0;
    let tell = |_: &Row| {
        rows += 1;
        if rows == 3 {
            interrupted.notify_one();
        }
    };
    let only = ["children".to_owned()];
    let interruption = interrupted.notified();
    let report = run(target(&server.base), &only, interruption, tell)
        .await
        .unwrap();
    assert!(report.interrupted && report.checks.len() < 10, "{report}");
    assert_eq!(server.resources().await, 0);
}

/// The rules that the guide's table of differences names.
fn differences() -> Vec<String> {
    let guide = fs::read_to_string("docs/guides/moving-from-the-go-api.md").unwrap();
    let (_, table) = guide.split_once("\n## Differences\n").unwrap();
    let rows = table.lines().filter(|line| line.starts_with('|'));
    let cells = rows.filter_map(|row| row.split('|').nth(5));
    let rules = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    rules.map(str::to_owned).collect()
}

#[test]
fn rules_that_the_guide_names_exist() {
    let (named, rules) = (differences(), rules());
    assert!(named.len() > 10, "{named:?}");
    for rule in named {
        assert!(rules.contains(&rule), "{rule}");
    }
}

/// An answer, to be broken before it is passed on: method, status, body.
type Break = fn(&str, &mut u16, &mut Vec<u8>);

/// Each with the check that finds it.
const BROKEN: [(&str, Break); 4] = [
    ("reports.stored", |method, status, _| {
        if method == "PUT" && *status == 201 {
            *status = 200;
        }
    }),
    ("create.no-deletion", |_, _, body| {
        replace(
            body,
            "{\"created_by\"",
            "{\"deleted_time\":null,\"created_by\"",
        );
    }),
    ("conditions.reconciled", |_, _, body| {
        replace(body, "ReconciledAll", "AllReconciled");
    }),
    ("errors.shape", |_, _, body| {
        replace(body, "HYPERFLEET-NTF-001", "HYPERFLEET-NTF-000");
    }),
];

fn replace(body: &mut Vec<u8>, from: &str, to: &str) {
    *body = String::from_utf8_lossy(body).replace(from, to).into_bytes();
}

#[tokio::test]
async fn a_broken_rule_is_found() {
    let server = Server::start().await;
    for (id, broken) in BROKEN {
        let report = play(target(&proxy(&server.base, broken)), &[id]).await;
        assert_eq!(report.ids(CheckOutcome::Differs), [id], "{report}");
        assert!(report.left_behind.is_empty(), "{report}");
        let whole = play(target(&proxy(&server.base, |_, _, _| {})), &[id]).await;
        assert_eq!(whole.ids(CheckOutcome::Holds), [id], "{whole}");
    }
    assert_eq!(server.resources().await, 0);
}

/// Passes requests on, and answers after `broken` has changed them; gives its base.
fn proxy(base: &str, broken: Break) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (base, client) = (base.to_owned(), http_client());
    let server = HttpServer::new(move || {
        let (base, client) = (base.clone(), client.clone());
        App::new().default_service(web::to(move |request: HttpRequest, body: web::Bytes| {
            let method = request.method().as_str().to_owned();
            let url = format!("{base}{}", request.uri());
            let sent = client.request(method.parse().unwrap(), url).body(body);
            async move {
                let answer = Answer::of(sent.send().await.unwrap()).await;
                let (mut status, mut bytes) = (answer.status, answer.bytes.clone());
                broken(&method, &mut status, &mut bytes);
                let mut response = HttpResponse::build(status.try_into().unwrap());
                for name in ["content-type", "x-request-id", "allow"] {
                    if let Some(value) = answer.header(name) {
                        response.insert_header((name, value));
                    }
                }
                response.body(bytes)
            }
        }))
    });
    let server = server
        .workers(1)
        .disable_signals()
        .listen(listener)
        .unwrap();
    tokio::spawn(server.run());
    format!("http://{address}")
}
