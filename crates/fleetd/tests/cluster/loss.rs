//! Machines that are lost, join, and return.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use hyperfleet_testkit::{PrivateMachine, until};

use super::cluster::{AGENT_TTL, Cluster, Placed, busy_time, files, names, units_on};
use super::command_line::fleetctl;
use super::fleet_socket::SLEEP;

#[tokio::test]
async fn units_of_a_dead_machine_run_elsewhere() {
    let Some(mut cluster) = Cluster::boot(3, &[]).await else {
        return;
    };
    for unit in names("u", 6) {
        cluster.launch(&unit).await;
    }
    let active = cluster.until_active(6).await;
    let leader = cluster.settled_leader().await;
    let dying = (leader + 1) % 3;
    cluster.endpoint = leader;
    let id = cluster.machines[dying].id.clone();
    let lost = units_on(&active, &id);
    assert_eq!(lost.len(), 2, "{active:?}");
    let mut before = cluster.processes(&active);
    before.retain(|(_, machine), _| *machine != id);
    let since = Instant::now();
    cluster.machines[dying].kill();
    cluster.until_members(&cluster.ids()).await;
    let missed = since.elapsed();
    let after = cluster.until_active(6).await;
    let moved = since.elapsed();
    println!("machine killed: missed after {missed:?}, all active elsewhere after {moved:?}");
    let limit = AGENT_TTL + Duration::from_secs(2);
    assert!(moved < limit + busy_time(8), "{moved:?}, limit {limit:?}");
    assert!(after.iter().all(|(_, machine)| *machine != id), "{after:?}");
    let now = cluster.processes(&after);
    for (unit, pid) in &before {
        assert_eq!(now[unit], *pid, "{unit:?}");
    }
}

#[tokio::test]
async fn the_machine_of_the_leading_engine_dies() {
    let Some(mut cluster) = Cluster::boot(3, &[]).await else {
        return;
    };
    for unit in names("u", 6) {
        cluster.launch(&unit).await;
    }
    let active = cluster.until_active(6).await;
    let leader = cluster.settled_leader().await;
    cluster.endpoint = (leader + 1) % 3;
    let id = cluster.machines[leader].id.clone();
    let mut before = cluster.processes(&active);
    before.retain(|(_, machine), _| *machine != id);
    let since = Instant::now();
    cluster.machines[leader].kill();
    // The lease of the engine, 10 s, and in the new term the time of a machine's lease.
    let limit = Duration::from_secs(10) + AGENT_TTL + Duration::from_secs(2);
    let mut after = active;
    until("all are active elsewhere", async || {
        after = cluster.reported("active").await;
        after.len() == 6 && after.iter().all(|(_, machine)| *machine != id)
    })
    .await;
    let moved = since.elapsed();
    println!("machine of the leading engine killed: all active elsewhere after {moved:?}");
    assert!(moved < limit + busy_time(8), "{moved:?}, limit {limit:?}");
    let now = cluster.processes(&after);
    for (unit, pid) in &before {
        assert_eq!(now[unit], *pid, "{unit:?}");
    }
}

#[tokio::test]
async fn only_the_unit_of_a_lost_member_moves_and_none_moves_back() {
    let Some(mut cluster) = Cluster::boot(4, &[]).await else {
        return;
    };
    let units = names("apart@", 3);
    let line = "X-Fleet Conflicts=apart@*.service";
    for unit in &units {
        cluster.launch_with(unit, &[line]).await;
    }
    let active = cluster.until_active(3).await;
    let used: BTreeSet<_> = active.iter().map(|(_, id)| id.clone()).collect();
    let ids = cluster.ids();
    let free: Vec<_> = ids.difference(&used).collect();
    assert_eq!(free.len(), 1, "{active:?}");
    let leader = cluster.settled_leader().await;
    cluster.endpoint = leader;
    let leading = cluster.machines[leader].id.clone();
    let dying = used.iter().find(|id| **id != leading).unwrap();
    let index = cluster.index(dying);
    let mut before = cluster.processes(&active);
    before.retain(|(_, machine), _| machine != dying);
    cluster.machines[index].kill();
    cluster.until_members(&cluster.ids()).await;
    let after = cluster.until_active(3).await;
    let expected = active.iter().map(|(unit, id)| {
        let id = if id == dying { free[0] } else { id };
        (unit.clone(), id.clone())
    });
    assert_eq!(after, expected.collect());
    // The machine comes back as another boot: a member without units.
    cluster.machines[index].boot_again().await;
    cluster.until_members(&ids).await;
    // A unit placed after the machine joined shows that the engine has seen it.
    let here = format!("X-Fleet MachineID={dying}");
    let api = cluster.api();
    api.put("later.service", &[SLEEP[0], &here], "launched")
        .await;
    api.until_state("later.service", "active").await;
    cluster.destroy(&["later.service"]).await;
    assert_eq!(cluster.until_active(3).await, after);
    let now = cluster.processes(&after);
    for (unit, pid) in &before {
        assert_eq!(now[unit], *pid, "{unit:?}");
    }
}

