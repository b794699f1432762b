//! Lists: columns, formats, pages, and what is shown when they change.

use std::process::Stdio;
use std::time::Duration;

use hyperfleet_testkit::{RunningProgram, TestFleet, until};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use crate::cluster::{Cluster, FIRST, SECOND, SHORT};
use crate::operations::{ask, machines};
use crate::program::{command, run};
use crate::stub::{Reply, Stub};

#[tokio::test]
async fn machines_are_listed_as_they_were() {
    let cluster = Cluster::of(&[FIRST, SECOND]).await;
    let short = "MACHINE\t\tIP\t\tMETADATA\n0f1e2d3c...\t192.0.2.1\t-\n1f1e2d3c...\t192.0.2.1\t-\n";
    cluster.run(&["list-machines"]).await.is(0, short, "");
    cluster
        .run_locally(&["list-machines"])
        .await
        .is(0, short, "");
    let changes = [("region", "eu"), ("disk", "ssd")].map(|(key, value)| {
        json!({"op": "add", "path": format!("/{FIRST}/metadata/{key}"), "value": {"value": value}})
    });
    let headers = [("content-type", "application/json")];
    let changes = json!(changes).to_string();
    let answer = cluster
        .fleet
        .send("PATCH", "/fleet/v1/machines", &headers, &changes)
        .await;
    assert_eq!(answer.status, 204);
    let full = cluster.run(&["list-machines", "-l", "--no-legend"]).await;
    full.is(
        0,
        &format!("{FIRST}\t192.0.2.1\tdisk=ssd,region=eu\n{SECOND}\t192.0.2.1\t-\n"),
        "",
    );
    let fields = cluster
        .run(&[
            "list-m",
            "--fields=metadata,machine,state",
            "--l",
            "--no-legend=true",
        ])
        .await;
    fields.is(
        0,
        &format!("disk=ssd,region=eu\t{FIRST}\tready\n-\t\t\t{SECOND}\tready\n"),
        "",
    );
    for (fields, words) in [
        ("--fields=", "Must define output format\n"),
        (
            "--fields=x",
            "Invalid key in output format: \"x\"; known are machine, ip, metadata, state, version\n",
        ),
    ] {
        cluster
            .run(&["list-machines", fields])
            .await
            .is(1, "", words);
    }
}

#[tokio::test]
async fn units_are_listed_as_they_were() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster
        .run(&["list-units"])
        .await
        .is(0, "UNIT\tMACHINE\tACTIVE\tSUB\n", "");
    cluster
        .run(&["list-unit-files"])
        .await
        .is(0, "UNIT\tHASH\tDSTATE\tSTATE\tTARGET\n", "");
    cluster.service("hello.service");
    cluster.run(&["start", "hello"]).await.succeeded();
    cluster.file(
        "other.timer",
        "[Unit]\nDescription=Not placed\n[Timer]\nOnActiveSec=1\n",
    );
    cluster.run(&["submit", "other.timer"]).await.succeeded();
    // The hash of this file is known from the older fleet.
    let files = cluster.run(&["list-unit-files"]).await;
    let output = files.succeeded();
    let lines: Vec<&str> = output.lines().collect();
    assert_eq!(lines[0], "UNIT\t\tHASH\tDSTATE\t\tSTATE\t\tTARGET");
    assert_eq!(
        lines[1],
        format!("hello.service\t7dc08eb\tlaunched\tlaunched\t{SHORT}")
    );
    assert!(lines[2].starts_with("other.timer\t"), "{output}");
    assert!(lines[2].ends_with("\tinactive\tinactive\t-"), "{output}");
    let full = cluster
        .run(&[
            "list-unit-files",
            "--full",
            "--no-legend",
            "--fields=hash,tmachine,global,desc,unit",
        ])
        .await;
    let line = format!(
        "7dc08eb00f0c705e84a61e030d98e8cc3c994954\t{FIRST}/192.0.2.1\tfalse\t-\t\thello.service\n"
    );
    assert!(full.output.starts_with(&line), "{full:?}");
    assert!(
        full.output.ends_with("\tfalse\tNot placed\tother.timer\n"),
        "{full:?}"
    );
    assert_eq!(
        full.errors,
        "WARNING: The field tmachine is deprecated: use target.\n"
    );
    let states = cluster
        .run(&[
            "list-units",
            "--fields=unit,load,active,sub,hash,machine",
            "--no-legend",
        ])
        .await;
    states.is(
        0,
        &format!("hello.service\tloaded\tactive\trunning\t7dc08eb\t{SHORT}\n"),
        "",
    );
}

