//! Commands on the machines of units: over the API, and over ssh.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use tempfile::TempDir;

use crate::cluster::{Cluster, FIRST, SECOND};
use crate::operations::{ask, machines};
use crate::program::{command, run};
use crate::stub::{Reply, Stub};

/// A server with an ordinary unit, `a.service`, and a global one, `g.service`, on two machines.
async fn with_units(mut text: impl FnMut(&str) -> Reply + Send + 'static) -> Stub {
    Stub::spawn(move |line| match line {
        "GET /machines" => machines(),
        "GET /units/a.service" => Reply::Json(200, json!({
            "name": "a.service", "desiredState": "launched", "currentState": "launched", "machineID": FIRST,
        })),
        "GET /units/idle.service" => {
            Reply::Json(200, json!({"name": "idle.service", "desiredState": "inactive", "currentState": "inactive"}))
        }
        "GET /units/g.service" => Reply::Json(200, json!({
            "name": "g.service", "desiredState": "launched",
            "options": [{"section": "X-Fleet", "name": "Global", "value": "true"}],
        })),
        "GET /state?unitName=g.service" => {
            Reply::Json(200, json!({"states": [{"name": "g.service", "machineID": FIRST}, {"name": "g.service", "machineID": SECOND}]}))
        }
        line => text(line),
    })
    .await
}

#[tokio::test]
async fn status_comes_from_the_machines_of_units() {
    let stub = with_units(|line| {
        let status = |status: &str, text: &str| {
            Reply::Text(
                200,
                vec![("Fleet-Exit-Status", status.to_owned())],
                text.to_owned(),
            )
        };
        match line.split_once("/status?machineID=") {
            Some(("GET /units/a.service", FIRST)) => status("3", "a: inactive\n"),
            Some(("GET /units/g.service", FIRST)) => status("0", "g: on the first\n"),
            Some(("GET /units/g.service", SECOND)) => status("0", "g: on the second\n"),
            _ => Reply::error(404, "unit does not exist"),
        }
    })
    .await;
    ask(&stub, &["status", "a"])
        .await
        .is(3, "a: inactive\n", "");
    ask(&stub, &["status", "g.service"])
        .await
        .is(0, "g: on the first\n\ng: on the second\n", "");
    let idle = ask(&stub, &["status", "idle"]).await;
    idle.is(1, "", "Unit idle.service does not appear to be loaded.\n");
}

#[tokio::test]
async fn errors_of_status_are_shown_as_the_server_says_them() {
    let stub = with_units(|_| {
        Reply::error(
            503,
            "the agent of the machine does not answer: see agent_api_listen",
        )
    })
    .await;
    let refused = ask(&stub, &["status", "a"]).await;
    assert_eq!(refused.status, 1);
    assert!(
        refused
            .errors
            .contains("the agent of the machine does not answer: see agent_api_listen"),
        "{refused:?}"
    );
}

/// An entry of a journal as an event.
fn entry(message: &str, cursor: &str) -> String {
    let data = json!({
        "__CURSOR": cursor, "__REALTIME_TIMESTAMP": "1763840075000000", "_HOSTNAME": "m1", "_PID": "34",
        "SYSLOG_IDENTIFIER": "sh", "MESSAGE": message,
    });
    format!("event: entry\ndata: {data}\nid: {cursor}\n\n")
}

