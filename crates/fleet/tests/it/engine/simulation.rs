//! Three engines on a simulated clock, frozen and thawed, killed and stopped, behind a failing network, while
//! users and machines come and go. A seed determines everything; a failing one is printed:
//!
//! ```sh
//! FLEET_SEED=17 cargo test --test it fleet::engine::simulation
//! make fleet-seeds SEEDS=1000
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyperfleet_fleet::engine::Settings;
use hyperfleet_fleet::keys::Revision;
use hyperfleet_fleet::registry::{
    KeyChange, MachineRecord, MoveOrder, Prefix, Record, Registered, Registration, Registry,
    RunKey, Snapshot, WatchScope, WatchUpdate,
};
use hyperfleet_fleet_model::schedule::{self, Cluster, Job, MachineId};
use hyperfleet_fleet_model::unit::{DesiredState, FleetSection, NameParts, UnitName};
use hyperfleet_testkit::{MemoryKeys, run_engine};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::held::Held;
use super::{agree, body, settings, strings};
use hyperfleet_testkit::Random;

const SEEDS: u64 = 20;
const ENGINES: usize = 3;
const LEASE_SECONDS: u32 = 10;
/// How long missing machines may return. Short, or too little would happen.
const MACHINE_LEASE: Duration = Duration::from_secs(5);
const STEPS: usize = 200;
const UNITS: usize = 12;
const MACHINES: [&str; 5] = ["m1", "m2", "m3", "m4", "m5"];

#[test]
fn one_engine_decides_and_ends_with_nothing_to_do() {
    let seeds = match (variable("FLEET_SEED"), variable("FLEET_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count) => 0..count.unwrap_or(SEEDS),
    };
    let (mut refused, mut terms, mut placed) = (0, 0, 0);
    for seed in seeds.clone() {
        let told = OnPanic(seed);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        let record = runtime.block_on(simulate(seed));
        refused += record.refused;
        terms += record.terms;
        placed += record.placed;
        std::mem::forget(told);
    }
    println!("{seeds:?}: {terms} terms, {placed} placements, {refused} writes of ended terms");
    if seeds.end - seeds.start >= SEEDS {
        assert!(
            refused > 0 && terms > 100 && placed > 500,
            "it tries too little"
        );
    }
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap())
}

/// Prints the seed.
struct OnPanic(u64);

impl Drop for OnPanic {
    fn drop(&mut self) {
        println!("FLEET_SEED={} repeats it", self.0);
    }
}

/// All writes over time, checked against the properties as they arrive.
#[derive(Default)]
struct History {
    revision: Revision,
    leader: Option<Revision>,
    placements: BTreeMap<String, String>,
    runs: BTreeSet<(String, String)>,
    terms: u64,
    placed: u64,
    refused: u64,
}

impl History {
    fn apply(&mut self, changes: Vec<KeyChange>) {
        for change in changes {
            match change {
                KeyChange::Leader(Record::Present(leader)) => {
                    assert!(self.leader.is_none_or(|e| e < leader.created), "terms grow");
                    self.leader = Some(leader.created);
                    self.terms += 1;
                }
                KeyChange::Leader(_) => self.leader = None,
                KeyChange::Placement(unit, Record::Present(place)) => {
                    let epoch = place.value.epoch;
                    assert_eq!(Some(epoch), self.leader, "{unit}: who decides, leads");
                    self.placements.insert(unit, place.value.machine);
                    self.placed += 1;
                }
                KeyChange::Placement(unit, _) => _ = self.placements.remove(&unit),
                KeyChange::Run(RunKey { machine, unit }, run) => {
                    if let Record::Present(_) = run {
                        self.runs.insert((machine, unit));
                    } else {
                        self.runs.remove(&(machine, unit));
                    }
                }
                _ => {}
            }
        }
        let places = self.placements.iter().map(|(u, m)| (m.clone(), u.clone()));
        let places: BTreeSet<_> = places.collect();
        assert_eq!(places, self.runs, "what agents do is what was decided");
    }
}

/// The place of one engine, which may be replaced by another.
struct Seat {
    number: usize,
    store: Held<MemoryKeys>,
    task: JoinHandle<()>,
    stop: Option<oneshot::Sender<()>>,
}

impl Seat {
    fn start(number: usize, store: Held<MemoryKeys>) -> Self {
        let registry = Registry::new(store.clone(), Prefix::default());
        let settings = Settings {
            machine_lease: MACHINE_LEASE,
            ..settings(&format!("e{number}"), LEASE_SECONDS)
        };
        let (stop, stopped) = oneshot::channel();
        let engine = run_engine(registry, settings, async { _ = stopped.await });
        Self {
            number,
            store,
            task: tokio::spawn(engine),
            stop: Some(stop),
        }
    }

