//! Failures of etcd and of engines, and their effects on units: no decision is lost or doubled, and no healthy
//! agent is ordered to stop what it runs. The tests use real engines, a real mirror, real agents on a simulated
//! systemd, and an etcd of their own.

mod law;

use std::collections::BTreeMap;
use std::time::Duration;

use etcd_client::{AlarmAction, AlarmOptions, AlarmType, Client, CompactionOptions};
use hyperfleet_fleet::Fleet;
use hyperfleet_fleet::engine::Settings;
use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::keys;
use hyperfleet_fleet::registry::{Body, Error, Prefix, Registry, Snapshot, Written};
use hyperfleet_fleet_model::unit::{DesiredState, Options, UnitName};
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use self::law::Guardian;
use super::engine::{Running, World, settings};
use hyperfleet_testkit::{SimulatedMachine, TestEtcd, etcd_settings, until};

/// How long agents may be silent, and how long engines wait for them.
const MACHINE_LEASE_SECONDS: u32 = 6;
const MACHINE_LEASE: Duration = Duration::from_secs(12);
/// Longer than both leases and the silence that engines notice.
const PAUSE: Duration = Duration::from_secs(9);

struct Scene {
    server: TestEtcd,
    world: World<EtcdKeys>,
    fleet: Fleet<EtcdKeys>,
    agents: BTreeMap<String, SimulatedMachine>,
    guardian: Guardian,
    units: usize,
}

impl Scene {
    /// Agents of m1, m2, … on an etcd of their own.
    async fn set(arguments: &[&str], machines: usize) -> Self {
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        let server = TestEtcd::start_with("http", &arguments).await;
        let world = World::new(connect(&server).await);
        let fleet = Fleet::new(registry(&server, &world).await, 100);
        tokio::spawn(fleet.clone().run_mirror());
        let guardian = Guardian::start(registry(&server, &world).await);
        let mut agents = BTreeMap::new();
        for number in 1..=machines {
            let (id, registry) = (format!("m{number}"), registry(&server, &world).await);
            let agent = SimulatedMachine::start(registry, &id, MACHINE_LEASE_SECONDS);
            agents.insert(id, agent);
        }
        let scene = Self {
            server,
            world,
            fleet,
            agents,
            guardian,
            units: 0,
        };
        until("all machines are there", async || {
            scene.world.snapshot().await.machines.len() == machines
        })
        .await;
        scene
    }

    fn engine(&self, id: &str, lease_seconds: u32) -> Running {
        self.world.engine_of(Settings {
            machine_lease: MACHINE_LEASE,
            ..settings(id, lease_seconds)
        })
    }

    /// Users launch more units while etcd fails.
    async fn launch(&mut self, count: usize) {
        for number in self.units..self.units + count {
            let name = format!("u{number}.service");
            until(&format!("{name} is created"), async || {
                // An attempt whose response was lost may have succeeded.
                let created = create(&self.world, &name).await;
                matches!(created, Ok(Written::At(_) | Written::Stale))
            })
            .await;
        }
        self.units += count;
    }

    /// The machines with a live agent and their units: all units, once each.
    async fn until_settled(&self) -> BTreeMap<String, String> {
        let mut places = BTreeMap::new();
        until(
            "all units run where they are placed, and once",
            async || {
                self.guardian.is_content();
                let Ok(snapshot) = self.world.registry.snapshot().await else {
                    return false;
                };
                places = placed(&snapshot);
                places.len() == self.units
                    && self.is_obeyed(&places)
                    && snapshot.states.len() == self.units
            },
        )
        .await;
        places
    }

    fn is_obeyed(&self, places: &BTreeMap<String, String>) -> bool {
        let running = self.agents.iter().flat_map(|(id, agent)| {
            let units = agent.running().into_iter();
            units.map(|unit| (unit, id.clone()))
        });
        let mut running: Vec<_> = running.collect();
        running.sort();
        running.into_iter().eq(places.clone())
    }

    /// The agent of a machine is lost permanently.
    fn lose(&mut self, machine: &str) {
        self.guardian.loses(machine);
        self.agents.remove(machine);
    }

