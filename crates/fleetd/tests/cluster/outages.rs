//! Outages of etcd, restores, and lost members.

use hyperfleet_testkit::{TestEtcd, until};
use serde_json::Value;

use super::cluster::{AGENT_TTL, Cluster, Placed, names, outage};
use super::fleet_socket::SLEEP;

#[tokio::test]
async fn while_etcd_is_away_no_process_is_touched() {
    let Some(mut cluster) = Cluster::boot(2, &[]).await else {
        return;
    };
    for unit in names("u", 4) {
        cluster.launch(&unit).await;
    }
    let active = cluster.until_active(4).await;
    let before = cluster.processes(&active);
    cluster.etcd[0].kill();
    println!("etcd is away for {:?}", outage());
    tokio::time::sleep(outage()).await;
    assert_eq!(cluster.processes(&active), before);
    cluster.etcd[0].resume().await;
    cluster.launch("late.service").await;
    let mut after = cluster.until_active(5).await;
    after.retain(|(unit, _)| unit != "late.service");
    assert_eq!(after, active);
    assert_eq!(cluster.processes(&active), before);
}

#[tokio::test]
async fn after_a_restore_no_process_changes_until_resume() {
    let Some(mut cluster) = Cluster::boot(3, &[]).await else {
        return;
    };
    // In the snapshot: kept, which stays, and gone, which is destroyed later. After it: new.
    for unit in [
        "kept1.service",
        "kept2.service",
        "kept3.service",
        "gone.service",
    ] {
        cluster.launch(unit).await;
    }
    let kept = cluster.until_active(4).await;
    let snapshot = cluster.etcd[0].save();
    cluster.destroy(&["gone.service"]).await;
    cluster.launch("new.service").await;
    // An agent without orders since the snapshot would have nothing to lose: this order goes to all.
    cluster
        .launch_with("everywhere.service", &["X-Fleet Global=true"])
        .await;
    let mut active = Placed::new();
    until("the new units run and gone has gone", async || {
        active = cluster.reported("active").await;
        active.iter().all(|(unit, _)| unit != "gone.service") && active.len() == 7
    })
    .await;
    let before = cluster.processes(&active);
    cluster.etcd[0].restore(&snapshot, None).await;
    for machine in &cluster.machines {
        let api = Cluster::api_of(machine);
        until("the agent has halted", async || {
            api.metric("fleet_agent_halted").await == Some(1.0)
        })
        .await;
        let log = machine.log();
        assert_eq!(
            log.matches("agent halted: units keep running").count(),
            1,
            "{log}"
        );
    }
    let api = cluster.api();
    let reason = "nothing is done until an operator runs fleetctl resume";
    api.until_explained("kept1.service", reason).await;
    // Longer than the leases of machines and engines: all decisions were made.
    cluster.until_members(&cluster.ids()).await;
    cluster.settled_leader().await;
    assert_eq!(cluster.processes(&active), before);
    for machine in &cluster.machines {
        assert_eq!(machine.property("gone.service", "ActiveState"), "inactive");
    }
    // A halt outlives fleetd.
    cluster.machines[1].systemctl(&["restart", "fleetd.service"]);
    let restarted = Cluster::api_of(&cluster.machines[1]);
    until("the agent halts again", async || {
        restarted.metric("fleet_agent_halted").await == Some(1.0)
    })
    .await;
    assert_eq!(cluster.processes(&active), before);
    api.resume().await;
    until("all is as the snapshot says", async || {
        cluster.reported("active").await == kept
    })
    .await;
    for (unit, pid) in cluster.processes(&kept) {
        if unit.0.starts_with("kept") {
            assert_eq!(pid, before[&unit], "{unit:?}");
        }
    }
    for machine in &cluster.machines {
        until("the new units have stopped", async || {
            let new = ["new.service", "everywhere.service"];
            let states = machine.properties(&new, "LoadState");
            states.iter().all(|state| state == "not-found")
        })
        .await;
    }
    for machine in &cluster.machines {
        let api = Cluster::api_of(machine);
        assert_eq!(api.metric("fleet_agent_halted").await, Some(0.0));
    }
    api.put("later.service", &SLEEP, "launched").await;
    cluster.until_active(5).await;
}

#[tokio::test]
async fn an_etcd_that_was_restored_is_noticed_however_far_it_is() {
    is_noticed_however_far_it_is(None).await;
}

#[tokio::test]
async fn an_etcd_restored_as_another_cluster_is_noticed() {
    is_noticed_however_far_it_is(Some("restored")).await;
}

