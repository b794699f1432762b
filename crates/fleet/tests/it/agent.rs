//! Agents on a simulated systemd, which produces rare cases on request. The tests of fleetd use a real one.

use std::collections::BTreeMap;
use std::time::Duration;

use hyperfleet_fleet::agent::{Host, Leave};
use hyperfleet_fleet::keys::{KeyOperation, KeyStore as _, Transaction};
use hyperfleet_fleet::registry::{
    Acquired, Body, Leader, Leading, MachineRecord, Prefix, Registered, Registration, Registry,
    Snapshot, UnitState, Written,
};
use hyperfleet_fleet_model::unit::DesiredState::{self, Inactive, Launched, Loaded};
use hyperfleet_fleet_model::unit::{Options, UnitName};
use hyperfleet_testkit::{
    MemoryKeys, Random, SimulatedMachine, fresh_prefix, move_to, place, until, withdraw,
};
use tempfile::TempDir;
use tokio::time::Instant;

use super::interleaved::Interleaved;

const LEASE_SECONDS: u32 = 30;

struct World {
    store: MemoryKeys,
    prefix: String,
    registry: Registry<MemoryKeys>,
    leading: Leading,
}

impl World {
    async fn new() -> Self {
        let (store, prefix) = (MemoryKeys::new(), fresh_prefix());
        let registry = Registry::new(store.clone(), Prefix::new(&prefix).unwrap());
        let leader = Leader {
            id: "e".to_owned(),
            version: 1,
        };
        let acquired = registry.acquire_leadership(&leader, 3600).await.unwrap();
        let Acquired::Leading(leading) = acquired else {
            panic!("nobody else leads");
        };
        Self {
            store,
            prefix,
            registry,
            leading,
        }
    }

    fn machine(&self) -> SimulatedMachine {
        SimulatedMachine::start(self.registry.clone(), "m1", LEASE_SECONDS)
    }

    async fn write(&self, operation: impl FnOnce(String) -> KeyOperation, key: &str) {
        let transaction = Transaction {
            then: vec![operation(format!("{}{key}", self.prefix))],
            ..Transaction::default()
        };
        self.store.commit(transaction).await.unwrap();
    }

    async fn put(&self, key: &str, value: &str) {
        let value = value.as_bytes().to_vec();
        self.write(|key| KeyOperation::Put(key, value, None), key)
            .await;
    }

    async fn delete(&self, key: &str) {
        self.write(KeyOperation::Delete, key).await;
    }

    async fn snapshot(&self) -> Snapshot {
        self.registry.snapshot().await.unwrap()
    }

    /// Sets a unit as users do, and places it on m1 if it is active.
    async fn set(&self, unit: &str, file: &str, state: DesiredState) {
        let body = body(unit, file);
        match self.registry.find_unit(unit).await.unwrap() {
            None => {
                let created = self.registry.create_unit(unit, &body, state, None);
                assert!(matches!(created.await, Ok(Written::At(_))));
            }
            Some(found) => {
                let replaced = self.registry.replace_unit(&found, &body, state, None);
                assert!(matches!(replaced.await, Ok(Written::At(_))));
            }
        }
        let found = self.registry.find_unit(unit).await.unwrap().unwrap();
        let step = match (&found.placement, state) {
            (None, Loaded | Launched) => place(&found, "m1"),
            (Some(_), Inactive) => withdraw(&found),
            _ => return,
        };
        self.registry
            .carry_out(&self.leading, &[step])
            .await
            .unwrap();
    }

    /// Moves a unit to a machine without an agent.
    async fn move_away(&self, unit: &str) {
        let found = self.registry.find_unit(unit).await.unwrap().unwrap();
        let steps = [move_to(&found, "m2")];
        let carried = self.registry.carry_out(&self.leading, &steps);
        assert!(matches!(carried.await.unwrap()[..], [Written::At(_)]));
    }

    /// A registration of m1 that no agent has made.
    async fn registered(&self) -> Registration {
        let machine = MachineRecord::default();
        let registered = self.registry.register_machine("m1", &machine, 3600);
        match registered.await.unwrap() {
            Registered::As(registration) => registration,
            Registered::Taken => panic!("m1 is taken"),
        }
    }

    /// The registry of an agent whose reads can be held.
    fn interleaved(&self) -> (Interleaved<MemoryKeys>, Registry<Interleaved<MemoryKeys>>) {
        let store = Interleaved::new(self.store.clone());
        let registry = Registry::new(store.clone(), Prefix::new(&self.prefix).unwrap());
        (store, registry)
    }

    async fn destroy(&self, unit: &str) {
        if let Some(found) = self.registry.find_unit(unit).await.unwrap() {
            self.registry.destroy_unit(&found).await.unwrap();
        }
    }

    async fn state(&self, unit: &str) -> Option<UnitState> {
        let state = self.registry.find_state(unit, "m1").await.unwrap();
        state.map(|state| state.value)
    }

