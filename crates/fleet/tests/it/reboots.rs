//! Machines that lose their power and boot again at any moment, with their agent's memory or without it, and agents that are
//! killed. Agents and engine are real, on a simulated clock.
//! A seed determines everything; a failing one is printed:
//!
//! ```sh
//! FLEET_SEED=17 cargo test -p hyperfleet-fleet --test it reboots
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hyperfleet_fleet::keys::{KeyOperation, Transaction};
use hyperfleet_fleet::registry::{Body, MachineRecord, Prefix, Registered, Registry, Written};
use hyperfleet_fleet_model::unit::{DesiredState, Options, UnitName};
use hyperfleet_testkit::{MemoryKeys, Random, SimulatedMachine};
use tokio::time::sleep;

use super::engine::{Running, World, settings, strings};
use super::interleaved::Interleaved;

const MACHINES: [&str; 3] = ["m1", "m2", "m3"];
const UNITS: usize = 6;
const LEASE_SECONDS: u32 = 6;
/// How often the property is checked.
const LOOK: Duration = Duration::from_millis(20);
/// How late agents and engine see and write things. Short against the lease, which is never lost for that reason.
const AGENT_DELAY: Duration = Duration::from_millis(300);
const ENGINE_DELAY: Duration = Duration::from_secs(2);

struct Scene {
    world: World<MemoryKeys>,
    machines: BTreeMap<&'static str, SimulatedMachine>,
    /// Machines without power that keep their agent's memory.
    off: BTreeSet<&'static str>,
    random: Random,
    seed: u64,
}

impl Scene {
    async fn set(seed: u64) -> (Self, Running) {
        let world = World::new(MemoryKeys::new());
        let late = Interleaved::delayed(world.store.clone(), seed, ENGINE_DELAY);
        let engine = world.engine_on(late, settings("e", 600));
        let mut scene = Self {
            world,
            machines: BTreeMap::new(),
            off: BTreeSet::new(),
            random: Random::seeded(seed),
            seed,
        };
        for id in MACHINES {
            scene.boot(id);
        }
        for number in 0..UNITS {
            let name = format!("u{number}.service");
            let file = Options::parse(b"[Service]\nExecStart=/bin/sleep 1\n").unwrap();
            let body = Body::new(&UnitName::stored(name.as_str()), &file);
            let registry = &scene.world.registry;
            let created = registry.create_unit(&name, &body, DesiredState::Launched, None);
            assert!(matches!(created.await, Ok(Written::At(_))));
        }
        (scene, engine)
    }

    /// Its view of the registry.
    fn registry(&mut self) -> Registry<Interleaved<MemoryKeys>> {
        let seed = self.random.next();
        let late = Interleaved::delayed(self.world.store.clone(), seed, AGENT_DELAY);
        Registry::new(late, Prefix::new(self.world.prefix()).unwrap())
    }

    /// A boot without the agent's memory. If the machine runs, its power is lost first.
    fn boot(&mut self, id: &'static str) {
        self.machines.remove(id);
        let machine = SimulatedMachine::start(self.registry(), id, LEASE_SECONDS);
        self.machines.insert(id, machine);
    }

    /// Another agent on the same machine, with the memory of the one before, which is killed if it runs.
    fn restart(&mut self, id: &'static str) {
        let registry = self.registry();
        let machine = self.machines.get_mut(id).unwrap();
        machine.restart(registry, id, LEASE_SECONDS);
    }

    /// What may happen to a machine at any moment.
    fn disturb(&mut self, id: &'static str) {
        let event = self.random.below(6);
        match self.machines.get(id) {
            Some(_) if event == 0 => drop(self.machines.remove(id)),
            // It stays off until a later event restarts it with its memory, or removes it.
            Some(machine) if event == 1 => {
                machine.lose_power();
                self.off.insert(id);
            }
            Some(machine) if event == 2 => {
                machine.lose_power();
                self.restart(id);
            }
            Some(_) if event == 3 || self.off.contains(id) => self.restart(id),
            None | Some(_) => self.boot(id),
        }
        if event != 1 {
            self.off.remove(id);
        }
    }

    /// No unit runs on two machines.
    fn check(&self) {
        let running = self.machines.values().flat_map(SimulatedMachine::running);
        let mut seen = BTreeSet::new();
        for unit in running {
            assert!(seen.insert(unit.clone()), "seed {}: {unit}", self.seed);
        }
    }

    async fn pass(&self, time: Duration) {
        for _ in 0..time.as_millis() / LOOK.as_millis() {
            self.check();
            sleep(LOOK).await;
        }
    }

    fn running(&self) -> usize {
        let machines = self.machines.values();
        machines.map(|machine| machine.running().len()).sum()
    }
}

#[tokio::test(start_paused = true)]
async fn machines_that_boot_again_run_no_unit_twice() {
    let given = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
    let seeds = match given("FLEET_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..given("FLEET_SEEDS").unwrap_or(10),
    };
    for seed in seeds {
        let (mut scene, engine) = Scene::set(seed).await;
        for _ in 0..10 {
            let pause = scene.random.below(20_000).try_into().unwrap();
            scene.pass(Duration::from_millis(pause)).await;
            let id = scene.random.pick(&MACHINES);
            scene.disturb(id);
        }
        for id in MACHINES {
            if !scene.machines.contains_key(id) {
                scene.boot(id);
            } else if scene.off.remove(id) {
                scene.restart(id);
            }
        }
        scene.pass(Duration::from_mins(1)).await;
        assert_eq!(scene.running(), UNITS, "seed {seed}: all run in the end");
        drop(engine);
    }
}

/// The machine registers after the engine has decided to move its units, and before it has.
#[tokio::test(start_paused = true)]
async fn a_machine_that_registers_in_time_keeps_its_units() {
    let world = World::new(MemoryKeys::new());
    let before = world.machine("m1", &[]).await;
    let store = Interleaved::new(world.store.clone());
    let engine = world.engine_on(store.clone(), settings("e", 600));
    for name in ["a.service", "b.service"] {
        world.launch(name, &[]).await;
    }
    let placed = [("a.service", "m1"), ("b.service", "m1")];
    world.until_placed(&placed).await;
    let _other = world.machine("m2", &[]).await;
    let registry = world.registry.clone();
    let is_move = |transaction: &Transaction| {
        let is_deleted = |operation: &KeyOperation| matches!(operation, KeyOperation::Delete(key) if key.contains("/run/m1/"));
        transaction.then.iter().any(is_deleted)
    };
    store.overtake(is_move, async move {
        let machine = MachineRecord::default();
        let registered = registry.register_machine("m1", &machine, 600);
        assert!(matches!(registered.await, Ok(Registered::As(_))));
    });
    world.registry.deregister_machine(before).await.unwrap();
    // Longer than any pause of the engine, and shorter than the lease of m2.
    sleep(Duration::from_secs(10)).await;
    assert!(store.has_overtaken(), "the engine had decided to move them");
    assert_eq!(world.places().await, strings(&placed));
    engine.stop().await;
}