    /// Live agents have stopped nothing, and the API shows the current state.
    async fn end(&self) {
        for (id, agent) in &self.agents {
            let stopped = agent.stopped();
            assert!(stopped.is_empty(), "{id} has stopped {stopped:?}");
        }
        let places = placed(&self.world.snapshot().await);
        until("the mirror shows it", async || {
            let (mut shown, mut token) = (BTreeMap::new(), None);
            loop {
                let Ok(page) = self.fleet.list_units(token.as_deref()).await else {
                    return false;
                };
                token = page.token();
                for unit in page.items {
                    shown.extend(unit.machine.map(|machine| (unit.name, machine)));
                }
                if token.is_none() {
                    return self.fleet.is_connected() && shown == places;
                }
            }
        })
        .await;
        self.guardian.is_content();
    }

    fn registrations(&self) -> Vec<u32> {
        let agents = self.agents.values();
        agents.map(|agent| agent.status().registrations).collect()
    }
}

/// A separate connection with a short timeout.
async fn connect(server: &TestEtcd) -> EtcdKeys {
    let mut settings = etcd_settings(&server.url());
    settings.request_timeout = Duration::from_secs(2);
    EtcdKeys::connect(settings).await.unwrap()
}

async fn registry(server: &TestEtcd, world: &World<EtcdKeys>) -> Registry<EtcdKeys> {
    let prefix = Prefix::new(world.prefix()).unwrap();
    Registry::new(connect(server).await, prefix)
}

async fn create(world: &World<EtcdKeys>, name: &str) -> Result<Written, Error> {
    let file = Options::parse(b"[Service]\nExecStart=/bin/sleep 1\n").unwrap();
    let body = Body::new(&UnitName::stored(name), &file);
    let launched = DesiredState::Launched;
    world
        .registry
        .create_unit(name, &body, launched, None)
        .await
}

fn placed(snapshot: &Snapshot) -> BTreeMap<String, String> {
    let places = snapshot.placements.iter();
    let places = places.map(|(unit, place)| (unit.clone(), place.value.machine.clone()));
    places.collect()
}

#[tokio::test]
async fn etcd_is_killed_and_comes_back() {
    let mut scene = Scene::set(&[], 4).await;
    let engines = [scene.engine("m1", 3), scene.engine("m2", 3)];
    scene.launch(60).await;
    scene.server.kill();
    sleep(Duration::from_secs(2)).await;
    scene.server.resume().await;
    scene.launch(40).await;
    let before = scene.until_settled().await;
    // For longer than any lease: etcd restarts all of them in full when it starts.
    scene.server.kill();
    sleep(PAUSE).await;
    scene.server.resume().await;
    scene.launch(1).await;
    let mut after = scene.until_settled().await;
    after.remove("u100.service");
    assert_eq!(after, before);
    println!("registrations {:?}", scene.registrations());
    scene.end().await;
    drop(engines);
}

#[tokio::test]
async fn etcd_stands_still_for_longer_than_machines_leases_last() {
    standstill(60).await;
}

#[tokio::test]
async fn etcd_stands_still_for_longer_than_the_leader_leads() {
    standstill(3).await;
}

/// etcd resumes and finds every lease expired: the renewals come too late.
async fn standstill(engine_lease_seconds: u32) {
    let mut scene = Scene::set(&[], 4).await;
    let engines = ["m1", "m2"].map(|id| scene.engine(id, engine_lease_seconds));
    scene.launch(60).await;
    let before = scene.until_settled().await;
    // A new term excuses machines anyway.
    sleep(MACHINE_LEASE).await;
    scene.server.signal(Signal::STOP);
    scene.lose("m4");
    sleep(PAUSE).await;
    scene.server.signal(Signal::CONT);
    until("all machines that are well are there again", async || {
        let is_new = |times: &u32| *times >= 2;
        scene.registrations().iter().all(is_new)
    })
    .await;
    // A lost machine is lost, only later.
    let after = scene.until_settled().await;
    let moved = after
        .iter()
        .filter(|(unit, machine)| before[*unit] != **machine);
    let moved: Vec<_> = moved.map(|(unit, _)| before[unit].as_str()).collect();
    assert_eq!(moved, vec!["m4"; 15], "of 60 units on four machines");
    scene.end().await;
    drop(engines);
}