#[tokio::test]
async fn journals_come_from_the_machines_of_units() {
    let stub = with_units(|line| {
        let query = line.strip_prefix("GET /units/a.service/journal?");
        let query = query.or(line.strip_prefix("GET /units/g.service/journal?"));
        match query {
            Some(query) => Reply::Text(200, vec![], entry(query, "s=1")),
            None => Reply::error(404, ""),
        }
    })
    .await;
    let journal = ask(&stub, &["journal", "--lines=5", "--output=cat", "a"]).await;
    let lines = format!("lines=5&machineID={FIRST}\n");
    journal.is(0, &lines, "");
    let global = ask(&stub, &["journal", "g"]).await;
    global.is(
        1,
        "",
        "Unable to retrieve journal of global unit g.service: name a machine with --machine; it runs on 2 machines: 0f1e2d3c..., 1f1e2d3c...\n",
    );
    let variables = [
        ("FLEETCTL_ENDPOINT", stub.base().clone()),
        ("TZ", "UTC".to_owned()),
    ];
    let variables = variables
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let named = run(&variables, &["journal", "g", "--machine=1f1e"]).await;
    named.is(
        0,
        &format!("Nov 22 19:34:35 m1 sh[34]: lines=10&machineID={SECOND}\n"),
        "",
    );
    let json = ask(&stub, &["journal", "-o", "json", "a"])
        .await
        .succeeded();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["_HOSTNAME"], "m1");
    let idle = ask(&stub, &["journal", "idle"]).await;
    idle.is(1, "", "Unit idle.service does not appear to be running.\n");
}

/// Each connection breaks in the middle of an event, which the next one has to send again.
#[tokio::test]
async fn a_followed_journal_goes_on_after_the_last_whole_event() {
    let mut calls = 0;
    let stub = with_units(move |line| {
        let Some(query) = line.strip_prefix("GET /units/a.service/journal?") else {
            return Reply::error(404, "");
        };
        let begin = format!("lines=5&machineID={FIRST}&watch=true");
        calls += 1;
        match (calls, query.strip_prefix(&begin)) {
            (1, Some("")) => Reply::Text(
                200,
                vec![],
                format!(
                    "retry: 1000\n\nevent: position\ndata: {{}}\nid: start\n\n{}: alive\n\nevent: entry\ndata: {{\"MESSAGE\":\"two",
                    entry("one", "s=1;i=1")
                ),
            ),
            // A server that restarts.
            (2, Some("&after=s%3D1%3Bi%3D1")) => Reply::error(503, "stopping"),
            (3, Some("&after=s%3D1%3Bi%3D1")) => Reply::Text(
                200,
                vec![],
                "event: entry\ndata: {\"MESSAGE\":[116,119,111,255]}\nid: s=1;i=2\n\n".to_owned(),
            ),
            (4, Some("&after=s%3D1%3Bi%3D2")) => Reply::error(409, "unit a.service is on no machine"),
            call => Reply::error(400, &format!("{call:?}")),
        }
    })
    .await;
    let arguments = ["journal", "--lines=5", "--output=cat", "-f", "a"];
    let variables = [("FLEETCTL_ENDPOINT", stub.base())];
    let variables = variables
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let ran = command(&variables, &arguments).output().await.unwrap();
    let errors = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.stdout, b"one\ntwo\xff\n", "{errors}");
    let expected =
        "Error following the journal of a.service: unit a.service is on no machine (status 409)\n";
    assert_eq!((ran.status.code(), errors.as_str()), (Some(1), expected));
}

/// A fleetd of 0.1 sends texts, and events of several lines.
#[tokio::test]
async fn a_journal_of_another_version_is_an_error() {
    let stub = with_units(|line| {
        let text = if line.contains("watch=true") {
            "event: lines\ndata: \"one\\n\"\nid: s=1\n\n"
        } else {
            "Nov 22 19:34:35 m1 sh[34]: one\n"
        };
        Reply::Text(200, vec![], text.to_owned())
    })
    .await;
    let endpoint = stub.base();
    let words = format!(
        "Error retrieving the journal of a.service: the response of {endpoint} to GET /fleet/v1/units/a.service/journal does not come from a fleet API: it ends within an event\n"
    );
    ask(&stub, &["journal", "a"]).await.is(1, "", &words);
    let words = "the fleetd of machine 0f1e2d3c... has another version, and sends other events: update it, or add --ssh\n";
    ask(&stub, &["journal", "-f", "a"]).await.is(1, "", words);
}

