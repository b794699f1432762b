//! fleetd as a service of its machine: restarts, reloads, stops and upgrades, with running units.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use hyperfleet_testkit::{PrivateMachine, until};

use super::cluster::{Cluster, Placed, busy_time, files, names, units_on};

/// Stops fleetd permanently: its socket would start it again.
const STOP: [&str; 3] = ["stop", "fleetd.socket", "fleetd.service"];
const START: [&str; 3] = ["start", "fleetd.socket", "fleetd.service"];
/// Units stop with fleetd then.
const STOPPING: [(&str, &str); 1] = [("SHUTDOWN_MODE", "stop")];

#[tokio::test]
async fn as_it_is_installed_fleetd_keeps_units_over_its_own_restarts() {
    let Some(cluster) = Cluster::boot(1, &[]).await else {
        return;
    };
    let machine = &cluster.machines[0];
    for unit in ["a.service", "b.service"] {
        cluster.launch(unit).await;
    }
    let active = cluster.until_active(2).await;
    let before = cluster.processes(&active);
    for verb in ["restart", "reload", "kill --signal=KILL", "stop"] {
        let mut arguments: Vec<_> = verb.split(' ').collect();
        arguments.push("fleetd.service");
        machine.systemctl(&arguments);
        // The socket starts it, where it does not run.
        assert_eq!(cluster.until_active(2).await, active, "{verb}");
        until("it runs", async || {
            machine.property("fleetd.service", "ActiveState") == "active"
        })
        .await;
        assert_eq!(cluster.processes(&active), before, "{verb}");
    }
    let log = machine.log();
    assert!(log.contains("settings reloaded"), "{log}");
    let is_bad = |line: &str| line.contains("unit unloaded") || line.contains("ERROR");
    assert!(!log.lines().any(is_bad), "{log}");
    // systemd is content with the files of units, whatever the umask of the service is.
    machine.systemctl(&["daemon-reload"]);
    let of_systemd = machine.run(&["journalctl", "--no-pager", "_PID=1"]);
    let of_systemd = String::from_utf8(of_systemd.stdout).unwrap();
    assert!(of_systemd.contains("a.service"), "{of_systemd}");
    assert!(!of_systemd.contains("inaccessible"), "{of_systemd}");
}

#[tokio::test]
async fn a_reload_keeps_the_process_and_a_later_stop_is_clean() {
    let Some(cluster) = Cluster::boot(1, &[]).await else {
        return;
    };
    let machine = &cluster.machines[0];
    let process = machine.property("fleetd.service", "MainPID");
    // One client: its connection stays open.
    let api = cluster.api();
    for count in 1..=3 {
        machine.systemctl(&["reload", "fleetd.service"]);
        until("it has read its settings", async || {
            let log = machine.log();
            log.matches("settings reloaded").count() == count
        })
        .await;
        assert_eq!(api.list("machines").await.len(), 1);
    }
    assert_eq!(machine.property("fleetd.service", "MainPID"), process);
    machine.systemctl(&STOP);
    assert_ended_well(machine);
}

