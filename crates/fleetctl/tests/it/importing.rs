//! Units of an old fleet are taken over.

use std::path::Path;
use std::process::Command;

use hyperfleet_fleet_model::unit::Options;
use hyperfleet_testkit::{TestEtcd, http_client};
use reqwest::Url;
use serde_json::{Value, json};

use crate::cluster::{Cluster, FIRST};
use crate::operations::ask;
use crate::stub::{Reply, Stub};

/// A unit of the old cluster: its name, file and target state.
type Old<'o> = (&'o str, &'o str, &'o str);

/// The answer of an etcd v2 with these units.
fn dump(units: &[Old]) -> Value {
    let mut nodes = Vec::new();
    for (number, (name, file, state)) in (0_u8..).zip(units) {
        let hash = vec![number; 20];
        let hex = format!("{number:02x}").repeat(20);
        let mut leaf = |key: String, value: String| {
            nodes.push(json!({"key": format!("/_coreos.com/fleet/{key}"), "value": value}));
        };
        leaf(format!("unit/{hex}"), json!({"Raw": file}).to_string());
        leaf(
            format!("job/{name}/object"),
            json!({"Name": name, "UnitHash": hash}).to_string(),
        );
        leaf(format!("job/{name}/target-state"), (*state).to_owned());
    }
    json!({"action": "get", "node": {"key": "/_coreos.com/fleet", "dir": true, "nodes": nodes}})
}

const UNITS: [Old; 4] = [
    (
        "bad.service",
        "[X-Fleet]\nGlobal=true\nMachineOf=a.service\n",
        "launched",
    ),
    (
        "idle.service",
        "[Service]\nExecStart=/bin/idle\n",
        "inactive",
    ),
    ("t@.service", "[Service]\nExecStart=/bin/t\n", "inactive"),
    ("web.service", "[Service]\nExecStart=/bin/web\n", "launched"),
];

#[tokio::test]
async fn units_are_shown_first_and_then_taken_over() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.file("dump.json", &dump(&UNITS).to_string());
    let shown = "UNIT\t\tSTATE\t\tACTION\n\
        bad.service\tlaunched\tinvalid: bad.service: Global cannot be used with Peers\n\
        idle.service\tinactive\tcreate\n\
        t@.service\tinactive\tcreate\n\
        web.service\tlaunched\tcreate\n";
    let left = "Not imported: 1 unit; see the list.\n";
    cluster
        .run(&["import", "--file=dump.json", "--dry-run"])
        .await
        .is(1, shown, left);
    let asked = cluster.run(&["import", "--file=dump.json"]).await;
    asked.is(
        1,
        shown,
        "Nothing was written: use --yes to import without being asked.\n",
    );
    assert_eq!(cluster.get("units").await, json!({}));
    let imported = cluster.run(&["import", "--file=dump.json", "--yes"]).await;
    imported.is(1, &format!("{shown}Imported 3 units\n"), left);
    hyperfleet_testkit::until("it runs", async || cluster.running() == ["web.service"]).await;
    // It is done: nothing is left to do.
    let again = cluster.run(&["import", "--file=dump.json", "--yes"]).await;
    again.is(1, &shown.replace("create", "exists"), left);
}

#[tokio::test]
async fn an_import_resumes_and_ignores_other_files() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.file("web.service", "[Service]\nExecStart=/bin/web\n");
    cluster.file("idle.service", "[Service]\nExecStart=/bin/another\n");
    cluster
        .run(&["submit", "web.service", "idle.service"])
        .await
        .succeeded();
    cluster.file("dump.json", &dump(&UNITS[1..]).to_string());
    let imported = cluster.run(&["import", "--file=dump.json", "--yes"]).await;
    imported.is(
        1,
        "UNIT\t\tSTATE\t\tACTION\n\
         idle.service\tinactive\texists with other content: left as it is\n\
         t@.service\tinactive\tcreate\n\
         web.service\tlaunched\tset state\n\
         Imported 2 units\n",
        "Not imported: 1 unit; see the list.\n",
    );
    assert_eq!(
        cluster.get("units/web.service").await["desiredState"],
        "launched"
    );
    let cat = cluster.run(&["cat", "idle"]).await;
    cat.is(0, "[Service]\nExecStart=/bin/another\n", "");
}