#[tokio::test]
async fn after_a_loss_of_power_everywhere_all_units_run_again() {
    let Some(mut cluster) = Cluster::boot(3, &[]).await else {
        return;
    };
    for unit in names("u", 6) {
        cluster.launch(&unit).await;
    }
    cluster
        .launch_with("one.service", &["X-Fleet Singleton=true"])
        .await;
    cluster
        .launch_with("everywhere.service", &["X-Fleet Global=true"])
        .await;
    let count = 6 + 1 + 3;
    let active = cluster.until_active(count).await;
    let since = Instant::now();
    cluster.etcd[0].kill();
    for machine in &mut cluster.machines {
        machine.kill();
    }
    cluster.etcd[0].resume().await;
    for machine in &mut cluster.machines {
        machine.boot_again().await;
    }
    cluster.until_members(&cluster.ids()).await;
    let mut again = Placed::new();
    until("all run again, each once", async || {
        again = cluster.reported("active").await;
        let here = cluster.machines.iter();
        let running = here.map(|machine| files(machine).len()).sum::<usize>();
        again.len() == count && running == count
    })
    .await;
    println!("loss of power: all active after {:?}", since.elapsed());
    cluster.processes(&again);
    let names = |placed: &Placed| {
        placed
            .iter()
            .map(|(unit, _)| unit.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&again), names(&active));
}

#[tokio::test]
async fn a_machine_that_boots_again_at_once_runs_no_unit_twice() {
    let Some(mut cluster) = Cluster::boot(3, &[]).await else {
        return;
    };
    let leader = cluster.settled_leader().await;
    let booting = (leader + 1) % 3;
    cluster.endpoint = leader;
    for unit in names("u", 6) {
        cluster.launch(&unit).await;
    }
    let active = cluster.until_active(6).await;
    let id = cluster.machines[booting].id.clone();
    let mut before = cluster.processes(&active);
    before.retain(|(_, machine), _| *machine != id);
    assert_eq!(before.len(), 4, "{active:?}");
    let lost = units_on(&active, &id);
    cluster.machines[booting].kill();
    // Back within the time of its lease.
    cluster.machines[booting].boot_again().await;
    let machine = &cluster.machines[booting];
    until("it is a member", async || {
        machine.log().contains("machine registered")
    })
    .await;
    cluster.until_members(&cluster.ids()).await;
    // Its earlier states have gone with its earlier lease.
    let after = cluster.until_active(6).await;
    until("all run, each once", async || {
        let here = cluster.machines.iter();
        here.map(|machine| files(machine).len()).sum::<usize>() == 6
    })
    .await;
    // The engine moves its units, unless the machine registers first: then they stay. One of both starts them.
    let logs: Vec<_> = cluster.machines.iter().map(PrivateMachine::log).collect();
    let lines: Vec<_> = logs.iter().flat_map(|log| log.lines()).collect();
    for unit in &lost {
        let starts = lines.iter();
        let starts = starts.filter(|line| line.contains("unit starting") && line.contains(unit));
        let starts: Vec<_> = starts.collect();
        assert_eq!(starts.len(), 1, "{unit}: {starts:?}");
    }
    let now = cluster.processes(&after);
    for (unit, pid) in &before {
        assert_eq!(now[unit], *pid, "{unit:?}");
    }
}

#[tokio::test]
async fn a_second_machine_with_an_id_waits_for_the_first() {
    let Some(mut cluster) = Cluster::boot(1, &[]).await else {
        return;
    };
    for unit in names("u", 2) {
        cluster.launch(&unit).await;
    }
    let active = cluster.until_active(2).await;
    let before = cluster.processes(&active);
    let id = cluster.machines[0].id.clone();
    let second = cluster.boot_machine(2, id.clone(), &[]).await.unwrap();
    until("the second says why it is no member", async || {
        second.log().contains("machine id in use")
    })
    .await;
    // It serves the API, as every fleetd does.
    let api = Cluster::api_of(&second);
    assert_eq!(api.list("machines").await.len(), 1);
    assert_eq!(api.metric("fleet_agent_registered").await, Some(0.0));
    let doctor = fleetctl(&second, &["doctor"]);
    assert_eq!(doctor.code, Some(1), "{}", doctor.out);
    assert!(doctor.out.contains("FAIL  member "), "{}", doctor.out);
    assert!(
        fleetctl(&cluster.machines[0], &["doctor"])
            .out
            .contains("OK    member ")
    );
    // Orders for the id reach both; a unit that the first has started was an order to the second, too.
    cluster.launch("later.service").await;
    cluster.until_active(3).await;
    assert_eq!(second.property("u1.service", "ActiveState"), "inactive");
    assert_eq!(second.property("later.service", "ActiveState"), "inactive");
    assert_eq!(cluster.processes(&active), before);
    cluster.machines[0].kill();
    cluster.machines.push(second);
    cluster.endpoint = 1;
    until("the second is a member", async || {
        api.metric("fleet_agent_registered").await == Some(1.0)
    })
    .await;
    cluster.until_active(3).await;
}
