//! The demo of fleet, which checks each of its steps itself (`examples/demo-fleet`).

use std::path::Path;
use std::process::{Command, Stdio};

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/demo-fleet");
/// Exit status of the demo where it cannot run.
const CANNOT_RUN: i32 = 3;

/// Skipped where machines cannot be booted, and where `fleetctl` is not built, which `cargo test` of the whole workspace
/// does; with `SYSTEMD_REQUIRED` that fails.
#[test]
fn every_step_of_the_demo_succeeds() {
    let is_required = std::env::var_os("SYSTEMD_REQUIRED").is_some();
    let fleetd = Path::new(env!("CARGO_BIN_EXE_fleetd"));
    let fleetctl = fleetd.with_file_name("fleetctl");
    if !fleetctl.exists() {
        assert!(!is_required, "run `cargo build --bin fleetctl` first");
        println!("skipped: fleetctl is not built (cargo build --bin fleetctl)");
        return;
    }
    let mut demo = Command::new("setpriv");
    demo.args(["--pdeathsig", "TERM", "--", DEMO])
        .env("FLEETD", fleetd)
        .env("FLEETCTL", fleetctl)
        .stdin(Stdio::null());
    let output = demo.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => assert!(said.contains("All is as it should be"), "{said}"),
        Some(CANNOT_RUN) if !is_required => println!("skipped: {errors}"),
        status => panic!("{status:?}\n{said}{errors}"),
    }
}