#[tokio::test]
async fn etcd_is_compacted_while_all_are_cut_off() {
    let mut scene = Scene::set(&[], 3).await;
    let engines = [scene.engine("m1", 3), scene.engine("m2", 3)];
    let mut compactions = 0;
    for _ in 0..4 {
        scene.launch(20).await;
        scene.server.kill();
        scene.server.resume().await;
        // Events that the others have not received are gone before they ask.
        let mut client = Client::connect([scene.server.url()], None).await.unwrap();
        let mut newest = 0;
        for number in 0..10 {
            let put = client.put(format!("/other/{number}"), "x", None).await;
            newest = put.unwrap().header().unwrap().revision();
        }
        let compacted = client.compact(newest, None).await;
        compactions += u32::from(compacted.is_ok());
        // And once while they watch.
        scene.launch(5).await;
        let newest = scene.world.registry.newest().await;
        if let Ok(newest) = newest {
            compactions += u32::from(client.compact(newest, None).await.is_ok());
        }
    }
    assert!(compactions >= 4, "{compactions}");
    scene.until_settled().await;
    scene.end().await;
    drop(engines);
}

#[tokio::test]
async fn the_disk_of_etcd_is_full_for_a_while() {
    let mut scene = Scene::set(&["--quota-backend-bytes=8388608"], 4).await;
    let engines = [scene.engine("m1", 60), scene.engine("m2", 60)];
    scene.launch(40).await;
    let before = scene.until_settled().await;
    sleep(MACHINE_LEASE).await;
    let mut client = Client::connect([scene.server.url()], None).await.unwrap();
    let junk = vec![b'x'; 1 << 20];
    let mut filled = 0;
    while client
        .put(format!("/junk/{filled}"), junk.clone(), None)
        .await
        .is_ok()
    {
        filled += 1;
        assert!(filled < 100, "its quota is 8 MiB");
        // Writes count towards the quota after etcd commits, ten times a second.
        sleep(Duration::from_millis(100)).await;
    }
    // The write is refused or its result unknown. Users retry below.
    let created = create(&scene.world, "u40.service").await;
    assert!(
        matches!(created, Err(Error::Store(keys::Error::Unavailable { .. }))),
        "{created:?}"
    );
    // A machine is lost meanwhile, and nothing can be written about it. Live machines are kept.
    scene.lose("m4");
    let since = Instant::now();
    until("its lease has run out", async || {
        scene.world.snapshot().await.machines.len() == 3
    })
    .await;
    sleep(MACHINE_LEASE).await;
    println!("its lease and a while: {:?}", since.elapsed());
    let snapshot = scene.world.snapshot().await;
    assert_eq!(placed(&snapshot), before);
    assert_eq!(snapshot.machines.len(), 3);

    make_space(&mut client, filled).await;
    scene.launch(20).await;
    scene.until_settled().await;
    assert_eq!(scene.registrations(), [1, 1, 1]);
    scene.end().await;
    drop(engines);
}

async fn make_space(client: &mut Client, filled: usize) {
    let (mut newest, mut member) = (0, 0);
    for number in 0..=filled {
        let deleted = client.delete(format!("/junk/{number}"), None).await;
        let header = deleted.unwrap().take_header().unwrap();
        (newest, member) = (header.revision(), header.member_id());
    }
    // Otherwise it answers before there is anything to defragment.
    let finished = CompactionOptions::new().with_physical();
    client.compact(newest, Some(finished)).await.unwrap();
    client.defragment().await.unwrap();
    // Without a member the request would have no effect.
    let mut its = AlarmOptions::new();
    its.with_member(member);
    let ended = client.alarm(AlarmAction::Deactivate, AlarmType::Nospace, Some(its));
    ended.await.unwrap();
}

#[tokio::test]
async fn engines_are_killed_under_load() {
    let mut scene = Scene::set(&[], 5).await;
    let mut engines = vec![scene.engine("m1", 2), scene.engine("m2", 2)];
    for round in 0..6 {
        scene.launch(40).await;
        // The leader is among them. One of two survives, or none for a moment.
        let lost = if round % 2 == 0 { 0..1 } else { 0..2 };
        let lost: Vec<_> = engines.drain(lost).collect();
        let count = lost.len();
        drop(lost);
        engines.extend((0..count).map(|number| scene.engine(&format!("e{round}-{number}"), 2)));
    }
    scene.until_settled().await;
    scene.end().await;
}