    fn restart(&mut self, is_clean: bool) {
        if is_clean {
            let _ = self.stop.take().unwrap().send(());
            // It resigns when it can, even if another engine has taken its place.
        } else {
            self.task.abort();
        }
        *self = Self::start(self.number, self.store.clone());
    }
}

struct Simulation {
    random: Random,
    store: MemoryKeys,
    registry: Registry<MemoryKeys>,
    seats: Vec<Seat>,
    machines: BTreeMap<&'static str, Registration>,
    record: Arc<Mutex<History>>,
}

async fn simulate(seed: u64) -> History {
    let store = MemoryKeys::new();
    let registry = Registry::new(store.clone(), Prefix::default());
    let record = Arc::<Mutex<History>>::default();
    let watching = tokio::spawn(watch(registry.clone(), Arc::clone(&record)));
    let seats = (0..ENGINES).map(|number| {
        let seed = seed * 31 + u64::try_from(number).unwrap();
        Seat::start(number, Held::new(store.clone(), seed))
    });
    let seats = seats.collect();
    let mut simulation = Simulation {
        random: Random::seeded(seed),
        store,
        registry,
        seats,
        machines: BTreeMap::new(),
        record,
    };
    for _ in 0..STEPS {
        simulation.step().await;
        assert!(!watching.is_finished(), "a law was broken: see above");
    }
    simulation.end().await;
    assert!(!watching.is_finished(), "a law was broken: see above");
    watching.abort();
    let mut record = std::mem::take(&mut *simulation.record.lock().unwrap());
    record.refused = simulation
        .seats
        .iter()
        .map(|seat| seat.store.refused())
        .sum();
    record
}

async fn watch(registry: Registry<MemoryKeys>, record: Arc<Mutex<History>>) {
    let mut watch = registry.watch(&WatchScope::Everything, 1).unwrap();
    loop {
        let WatchUpdate::Changes { revision, changes } = watch.next().await.unwrap() else {
            panic!("it is not compacted before it is seen");
        };
        let mut record = record.lock().unwrap();
        record.apply(changes);
        record.revision = revision;
    }
}

impl Simulation {
    async fn step(&mut self) {
        match self.random.below(20) {
            0..=3 => self.machine().await,
            4..=11 => self.unit().await,
            12 => self.label().await,
            13..=15 => {
                let is_frozen = self.random.below(3) == 0;
                let seat = &self.seats[self.random.below(ENGINES)];
                seat.store.freeze(is_frozen);
            }
            16 => {
                // The leader is disturbed most often.
                if let Some(leader) = self.registry.find_leader().await.unwrap() {
                    let leads = |seat: &&Seat| format!("e{}", seat.number) == leader.value.id;
                    self.seats.iter().find(leads).unwrap().store.freeze(true);
                }
            }
            17 => {
                let number = self.random.below(ENGINES);
                let is_clean = self.random.below(2) == 0;
                self.seats[number].restart(is_clean);
            }
            18 => self.store.compact(self.record.lock().unwrap().revision),
            19 => self.availability().await,
            _ => {}
        }
        let most = self.random.pick(&[1, 5, 50, 500, 3_000, 15_000]);
        let pause = self.random.below(most);
        tokio::time::sleep(Duration::from_millis(pause.try_into().unwrap())).await;
    }

    async fn machine(&mut self) {
        let id = self.random.pick(&MACHINES);
        if let Some(registration) = self.machines.remove(id) {
            return self
                .registry
                .deregister_machine(registration)
                .await
                .unwrap();
        }
        let zone = self.random.pick(&["a", "b"]);
        let machine = MachineRecord {
            metadata: strings(&[("zone", zone)]),
            ..MachineRecord::default()
        };
        // Some leases are never renewed.
        let lease = self.random.pick(&[7, 100_000]);
        let registered = self.registry.register_machine(id, &machine, lease).await;
        if let Registered::As(registration) = registered.unwrap() {
            self.machines.insert(id, registration);
        }
    }

    async fn label(&mut self) {
        let id = self.random.pick(&MACHINES);
        let zone = self
            .random
            .pick(&[Some("a"), Some("b"), None])
            .map(str::to_owned);
        let labels = [("zone".to_owned(), zone)].into();
        self.registry.set_labels(id, &labels).await.unwrap();
    }

