//! The life cycle of units.

use hyperfleet_testkit::until;
use serde_json::Value;

use super::cluster::{Cluster, names, text};
use super::fleet_socket::SLEEP;

const OTHER: [&str; 1] = ["Service ExecStart=/bin/sleep 2000"];

#[tokio::test]
async fn units_live_from_their_submission_to_their_end() {
    let Some(cluster) = Cluster::boot(3, &[]).await else {
        return;
    };
    cluster.play("a unit runs", a_unit_runs).await;
    cluster
        .play("submitted and destroyed, twice", submitted)
        .await;
    cluster.play("loaded and unloaded, twice", loaded).await;
    cluster.play("started and stopped, twice", started).await;
    cluster.play("replaced", replaced).await;
    cluster.play("restarted", restarted).await;
    cluster
        .play("a sidekick starts and stops with its service", sidekick)
        .await;
    cluster.play("as systemd sees it", as_systemd_sees_it).await;
}

/// Each kind of unit that systemd runs from a file, and each of the others, which must say why it does not run.
#[tokio::test]
async fn every_type_of_unit_runs_or_says_why_not() {
    let Some(cluster) = Cluster::boot(1, &[]).await else {
        return;
    };
    let api = cluster.api();
    let runs: [(&str, &[&str]); 7] = [
        ("a.service", &SLEEP),
        (
            "b.socket",
            &["Socket ListenStream=/run/b", "Socket Service=a.service"],
        ),
        ("c.path", &["Path PathExists=/run/c", "Path Unit=a.service"]),
        ("d.timer", &["Timer OnActiveSec=1h", "Timer Unit=a.service"]),
        ("e.target", &["Unit Description=e"]),
        ("f.slice", &["Slice TasksMax=77"]),
        (
            "mnt.mount",
            &["Mount What=tmpfs", "Mount Where=/mnt", "Mount Type=tmpfs"],
        ),
    ];
    api.put("a.service", &SLEEP, "loaded").await;
    // A socket cannot be started after its service.
    for (unit, lines) in runs.iter().rev() {
        api.put(unit, lines, "launched").await;
        api.until_state(unit, "active").await;
    }
    let cannot: [(&str, &[&str]); 5] = [
        ("g.scope", &["Scope RuntimeMaxSec=1h"]),
        ("h.snapshot", &["Unit Description=h"]),
        ("i.busname", &["Unit Description=i"]),
        // Neither has a place in a container.
        ("srv.automount", &["Automount Where=/srv"]),
        ("dev-j.swap", &["Swap What=/dev/j"]),
    ];
    for (unit, lines) in cannot {
        api.put(unit, lines, "launched").await;
        until(&format!("{unit} says why"), async || {
            let why = api.explained(unit).await;
            let has_failed = api.state(unit).await["systemdActiveState"] == "failed";
            has_failed || why.contains("where it is not in its desired state")
        })
        .await;
        println!("{unit}: {}", api.explained(unit).await);
    }
    let units = runs.map(|(unit, _)| unit);
    cluster.destroy(&cannot.map(|(unit, _)| unit)).await;
    cluster.destroy(&units).await;
    cluster.until_empty().await;
}

#[tokio::test]
async fn a_timer_is_active_after_every_boot() {
    let Some(mut cluster) = Cluster::boot(1, &[]).await else {
        return;
    };
    // One timer comes before its service by name, and one after it.
    let service = ["Service Type=oneshot", "Service ExecStart=/bin/true"];
    let timer = ["Timer OnActiveSec=1h", "Timer Unit=m.service"];
    let api = cluster.api();
    api.put("m.service", &service, "loaded").await;
    api.put("a.timer", &timer, "launched").await;
    api.put("z.timer", &timer, "launched").await;
    cluster.until_active(2).await;
    for _ in 0..3 {
        cluster.machines[0].kill();
        cluster.machines[0].boot_again().await;
        let machine = &cluster.machines[0];
        until("both timers are active", async || {
            ["a.timer", "z.timer"]
                .iter()
                .all(|unit| machine.property(unit, "ActiveState") == "active")
        })
        .await;
        let log = machine.log();
        assert!(!log.contains("not in its desired state"), "{log}");
    }
}

async fn a_unit_runs(cluster: &Cluster) {
    cluster.launch("hello.service").await;
    let active = cluster.until_active(1).await;
    let (unit, id) = active.first().unwrap();
    assert_eq!(unit, "hello.service");
    assert_eq!(cluster.machine(id).property(unit, "ActiveState"), "active");
    assert_eq!(cluster.api().list("units").await.len(), 1);
    cluster.destroy(&["hello.service"]).await;
}

async fn submitted(cluster: &Cluster) {
    let api = cluster.api();
    let units = names("hello@", 9);
    for _ in 0..2 {
        // Lists are sorted by name, in whatever order units were submitted.
        for unit in units.iter().rev() {
            api.put(unit, &SLEEP, "inactive").await;
        }
        let listed = api.list("units").await;
        let listed: Vec<_> = listed.iter().map(|unit| text(&unit["name"])).collect();
        assert_eq!(listed, units);
        assert!(api.list("state").await.is_empty());
        cluster.destroy(&units).await;
        assert!(api.list("units").await.is_empty());
    }
}

