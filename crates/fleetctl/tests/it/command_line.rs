//! The command line itself, and servers that cannot be talked to.

use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio_rustls::TlsAcceptor;

use crate::cluster::{Cluster, FIRST};
use crate::program::{command, run, run_in};
use crate::stub::{Reply, Stub};
use hyperfleet_testkit::Authority;
use serde_json::json;

const VERSION: &str = concat!("fleetctl version ", env!("CARGO_PKG_VERSION"), "\n");

#[tokio::test]
async fn wrong_command_lines_end_with_status_two() {
    for arguments in [
        &["no-such-command"][..],
        &["list-units", "--no-such-flag"],
        &["list-unit"],
        &["--driver=etcd", "list-units"],
        &["list-units", "-o", "xml"],
        &["import"],
    ] {
        let ran = run(&[], arguments).await;
        assert_eq!((ran.status, ran.output.as_str()), (2, ""), "{arguments:?}");
        assert!(ran.errors.starts_with("error: "), "{ran:?}");
    }
    let ran = run(&[], &["verify", "a.service"]).await;
    ran.is(
        2,
        "",
        "WARNING: The signed/verified units feature is DEPRECATED and cannot be used.\n",
    );
}

#[tokio::test]
async fn version_and_help_need_no_server() {
    let nowhere = [("FLEETCTL_ENDPOINT", "unix:///nowhere/fleet.sock")];
    for arguments in [
        &["version"][..],
        &["--version"],
        &["list-units", "--version"],
        &["--version", "cat", "a"],
    ] {
        run(&nowhere, arguments).await.is(0, VERSION, "");
    }
    for arguments in [&[][..], &["--help"], &["-h"], &["--h"], &["help"]] {
        let help = run(&nowhere, arguments).await.succeeded();
        assert!(
            help.contains("list-unit-files") && help.contains("--endpoint"),
            "{arguments:?}: {help}"
        );
    }
    for arguments in [
        &["help", "start"][..],
        &["start", "--help"],
        &["start", "-h"],
    ] {
        let help = run(&nowhere, arguments).await.succeeded();
        assert!(help.contains("--block-attempts"), "{arguments:?}: {help}");
    }
    let man = run(&nowhere, &["man"]).await.succeeded();
    assert!(
        man.contains(".TH fleetctl 1") && man.contains("list\\-unit\\-files"),
        "{man}"
    );
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(&nowhere, &["completion", shell]).await.succeeded();
        assert!(script.contains("list-unit-files"), "{shell}");
    }
}

#[tokio::test]
async fn flags_win_over_variables_and_empty_ones_are_unset() {
    let cluster = Cluster::of(&[FIRST]).await;
    let endpoint = format!("--endpoint={}", cluster.fleet.base);
    let variables = [
        ("FLEETCTL_ENDPOINT", "http://127.0.0.1:1"),
        ("FLEETCTL_DEBUG", ""),
        ("FLEETCTL_REQUEST_TIMEOUT", ""),
        ("FLEETCTL_STRICT_HOST_KEY_CHECKING", "false"),
        ("FLEETCTL_DRIVER", "API"),
    ];
    let listed = run(
        &variables,
        &["list-machines", "--fields=machine", &endpoint],
    )
    .await;
    listed.is(0, "MACHINE\n0f1e2d3c...\n", "");
    let several = format!("{},http://127.0.0.1:1", cluster.fleet.base);
    let listed = run(
        &[],
        &["list-machines", "--endpoint", &several, "--fields=machine"],
    )
    .await;
    let words = format!(
        "WARNING: only the first of several endpoints is used: {}\n",
        cluster.fleet.base
    );
    listed.is(0, "MACHINE\n0f1e2d3c...\n", &words);
    for debugging in [&[("FLEETCTL_DEBUG", "true")][..], &[]] {
        let flag = if debugging.is_empty() {
            "--debug"
        } else {
            "--no-legend"
        };
        let listed = run(
            debugging,
            &[flag, &endpoint, "list-machines", "--no-legend"],
        )
        .await;
        // A flag of the list does not stand before the command.
        if flag == "--debug" {
            assert!(listed.errors.contains("DEBUG GET http"), "{listed:?}");
        } else {
            assert_eq!(listed.status, 2, "{listed:?}");
        }
    }
    let listed = run(&[("FLEETCTL_DEBUG", "1")], &[&endpoint, "list-machines"]).await;
    assert!(listed.errors.contains("DEBUG 200"), "{listed:?}");
}