async fn is_noticed_however_far_it_is(token: Option<&str>) {
    let Some(mut cluster) = Cluster::boot_apart(2).await else {
        return;
    };
    let here = format!("X-Fleet MachineID={}", cluster.machines[1].id);
    cluster.launch_with("kept.service", &[&here]).await;
    cluster.until_active(1).await;
    let snapshot = cluster.etcd[0].save();
    cluster.launch_with("new.service", &[&here]).await;
    let active = cluster.until_active(2).await;
    let before = cluster.processes(&active);
    // The second machine is back when etcd has come beyond all revisions that its agent has seen.
    cluster.cut(1);
    cluster.etcd[0].restore(&snapshot, token).await;
    let api = cluster.api();
    for unit in names("later", 40) {
        until(&format!("{unit} is accepted"), async || {
            let answer = api.try_put(&unit, &SLEEP, "inactive").await;
            matches!(answer, Some((200..=299, _)))
        })
        .await;
    }
    let reachable = [cluster.machines[0].id.clone()].into();
    cluster.until_members(&reachable).await;
    cluster.heal(1);
    // The first machine has reported nothing since the snapshot: within the same cluster it has nothing to
    // notice.
    let first = usize::from(token.is_none());
    for machine in &cluster.machines[first..] {
        let api = Cluster::api_of(machine);
        until("the agent has halted", async || {
            api.metric("fleet_agent_halted").await == Some(1.0)
        })
        .await;
        // Its API shows the contents of etcd.
        until(
            "it lists the units of the snapshot and the later ones",
            async || api.list("units").await.len() == 41,
        )
        .await;
    }
    assert_eq!(cluster.processes(&active), before);
    api.resume().await;
    let machine = &cluster.machines[1];
    until("the new unit has stopped", async || {
        machine.property("new.service", "LoadState") == "not-found"
    })
    .await;
    // For the engine its machine was away, so the unit was on none: it may have started again.
    until("the kept unit is placed, and active", async || {
        machine.property("kept.service", "ActiveState") == "active"
    })
    .await;
    cluster.until_active(1).await;
}

#[tokio::test]
async fn units_run_on_after_etcd_lost_everything() {
    let Some(mut cluster) = Cluster::boot(2, &[]).await else {
        return;
    };
    // Units that require a machine are placed there again.
    let units = names("u", 4);
    let submit = async |cluster: &Cluster| {
        for (unit, machine) in units.iter().zip(cluster.machines.iter().cycle()) {
            let here = format!("X-Fleet MachineID={}", machine.id);
            cluster.launch_with(unit, &[&here]).await;
        }
    };
    submit(&cluster).await;
    let active = cluster.until_active(4).await;
    let before = cluster.processes(&active);
    cluster.etcd[0].lose_data();
    cluster.etcd[0].resume().await;
    cluster.until_members(&cluster.ids()).await;
    let api = cluster.api();
    assert!(api.list("units").await.is_empty());
    for machine in &cluster.machines {
        let api = Cluster::api_of(machine);
        until("the agent has halted", async || {
            api.metric("fleet_agent_halted").await == Some(1.0)
        })
        .await;
    }
    assert_eq!(cluster.processes(&active), before);
    submit(&cluster).await;
    for unit in &units {
        api.until_explained(unit, "placed on").await;
    }
    assert_eq!(cluster.processes(&active), before);
    api.resume().await;
    assert_eq!(cluster.until_active(4).await, active);
    assert_eq!(cluster.processes(&active), before);
}

#[tokio::test]
async fn of_three_etcd_members_one_is_killed_and_no_unit_moves() {
    let members: [TestEtcd; 3] = TestEtcd::start_cluster().await;
    let Some(mut cluster) = Cluster::boot_on(members.into(), None, 3, &[]).await else {
        return;
    };
    for unit in names("u", 6) {
        cluster.launch(&unit).await;
    }
    let active = cluster.until_active(6).await;
    let before = cluster.processes(&active);
    let mut count = 6;
    // A member that follows, then the one that leads.
    for is_leading in [false, true] {
        let index = member(&cluster, is_leading);
        cluster.etcd[index].kill();
        // Leases are renewed: any that is not has expired by then.
        tokio::time::sleep(AGENT_TTL * 2).await;
        cluster.until_members(&cluster.ids()).await;
        count += 1;
        cluster.launch(&format!("later{count}.service")).await;
        let now = cluster.until_active(count).await;
        assert!(now.is_superset(&active), "{now:?}");
        assert_eq!(cluster.processes(&active), before);
        for machine in &cluster.machines {
            let log = machine.log();
            assert!(!log.contains("machine deregistered"), "{log}");
        }
        cluster.etcd[index].resume().await;
    }
    assert_eq!(cluster.processes(&active), before);
}

/// A leading or following member of etcd.
fn member(cluster: &Cluster, is_leading: bool) -> usize {
    let leads = |etcd: &TestEtcd| {
        let status = etcd.etcdctl(&["endpoint", "status", "--write-out", "json"]);
        let status: Value = serde_json::from_str(&status).unwrap();
        let status = &status[0]["Status"];
        status["leader"] == status["header"]["member_id"]
    };
    let mut members = cluster.etcd.iter();
    members.position(|etcd| leads(etcd) == is_leading).unwrap()
}
