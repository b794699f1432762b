//! The demo of fleet, which checks each of its steps itself.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/demo-fleet");
/// Exit status of a demo that cannot run here.
const CANNOT_RUN: i32 = 3;

const TUTORIAL: &str = include_str!("../../../../docs/guides/fleet-adapter-tutorial.md");

#[test]
fn every_step_of_the_demo_succeeds() {
    if let Some(said) = play(&[], "") {
        assert!(said.contains("All is as it should be"), "{said}");
    }
}

/// The commands of `docs/guides/fleet-adapter-tutorial.md` from its third step on, in the shell that the second one opens.
#[test]
fn every_command_of_the_tutorial_succeeds() {
    let (_, steps) = TUTORIAL.split_once("## 3. ").unwrap();
    let blocks = steps.split("```sh\n").skip(1);
    let blocks = blocks.map(|block| block.split_once("```").unwrap().0);
    let commands = format!("set -euo pipefail\n{}", blocks.collect::<String>());
    let Some(said) = play(&["shell"], &commands) else {
        return;
    };
    for line in [
        "# web-00000000@3.service",
        "FleetSuccessful True: 3 of 3 replicas available",
        "Applied True UnitsStored: 3 units stored",
        "Available False TemplateFailed: workload 1 of NodePool",
        "\"code\": \"HYPERFLEET-NTF-001\"",
    ] {
        assert!(said.contains(line), "{line} is missing:\n{said}");
    }
    // Of three running services: after the creation, and beside a refused spec. Then two, before and after the
    // drain.
    assert_eq!(
        said.matches("active\trunning").count(),
        3 + 3 + 2 + 2,
        "{said}"
    );
}

/// The output of a successful demo. Skipped where machines cannot boot or a program is not built (`cargo test`
/// of the whole workspace builds it); with `SYSTEMD_REQUIRED` that fails.
fn play(arguments: &[&str], input: &str) -> Option<String> {
    let is_required = std::env::var_os("SYSTEMD_REQUIRED").is_some();
    let fleetd = Path::new(env!("CARGO_BIN_EXE_fleetd"));
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "TERM", "--"])
        .arg(DEMO)
        .args(arguments)
        .env("FLEETD", fleetd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    for name in ["fleetctl", "hyperfleet-api"] {
        let program = fleetd.with_file_name(name);
        if !program.exists() {
            assert!(!is_required, "run `cargo build --bin {name}` first");
            println!("skipped: {name} is not built (cargo build --bin {name})");
            return None;
        }
        command.env(name.to_uppercase().replace('-', "_"), program);
    }
    let mut demo = command.spawn().unwrap();
    // A demo that cannot run reads no input.
    let _ = demo.stdin.take().unwrap().write_all(input.as_bytes());
    let output = demo.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => Some(said),
        Some(CANNOT_RUN) if !is_required => {
            println!("skipped: {errors}");
            None
        }
        status => panic!("{status:?}\n{said}{errors}"),
    }
}