/// With the commands of docs/operations/fleetd.md.
#[tokio::test]
async fn a_machine_can_run_units_without_sockets_and_api() {
    let Some(cluster) = Cluster::boot(1, &[]).await else {
        return;
    };
    cluster.launch("a.service").await;
    let active = cluster.until_active(1).await;
    let before = cluster.processes(&active);
    let machine = &cluster.machines[0];
    let run = |command: &str| {
        let output = machine.run(&["sh", "-c", command]);
        assert!(output.status.success(), "{command}: {output:?}");
    };
    run(
        "sed /^Requires=fleetd.socket/d \"$(systemctl show -P FragmentPath fleetd.service)\" >/run/fleetd.service",
    );
    let service = std::fs::read_to_string(machine.file("/run/fleetd.service")).unwrap();
    machine.write_unit("fleetd.service", &service);
    machine.write_unit(
        "fleetd.service.d/api.conf",
        "[Service]\nEnvironment=FLEET_DISABLE_API=true\n",
    );
    for command in [
        "systemctl daemon-reload",
        "systemctl disable --now fleetd.socket",
        "systemctl restart fleetd.service",
    ] {
        run(command);
    }
    let of_fleetd = |name| machine.property("fleetd.service", name);
    assert_eq!(of_fleetd("ActiveState"), "active", "{}", machine.log());
    assert_eq!(machine.property("fleetd.socket", "ActiveState"), "inactive");
    // systemd leaves the file. Nothing listens there.
    let refused = UnixStream::connect(machine.socket()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    until("it has taken up its units", async || {
        machine.log().contains("api=false") && of_fleetd("NRestarts") == "0"
    })
    .await;
    assert_eq!(cluster.processes(&active), before);
    machine.systemctl(&["stop", "fleetd.service"]);
    assert_ended_well(machine);
    assert_eq!(machine.property("a.service", "ActiveState"), "active");
}

fn assert_ended_well(machine: &PrivateMachine) {
    let ended = ["Result", "ExecMainStatus", "ActiveState"]
        .map(|name| machine.property("fleetd.service", name));
    assert_eq!(ended, ["success", "0", "inactive"]);
}

#[tokio::test]
async fn fleetd_ends_in_time_without_etcd() {
    for (settings, state) in [(&[][..], "active"), (&STOPPING, "inactive")] {
        let Some(mut cluster) = Cluster::boot(1, settings).await else {
            return;
        };
        cluster.launch("a.service").await;
        cluster.until_active(1).await;
        let since = Instant::now();
        cluster.etcd[0].kill();
        let machine = &cluster.machines[0];
        until("it has lost etcd", async || {
            machine.log().contains("etcd connection lost")
        })
        .await;
        machine.systemctl(&STOP);
        println!("etcd away, stopped after {:?}", since.elapsed());
        assert_ended_well(machine);
        assert_eq!(machine.property("a.service", "ActiveState"), state);
        cluster.etcd[0].resume().await;
        machine.systemctl(&START);
        cluster.until_active(1).await;
    }
}

#[tokio::test]
async fn a_leaving_machine_removes_its_states_and_pairs_move() {
    let Some(cluster) = Cluster::boot(3, &STOPPING).await else {
        return;
    };
    let (leaders, followers) = (names("leader", 3), names("follower", 3));
    for (leader, follower) in leaders.iter().zip(&followers) {
        cluster.launch(leader).await;
        let line = format!("X-Fleet MachineOf={leader}");
        cluster.launch_with(follower, &[&line]).await;
    }
    let active = cluster.until_active(6).await;
    let machine_of = |placed: &Placed, unit: &str| {
        let mut placed = placed.iter();
        placed.find(|(name, _)| name == unit).unwrap().1.clone()
    };
    for (leader, follower) in leaders.iter().zip(&followers) {
        assert_eq!(machine_of(&active, leader), machine_of(&active, follower));
    }
    // Not the machine that is asked.
    let here = active.iter().map(|(_, id)| id);
    let leaving = here.max().unwrap().clone();
    let moving = units_on(&active, &leaving);
    assert!(!moving.is_empty() && leaving != cluster.machines[0].id);
    let machine = cluster.machine(&leaving);
    let mut members = cluster.ids();
    let staying = members.clone();
    members.remove(&leaving);
    machine.systemctl(&STOP);
    assert_ended_well(machine);
    assert!(files(machine).is_empty());
    for unit in &moving {
        assert_eq!(machine.property(unit, "LoadState"), "not-found");
    }
    // At once: nothing waits for its lease.
    let machines = cluster.api().list("machines").await;
    assert_eq!(machines.len(), 2);
    let states = cluster.api().list("state").await;
    assert!(states.iter().all(|state| state["machineID"] != *leaving));
    let after = cluster.until_active(6).await;
    for (leader, follower) in leaders.iter().zip(&followers) {
        assert_eq!(machine_of(&after, leader), machine_of(&after, follower));
    }
    let moved = active.difference(&after).map(|(unit, _)| unit.clone());
    assert_eq!(moved.collect::<BTreeSet<_>>(), moving);
    machine.systemctl(&START);
    cluster.until_members(&staying).await;
    assert_eq!(cluster.until_active(6).await, after, "nothing moves back");
}

/// systemd stops everything at the same time, D-Bus included.
#[tokio::test]
async fn a_machine_is_off_soon_in_every_shutdown_mode() {
    for mode in ["keep", "stop", "move"] {
        let Some(mut cluster) = Cluster::boot(2, &[("SHUTDOWN_MODE", mode)]).await else {
            return;
        };
        for unit in names("u", 4) {
            cluster.launch(&unit).await;
        }
        let active = cluster.until_active(4).await;
        // As in the service that is shipped: `cluster::SERVICES`.
        let after = cluster.machines[1].property("fleetd.service", "After");
        for of_dbus in ["dbus.service", "dbus.socket"] {
            assert!(after.split(' ').any(|unit| unit == of_dbus), "{after}");
        }
        let leaving = cluster.machines[1].id.clone();
        assert_eq!(units_on(&active, &leaving).len(), 2, "{active:?}");
        let since = Instant::now();
        cluster.machines[1].power_off().await;
        let off = since.elapsed();
        cluster.until_members(&cluster.ids()).await;
        cluster.until_active(4).await;
        let moved = since.elapsed();
        println!("{mode}: off after {off:?}, all active elsewhere after {moved:?}");
        let limit = Duration::from_secs(10) + busy_time(20);
        assert!(off < limit, "{mode}: {off:?}");
    }
}

#[tokio::test]
async fn units_of_a_fleetd_that_stays_away_run_twice_until_it_is_back() {
    let Some(mut cluster) = Cluster::boot(2, &[]).await else {
        return;
    };
    for unit in names("u", 4) {
        cluster.launch(&unit).await;
    }
    let active = cluster.until_active(4).await;
    let leader = cluster.settled_leader().await;
    cluster.endpoint = leader;
    let away = &cluster.machines[1 - leader];
    let mut left = active.clone();
    left.retain(|(_, id)| *id == away.id);
    assert!(!left.is_empty(), "{active:?}");
    let before = cluster.processes(&left);
    away.systemctl(&STOP);
    let mut elsewhere = Placed::new();
    until("all are placed on the other machine", async || {
        elsewhere = cluster.reported("active").await;
        elsewhere.len() == 4 && units_on(&elsewhere, &away.id).is_empty()
    })
    .await;
    assert_eq!(cluster.processes(&left), before, "the first ones run on");
    away.systemctl(&START);
    cluster.until_members(&cluster.ids()).await;
    until("the first ones are gone", async || files(away).is_empty()).await;
    for (unit, _) in &left {
        assert_eq!(away.property(unit, "ActiveState"), "inactive");
    }
    assert_eq!(cluster.until_active(4).await, elsewhere);
}

#[tokio::test]
async fn fleetd_is_upgraded_under_units_that_run() {
    let Some(cluster) = Cluster::boot(3, &[]).await else {
        return;
    };
    for unit in names("u", 6) {
        cluster.launch(&unit).await;
    }
    let active = cluster.until_active(6).await;
    let before = cluster.processes(&active);
    let program = |machine: &PrivateMachine| {
        let process = machine.property("fleetd.service", "MainPID");
        let file = machine.file(&format!("/proc/{process}/exe"));
        std::fs::metadata(file).unwrap().ino()
    };
    for machine in &cluster.machines {
        let old = program(machine);
        machine.replace_program(Path::new(env!("CARGO_BIN_EXE_fleetd")));
        machine.systemctl(&["daemon-reload"]);
        machine.systemctl(&["restart", "fleetd.service"]);
        assert_ne!(program(machine), old);
        cluster.until_members(&cluster.ids()).await;
        assert_eq!(cluster.until_active(6).await, active);
        assert_eq!(cluster.processes(&active), before);
    }
    // The upgraded cluster works.
    cluster.launch("later.service").await;
    cluster.until_active(7).await;
    assert_eq!(cluster.processes(&active), before);
}
