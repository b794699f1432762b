//! fleetctl against machines with an installed fleetd: the work of operators and their scripts.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use hyperfleet_testkit::{PrivateMachine, until};

use super::cluster::Cluster;

const HELLO: &str = "[Service]\nExecStart=/bin/sh -c 'echo hello from %i; exec sleep 1000'\n\n[X-Fleet]\nMachineMetadata=host=%i\n";

/// Output and exit status of fleetctl.
pub(super) struct Ran {
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

impl Ran {
    pub(super) fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            code: output.status.code(),
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }
}

/// The program, beside fleetd. `cargo test` builds it with all others; with `-p fleetd` alone it may be missing.
pub(super) fn program() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_fleetd")).with_file_name("fleetctl");
    if !path.exists() {
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--bin", "fleetctl"])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
            .status();
        assert!(built.unwrap().success(), "cargo build --bin fleetctl");
    }
    path
}

/// Runs fleetctl on the socket of a machine, without a terminal.
pub(super) fn fleetctl(machine: &PrivateMachine, arguments: &[&str]) -> Ran {
    let mut command = Command::new(program());
    command.env_clear().stdin(Stdio::null()).args(arguments);
    let endpoint = format!("unix://{}", machine.socket().display());
    command.env("FLEETCTL_ENDPOINT", endpoint);
    Ran::of(&command.output().unwrap())
}

