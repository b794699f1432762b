//! The engine on a real etcd, tested through the registry, as its users and agents see it.

mod held;
mod leading;
mod placing;
mod relisting;
mod returning;
mod simulation;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hyperfleet_fleet::Fleet;
use hyperfleet_fleet::engine::Settings;
use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::keys::{KeyOperation, KeyStore, Revision, Transaction};
use hyperfleet_fleet::registry::{
    Body, MachineRecord, Prefix, Registered, Registration, Registry, RunKey, Snapshot, UnitRecord,
    Written,
};
use hyperfleet_fleet_model::unit::{DesiredState, UnitOption};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use hyperfleet_testkit::{engine_settings, fresh_prefix, run_engine, shared_etcd, until};

pub(super) struct World<S> {
    pub(super) store: S,
    pub(super) registry: Registry<S>,
    prefix: String,
}

/// A running engine. Dropped, it is lost as its process would be.
pub(super) struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Running {
    /// Stops it gracefully.
    pub(super) async fn stop(mut self) {
        self.stop.take().unwrap().send(()).unwrap();
        (&mut self.task).await.unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(super) async fn world() -> World<EtcdKeys> {
    World::new(shared_etcd().await)
}

pub(super) fn settings(id: &str, lease_seconds: u32) -> Settings {
    Settings {
        lease_seconds,
        // Machines lost in these tests do not come back.
        machine_lease: Duration::ZERO,
        interval: Duration::from_millis(500),
        ..engine_settings(id)
    }
}

impl<S: KeyStore> World<S> {
    pub(super) fn new(store: S) -> Self {
        let prefix = fresh_prefix();
        Self {
            registry: Registry::new(store.clone(), Prefix::new(&prefix).unwrap()),
            store,
            prefix,
        }
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// An engine with a lease that outlives the test.
    pub(super) fn engine(&self, id: &str) -> Running {
        self.engine_with(id, 60)
    }

    pub(super) fn engine_with(&self, id: &str, lease_seconds: u32) -> Running {
        self.engine_of(settings(id, lease_seconds))
    }

    pub(super) fn engine_of(&self, settings: Settings) -> Running {
        self.engine_on(self.store.clone(), settings)
    }

    /// An engine with another way to the same store.
    pub(super) fn engine_on(&self, store: impl KeyStore, settings: Settings) -> Running {
        let registry = Registry::new(store, Prefix::new(&self.prefix).unwrap());
        let (stop, stopped) = oneshot::channel();
        let until = async { _ = stopped.await };
        let task = tokio::spawn(run_engine(registry, settings, until));
        Running {
            stop: Some(stop),
            task,
        }
    }

    /// A launched unit with these lines in `[X-Fleet]`.
    pub(super) async fn launch(&self, name: &str, lines: &[&str]) -> Revision {
        let body = body(lines);
        let state = DesiredState::Launched;
        let created = self
            .registry
            .create_unit(name, &body, state, None)
            .await
            .unwrap();
        match created {
            Written::At(revision) => revision,
            Written::Stale => panic!("{name} is taken"),
        }
    }

    pub(super) async fn find(&self, name: &str) -> UnitRecord {
        self.registry.find_unit(name).await.unwrap().unwrap()
    }

    pub(super) async fn set(&self, name: &str, state: DesiredState) {
        // The engine may have moved it in between.
        until("the state is set", async || {
            let unit = self.find(name).await;
            let set = self.registry.set_desired_state(&unit, state).await;
            matches!(set.unwrap(), Written::At(_))
        })
        .await;
    }

    pub(super) async fn machine(&self, id: &str, metadata: &[(&str, &str)]) -> Registration {
        let machine = MachineRecord {
            metadata: strings(metadata),
            ..MachineRecord::default()
        };
        match self
            .registry
            .register_machine(id, &machine, 60)
            .await
            .unwrap()
        {
            Registered::As(registration) => registration,
            Registered::Taken => panic!("{id} is taken"),
        }
    }

    pub(super) async fn put(&self, key: &str, value: &str) {
        let key = format!("{}{key}", self.prefix);
        let transaction = Transaction {
            then: vec![KeyOperation::Put(key, value.into(), None)],
            ..Transaction::default()
        };
        self.store.commit(transaction).await.unwrap();
    }

    pub(super) async fn snapshot(&self) -> Snapshot {
        self.registry.snapshot().await.unwrap()
    }

    pub(super) async fn places(&self) -> BTreeMap<String, String> {
        let places = self.snapshot().await.placements.into_iter();
        places
            .map(|(unit, place)| (unit, place.value.machine))
            .collect()
    }

    /// Waits until these units are placed, and the orders of their agents agree.
    pub(super) async fn until_placed(&self, expected: &[(&str, &str)]) {
        let expected = strings(expected);
        until(&format!("{expected:?}"), async || {
            let snapshot = self.snapshot().await;
            agree(&snapshot);
            let places = snapshot.placements.into_iter();
            places
                .map(|(u, p)| (u, p.value.machine))
                .eq(expected.clone())
        })
        .await;
    }

    /// The machine that a unit left for its present one, and why.
    pub(super) async fn moved(&self, unit: &str) -> Option<(String, String)> {
        let placement = self.find(unit).await.placement?;
        placement
            .value
            .moved
            .map(|moved| (moved.from, moved.reason))
    }

    /// Waits until another server explains a unit like this.
    pub(super) async fn until_explained(&self, unit: &str, reason: &str) {
        let fleet = Fleet::new(self.registry.clone(), 1);
        let mirror = tokio::spawn(fleet.clone().run_mirror());
        until(&format!("{unit}: {reason}"), async || {
            let why = fleet.explain(unit).await;
            why.is_ok_and(|why| why.reason == reason)
        })
        .await;
        mirror.abort();
    }

    /// The leader and its term.
    pub(super) async fn leader(&self) -> Option<(String, Revision)> {
        let leader = self.registry.find_leader().await.unwrap()?;
        Some((leader.value.id, leader.created))
    }

    pub(super) async fn until_led_by(&self, id: &str) {
        until(&format!("{id} leads"), async || {
            self.leader().await.is_some_and(|(leader, _)| leader == id)
        })
        .await;
    }
}

/// Asserts that places and orders to agents agree.
pub(super) fn agree(snapshot: &Snapshot) {
    let decided = snapshot.placements.iter();
    let decided: BTreeSet<_> = decided
        .map(|(unit, place)| RunKey {
            machine: place.value.machine.clone(),
            unit: unit.clone(),
        })
        .collect();
    assert!(decided.iter().eq(snapshot.runs.keys()), "{decided:?}");
}

pub(super) fn body(lines: &[&str]) -> Body {
    let lines = lines.iter().filter_map(|line| line.split_once('='));
    let options: Vec<_> = lines
        .map(|(name, value)| UnitOption::new("X-Fleet", name, value))
        .collect();
    let is_global = options.iter().any(|option| option.name == "Global");
    Body {
        hash: format!("hash of {options:?}"),
        options,
        global: is_global.then(Default::default),
    }
}

pub(super) fn strings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}