#[tokio::test]
async fn json_and_yaml_hold_what_the_api_says() {
    let cluster = Cluster::of(&[FIRST]).await;
    cluster.service("hello.service");
    cluster.run(&["start", "hello"]).await.succeeded();
    let json_of = async |arguments: &[&str]| -> Value {
        serde_json::from_str(&cluster.run(arguments).await.succeeded()).unwrap()
    };
    let hash = "7dc08eb00f0c705e84a61e030d98e8cc3c994954";
    assert_eq!(
        json_of(&["list-units", "-o", "json"]).await,
        json!([{
            "name": "hello.service", "machineID": FIRST, "hash": hash, "systemdLoadState": "loaded",
            "systemdActiveState": "active", "systemdSubState": "running",
        }])
    );
    assert_eq!(
        json_of(&["list-unit-files", "--output=json"]).await,
        json!([{
            "name": "hello.service", "hash": hash, "desiredState": "launched", "currentState": "launched",
            "machineID": FIRST, "global": false,
        }])
    );
    let machines = json_of(&["list-machines", "-ojson"]).await;
    assert_eq!(
        machines,
        json!([{"id": FIRST, "primaryIP": "192.0.2.1", "version": "1"}])
    );
    let cat = json_of(&["cat", "-o", "json", "hello"]).await;
    assert_eq!(cat["options"][0]["value"], "/bin/sleep 3000");
    let explained = json_of(&["explain", "hello", "-o", "json"]).await;
    assert_eq!(explained[0]["machineID"], FIRST);
    let top = json_of(&["top", "-o", "json"]).await;
    assert_eq!(
        (&top[0]["units"], &top[0]["active"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(
        json_of(&["version", "-o", "json"]).await["version"],
        env!("CARGO_PKG_VERSION")
    );
    let yaml = cluster
        .run(&["list-machines", "-o", "yaml"])
        .await
        .succeeded();
    assert!(yaml.starts_with(&format!("- id: {FIRST}\n")), "{yaml}");
    let top = cluster.run(&["top"]).await;
    top.is(
        0,
        "MACHINE\t\tIP\t\tUNITS\tACTIVE\tFAILED\tSTATE\n0f1e2d3c...\t192.0.2.1\t1\t1\t0\tready\n",
        "",
    );
}

#[tokio::test]
async fn a_list_has_all_its_pages() {
    let fleet = TestFleet::spawn().await;
    let options =
        json!({"options": [{"section": "Service", "name": "ExecStart", "value": "/bin/true"}]});
    for number in 0..201 {
        let path = format!("/fleet/v1/units/u{number:03}.service");
        assert_eq!(fleet.put(&path, &options).await.status, 201);
    }
    let endpoint = [("FLEETCTL_ENDPOINT", fleet.base.as_str())];
    let listed = run(&endpoint, &["list-unit-files", "--fields=unit"])
        .await
        .succeeded();
    let expected: Vec<_> = (0..201)
        .map(|number| {
            format!(
                "u{number:03}.service
"
            )
        })
        .collect();
    assert_eq!(listed, format!("UNIT\n{}", expected.concat()));
    let listed = run(&endpoint, &["list-unit-files", "-o", "json"])
        .await
        .succeeded();
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed.len(), 201);
}

/// What a watching fleetctl prints.
struct Watching {
    _child: tokio::process::Child,
    output: tokio::process::ChildStdout,
    read: String,
}

impl Watching {
    fn start(cluster: &Cluster, arguments: &[&str]) -> Self {
        let endpoint = [("FLEETCTL_ENDPOINT", cluster.fleet.base.as_str())];
        let mut child = command(&endpoint, arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        let read = String::new();
        Self {
            _child: child,
            output,
            read,
        }
    }

    /// Reads until it has printed this.
    async fn until_printed(&mut self, words: &str) {
        let mut buffer = [0; 4096];
        while !self.read.contains(words) {
            let read =
                tokio::time::timeout(hyperfleet_testkit::PATIENCE, self.output.read(&mut buffer));
            let count = read
                .await
                .unwrap_or_else(|_| panic!("not printed: {words:?} in {:?}", self.read));
            let count = count.unwrap();
            assert!(count > 0, "it ended: {:?}", self.read);
            self.read
                .push_str(std::str::from_utf8(&buffer[..count]).unwrap());
        }
    }
}

#[tokio::test]
async fn watched_lists_are_printed_again_when_they_change() {
    let cluster = Cluster::of(&[FIRST]).await;
    let mut files = Watching::start(
        &cluster,
        &["list-unit-files", "--watch", "--fields=unit,dstate"],
    );
    let mut units = Watching::start(
        &cluster,
        &["list-units", "-w", "--fields=unit,machine,active"],
    );
    files.until_printed("UNIT\tDSTATE\n").await;
    units.until_printed("UNIT\tMACHINE\tACTIVE\n").await;
    cluster.service("hello.service");
    cluster.run(&["start", "hello"]).await.succeeded();
    files
        .until_printed("\nUNIT\t\tDSTATE\nhello.service\tlaunched\n")
        .await;
    units
        .until_printed(&format!("hello.service\t{SHORT}\tactive\n"))
        .await;
    cluster.run(&["destroy", "hello"]).await.succeeded();
    let gone = format!("hello.service\t{SHORT}\tactive\n\nUNIT\tMACHINE\tACTIVE\n");
    // The unit may be seen while it stops.
    until("the list is empty again", async || {
        units.until_printed("\n\nUNIT\tMACHINE\tACTIVE\n").await;
        units.read.ends_with("UNIT\tMACHINE\tACTIVE\n") || units.read.contains(&gone)
    })
    .await;
}

#[tokio::test]
async fn machines_that_come_are_printed() {
    let cluster = Cluster::of(&[FIRST]).await;
    let mut machines = Watching::start(&cluster, &["list-machines", "--watch", "--fields=machine"]);
    machines.until_printed("MACHINE\n0f1e2d3c...\n").await;
    let _second =
        hyperfleet_testkit::SimulatedMachine::start(cluster.fleet.registry.clone(), SECOND, 30);
    machines
        .until_printed("\nMACHINE\n0f1e2d3c...\n1f1e2d3c...\n")
        .await;
}

#[tokio::test]
async fn lists_that_change_all_the_time_are_shown() {
    let begin = "event: listed\ndata: {\"revision\":7}\nid: 7\n\n";
    let put = "event: put\ndata: {\"name\":\"a.service\",\"desiredState\":\"loaded\"}\nid: 8\n\n";
    let stub = Stub::spawn(move |line| match line {
        "GET /units?watch=true" => {
            Reply::Steady(begin.to_owned(), Duration::from_millis(10), put.to_owned())
        }
        _ => machines(),
    })
    .await;
    let endpoint = stub.base();
    let arguments = ["list-unit-files", "-w", "--fields=unit"];
    let command = command(&[("FLEETCTL_ENDPOINT", &endpoint)], &arguments);
    let mut watch = RunningProgram::start(command.into_std());
    watch.until_output("UNIT\na.service\n").await;
}

#[tokio::test]
async fn answers_that_do_not_end_are_errors() {
    let stub = Stub::spawn(|line| match line {
        "GET /machines" => Reply::Text(200, vec![], " ".repeat((64 << 20) + 1)),
        _ => Reply::Json(200, json!({"states": [], "nextPageToken": "again"})),
    })
    .await;
    let long = ask(&stub, &["list-machines"]).await;
    assert_eq!(long.status, 1);
    assert!(
        long.errors.contains(" is too long for a fleet API"),
        "{long:?}"
    );
    let stub = Stub::spawn(|line| match line {
        "GET /machines" => machines(),
        _ => Reply::Json(200, json!({"states": [], "nextPageToken": "again"})),
    })
    .await;
    let endless = ask(&stub, &["list-units"]).await;
    assert_eq!(endless.status, 1);
    let words = "a page names itself as the next one\n";
    assert!(endless.errors.ends_with(words), "{endless:?}");
}