/// Runs a command that must succeed; returns its output.
fn succeed(machine: &PrivateMachine, arguments: &[&str]) -> String {
    let ran = fleetctl(machine, arguments);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {}{}", ran.out, ran.err);
    ran.out
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

/// `UnitSSHActions`, `UnitStatus`, `UnitCat`, `UnitRestart`, `ListUnitFilesOrder`, `FleetctlWithEnv`, and the part of
/// `TemplatesWithSpecifiersInMetadata` that is the client's.
#[tokio::test]
async fn operators_do_all_by_fleetctl() {
    let Some(cluster) = Cluster::boot(2, &[]).await else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("hello@.service");
    std::fs::write(&template, HELLO).unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let [first, second] = &cluster.machines[..] else {
        panic!("two machines");
    };
    // The template lies beside the instances, which have no files.
    let [m1, m2] = ["hello@m1.service", "hello@m2.service"];
    succeed(first, &["start", &file(m1), &file(m2)]);
    let listed = succeed(
        second,
        &["list-units", "--no-legend", "--fields", "unit,active,sub"],
    );
    let expected = [
        "hello@m1.service\tactive\trunning",
        "hello@m2.service\tactive\trunning",
    ];
    assert_eq!(lines(&listed), expected);
    assert_eq!(succeed(second, &["cat", m1]).trim(), HELLO.trim());
    let machines = succeed(
        first,
        &["list-machines", "--no-legend", "--fields", "metadata"],
    );
    assert_eq!(lines(&machines), ["host=m1", "host=m2"]);

    // Status and journal come through the API, from where systemd is.
    let status = succeed(first, &["status", m1]);
    assert!(status.contains("Active: active (running)"), "{status}");
    until("the unit has said something", async || {
        succeed(first, &["journal", m1]).contains("hello from m1")
    })
    .await;
    for format in ["short", "cat"] {
        until("the journal is as journalctl prints it", async || {
            let output = format!("--output={format}");
            let own = first.run(&["journalctl", "--quiet", "--lines=10", &output, "--unit", m1]);
            let ours = succeed(first, &["journal", &output, m1]);
            ours.as_bytes() == own.stdout
        })
        .await;
    }
    let elsewhere = fleetctl(first, &["status", m2]);
    assert_ne!(elsewhere.code, Some(0));
    assert!(
        elsewhere.err.contains("advertise_address"),
        "{}",
        elsewhere.err
    );

    let process = first.property(m1, "MainPID");
    succeed(second, &["restart", m1]);
    let now = first.property(m1, "MainPID");
    assert!(now != process && now != "0", "{process} {now}");

    // A unit that can run nowhere is explained instead of waited for.
    let nowhere = fleetctl(
        first,
        &["start", "--block-attempts=1", &file("hello@m9.service")],
    );
    assert_eq!(nowhere.code, Some(1), "{}{}", nowhere.out, nowhere.err);
    let why = succeed(first, &["explain", "hello@m9.service"]);
    assert!(why.contains("MachineMetadata=host=m9"), "{why}");

    // Twenty instances come sorted.
    let many: Vec<_> = (0..20).map(|n| format!("order@{n:02}.service")).collect();
    std::fs::write(
        folder.path().join("order@.service"),
        "[Service]\nExecStart=/bin/true\n",
    )
    .unwrap();
    let paths: Vec<_> = many.iter().map(|unit| file(unit)).collect();
    let mut submit = vec!["submit"];
    submit.extend(paths.iter().map(String::as_str));
    succeed(first, &submit);
    let listed = succeed(
        first,
        &["list-unit-files", "--no-legend", "--fields", "unit"],
    );
    let orders: Vec<_> = lines(&listed)
        .into_iter()
        .filter(|unit| unit.starts_with("order"))
        .collect();
    assert_eq!(orders, many);

    // A drained machine: units that cannot leave are named.
    let drained = fleetctl(first, &["drain", "--deadline", "2s", &first.id]);
    assert_eq!(drained.code, Some(1), "{}{}", drained.out, drained.err);
    let said = drained.out + &drained.err;
    assert!(
        said.contains(m1) && said.contains("MachineMetadata=host=m1"),
        "{said}"
    );
    succeed(first, &["uncordon", &first.id]);
    succeed(first, &["doctor"]);

    let mut destroy = vec!["destroy", m1, m2, "hello@m9.service"];
    destroy.extend(many.iter().map(String::as_str));
    succeed(second, &destroy);
    cluster.until_empty().await;
}

/// What `start`, `stop` and `unload` say is what systemd does.
#[tokio::test]
async fn start_stop_and_unload_say_what_systemd_has_done() {
    let Some(cluster) = Cluster::boot(1, &[]).await else {
        return;
    };
    let machine = &cluster.machines[0];
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let sleep = "ExecStart=/bin/sleep infinity\n";
    let state = |unit: &str| machine.property(unit, "ActiveState");

    // A unit that systemd started for another one is stopped.
    let cache = file("cache.service", &format!("[Service]\n{sleep}"));
    let app = format!("[Unit]\nWants=cache.service\nAfter=cache.service\n[Service]\n{sleep}");
    let app = file("app.service", &app);
    succeed(machine, &["load", &cache]);
    succeed(machine, &["start", &app]);
    until("systemd runs it", async || {
        succeed(
            machine,
            &["list-units", "--no-legend", "--fields=unit,active"],
        )
        .contains("cache.service\tactive")
    })
    .await;
    succeed(machine, &["stop", "app"]);
    let stopped = fleetctl(machine, &["stop", "cache"]);
    assert_eq!(stopped.code, Some(0), "{}", stopped.err);
    let done = "Successfully stopped units [cache.service].\n";
    assert_eq!(stopped.err, done);
    assert_eq!(state("cache.service"), "inactive");

    // A slow stop is waited for.
    let slow = "[Service]\nExecStart=/bin/sh -c 'trap \"\" TERM; sleep 1000 & wait; sleep 1000'\nTimeoutStopSec=2\n";
    let slow = file("slow.service", slow);
    for command in ["stop", "unload"] {
        succeed(machine, &["start", &slow]);
        succeed(machine, &[command, "slow"]);
        let left = state("slow.service");
        assert!(left == "inactive" || left == "failed", "{command}: {left}");
    }

    // A launched unit that does not run is started again, or its failure is reported.
    let once = format!("[Unit]\nConditionPathExists=!/no\n[Service]\n{sleep}");
    let once = file("once.service", &once);
    succeed(machine, &["start", &once]);
    machine.systemctl(&["stop", "once.service"]);
    until("it is reported", async || {
        succeed(
            machine,
            &["list-units", "--no-legend", "--fields=unit,active"],
        )
        .contains("once.service\tinactive")
    })
    .await;
    succeed(machine, &["start", "once"]);
    assert_eq!(state("once.service"), "active");
    let failing = file(
        "fail.service",
        "[Service]\nType=oneshot\nExecStart=/bin/false\n",
    );
    for name in [failing.as_str(), "fail"] {
        let failed = fleetctl(machine, &["start", name]);
        assert_eq!(failed.code, Some(1), "{}{}", failed.out, failed.err);
        assert!(failed.err.contains("fail.service"), "{}", failed.err);
    }
    // Commands end when a unit cannot run.
    let bad = file("bad.service", "[Service]\nType=nonsense\n");
    let refused = fleetctl(machine, &["start", &bad]);
    assert_eq!(refused.code, Some(1), "{}{}", refused.out, refused.err);
    assert!(
        refused.err.contains("bad unit file setting"),
        "{}",
        refused.err
    );
    succeed(
        machine,
        &["destroy", "app", "cache", "slow", "once", "fail", "bad"],
    );
    cluster.until_empty().await;
}