#[tokio::test]
async fn an_etcd_is_asked_for_everything_below_the_prefix() {
    let cluster = Cluster::of(&[FIRST]).await;
    let etcd = Stub::spawn(|line| match line {
        "GET /v2/keys/_coreos.com/fleet/?recursive=true&quorum=true" => {
            Reply::Json(200, dump(&UNITS[1..]))
        }
        _ => Reply::Json(
            404,
            json!({"errorCode": 100, "message": "Key not found", "cause": "/other"}),
        ),
    })
    .await;
    let proxy = Stub::spawn(|_| Reply::Text(502, vec![], "<html>".to_owned())).await;
    let endpoints = format!(
        "--endpoints=http://127.0.0.1:1,{},{}",
        proxy.base(),
        etcd.base()
    );
    let shown = cluster
        .run(&["import", &endpoints, "--dry-run"])
        .await
        .succeeded();
    assert_eq!(shown.lines().count(), 4, "{shown}");
    let other = cluster
        .run(&["import", &endpoints, "--prefix=/other/"])
        .await;
    other.is(
        1,
        "",
        "etcd v2 answered: Key not found (/other, code 100)\n",
    );
    let nowhere = cluster
        .run(&["import", "--endpoints=http://127.0.0.1:1"])
        .await;
    assert_eq!(nowhere.status, 1);
    assert!(
        nowhere
            .errors
            .starts_with("no etcd v2 answers: http://127.0.0.1:1: "),
        "{nowhere:?}"
    );
    let unreadable = cluster.run(&["import", "--file=nowhere.json"]).await;
    assert!(
        unreadable.errors.starts_with("unable to read nowhere.json"),
        "{unreadable:?}"
    );
}

