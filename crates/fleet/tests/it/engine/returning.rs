//! Machines that disappear and may be healthy, on a simulated clock.

use std::collections::BTreeMap;
use std::time::Duration;

use hyperfleet_fleet::engine::Settings;
use hyperfleet_fleet::registry::{
    KeyChange, MachineRecord, Record, Registered, Registration, WatchScope, WatchUpdate,
};
use hyperfleet_testkit::MemoryKeys;
use tokio::time::{advance, sleep};

use super::{Running, World, settings};

const MACHINE_LEASE: Duration = Duration::from_secs(30);
const ALMOST: Duration = Duration::from_secs(29);
const SECOND: Duration = Duration::from_secs(1);

/// Three units on m1, and m2 with room for them.
struct Scene {
    world: World<MemoryKeys>,
    machine: Registration,
}

impl Scene {
    async fn set() -> Self {
        let world = World::new(MemoryKeys::new());
        let machine = register(&world, "m1").await;
        let engine = world.engine("m0");
        for name in ["a.service", "b.service", "c.service"] {
            world.launch(name, &[]).await;
        }
        world.until_placed(&all_on("m1")).await;
        register(&world, "m2").await;
        engine.stop().await;
        Self { world, machine }
    }

    fn engine(&self) -> Running {
        self.world.engine_of(Settings {
            machine_lease: MACHINE_LEASE,
            ..settings("m0", 600)
        })
    }

    async fn lose_machine(&self) {
        let lost = self.machine.clone();
        let registry = &self.world.registry;
        registry.deregister_machine(lost).await.unwrap();
    }

    async fn placed(&self) -> BTreeMap<String, String> {
        self.world.places().await
    }
}

/// On a lease that needs no renewal.
async fn register(world: &World<MemoryKeys>, id: &str) -> Registration {
    let machine = MachineRecord::default();
    let registered = world.registry.register_machine(id, &machine, 100_000);
    match registered.await.unwrap() {
        Registered::As(registration) => registration,
        Registered::Taken => panic!("{id} is taken"),
    }
}

fn all_on(machine: &str) -> [(&'static str, &str); 3] {
    ["a.service", "b.service", "c.service"].map(|name| (name, machine))
}

fn placed_on(machine: &str) -> BTreeMap<String, String> {
    super::strings(&all_on(machine))
}

#[tokio::test(start_paused = true)]
async fn a_new_leader_gives_machines_the_time_of_a_lease_to_come_back() {
    let scene = Scene::set().await;
    scene.lose_machine().await;
    let engine = scene.engine();
    sleep(ALMOST).await;
    assert_eq!(scene.placed().await, placed_on("m1"));
    // New units are placed without delay.
    scene.world.launch("d.service", &[]).await;
    sleep(SECOND / 2).await;
    assert_eq!(scene.placed().await["d.service"], "m2");
    // Units of a lost machine still move.
    sleep(SECOND * 2).await;
    let mut moved = placed_on("m2");
    moved.insert("d.service".into(), "m2".into());
    assert_eq!(scene.placed().await, moved);
    engine.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_seen_to_go_loses_its_units_at_once() {
    let scene = Scene::set().await;
    let engine = scene.engine();
    sleep(MACHINE_LEASE * 3).await;
    scene.lose_machine().await;
    sleep(SECOND / 2).await;
    assert_eq!(scene.placed().await, placed_on("m2"));
    engine.stop().await;
}

#[tokio::test(start_paused = true)]
async fn units_of_returning_machines_are_never_stopped() {
    let scene = Scene::set().await;
    let engine = scene.engine();
    sleep(MACHINE_LEASE * 3).await;
    let registry = &scene.world.registry;
    let before = scene.world.snapshot().await;
    let mut watch = registry
        .watch(&WatchScope::Everything, before.revision)
        .unwrap();
    // No request is answered, and no lease renewed.
    advance(MACHINE_LEASE / 2).await;
    scene.lose_machine().await;
    sleep(MACHINE_LEASE / 2).await;
    register(&scene.world, "m1").await;
    sleep(MACHINE_LEASE * 3).await;
    let end = registry.newest().await.unwrap();
    let mut told = 0;
    while told < end {
        let WatchUpdate::Changes { revision, changes } = watch.next().await.unwrap() else {
            panic!("nothing was compacted");
        };
        told = revision;
        for change in changes {
            let is_gone = matches!(
                change,
                KeyChange::Run(_, Record::Absent) | KeyChange::Placement(_, Record::Absent)
            );
            assert!(!is_gone, "{change:?}");
        }
    }
    assert_eq!(scene.placed().await, placed_on("m1"));
    engine.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_lost_in_a_silence_loses_its_units_later() {
    let scene = Scene::set().await;
    let engine = scene.engine();
    sleep(MACHINE_LEASE * 3).await;
    advance(MACHINE_LEASE / 2).await;
    scene.lose_machine().await;
    sleep(ALMOST).await;
    assert_eq!(scene.placed().await, placed_on("m1"));
    sleep(SECOND * 2).await;
    assert_eq!(scene.placed().await, placed_on("m2"));
    engine.stop().await;
}