#[tokio::test]
async fn texts_that_stop_coming_end_the_command() {
    let stub = with_units(|line| {
        Reply::Begun(if line.contains("/journal") {
            entry("first line", "s=1")
        } else {
            "first line\n".to_owned()
        })
    })
    .await;
    for command in [&["status"][..], &["journal", "--output=cat"]] {
        let arguments = [&["--request-timeout=0.5"], command, &["a"]].concat();
        let ran = ask(&stub, &arguments).await;
        assert_eq!((ran.status, ran.output.as_str()), (1, "first line\n"));
        let words = "did not answer within 500ms; see --request-timeout\n";
        assert!(ran.errors.ends_with(words), "{ran:?}");
    }
}

#[tokio::test]
async fn global_units_are_restarted_by_their_agents() {
    let stub = with_units(|line| match line {
        "POST /units/g.service/restart" => Reply::empty(202),
        _ => Reply::error(404, ""),
    })
    .await;
    ask(&stub, &["restart", "g"])
        .await
        .is(0, "Triggered global unit g.service restart\n", "");
    assert_eq!(stub.changes().len(), 1);
}

/// A folder with a program `ssh` that prints its arguments, one a line, and ends with status 7.
fn fake_ssh(script: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ssh");
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        folder.path().display(),
        std::env::var("PATH").unwrap()
    );
    (folder, path)
}

const PRINTING: &str = "printf '%s\\n' \"$@\"; exit 7";

#[tokio::test]
async fn servers_that_cannot_tell_are_gone_round_by_ssh() {
    let stub = with_units(|_| Reply::error(501, "the agent API is off: set agent_listen")).await;
    let (_folder, path) = fake_ssh(PRINTING);
    let variables = [
        ("FLEETCTL_ENDPOINT", stub.base()),
        ("PATH", path),
        ("HOME", "/home/u".to_owned()),
    ];
    let variables = variables
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let options = "-o\nConnectTimeout=10\n-o\nStrictHostKeyChecking=ask\n-o\nUserKnownHostsFile=/home/u/.fleetctl/known_hosts\n-p\n22\n-l\ncore\n--\n192.0.2.1\n";
    let status = run(&variables, &["status", "a"]).await;
    let said = "the agent API is off: set agent_listen; trying ssh\n";
    status.is(
        7,
        &format!("{options}systemctl\nstatus\n-l\n--\na.service\n"),
        said,
    );
    let journal = run(
        &variables,
        &["journal", "--sudo", "--ssh-port=23", "-f", "a"],
    )
    .await;
    let options = options.replace("-p\n22", "-p\n23");
    journal.is(7, &format!("{options}sudo\njournalctl\n--unit\na.service\n--no-pager\n-n\n10\n--output\nshort\n-f\n"), "");
}

#[tokio::test]
async fn ssh_leads_to_machines_and_to_those_of_units() {
    let stub = with_units(|_| Reply::error(404, "unit does not exist")).await;
    let (_folder, path) = fake_ssh(PRINTING);
    let variables = [
        ("FLEETCTL_ENDPOINT", stub.base()),
        ("PATH", path),
        ("FLEETCTL_STRICT_HOST_KEY_CHECKING", "false".to_owned()),
    ];
    let variables = variables
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let options = "-o\nConnectTimeout=10\n-o\nStrictHostKeyChecking=no\n-o\nUserKnownHostsFile=/dev/null\n-p\n22\n-l\nroot\n--\n";
    for (arguments, expected) in [
        (&["0f1e"][..], "192.0.2.1\n"),
        (&["a.service", "uptime"], "192.0.2.1\nuptime\n"),
        (&["--machine=1f1e", "--", "ls", "-l"], "192.0.2.2\nls\n-l\n"),
        (&["--unit", "a", "uptime"], "192.0.2.1\nuptime\n"),
    ] {
        let arguments: Vec<&str> = ["--ssh-username=root", "ssh"]
            .iter()
            .chain(arguments)
            .copied()
            .collect();
        run(&variables, &arguments)
            .await
            .is(7, &format!("{options}{expected}"), "");
    }
    let forwarding = run(&variables, &["ssh", "-A", "0f1e"]).await;
    assert!(forwarding.output.starts_with("-A\n"), "{forwarding:?}");
    for (arguments, words) in [
        (&["ssh"][..], "Provide one machine or unit.\n"),
        (
            &["ssh", "x"],
            "Unable to proceed: could not find matching unit or machine\n",
        ),
        (
            &["ssh", "--unit=idle"],
            "Unit idle does not appear to be running.\n",
        ),
        (
            &["ssh", "--machine=x"],
            "Could not find machine x; fleetctl list-machines --full lists them\n",
        ),
    ] {
        run(&variables, arguments).await.is(1, "", words);
    }
}