    async fn availability(&mut self) {
        let id = self.random.pick(&MACHINES);
        let moves = self.moves();
        let registry = &self.registry;
        let changed = match self.random.below(8) {
            5.. => registry.order_moves(&moves).await,
            0 => registry.cordon_machine(id).await,
            1 => registry.drain_machine(id, None).await,
            2 => registry.drain_machine(id, Some(20)).await,
            3 => registry.end_drain(id).await,
            _ => registry.uncordon_machine(id).await,
        };
        changed.unwrap();
    }

    /// Orders to move some units, most of which are invalid.
    fn moves(&mut self) -> BTreeMap<String, MoveOrder> {
        let order = |_| {
            let name = format!("u{:02}.service", self.random.below(UNITS));
            let [from, to] = [(); 2].map(|()| self.random.pick(&MACHINES).to_owned());
            (name, MoveOrder { from, to })
        };
        (0..9).map(order).collect()
    }

    async fn unit(&mut self) {
        let name = format!("u{:02}.service", self.random.below(UNITS));
        let other = format!("u{:02}.service", self.random.below(UNITS));
        let lines = match self.random.below(9) {
            0 => vec![format!(
                "MachineMetadata=zone={}",
                self.random.pick(&["a", "b"])
            )],
            1 => vec!["Conflicts=u0*".to_owned()],
            2 => vec![format!("Conflicts={other}")],
            3 => vec![format!("MachineOf={other}")],
            4 => vec![format!("Replaces={other}")],
            5 => vec!["Global=true".to_owned(), format!("Conflicts={other}")],
            6 => vec!["Singleton=true".to_owned()],
            _ => vec![],
        };
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        let (body, state) = (body(&lines), self.random.pick(&DesiredState::ALL));
        let Some(unit) = self.registry.find_unit(&name).await.unwrap() else {
            let state = state.max(DesiredState::Loaded);
            self.registry
                .create_unit(&name, &body, state, None)
                .await
                .unwrap();
            return;
        };
        let registry = &self.registry;
        let written = match self.random.below(4) {
            0 => registry.destroy_unit(&unit).await,
            1 => registry.replace_unit(&unit, &body, state, None).await,
            _ => registry.set_desired_state(&unit, state).await,
        };
        written.unwrap();
    }

    /// Everything is healthy again, and after a while nothing is left to do.
    async fn end(&mut self) {
        for seat in &self.seats {
            seat.store.calm();
        }
        tokio::time::sleep(Duration::from_mins(2)).await;
        let settled = self.registry.snapshot().await.unwrap();
        check(&settled);
        assert!(settled.moves.is_empty(), "{:?}", settled.moves);
        for seat in &mut self.seats {
            seat.stop.take().unwrap().send(()).unwrap();
            (&mut seat.task).await.unwrap();
        }
        assert_eq!(self.registry.find_leader().await.unwrap(), None);
        // A new engine without state finds nothing to do either.
        let mut fresh = Seat::start(9, Held::new(self.store.clone(), 0));
        fresh.store.calm();
        tokio::time::sleep(Duration::from_secs(30)).await;
        let after = self.registry.snapshot().await.unwrap();
        assert_eq!(
            (&after.placements, &after.runs),
            (&settled.placements, &settled.runs)
        );
        fresh.stop.take().unwrap().send(()).unwrap();
        fresh.task.await.unwrap();
    }
}

/// By the rules alone, without an engine.
fn check(snapshot: &Snapshot) {
    agree(snapshot);
    let mut cluster = Cluster::new();
    for id in snapshot.machines.keys() {
        cluster.apply(schedule::ClusterChange::Machine(schedule::Machine {
            id: MachineId::new(id.as_str()),
            metadata: snapshot.metadata(id),
            availability: snapshot.availability(id),
        }));
    }
    for (name, body) in &snapshot.bodies {
        let section = FleetSection::of(&body.value.options);
        let place = snapshot.placements.get(name);
        let placed_on = place.map(|place| MachineId::new(place.value.machine.as_str()));
        cluster.apply(schedule::ClusterChange::Unit(Job::new(
            UnitName::stored(name.as_str()),
            section.requirements(NameParts::of(name)),
            snapshot.desired[name].value.state,
            placed_on,
        )));
    }
    for (name, place) in &snapshot.placements {
        let (machine, unit) = (place.value.machine.clone(), name.clone());
        let run = &snapshot.runs[&RunKey { machine, unit }].value;
        assert_eq!(run.hash, snapshot.bodies[name].value.hash);
        assert_eq!(run.state, snapshot.desired[name].value.state);
    }
    assert_eq!(cluster.plan(), []);
}