#[tokio::test]
async fn a_stored_unit_that_cannot_be_read_is_left_as_it_is() {
    let option = json!({"section": "Service", "name": "ExecStart", "value": "a\u{7}"});
    let stub = Stub::spawn(move |_| {
        let unit = json!({"name": "web.service", "desiredState": "launched", "options": [option]});
        Reply::Json(200, json!({"units": [unit]}))
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.json");
    std::fs::write(&file, dump(&UNITS[2..]).to_string()).unwrap();
    let file = format!("--file={}", file.display());
    let shown = ask(&stub, &["import", &file, "--dry-run"]).await;
    assert_eq!(
        (shown.status, shown.output.as_str()),
        (
            1,
            "UNIT\t\tSTATE\t\tACTION\n\
             t@.service\tinactive\tcreate\n\
             web.service\tlaunched\texists with other content: left as it is\n"
        )
    );
    assert!(
        shown.errors.starts_with("WARNING: web.service: "),
        "{shown:?}"
    );
}

/// The manual of the move, whose command makes the dump.
const MANUAL: &str = include_str!("../../../../docs/guides/moving-from-coreos-fleet.md");
/// The etcd that the manual's command asks.
const MANUAL_ETCD: &str = "http://127.0.0.1:2379";

/// A real etcd v2 with what a `CoreOS` fleet keeps there: files by their SHA-1, jobs with their states, and for as long as
/// machines live what they report.
async fn old_fleet(units: &[Old<'_>]) -> Option<TestEtcd> {
    let etcd = TestEtcd::start_with_v2().await?;
    for (name, file, state) in units {
        let hash = Options::parse(file.as_bytes()).unwrap().hash().to_string();
        let bytes: Vec<u8> = (0..20)
            .map(|at| u8::from_str_radix(&hash[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        let object = json!({"Name": name, "UnitHash": bytes}).to_string();
        let file = json!({"Raw": file}).to_string();
        store(&etcd, &format!("unit/{hash}"), &file, None).await;
        store(&etcd, &format!("job/{name}/object"), &object, None).await;
        store(&etcd, &format!("job/{name}/target-state"), state, None).await;
        if *state == "launched" {
            let machine = json!({"loadState": "loaded", "activeState": "active", "subState": "running",
                "machineState": {"ID": FIRST}, "unitHash": hash});
            let machine = machine.to_string();
            store(&etcd, &format!("job/{name}/target"), FIRST, None).await;
            store(&etcd, &format!("job/{name}/job-state"), FIRST, Some(30)).await;
            store(&etcd, &format!("state/{name}"), &machine, Some(30)).await;
            store(&etcd, &format!("states/{name}/{FIRST}"), &machine, Some(30)).await;
        }
    }
    let machine =
        json!({"ID": FIRST, "PublicIP": "192.0.2.1", "Metadata": {}, "Version": "0.11.5"});
    let key = format!("machines/{FIRST}/object");
    store(&etcd, &key, &machine.to_string(), Some(30)).await;
    let leader = json!({"MachineID": FIRST, "Version": 1}).to_string();
    store(&etcd, "lease/engine-leader", &leader, Some(30)).await;
    store(&etcd, "engine/version", "1", None).await;
    Some(etcd)
}

async fn store(etcd: &TestEtcd, key: &str, value: &str, ttl: Option<u32>) {
    let url = format!("{}/v2/keys/_coreos.com/fleet/{key}", etcd.url());
    let ttl = ttl.map(|ttl| ("ttl", ttl.to_string()));
    let form = [("value", value.to_owned())].into_iter().chain(ttl);
    let form = Url::parse_with_params(&url, form).unwrap();
    let request = http_client().put(&url);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let request = request.body(form.query().unwrap_or_default().to_owned());
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 201, "{key}");
}

/// Makes `dump.json` by the command of the manual.
fn dump_by_manual(etcd: &TestEtcd, folder: &Path) {
    let mut commands = MANUAL.lines().filter(|line| line.starts_with("curl "));
    let command = commands
        .next()
        .expect("the manual has a command for the dump");
    assert!(
        command.contains(MANUAL_ETCD) && command.ends_with("> dump.json"),
        "{command}"
    );
    let command = command.replace(MANUAL_ETCD, &etcd.url());
    let mut shell = Command::new("sh");
    shell.args(["-c", &command]).current_dir(folder);
    let ran = shell.output().unwrap();
    assert!(ran.status.success(), "{command}: {ran:?}");
}

#[tokio::test]
async fn the_units_of_a_real_etcd_v2_are_taken_over() {
    let Some(etcd) = old_fleet(&UNITS).await else {
        return;
    };
    let cluster = Cluster::of(&[FIRST]).await;
    let dump = cluster.file("dump.json", "");
    dump_by_manual(&etcd, dump.parent().unwrap());
    let shown = "UNIT\t\tSTATE\t\tACTION\n\
        bad.service\tlaunched\tinvalid: bad.service: Global cannot be used with Peers\n\
        idle.service\tinactive\tcreate\n\
        t@.service\tinactive\tcreate\n\
        web.service\tlaunched\tcreate\n";
    let left = "Not imported: 1 unit; see the list.\n";
    let endpoints = format!("--endpoints={}", etcd.url());
    for source in ["--file=dump.json", &endpoints] {
        let dry = cluster.run(&["import", source, "--dry-run"]).await;
        dry.is(1, shown, left);
    }
    assert_eq!(cluster.get("units").await, json!({}));
    let imported = cluster.run(&["import", "--file=dump.json", "--yes"]).await;
    imported.is(1, &format!("{shown}Imported 3 units\n"), left);
    hyperfleet_testkit::until("it runs", async || cluster.running() == ["web.service"]).await;
    let page = cluster.get("units").await;
    let mut taken = Vec::new();
    for unit in page["units"].as_array().unwrap() {
        let name = unit["name"].as_str().unwrap().to_owned();
        let file = cluster.run(&["cat", &name]).await.succeeded();
        let desired = unit["desiredState"].as_str().unwrap().to_owned();
        taken.push((name, file, desired));
    }
    let expected = UNITS[1..].iter();
    let expected = expected
        .map(|(name, file, state)| ((*name).to_owned(), (*file).to_owned(), (*state).to_owned()));
    assert_eq!(taken, expected.collect::<Vec<_>>());
    // The old cluster is not written to, and nothing is left to do.
    let again = cluster.run(&["import", &endpoints, "--yes"]).await;
    again.is(1, &shown.replace("create", "exists"), left);
}