#[tokio::test]
async fn without_a_home_no_folder_is_made() {
    let stub = with_units(|_| Reply::error(404, "unit does not exist")).await;
    let (_folder, path) = fake_ssh(PRINTING);
    let here = tempfile::tempdir().unwrap();
    let mut ssh = command(
        &[("FLEETCTL_ENDPOINT", &stub.base()), ("PATH", &path)],
        &["ssh", "0f1e"],
    );
    let ran = ssh
        .env_remove("HOME")
        .current_dir(here.path())
        .output()
        .await
        .unwrap();
    let output = String::from_utf8(ran.stdout).unwrap();
    assert!(
        output.contains("UserKnownHostsFile=~/.fleetctl/known_hosts\n"),
        "{output}"
    );
    assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn tunnels_are_connections_of_ssh() {
    let cluster = Cluster::of(&[FIRST]).await;
    let log = tempfile::tempdir().unwrap();
    let log = log.path().join("ended");
    // A tunnel to a socket of this machine is the socket itself.
    let script = format!(
        "forward=$5; printf '%s\\n' \"$@\" > {log}.arguments; ln -s \"${{forward#*:}}\" \"${{forward%%:*}}\"; grep SigIgn /proc/$$/status > {log}.ignored; echo $$ > {log}.pid; exec sleep 1000",
        log = log.display()
    );
    let (_folder, path) = fake_ssh(&script);
    let endpoint = format!("unix://{}", cluster.fleet.socket().display());
    let variables = [
        ("FLEETCTL_ENDPOINT", endpoint.as_str()),
        ("FLEETCTL_TUNNEL", "bastion:2222"),
        ("PATH", &path),
    ];
    let listed = run(&variables, &["list-machines", "--fields=machine"]).await;
    listed.is(0, "MACHINE\n0f1e2d3c...\n", "");
    let arguments = std::fs::read_to_string(format!("{}.arguments", log.display())).unwrap();
    assert!(
        arguments.starts_with("-N\n-o\nExitOnForwardFailure=yes\n-L\n"),
        "{arguments}"
    );
    assert!(
        arguments.ends_with("-p\n2222\n-l\ncore\n--\nbastion\n"),
        "{arguments}"
    );
    // Ctrl-C and the end of a terminal reach fleetctl alone, which may still need the tunnel.
    let ignored = std::fs::read_to_string(format!("{}.ignored", log.display())).unwrap();
    let mask = u64::from_str_radix(ignored.trim_start_matches("SigIgn:").trim(), 16).unwrap();
    assert_eq!(mask & 0b11, 0b11, "{ignored}");
    let pid = std::fs::read_to_string(format!("{}.pid", log.display())).unwrap();
    hyperfleet_testkit::until("ssh has ended", async || {
        !std::path::Path::new(&format!("/proc/{}", pid.trim())).exists()
    })
    .await;
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/bin/sh", folder.path().join("sh")).unwrap();
    let variables = [
        ("FLEETCTL_TUNNEL", "bastion"),
        ("PATH", folder.path().to_str().unwrap()),
    ];
    let missing = run(&variables, &["list-machines"]).await;
    missing.is(1, "", "unable to run ssh: is OpenSSH installed?\n");
    let (_folder, path) =
        fake_ssh(r"printf 'bastion: Permission denied\r\nNo more tries\r\n' >&2; exit 255");
    let variables = [("FLEETCTL_TUNNEL", "bastion"), ("PATH", path.as_str())];
    let refused = run(&variables, &["list-machines"]).await;
    let words = "unable to open a tunnel to bastion: ssh ended with exit status: 255: bastion: Permission denied\nNo more tries\n";
    refused.is(1, "", words);
}