#[tokio::test]
async fn endpoints_that_cannot_be_reached_are_named() {
    let unreachable = run(
        &[],
        &["--endpoint=unix:///nowhere/fleet.sock", "list-machines"],
    )
    .await;
    assert_eq!(unreachable.status, 1);
    let words = "Error retrieving list of active machines: unable to reach the fleet API at unix:///nowhere/fleet.sock";
    assert!(unreachable.errors.starts_with(words), "{unreachable:?}");
    assert!(
        unreachable.errors.contains("\nPossible issues:\n- "),
        "{unreachable:?}"
    );
    for (endpoint, words) in [
        ("127.0.0.1:49153", "URL scheme undefined"),
        ("unix://var/run/fleet.sock", "names the host \"var\""),
        ("tcp://h", "URL scheme \"tcp\" is not supported"),
    ] {
        let refused = run(&[("FLEETCTL_ENDPOINT", endpoint)], &["list-units"]).await;
        assert_eq!(refused.status, 1);
        assert!(refused.errors.contains(words), "{refused:?}");
    }
}

#[tokio::test]
async fn a_server_that_accepts_and_stalls_does_not_hang_the_client() {
    let stub = Stub::spawn(|_| Reply::Stall).await;
    let since = Instant::now();
    for arguments in [
        &["list-units"][..],
        &["start", "a"],
        &["list-unit-files", "--watch"],
        &["doctor"],
    ] {
        let endpoint = ["--request-timeout=1", "--endpoint"].map(str::to_owned);
        let base = stub.base();
        let arguments: Vec<&str> = endpoint
            .iter()
            .map(String::as_str)
            .chain([base.as_str()])
            .chain(arguments.iter().copied())
            .collect();
        let ran = run(&[], &arguments).await;
        assert_eq!(ran.status, 1, "{ran:?}");
        let said = ran.output + &ran.errors;
        assert!(said.contains("did not answer within 1s"), "{said}");
    }
    assert!(since.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn answers_of_no_fleet_api_are_refused() {
    let stub = Stub::spawn(|_| Reply::Text(200, vec![], "<html>".to_owned())).await;
    let ran = run(&[("FLEETCTL_ENDPOINT", &stub.base())], &["list-machines"]).await;
    assert_eq!(ran.status, 1);
    assert!(
        ran.errors.contains("does not come from a fleet API"),
        "{ran:?}"
    );
}

#[tokio::test]
async fn an_authority_alone_is_enough_and_others_are_not_trusted() {
    let (trusted, other) = (Authority::new(), Authority::new());
    let tls = TlsAcceptor::from(std::sync::Arc::new(trusted.server("localhost")));
    let stub = Stub::with_tls(tls, |_| {
        Reply::Json(200, json!({"machines": [{"id": FIRST}]}))
    })
    .await;
    let port = stub.address.rsplit_once(':').unwrap().1;
    let endpoint = format!("https://localhost:{port}");
    let with = async |authority: &Authority| {
        let file = authority.file();
        let variables = [
            ("FLEETCTL_ENDPOINT", endpoint.as_str()),
            ("FLEETCTL_CA_FILE", file.to_str().unwrap()),
        ];
        run(
            &variables,
            &["list-machines", "--fields=machine", "--no-legend"],
        )
        .await
    };
    with(&trusted).await.is(0, "0f1e2d3c...\n", "");
    let file = trusted.file();
    let older = [
        ("FLEETCTL_ENDPOINT", endpoint.as_str()),
        ("FLEETCTL_ETCD_CAFILE", file.to_str().unwrap()),
    ];
    let listed = run(
        &older,
        &["list-machines", "--fields=machine", "--no-legend"],
    )
    .await;
    listed.is(0, "0f1e2d3c...\n", "");
    for refused in [
        with(&other).await,
        run(&[("FLEETCTL_ENDPOINT", &endpoint)], &["list-machines"]).await,
    ] {
        assert_eq!(
            (refused.status, refused.output.as_str()),
            (1, ""),
            "{refused:?}"
        );
        assert!(refused.errors.contains("certificate"), "{refused:?}");
    }
    let half = run(
        &[("FLEETCTL_ENDPOINT", &endpoint)],
        &["--cert-file=/nowhere", "list-machines"],
    )
    .await;
    half.is(1, "", "--cert-file and --key-file are needed together\n");
}

#[tokio::test]
async fn a_reader_that_has_gone_ends_it_silently() {
    let mut command = command(&[], &["man"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().await.unwrap();
    let is_quiet = output.stderr.is_empty();
    assert!(
        is_quiet && [Some(0), Some(141)].contains(&output.status.code()),
        "{output:?}"
    );
}

#[tokio::test]
async fn messages_that_cannot_be_written_are_lost() {
    for (arguments, status) in [(&["stop"][..], 0), (&["list-units", "--endpoint=x"], 1)] {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let ended = command(&[], arguments).stderr(full).status().await.unwrap();
        assert_eq!(ended.code(), Some(status), "{arguments:?}");
    }
}

#[tokio::test]
async fn errors_name_causes_once_and_no_passwords() {
    let missing = run(
        &[],
        &[
            "list-machines",
            "--endpoint=https://h",
            "--ca-file=/nowhere",
        ],
    )
    .await;
    let words = "unable to read /nowhere: No such file or directory (os error 2)\n";
    missing.is(1, "", words);
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("a.service")).unwrap();
    let stub = Stub::spawn(|_| Reply::error(404, "")).await;
    let endpoint = [("FLEETCTL_ENDPOINT", stub.base())];
    let endpoint = endpoint
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let unreadable = run_in(folder.path(), &endpoint, &["submit", "a"]).await;
    let words = "Error creating units: unable to read a.service: Is a directory (os error 21)\n";
    unreadable.is(1, "", words);
    for arguments in [
        &[
            "list-machines",
            "--debug",
            "--endpoint=http://u:secret@127.0.0.1:1",
        ][..],
        &["list-machines", "--endpoint=u:secret@127.0.0.1:1"],
        &["list-machines", "--endpoint=http://u:secret@127.0.0.1:1,x"],
        &["list-machines", "--endpoint=http://u:secret@"],
        &["doctor", "--endpoint=http://u:secret@127.0.0.1:1"],
        &["import", "--endpoints=http://u:secret@127.0.0.1:1"],
    ] {
        let ran = run(&[], arguments).await;
        assert_eq!(ran.status, 1, "{ran:?}");
        assert!(!format!("{ran:?}").contains("secret"), "{ran:?}");
    }
}

#[tokio::test]
async fn orders_that_fail_name_their_unit() {
    let stub = Stub::spawn(|line| match line {
        "GET /units/a.service" => Reply::Json(
            200,
            json!({"name": "a.service", "desiredState": "launched", "currentState": "launched"}),
        ),
        _ => Reply::empty(503),
    })
    .await;
    let endpoint = stub.base();
    for command in ["stop", "unload"] {
        let failed = run(&[("FLEETCTL_ENDPOINT", &endpoint)], &[command, "a"]).await;
        let words =
            format!("unable to {command} unit a.service: Service Unavailable (status 503)\n");
        failed.is(1, "", &words);
    }
}
