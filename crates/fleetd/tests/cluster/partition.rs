//! Machines that lose their connection to etcd.

use std::time::Instant;

use hyperfleet_testkit::until;
use serde_json::Value;

use super::cluster::{Cluster, Placed, files, names, outage, text, units_on};

/// Leaves the times of its start and its stop on the machine, by the clock that all machines share.
const TIMED: [&str; 2] = [
    "Service ExecStartPre=/bin/cp /proc/uptime /run/started",
    "Service ExecStopPost=/bin/cp /proc/uptime /run/stopped",
];

impl Cluster {
    /// Seconds that one of the files of [`TIMED`] says; `None` if there is none.
    fn moment(&self, index: usize, file: &str) -> Option<f64> {
        let text = std::fs::read_to_string(self.machines[index].file(file)).ok()?;
        text.split(' ').next()?.parse().ok()
    }

    /// Waits until a machine whose link was healed is a member again.
    async fn until_registered(&self, index: usize) {
        let since = Instant::now();
        let api = Self::api_of(&self.machines[index]);
        until("the machine is a member", async || {
            api.metric("fleet_agent_registered").await == Some(1.0)
        })
        .await;
        self.until_members(&self.ids()).await;
        println!("healed: a member again after {:?}", since.elapsed());
    }
}

/// As with DHCP, which may be later than fleetd, and give another address.
#[tokio::test]
async fn the_address_of_a_machine_is_that_of_its_network() {
    let Some(cluster) = Cluster::boot_apart(1).await else {
        return;
    };
    let api = cluster.api();
    let address = async || text(&api.list("machines").await[0]["primaryIP"]);
    let ip = |arguments: &str| {
        let arguments: Vec<_> = ["ip"].into_iter().chain(arguments.split(' ')).collect();
        let output = cluster.machines[0].run(&arguments);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    // It has no way to other networks.
    assert_eq!(address().await, "");
    ip("route add default via 10.88.0.1 dev host0");
    until("its address is published", async || {
        address().await == "10.88.0.11"
    })
    .await;
    ip("route delete default");
    ip("address add fd00::5/64 dev host0 nodad");
    ip("-6 route add default via fd00::1 dev host0");
    until("its other address is published", async || {
        address().await == "fd00::5"
    })
    .await;
}

#[tokio::test]
async fn a_machine_alone_that_loses_etcd_stops_nothing() {
    let Some(cluster) = Cluster::boot_apart(1).await else {
        return;
    };
    for unit in names("u", 3) {
        cluster.launch(&unit).await;
    }
    let active = cluster.until_active(3).await;
    let before = cluster.processes(&active);
    let machine = &cluster.machines[0];
    let unit_files = files(machine);
    cluster.cut(0);
    until("it knows", async || {
        machine.log().contains("machine lease lost")
    })
    .await;
    println!("a machine alone is cut off for {:?}", outage());
    tokio::time::sleep(outage()).await;
    assert_eq!(cluster.processes(&active), before);
    assert_eq!(files(machine), unit_files);
    cluster.heal(0);
    cluster.until_registered(0).await;
    assert_eq!(cluster.until_active(3).await, active);
    cluster.launch("later.service").await;
    cluster.until_active(4).await;
    assert_eq!(cluster.processes(&active), before);
    let log = machine.log();
    assert!(!log.contains("unit unloaded"), "{log}");
}

#[tokio::test]
async fn a_partitioned_machine_runs_on_and_yields_after_healing() {
    let Some(mut cluster) = Cluster::boot_apart(3).await else {
        return;
    };
    let leader = cluster.settled_leader().await;
    let lost = (leader + 1) % 3;
    cluster.endpoint = leader;
    let id = cluster.machines[lost].id.clone();
    for unit in names("u", 5) {
        cluster.launch(&unit).await;
    }
    cluster.until_active(5).await;
    let here = format!("X-Fleet MachineID={id}");
    let singleton = ["X-Fleet Singleton=true", &here];
    cluster.launch_with("one.service", &singleton).await;
    let active = cluster.until_active(6).await;
    let mut ordinary = active.clone();
    ordinary.retain(|(unit, _)| unit != "one.service");
    let before = cluster.processes(&ordinary);
    let cut_off = units_on(&ordinary, &id);
    assert!(!cut_off.is_empty(), "{active:?}");

    let since = Instant::now();
    cluster.cut(lost);
    until("the singleton has stopped", async || {
        cluster.machines[lost].property("one.service", "ActiveState") == "inactive"
    })
    .await;
    println!(
        "cut off: the singleton has stopped after {:?}",
        since.elapsed()
    );
    let mut elsewhere = Placed::new();
    until("its ordinary units run elsewhere", async || {
        elsewhere = cluster.reported("active").await;
        elsewhere.iter().all(|(_, machine)| *machine != id) && elsewhere.len() == 5
    })
    .await;
    println!(
        "cut off: its units run elsewhere, too, after {:?}",
        since.elapsed()
    );
    // Twice: nothing was stopped on the isolated side.
    assert_eq!(cluster.processes(&ordinary), before);

    cluster.heal(lost);
    cluster.until_registered(lost).await;
    until("no unit runs twice", async || {
        cut_off
            .iter()
            .all(|unit| cluster.machines[lost].property(unit, "LoadState") == "not-found")
    })
    .await;
    // The singleton, which no other machine may run, comes back.
    let mut healed = Placed::new();
    until("all run once", async || {
        healed = cluster.reported("active").await;
        healed.len() == 6
    })
    .await;
    healed.retain(|(unit, _)| unit != "one.service");
    assert_eq!(healed, elsewhere, "nothing moves back");
    for (unit, pid) in cluster.processes(&healed) {
        if let Some(before) = before.get(&unit) {
            assert_eq!(pid, *before, "{unit:?}");
        }
    }
}

#[tokio::test]
async fn a_partitioned_singleton_stops_before_another_starts() {
    let Some(mut cluster) = Cluster::boot_apart(3).await else {
        return;
    };
    let leader = cluster.settled_leader().await;
    cluster.endpoint = leader;
    // The machine of the leading engine has one unit more than the others.
    let here = format!("X-Fleet MachineID={}", cluster.machines[leader].id);
    cluster.launch_with("weight.service", &[&here]).await;
    cluster.until_active(1).await;
    let singleton = [&TIMED[..], &["X-Fleet Singleton=true"]].concat();
    cluster.launch_with("one.service", &singleton).await;
    let id = cluster.until_active_on("one.service").await;
    let lost = cluster.index(&id);
    assert_ne!(lost, leader);
    cluster.cut(lost);
    let mut next = id.clone();
    until("it runs elsewhere", async || {
        next = cluster.until_active_on("one.service").await;
        next != id
    })
    .await;
    let stopped = cluster.moment(lost, "/run/stopped");
    let stopped = stopped.expect("it has stopped on the machine that is cut off");
    let started = cluster
        .moment(cluster.index(&next), "/run/started")
        .unwrap();
    println!(
        "the singleton stopped {:.1} s before it started elsewhere",
        started - stopped
    );
    assert!(stopped < started, "{stopped} {started}");
    cluster.heal(lost);
    cluster.until_registered(lost).await;
    assert_eq!(cluster.until_active_on("one.service").await, next);
    let state = cluster.machines[lost].property("one.service", "ActiveState");
    assert_eq!(state, "inactive");
}

#[tokio::test]
async fn what_a_leading_engine_decides_that_is_cut_off_does_not_count() {
    let Some(mut cluster) = Cluster::boot_apart(3).await else {
        return;
    };
    for unit in names("u", 6) {
        cluster.launch(&unit).await;
    }
    cluster.until_active(6).await;
    let old = cluster.settled_leader().await;
    let old_api = Cluster::api_of(&cluster.machines[old]);
    let epoch = old_api.metric("fleet_engine_epoch").await.unwrap();
    cluster.endpoint = (old + 1) % 3;
    // It is isolated while units are submitted, so it has decisions in progress.
    for number in 1..=20 {
        if number == 10 {
            cluster.cut(old);
        }
        cluster.launch(&format!("more{number}.service")).await;
    }
    let since = Instant::now();
    until("the engine that is cut off gives up", async || {
        old_api.metric("fleet_engine_leading").await == Some(0.0)
    })
    .await;
    println!("cut off: the engine gave up after {:?}", since.elapsed());
    let new = cluster.leader().await;
    println!("cut off: another engine leads after {:?}", since.elapsed());
    assert_ne!(new, old);
    let new_api = Cluster::api_of(&cluster.machines[new]);
    let newer = new_api.metric("fleet_engine_epoch").await.unwrap();
    assert!(newer > epoch, "{newer} {epoch}");
    let id = cluster.machines[old].id.clone();
    let mut elsewhere = Placed::new();
    until("all run on the other machines", async || {
        elsewhere = cluster.reported("active").await;
        elsewhere.len() == 26 && elsewhere.iter().all(|(_, machine)| *machine != id)
    })
    .await;
    cluster.heal(old);
    cluster.until_registered(old).await;
    // Its delayed writes arrive now, or never. A unit that is placed afterwards shows that the leader
    // continues.
    cluster.launch("later.service").await;
    let mut healed = Placed::new();
    until("all run once", async || {
        healed = cluster.reported("active").await;
        healed.len() == 27 && healed.is_superset(&elsewhere)
    })
    .await;
    assert_eq!(cluster.leader().await, new);
    let now = new_api.metric("fleet_engine_epoch").await.unwrap();
    assert!((now - newer).abs() < 0.5, "{now} {newer}");
    assert_placed_by_terms(&cluster, newer);
}

/// Every placement written under a leader has the epoch of its term, which is the revision at which the term
/// began.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a revision of a small etcd"
)]
fn assert_placed_by_terms(cluster: &Cluster, epoch: f64) {
    let epoch = epoch as i64;
    let prefix = "/fleet/v3/place/";
    let places = cluster.etcd[0].etcdctl(&["get", "--prefix", prefix, "--write-out", "json"]);
    let places: Value = serde_json::from_str(&places).unwrap();
    let places = places["kvs"].as_array().unwrap();
    assert_eq!(places.len(), 27);
    for place in places {
        let written_at = place["mod_revision"].as_i64().unwrap();
        let value =
            cluster.etcd[0].etcdctl(&["get", "--print-value-only", &decoded(&place["key"])]);
        let value: Value = serde_json::from_str(&value).unwrap();
        let is_newer = written_at > epoch;
        assert_eq!(value["epoch"] == epoch, is_newer, "{written_at} {value}");
    }
}

/// Text in base64.
fn decoded(value: &Value) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text(value));
    String::from_utf8(bytes.unwrap()).unwrap()
}