async fn loaded(cluster: &Cluster) {
    let api = cluster.api();
    let units = names("hello@", 6);
    for unit in &units {
        api.put(unit, &SLEEP, "inactive").await;
    }
    for _ in 0..2 {
        for unit in &units {
            api.set(unit, "loaded").await;
        }
        cluster.until_reported("inactive", 6).await;
        assert!(cluster.reported("active").await.is_empty());
        for unit in &units {
            api.set(unit, "inactive").await;
        }
        until("they are unloaded", async || {
            api.list("state").await.is_empty()
        })
        .await;
        assert_eq!(api.list("units").await.len(), 6);
    }
    cluster.destroy(&units).await;
}

async fn started(cluster: &Cluster) {
    let api = cluster.api();
    let units = names("hello@", 3);
    for unit in &units {
        api.put(unit, &SLEEP, "inactive").await;
    }
    for _ in 0..2 {
        for unit in &units {
            api.set(unit, "launched").await;
        }
        let active = cluster.until_active(3).await;
        cluster.processes(&active);
        for unit in &units {
            api.set(unit, "loaded").await;
        }
        let stopped = cluster.until_reported("inactive", 3).await;
        assert_eq!(stopped, active, "they stay where they are");
    }
    cluster.destroy(&units).await;
}

/// The stored and reported state of each unit: its options, and the hash of the file on its machine.
async fn contents(cluster: &Cluster, units: &[String]) -> Vec<(Value, String)> {
    let api = cluster.api();
    let mut contents = Vec::new();
    for unit in units {
        let (_, stored) = api.get(&format!("/fleet/v1/units/{unit}")).await.unwrap();
        let reported = text(&api.state(unit).await["hash"]);
        contents.push((stored["options"].clone(), reported));
    }
    contents
}

async fn replaced(cluster: &Cluster) {
    let api = cluster.api();
    for (state, active) in [
        ("inactive", ""),
        ("loaded", "inactive"),
        ("launched", "active"),
    ] {
        let units = names("hello@", 3);
        for unit in &units {
            api.put(unit, &SLEEP, state).await;
        }
        let count = if active.is_empty() { 0 } else { 3 };
        let placed = cluster.until_reported(active, count).await;
        let before = contents(cluster, &units).await;
        for unit in &units {
            let answer = api.try_put(unit, &OTHER, state).await;
            assert_eq!(answer.map(|(status, _)| status), Some(201), "{unit}");
        }
        let mut after = Vec::new();
        until(&format!("the other files are {state}"), async || {
            after = contents(cluster, &units).await;
            let mut pairs = before.iter().zip(&after);
            pairs.all(|(before, after)| count == 0 || (before.1 != after.1 && !after.1.is_empty()))
                && cluster.reported(active).await == placed
        })
        .await;
        for (before, after) in before.iter().zip(&after) {
            assert_ne!(before.0, after.0);
            assert_eq!(after.0[0]["value"], "/bin/sleep 2000");
        }
        if state == "launched" {
            for (unit, id) in &placed {
                let command = cluster.machine(id).property(unit, "ExecStart");
                assert!(command.contains("/bin/sleep 2000"), "{unit}: {command}");
            }
        }
        cluster.destroy(&units).await;
        cluster.until_empty().await;
    }
}

async fn restarted(cluster: &Cluster) {
    let api = cluster.api();
    let units = names("hello@", 3);
    for unit in &units {
        cluster.launch(unit).await;
    }
    let active = cluster.until_active(3).await;
    let before = cluster.processes(&active);
    for unit in &units {
        api.set(unit, "loaded").await;
    }
    cluster.until_reported("inactive", 3).await;
    for unit in &units {
        api.set(unit, "launched").await;
    }
    assert_eq!(cluster.until_active(3).await, active);
    for (unit, pid) in cluster.processes(&active) {
        assert_ne!(pid, before[&unit], "{unit:?}");
    }
    cluster.destroy(&units).await;
}

async fn sidekick(cluster: &Cluster) {
    let api = cluster.api();
    let side = [
        SLEEP[0],
        "Unit PartOf=hello.service",
        "Install WantedBy=hello.service",
        "X-Fleet MachineOf=hello.service",
    ];
    api.put("hello.service", &SLEEP, "loaded").await;
    api.put("side.service", &side, "loaded").await;
    cluster.until_reported("inactive", 2).await;
    for _ in 0..2 {
        api.set("hello.service", "launched").await;
        let active = cluster.until_active(2).await;
        assert_eq!(active.first().unwrap().1, active.last().unwrap().1);
        api.set("hello.service", "loaded").await;
        cluster.until_reported("inactive", 2).await;
    }
    cluster.destroy(&["side.service", "hello.service"]).await;
}

async fn as_systemd_sees_it(cluster: &Cluster) {
    let api = cluster.api();
    let id = &cluster.machines[1].id;
    let here = format!("X-Fleet MachineID={id}");
    let unit = "flow.service";
    let until_is = async |load: &str, active: &str, sub: &str| {
        let seen = [load, active, sub];
        let properties = ["LoadState", "ActiveState", "SubState"];
        until(&format!("it is {seen:?}"), async || {
            let state = api.state(unit).await;
            let reported = ["systemdLoadState", "systemdActiveState", "systemdSubState"]
                .map(|name| text(&state[name]));
            properties.map(|name| cluster.machines[1].property(unit, name)) == seen
                && (load == "not-found" || reported == seen)
        })
        .await;
    };
    api.put(unit, &[SLEEP[0], &here], "loaded").await;
    until_is("loaded", "inactive", "dead").await;
    api.set(unit, "launched").await;
    until_is("loaded", "active", "running").await;
    api.set(unit, "loaded").await;
    until_is("loaded", "inactive", "dead").await;
    api.set(unit, "inactive").await;
    until_is("not-found", "inactive", "dead").await;
    cluster.destroy(&[unit]).await;
}