    async fn until_state(&self, unit: &str, active: &str) {
        until(&format!("{unit} is {active}"), async || {
            self.state(unit)
                .await
                .is_some_and(|state| state.active == active)
        })
        .await;
    }

    /// Whether the machine's record says that its agent is halted.
    async fn is_halted(&self) -> bool {
        let machines = self.snapshot().await.machines;
        machines
            .get("m1")
            .is_some_and(|machine| machine.value.halted)
    }

    async fn until_error(&self, unit: &str, text: &str) {
        until(&format!("{unit} has the error {text:?}"), async || {
            self.state(unit)
                .await
                .is_some_and(|state| state.error.contains(text))
        })
        .await;
    }
}

fn file(number: usize) -> String {
    format!("[Service]\nExecStart=/bin/sleep {number}\n")
}

fn body(unit: &str, file: &str) -> Body {
    let options = Options::parse(file.as_bytes()).unwrap();
    Body::new(&UnitName::stored(unit), &options)
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_comes_back_while_it_stops_is_started() {
    let world = World::new().await;
    let machine = world.machine();
    machine
        .systemd
        .with(|state| state.stops_slowly.insert("a.service".to_owned()));
    for comes_back in ["created again", "with its first file", "launched again"] {
        world.set("a.service", &file(1), Launched).await;
        world.until_state("a.service", "active").await;
        match comes_back {
            "created again" => world.destroy("a.service").await,
            "with its first file" => world.set("a.service", &file(2), Launched).await,
            _ => world.set("a.service", &file(1), Inactive).await,
        }
        world.until_state("a.service", "deactivating").await;
        world.set("a.service", &file(1), Launched).await;
        world.until_state("a.service", "active").await;
        let runs = machine
            .systemd
            .with(|state| state.running["a.service"].clone());
        assert_eq!(runs, file(1), "{comes_back}");
        assert!(
            world.state("a.service").await.unwrap().launched,
            "{comes_back}"
        );
    }
}

/// A machine whose systemd queues the start of a.
async fn with_a_queued_start() -> (World, SimulatedMachine) {
    let world = World::new().await;
    let machine = world.machine();
    let queued = ["a.service".to_owned()];
    machine
        .systemd
        .with(|state| state.starts_queued.extend(queued));
    world.set("a.service", &file(1), Launched).await;
    (world, machine)
}

/// Its state is inactive meanwhile, like that of a finished unit.
#[tokio::test(start_paused = true)]
async fn a_unit_is_launched_once_its_start_leaves_the_queue() {
    let (world, machine) = with_a_queued_start().await;
    until("it is to start", async || {
        machine
            .systemd
            .with(|state| state.calls.iter().any(|call| call == "start a.service"))
    })
    .await;
    // Its report was written after that call.
    world.set("b.service", &file(1), Launched).await;
    world.until_state("b.service", "active").await;
    let state = world.state("a.service").await.unwrap();
    assert_eq!((state.active.as_str(), state.launched), ("inactive", false));
    machine.systemd.finish_queueing("a.service");
    world.until_state("a.service", "active").await;
    assert!(world.state("a.service").await.unwrap().launched);
    // It is started once.
    let calls = machine.systemd.with(|state| state.calls.clone());
    let starts = calls.iter().filter(|call| *call == "start a.service");
    assert_eq!(starts.count(), 1, "{calls:?}");
    // One that has ended remains launched.
    machine.systemd.end("a.service");
    world.until_state("a.service", "inactive").await;
    assert!(world.state("a.service").await.unwrap().launched);
}

/// As behind a unit of `Requires=` that fails.
#[tokio::test(start_paused = true)]
async fn a_failed_start_is_retried_with_backoff() {
    let (world, machine) = with_a_queued_start().await;
    let starts = || {
        let of_a = |call: &&String| *call == "start a.service";
        machine
            .systemd
            .with(|state| state.calls.iter().filter(of_a).count())
    };
    let mut pauses = Vec::new();
    for number in 1..=9 {
        let since = tokio::time::Instant::now();
        until("it is started once more", async || starts() == number).await;
        pauses.push(since.elapsed().as_secs_f64().round());
        let state = world.state("a.service").await;
        assert!(!state.is_some_and(|state| state.launched), "{number}");
        machine.systemd.refuse_queued("a.service", "dependency");
        world
            .until_error("a.service", "a unit that it requires did not start")
            .await;
        let state = world.state("a.service").await.unwrap();
        assert_eq!((state.active.as_str(), state.launched), ("inactive", false));
    }
    assert_eq!(pauses[1..], [1., 2., 4., 8., 16., 32., 60., 60.]);
    assert_eq!(machine.status().failing, 1);
    until("it is queued", async || starts() == 10).await;
    machine.systemd.finish_queueing("a.service");
    world.until_state("a.service", "active").await;
    until("it is launched", async || {
        let state = world.state("a.service").await.unwrap();
        state.launched && state.error.is_empty()
    })
    .await;
    // One that users do not want any more is not tried again.
    world.set("a.service", &file(1), Loaded).await;
    world.until_state("a.service", "inactive").await;
    machine.systemd.refuse_queued("a.service", "dependency");
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(starts(), 10);
    assert_eq!(world.state("a.service").await.unwrap().error, "");
}

/// What systemd says meanwhile nobody hears.
#[tokio::test(start_paused = true)]
async fn a_start_that_was_queued_when_the_agent_ended_is_begun_again() {
    let world = World::new().await;
    let mut machine = world.machine();
    let queued = ["a.service".to_owned()];
    machine
        .systemd
        .with(|state| state.starts_queued.extend(queued));
    world.set("a.service", &file(1), Launched).await;
    world.set("b.service", &file(1), Launched).await;
    world.until_state("b.service", "active").await;
    machine.systemd.end("b.service");
    world.until_state("b.service", "inactive").await;
    machine.systemd.with(|state| state.starts_queued.clear());
    machine.restart(world.registry.clone(), "m1", LEASE_SECONDS);
    world.until_state("a.service", "active").await;
    let calls = machine.systemd.with(|state| state.calls.clone());
    let starts = |unit: &str| {
        let start = format!("start {unit}");
        calls.iter().filter(|call| **call == start).count()
    };
    // The one that has finished is not run again.
    assert_eq!((starts("a.service"), starts("b.service")), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_unit_that_fails_is_tried_again_and_holds_up_no_other() {
    let world = World::new().await;
    let machine = world.machine();
    machine
        .systemd
        .with(|state| state.refused.insert("a.service".to_owned()));
    world.set("a.service", &file(1), Launched).await;
    world.set("b.service", &file(1), Launched).await;
    world.until_state("b.service", "active").await;
    world.until_error("a.service", "it is refused").await;
    let state = world.state("a.service").await.unwrap();
    assert_eq!((state.load.as_str(), state.launched), ("error", false));
    until("it counts as failing", async || {
        machine.status().failing == 1
    })
    .await;
    let tries = || {
        let of_a = |call: &&String| *call == "link a.service";
        machine
            .systemd
            .with(|state| state.calls.iter().filter(of_a).count())
    };
    let before = tries();
    tokio::time::sleep(Duration::from_mins(10)).await;
    let later = tries() - before;
    assert!((9..=16).contains(&later), "about once a minute: {later}");
    machine.systemd.with(|state| state.refused.clear());
    world.until_state("a.service", "active").await;
    assert_eq!(world.state("a.service").await.unwrap().error, "");
    assert_eq!(machine.status().failing, 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_started_from_a_file_that_systemd_has_not_read() {
    let world = World::new().await;
    let mut machine = world.machine();
    world.set("a.service", &file(1), Launched).await;
    world.until_state("a.service", "active").await;
    machine.systemd.with(|state| state.refuses_reload = true);
    world.set("a.service", &file(2), Launched).await;
    world.until_error("a.service", "it is refused").await;
    // A process that starts then knows it, too.
    machine.restart(world.registry.clone(), "m1", LEASE_SECONDS);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(machine.running().is_empty(), "{:?}", machine.running());
    machine.systemd.with(|state| state.refuses_reload = false);
    world.until_state("a.service", "active").await;
    let runs = machine
        .systemd
        .with(|state| state.running["a.service"].clone());
    assert_eq!(runs, file(2));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_or_is_old_is_no_order() {
    let world = World::new().await;
    let machine = world.machine();
    for unit in ["a.service", "b.service"] {
        world.set(unit, &file(1), Launched).await;
        world.until_state(unit, "active").await;
    }
    world.put("run/m1/a.service", r#"{"v":2}"#).await;
    let epoch = world.leading.epoch - 1;
    let hash = body("b.service", &file(1)).hash;
    let old = format!(r#"{{"v":1,"hash":"{hash}","state":"loaded","epoch":{epoch}}}"#);
    world.put("run/m1/b.service", &old).await;
    world
        .until_error("a.service", "desired state is unreadable")
        .await;
    world.until_error("b.service", "is older than").await;
    assert_eq!(machine.stopped(), [""; 0]);
    // Once they can be followed they are.
    world.delete("run/m1/a.service").await;
    until("it has gone", async || {
        world.state("a.service").await.is_none()
    })
    .await;
    assert_eq!(machine.stopped(), ["a.service"]);
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_key_was_deleted_is_registered_again() {
    let world = World::new().await;
    let machine = world.machine();
    world.set("a.service", &file(1), Launched).await;
    world.until_state("a.service", "active").await;
    world.delete("machine/m1").await;
    until("it is there again", async || {
        world.snapshot().await.machines.contains_key("m1")
    })
    .await;
    // Beyond the former lease, and all that hung on it.
    tokio::time::sleep(Duration::from_secs(2 * u64::from(LEASE_SECONDS))).await;
    world.until_state("a.service", "active").await;
    assert_eq!(machine.status().registrations, 2);
    assert_eq!(machine.stopped(), [""; 0]);
}

fn starts(machine: &SimulatedMachine) -> Vec<String> {
    let calls = machine.systemd.with(|state| state.calls.clone());
    let starts = calls.into_iter().filter(|call| call.starts_with("start "));
    starts.collect()
}

/// A machine that boots again reads its orders while its earlier lease lasts. Then that ends, and the engine moves the unit.
#[tokio::test(start_paused = true)]
async fn orders_that_were_read_before_the_registration_start_nothing() {
    let world = World::new().await;
    let earlier = world.registered().await;
    world.set("a.service", &file(1), Launched).await;
    let (store, registry) = world.interleaved();
    let machine = SimulatedMachine::start(registry, "m1", LEASE_SECONDS);
    until("it follows all of its keys", async || store.watches() == 4).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    store.hold_reads(true);
    world.move_away("a.service").await;
    let ended = world.registry.deregister_machine(earlier);
    ended.await.unwrap();
    until("it is registered", async || machine.status().is_registered).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    let calls = machine.systemd.with(|state| state.calls.clone());
    assert_eq!(calls, [""; 0], "nothing is started, nor loaded");
    store.hold_reads(false);
    world.set("b.service", &file(1), Launched).await;
    world.until_state("b.service", "active").await;
    assert_eq!(starts(&machine), ["start b.service"]);
}

#[tokio::test(start_paused = true)]
async fn units_run_on_until_orders_of_the_registration_are_read() {
    let world = World::new().await;
    let (store, registry) = world.interleaved();
    let machine = SimulatedMachine::start(registry, "m1", LEASE_SECONDS);
    machine
        .systemd
        .with(|state| state.refused.insert("b.service".to_owned()));
    for unit in ["a.service", "b.service"] {
        world.set(unit, &file(1), Launched).await;
    }
    world.until_state("a.service", "active").await;
    world.until_error("b.service", "it is refused").await;
    store.hold_reads(true);
    world.delete("machine/m1").await;
    let is_again = async || machine.status().registrations == 2;
    // Keys are checked once in a while only.
    tokio::time::sleep(Duration::from_secs(2 * u64::from(LEASE_SECONDS))).await;
    until("it is registered again", is_again).await;
    world.destroy("a.service").await;
    world.move_away("b.service").await;
    machine.systemd.with(|state| state.refused.clear());
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(machine.running(), ["a.service".to_owned()].into());
    assert_eq!(starts(&machine), ["start a.service"]);
    store.hold_reads(false);
    until("the new orders are carried out", async || {
        machine.running().is_empty()
    })
    .await;
    assert_eq!(starts(&machine), ["start a.service"]);
}

#[tokio::test(start_paused = true)]
async fn after_another_boot_all_is_started_once_more() {
    let world = World::new().await;
    let mut machine = world.machine();
    world.set("a.service", &file(1), Launched).await;
    world.set("b.service", &file(1), Loaded).await;
    world.until_state("a.service", "active").await;
    machine.restart(world.registry.clone(), "m1", LEASE_SECONDS);
    until("it has taken up its registration", async || {
        machine.status().is_registered
    })
    .await;
    let starts = || {
        machine.systemd.with(|state| {
            state
                .calls
                .iter()
                .filter(|call| call.starts_with("start "))
                .count()
        })
    };
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(starts(), 1, "a restart of the agent changes nothing");
    machine.systemd.boot();
    machine.restart(world.registry.clone(), "m1", LEASE_SECONDS);
    until("it runs again", async || !machine.running().is_empty()).await;
    assert_eq!(machine.running(), ["a.service".to_owned()].into());
}

/// Its memory is on a disk, so that it knows the registration of before the boot.
#[tokio::test(start_paused = true)]
async fn a_resumed_machine_starts_nothing_before_it_registers() {
    let world = World::new().await;
    let mut machine = world.machine();
    world.set("a.service", &file(1), Launched).await;
    world.until_state("a.service", "active").await;
    // The machine is away for longer than its lease, and another has its id now.
    world.delete("machine/m1").await;
    world.registered().await;
    machine.systemd.boot();
    let before = starts(&machine).len();
    machine.restart(world.registry.clone(), "m1", LEASE_SECONDS);
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(!machine.status().is_registered);
    assert_eq!(starts(&machine).len(), before);
    world.delete("machine/m1").await;
    until("it runs its unit", async || !machine.running().is_empty()).await;
}

/// The machine registers while its agent waits for systemd. Then the agent is killed.
#[tokio::test(start_paused = true)]
async fn a_registration_is_stored_also_while_units_are_being_started() {
    let world = World::new().await;
    let mut machine = world.machine();
    world.set("a.service", &file(1), Launched).await;
    world.until_state("a.service", "active").await;
    let slow = |delay| machine.systemd.with(|state| state.delay = delay);
    slow(Duration::from_hours(1));
    world.set("b.service", &file(1), Launched).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    world.delete("machine/m1").await;
    until("it is registered again", async || {
        world.snapshot().await.machines.contains_key("m1")
    })
    .await;
    machine.describe(|machine| machine.ip = "192.0.2.9".to_owned());
    until("its new description is stored, too", async || {
        world.snapshot().await.machines["m1"].value.ip == "192.0.2.9"
    })
    .await;
    slow(Duration::ZERO);
    machine.restart(world.registry.clone(), "m1", LEASE_SECONDS);
    let restarted_at = tokio::time::Instant::now();
    until("it has resumed its registration", async || {
        machine.status().is_registered
    })
    .await;
    // Otherwise it would wait for the end of its own lease.
    let waited = restarted_at.elapsed();
    assert!(
        waited < Duration::from_secs(LEASE_SECONDS.into()) / 3,
        "{waited:?}"
    );
    world.until_state("b.service", "active").await;
}

/// As after a restore of etcd from a snapshot, or a new installation.
#[tokio::test(start_paused = true)]
async fn after_a_restore_nothing_stops_until_resume() {
    let before = World::new().await;
    let mut machine = before.machine();
    for unit in ["a.service", "b.service"] {
        before.set(unit, &file(1), Launched).await;
        before.until_state(unit, "active").await;
    }
    let world = World::new().await;
    // Of a is known what was so some time ago; of b nothing; c has been destroyed since.
    world.set("a.service", &file(2), Launched).await;
    world.set("c.service", &file(1), Launched).await;
    // A word that was given before does not count.
    world.registry.resume().await.unwrap();
    for _ in 0..2 {
        machine.restart(world.registry.clone(), "m1", LEASE_SECONDS);
        until("it has halted", async || machine.status().is_halted).await;
        world
            .until_error("a.service", "until an operator runs fleetctl resume")
            .await;
        world
            .until_error("b.service", "until an operator runs fleetctl resume")
            .await;
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert_eq!(machine.stopped(), [""; 0]);
        let runs = machine.systemd.with(|state| state.running.clone());
        assert_eq!(
            runs.into_keys().collect::<Vec<_>>(),
            ["a.service", "b.service"]
        );
    }
    world.registry.resume().await.unwrap();
    world.until_state("c.service", "active").await;
    until("b has gone", async || {
        world.state("b.service").await.is_none()
    })
    .await;
    world.until_state("a.service", "active").await;
    let runs = machine.systemd.with(|state| state.running.clone());
    assert_eq!(runs["a.service"], file(2));
    assert!(!machine.status().is_halted);
}

/// A world with a machine that runs a and b, and the same world as it was before b, where more was written since than the
/// agent has read: revisions tell nothing.
async fn before_b_and_overtaken() -> (World, SimulatedMachine, MemoryKeys) {
    let world = World::new().await;
    let machine = world.machine();
    world.set("a.service", &file(1), Launched).await;
    world.until_state("a.service", "active").await;
    let snapshot = world.store.restored();
    world.set("b.service", &file(1), Launched).await;
    world.until_state("b.service", "active").await;
    for number in 0..100 {
        let put = KeyOperation::Put(format!("{}/unknown/{number}", world.prefix), vec![], None);
        let transaction = Transaction {
            then: vec![put],
            ..Transaction::default()
        };
        snapshot.commit(transaction).await.unwrap();
    }
    (world, machine, snapshot)
}

/// It has halted and changes nothing, until an operator resumes it.
async fn has_halted_until_resume(world: &World, machine: &SimulatedMachine) {
    until("it has halted", async || machine.status().is_halted).await;
    until("others see it", async || world.is_halted().await).await;
    for unit in ["a.service", "b.service"] {
        world
            .until_error(unit, "until an operator runs fleetctl resume")
            .await;
    }
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(machine.stopped(), [""; 0]);
    let running = ["a.service", "b.service"].map(str::to_owned);
    assert_eq!(machine.running(), running.into());
    world.registry.resume().await.unwrap();
    until("b has gone", async || {
        machine.running() == ["a.service".to_owned()].into()
    })
    .await;
    world.set("c.service", &file(1), Launched).await;
    world.until_state("c.service", "active").await;
    assert!(!machine.status().is_halted);
    until("others see it", async || !world.is_halted().await).await;
}

#[tokio::test(start_paused = true)]
async fn a_starting_agent_notices_a_restored_registry() {
    let (world, mut machine, snapshot) = before_b_and_overtaken().await;
    world.store.become_as(&snapshot);
    for _ in 0..2 {
        machine.restart(world.registry.clone(), "m1", LEASE_SECONDS);
        until("it has halted", async || machine.status().is_halted).await;
    }
    has_halted_until_resume(&world, &machine).await;
    // What it reports from now on is in this registry.
    machine.restart(world.registry.clone(), "m1", LEASE_SECONDS);
    world.set("d.service", &file(1), Launched).await;
    world.until_state("d.service", "active").await;
    assert!(!machine.status().is_halted);
}

/// Its watches go on, and its lease lives.
#[tokio::test(start_paused = true)]
async fn a_reporting_agent_notices_a_restored_registry() {
    let (world, machine, snapshot) = before_b_and_overtaken().await;
    world.store.become_as(&snapshot);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(!machine.status().is_halted, "it has nothing to report");
    machine.systemd.end("b.service");
    until("it has halted", async || machine.status().is_halted).await;
    machine.systemd.with(|state| {
        state.running.insert("b.service".to_owned(), file(1));
    });
    has_halted_until_resume(&world, &machine).await;
}

#[tokio::test(start_paused = true)]
async fn a_reconnecting_agent_notices_a_restored_registry() {
    let (world, machine, snapshot) = before_b_and_overtaken().await;
    world.store.become_as(&snapshot);
    world.store.break_watches();
    has_halted_until_resume(&world, &machine).await;
}

/// The second time to an earlier moment: a word of that time counts.
#[tokio::test(start_paused = true)]
async fn a_registry_that_goes_back_again_can_be_resumed() {
    let world = World::new().await;
    let machine = world.machine();
    world.set("a.service", &file(1), Launched).await;
    world.until_state("a.service", "active").await;
    let earlier = world.store.restored();
    for number in 0..100 {
        world.put(&format!("unknown/{number}"), "").await;
    }
    world.set("b.service", &file(1), Launched).await;
    world.until_state("b.service", "active").await;
    let later = world.store.restored();
    world.set("c.service", &file(1), Launched).await;
    world.until_state("c.service", "active").await;
    for snapshot in [later, earlier] {
        world.store.become_as(&snapshot);
        world.store.break_watches();
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!(machine.status().is_halted);
        until("others see it", async || world.is_halted().await).await;
    }
    world.registry.resume().await.unwrap();
    until("only a runs", async || {
        machine.running() == ["a.service".to_owned()].into()
    })
    .await;
}

/// Of a unit that was being withdrawn when the snapshot was made.
#[tokio::test(start_paused = true)]
async fn a_state_that_came_back_with_the_registry_is_removed() {
    let world = World::new().await;
    let machine = world.machine();
    for unit in ["a.service", "b.service"] {
        world.set(unit, &file(1), Launched).await;
        world.until_state(unit, "active").await;
    }
    machine
        .systemd
        .with(|state| state.stops_slowly.insert("a.service".to_owned()));
    world.set("a.service", &file(1), Inactive).await;
    world.until_state("a.service", "deactivating").await;
    let snapshot = world.store.restored();
    machine.systemd.finish_stopping("a.service");
    until("a has gone", async || {
        world.state("a.service").await.is_none()
    })
    .await;
    world.store.become_as(&snapshot);
    world.store.break_watches();
    until("it has halted", async || machine.status().is_halted).await;
    world.registry.resume().await.unwrap();
    until("a has gone again", async || {
        world.state("a.service").await.is_none()
    })
    .await;
    world.until_state("b.service", "active").await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_waits_for_an_id_takes_it_over_without_a_halt() {
    let world = World::new().await;
    let mut first = world.machine();
    world.set("a.service", &file(1), Launched).await;
    world.until_state("a.service", "active").await;
    let second = world.machine();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(second.running().is_empty());
    first.leave(Leave::Stopped).await;
    until("the second runs it", async || !second.running().is_empty()).await;
    assert!(!second.status().is_halted);
}

#[tokio::test(start_paused = true)]
async fn a_machine_with_a_new_id_does_not_touch_its_units() {
    let world = World::new().await;
    let mut machine = world.machine();
    let other = SimulatedMachine::start(world.registry.clone(), "m2", LEASE_SECONDS);
    until("it is registered", async || other.status().is_registered).await;
    world.set("a.service", &file(1), Launched).await;
    world.until_state("a.service", "active").await;
    let body = body("b.service", &file(1));
    let created = world
        .registry
        .create_unit("b.service", &body, Launched, None);
    created.await.unwrap();
    let found = world.registry.find_unit("b.service").await.unwrap();
    let step = place(&found.unwrap(), "m2");
    world
        .registry
        .carry_out(&world.leading, &[step])
        .await
        .unwrap();
    until("b runs", async || !other.running().is_empty()).await;
    machine.restart(world.registry.clone(), "m2", LEASE_SECONDS);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(machine.running(), ["a.service".to_owned()].into());
    assert_eq!(machine.stopped(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_whose_connection_breaks_learns_what_it_missed() {
    let world = World::new().await;
    let machine = world.machine();
    world.set("a.service", &file(1), Launched).await;
    world.until_state("a.service", "active").await;
    world.store.break_watches();
    world.set("b.service", &file(1), Launched).await;
    world.until_state("b.service", "active").await;
    world.destroy("a.service").await;
    until("a has gone", async || {
        machine.running() == ["b.service".to_owned()].into()
    })
    .await;
    assert!(!machine.status().is_halted);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_has_left_comes_back_without_a_halt() {
    let world = World::new().await;
    let mut machine = world.machine();
    world.set("a.service", &file(1), Launched).await;
    world.until_state("a.service", "active").await;
    machine.leave(Leave::Stopped).await;
    assert_eq!(world.registry.last_report("m1").await.unwrap(), None);
    machine.restart(world.registry.clone(), "m1", LEASE_SECONDS);
    world.until_state("a.service", "active").await;
    assert!(!machine.status().is_halted);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_gets_another_id_does_not_halt() {
    let world = World::new().await;
    let mut machine = world.machine();
    world.set("a.service", &file(1), Launched).await;
    world.until_state("a.service", "active").await;
    machine.restart(world.registry.clone(), "m2", LEASE_SECONDS);
    until("it is registered", async || machine.status().is_registered).await;
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(!machine.status().is_halted);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_leaves_waits_for_its_units() {
    let world = World::new().await;
    let mut machine = world.machine();
    machine
        .systemd
        .with(|state| state.stops_slowly.insert("a.service".to_owned()));
    for unit in ["a.service", "b.service"] {
        world.set(unit, &file(1), Launched).await;
        world.until_state(unit, "active").await;
    }
    let systemd = machine.systemd.clone();
    let leaving = tokio::spawn(async move { machine.leave(Leave::Stopped).await });
    world.until_state("a.service", "deactivating").await;
    until("the other has gone", async || {
        world.state("b.service").await.is_none()
    })
    .await;
    assert!(!leaving.is_finished());
    assert!(world.snapshot().await.machines.contains_key("m1"));
    systemd.finish_stopping("a.service");
    leaving.await.unwrap();
    let left = world.snapshot().await;
    assert!(left.machines.is_empty() && left.states.is_empty());
}

/// Starts machine m1 as one boot on some hardware, with its disk, and waits until its unit runs.
async fn boots(
    world: &World,
    disk: &TempDir,
    hardware: &str,
    boot: &str,
) -> (SimulatedMachine, Duration) {
    let host = Host {
        hardware: hardware.to_owned(),
        boot: boot.to_owned(),
        directory: disk.path().join("fleet"),
    };
    let since = Instant::now();
    let registry = world.registry.clone();
    let machine = SimulatedMachine::start_on(registry, "m1", LEASE_SECONDS, host);
    until("its unit runs", async || !machine.running().is_empty()).await;
    (machine, since.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_reboot_does_not_wait_for_the_lease_of_the_earlier_boot() {
    let world = World::new().await;
    let disk = tempfile::tempdir().unwrap();
    world.set("a.service", &file(1), Launched).await;
    let (first, _) = boots(&world, &disk, "h1", "b1").await;
    world.until_state("a.service", "active").await;
    // Each loses its memory with its power.
    drop(first);
    let (second, waited) = boots(&world, &disk, "h1", "b2").await;
    assert!(waited < Duration::from_secs(2), "{waited:?}");
    drop(second);
    let (third, waited) = boots(&world, &disk, "h1", "b3").await;
    assert!(waited < Duration::from_secs(2), "{waited:?}");
    world.until_state("a.service", "active").await;
    assert_eq!(world.snapshot().await.machines.len(), 1);
    drop(third);
    // Whether the earlier boot still runs is uncertain: on other hardware, and in the same boot.
    for (hardware, boot) in [("h2", "b4"), ("h2", "b4")] {
        let (last, waited) = boots(&world, &disk, hardware, boot).await;
        assert!(waited > Duration::from_secs(15), "{waited:?}");
        drop(last);
    }
}

/// As from an image of a machine that runs.
#[tokio::test(start_paused = true)]
async fn a_copy_of_a_disk_does_not_take_the_id_of_the_running_machine() {
    let world = World::new().await;
    let disk = tempfile::tempdir().unwrap();
    world.set("a.service", &file(1), Launched).await;
    let (first, _) = boots(&world, &disk, "h1", "b1").await;
    let host = Host {
        hardware: "h2".to_owned(),
        boot: "b2".to_owned(),
        directory: disk.path().join("fleet"),
    };
    let registry = world.registry.clone();
    let copy = SimulatedMachine::start_on(registry, "m1", LEASE_SECONDS, host);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(copy.running().is_empty() && !copy.status().is_registered);
    assert_eq!(first.running(), ["a.service".to_owned()].into());
    assert!(first.status().is_registered && first.status().registrations == 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_cannot_stop_its_units_leaves_soon() {
    for leave in [Leave::Stopped, Leave::Moved] {
        let world = World::new().await;
        let mut machine = world.machine();
        world.set("a.service", &file(1), Launched).await;
        world.until_state("a.service", "active").await;
        machine.systemd.with(|state| state.is_away = true);
        let since = Instant::now();
        machine.leave(leave).await;
        assert!(since.elapsed() < Duration::from_secs(10), "{leave:?}");
        let left = world.snapshot().await;
        assert!(left.machines.is_empty() && left.states.is_empty());
    }
}

/// It may run on: no other machine may start it before the lease has expired.
#[tokio::test(start_paused = true)]
async fn a_singleton_that_cannot_be_stopped_keeps_the_lease() {
    let world = World::new().await;
    let mut machine = world.machine();
    let file = format!("{}\n[X-Fleet]\nSingleton=true\n", file(1));
    world.set("a.service", &file, Launched).await;
    world.until_state("a.service", "active").await;
    machine.systemd.with(|state| state.is_away = true);
    machine.leave(Leave::Stopped).await;
    let registered = async || world.snapshot().await.machines.contains_key("m1");
    assert!(registered().await);
    let since = Instant::now();
    until("its lease has expired", async || !registered().await).await;
    let waited = since.elapsed().as_secs();
    assert!((LEASE_SECONDS - 15..=LEASE_SECONDS).contains(&u32::try_from(waited).unwrap()));
}

/// A restart of D-Bus while units stop.
#[tokio::test(start_paused = true)]
async fn an_agent_that_leaves_waits_for_systemd_for_seconds() {
    let world = World::new().await;
    let mut machine = world.machine();
    world.set("a.service", &file(1), Launched).await;
    world.until_state("a.service", "active").await;
    machine.systemd.with(|state| state.is_away = true);
    let systemd = machine.systemd.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(3)).await;
        systemd.with(|state| state.is_away = false);
    });
    machine.leave(Leave::Stopped).await;
    assert_eq!(machine.stopped(), ["a.service"]);
}

/// Whatever users, systemd and the agent's process do meanwhile: in the end what is to run runs, with its file, and nothing
/// else. Processes are killed at any await.
#[tokio::test(start_paused = true)]
async fn in_the_end_all_is_as_desired() {
    let given = |name: &str| std::env::var(name).ok().map(|text| text.parse().unwrap());
    let seeds = match given("FLEET_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..given("FLEET_SEEDS").unwrap_or(60),
    };
    for seed in seeds {
        in_the_end(seed).await;
    }
}

async fn in_the_end(seed: u64) {
    let mut random = Random::seeded(seed);
    let world = World::new().await;
    let mut machine = world.machine();
    machine
        .systemd
        .with(|state| state.delay = Duration::from_millis(3));
    let mut desired: BTreeMap<String, (String, DesiredState)> = BTreeMap::new();
    for _ in 0..60 {
        let unit = format!("u{}.service", random.below(4));
        match random.below(12) {
            0..=4 => {
                let file = file(1 + random.below(2));
                let state = DesiredState::ALL[random.below(3)];
                world.set(&unit, &file, state).await;
                desired.insert(unit, (file, state));
            }
            5 => {
                world.destroy(&unit).await;
                desired.remove(&unit);
            }
            6 => machine.restart(world.registry.clone(), "m1", LEASE_SECONDS),
            7 => machine.systemd.with(|state| {
                state.stops_slowly.insert(unit);
            }),
            8 => machine.systemd.finish_stopping(&unit),
            9 => machine.systemd.with(|state| {
                state.is_away = !state.is_away;
            }),
            10 => machine.systemd.with(|state| {
                if !state.refused.remove(&unit) {
                    state.refused.insert(unit);
                }
                state.refuses_reload = !state.refuses_reload;
            }),
            _ => {
                // Away to another machine and back.
                let found = world.registry.find_unit(&unit).await.unwrap();
                if let Some(found) = found.filter(|found| found.placement.is_some()) {
                    let steps = [move_to(&found, "m2")];
                    world
                        .registry
                        .carry_out(&world.leading, &steps)
                        .await
                        .unwrap();
                    let found = world.registry.find_unit(&unit).await.unwrap().unwrap();
                    let steps = [move_to(&found, "m1")];
                    world
                        .registry
                        .carry_out(&world.leading, &steps)
                        .await
                        .unwrap();
                }
            }
        }
        let pause = [0, 1, 4, 9, 17, 30, 2000][random.below(7)];
        tokio::time::sleep(Duration::from_millis(pause.try_into().unwrap())).await;
    }
    machine.systemd.with(|state| {
        state.is_away = false;
        state.refuses_reload = false;
        state.refused.clear();
    });
    let active = desired.iter().filter(|(_, (_, state))| *state == Launched);
    let active: BTreeMap<_, _> = active
        .map(|(unit, (file, _))| (unit.clone(), file.clone()))
        .collect();
    let here: Vec<_> = desired
        .iter()
        .filter(|(_, (_, state))| state.is_active())
        .map(|(unit, (_, state))| (unit.clone(), *state == Launched))
        .collect();
    let (mut running, mut reported, mut well) = (BTreeMap::new(), Vec::new(), 0);
    for _ in 0..500 {
        for number in 0..4 {
            machine
                .systemd
                .finish_stopping(&format!("u{number}.service"));
        }
        let states = world.snapshot().await.states;
        let states = states
            .iter()
            .map(|(key, state)| (key.unit.clone(), state.value.launched));
        reported = states.collect();
        running = machine.systemd.with(|state| state.running.clone());
        if running == active && reported == here {
            well += 1;
        } else {
            well = 0;
        }
        // Not only for a moment.
        if well > 100 {
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let calls = machine.systemd.with(|state| state.calls.clone());
    panic!(
        "seed {seed}: {running:?} and {reported:?} instead of {active:?} and {here:?}: {calls:#?}"
    );
}
