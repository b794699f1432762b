//! Its command line and its settings.

use std::path::Path;
use std::process::{Output, Stdio};

use super::local::is_there;
use super::program::fleetd;

fn run(args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = fleetd();
    command.args(args).envs(variables.iter().copied());
    command.stdin(Stdio::null()).output().unwrap()
}

fn output_text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

const NO_API: (&str, &str) = ("FLEET_DISABLE_API", "true");

#[test]
fn invalid_arguments_and_settings_exit_with_2() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.conf");
    std::fs::write(&wrong, "token_limit=many").unwrap();
    let wrong = wrong.to_str().unwrap();
    let id = ("FLEET_MACHINE_ID", "m1");
    for (args, variables, code) in [
        (&["--version"][..], &[][..], 0),
        (&["version"], &[], 0),
        (&["--help"], &[], 0),
        (&["config", "check"], &[id], 0),
        (&["config", "reference"], &[], 0),
        (&["openapi"], &[], 0),
        (&["nonsense"], &[], 2),
        (&["--nonsense"], &[], 2),
        (&["--config", wrong], &[id], 2),
        (&["--config", "/missing.conf"], &[id], 2),
        (&["--config", "/tmp"], &[id], 2),
        (&["config", "check", "--config", wrong], &[id], 2),
        (&[], &[id, ("FLEET_ETCD_SERVERS", "etcd:2379")], 2),
        (&[], &[id, ("FLEET_LISTEN", "tcp:0.0.0.0:0")], 2),
        (&[], &[id, ("FLEET_LISTEN", "unix:/proc/fleet.sock")], 1),
        (&[], &[id, NO_API, ("FLEET_DISABLE_ENGINE", "true")], 2),
        (&[], &[id, NO_API, ("FLEET_ADVERTISE_ADDRESS", "a:1")], 2),
    ] {
        let output = run(args, variables);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{args:?}: {}",
            output_text(&output)
        );
    }
    let version = run(&["--version"], &[]).stdout;
    let expected = format!("fleetd version {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8(version).unwrap(), expected);
}

#[test]
fn invalid_values_are_reported_before_what_they_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fleet.conf");
    let values = "
engine_reconcile_interval=0
machine_id=not/one
listn_client_ca_file=/ca.pem
";
    let named = "
etcd_servers=https://u:hush@a, http://b
etcd_username=fleet
etcd_cafile=/missing/ca.pem
etcd_key_prefix=\"caf\u{e9}\"
listen=tcp:10.0.0.1:0
listen_cert_file=/missing/cert.pem
listen_key_file=/missing/key.pem
";
    for (settings, faults) in [
        (
            values,
            &[
                "engine_reconcile_interval (from FILE:2)",
                "machine_id (from FILE:3)",
                "listn_client_ca_file (from FILE:4): there is no such setting; did you mean listen_client_ca_file?",
            ][..],
        ),
        (
            named,
            &[
                "etcd_servers (from FILE:2): a URL of etcd must not contain a user or password",
                "etcd_username (from FILE:3) is given, but etcd_password is not",
                "etcd_cafile (from FILE:4): cannot read /missing/ca.pem",
                "etcd_key_prefix (from FILE:5) is ",
                "listen (from FILE:6): other machines may reach tcp:10.0.0.1:0, and callers are not authenticated",
                "listen_cert_file (from FILE:7): cannot read /missing/cert.pem",
            ],
        ),
    ] {
        std::fs::write(&file, settings).unwrap();
        let output = run(&["--config", file.to_str().unwrap()], &[]);
        assert_eq!(output.status.code(), Some(2));
        let said = output_text(&output).replace(file.to_str().unwrap(), "FILE");
        for fault in faults {
            assert!(said.contains(fault), "no {fault:?} in: {said}");
        }
        assert!(!said.contains("hush"), "{said}");
    }
}

#[test]
fn what_counts_is_shown_with_where_it_comes_from() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fleet.conf");
    std::fs::write(
        &file,
        "token_limit=7\netcd_username=u\netcd_password=hush\nmetadata=a=b\n",
    )
    .unwrap();
    let file = file.to_str().unwrap();
    let args = ["config", "check", "-o", "json", "--config", file];
    let variables = [
        ("FLEET_MACHINE_ID", "m1"),
        ("FLEET_LISTEN_ANONYMOUS", "true"),
        ("FLEET_LISTEN", "tcp:[::]:0"),
        ("FLEET_LISTEN_SOCKET_MODE", "0666"),
    ];
    let output = run(&args, &variables);
    let said = output_text(&output);
    assert!(output.status.success(), "{said}");
    let entries: Vec<serde_json::Value> = serde_json::from_slice(&output.stdout).unwrap();
    let entry = |key: &str| entries.iter().find(|e| e["key"] == key).unwrap();
    assert_eq!(
        (
            &entry("token_limit")["value"],
            &entry("token_limit")["source"]
        ),
        (&"7".into(), &format!("{file}:1").into())
    );
    assert_eq!(entry("machine_id")["source"], "FLEET_MACHINE_ID");
    assert_eq!(entry("etcd_password")["value"], "***REDACTED***");
    assert_eq!(entry("metadata")["value"], "a=b");
    assert!(
        said.contains("note: listen_anonymous: any client that reaches tcp:[::]:0"),
        "{said}"
    );
    let open = "note: listen_socket_mode: with 0666 every user of this machine";
    assert!(said.contains(open), "{said}");
}

#[test]
fn shells_complete_and_a_closed_pipe_is_no_error() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completion", shell], &[]);
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(
            script.contains("fleetd") && script.contains("openapi"),
            "{shell}"
        );
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = fleetd()
        .args(["config", "reference"])
        .stdout(writer)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(
        (output.status.code(), output_text(&output)),
        (Some(0), String::new())
    );
}

#[test]
fn the_units_for_systemd_are_good_ones() {
    if !is_there("systemd-analyze") {
        println!("skipped: there is no systemd-analyze");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_fleetd");
    let files = ["fleetd.service", "fleetd.socket"].map(|name| {
        let text = std::fs::read_to_string(Path::new("../../examples/systemd").join(name)).unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, text.replace("/usr/bin/fleetd", program)).unwrap();
        file
    });
    let mut verify = std::process::Command::new("systemd-analyze");
    let output = verify.arg("verify").args(&files).output().unwrap();
    let said = output_text(&output);
    // What it says of other units of this machine is not ours.
    let ours: Vec<_> = said
        .lines()
        .filter(|line| line.contains("fleetd"))
        .collect();
    assert!(ours.is_empty(), "{ours:?}");
}
