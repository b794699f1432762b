//! The registry of units and machines. One suite for every store: memory may replace etcd because it passes it,
//! too. Tests that need a server are in `faults` and `secure`.

mod engine;
mod faults;
mod keys;
mod machines;
pub(crate) mod secure;
mod units;
mod watch;

use std::collections::BTreeMap;

use etcd_client::Client;
use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::keys::{KeyOperation, KeyStore, Revision, Transaction};
use hyperfleet_fleet::registry::{
    Body, Error, Leader, Leading, MachineRecord, Prefix, Registered, Registration, Registry,
    UnitRecord, UnitState, Written,
};
use hyperfleet_fleet_model::unit::{DesiredState, UnitOption};
use hyperfleet_testkit::{
    MemoryKeys, TestEtcd, etcd_settings, fresh_prefix, place, shared_etcd, withdraw,
};

/// A store with a registry.
struct World<S> {
    store: S,
    registry: Registry<S>,
    prefix: String,
    compact: Compact,
}

/// How the history of a store is compacted.
enum Compact {
    Memory(MemoryKeys),
    /// The server is the test's own, because a compaction affects all its users.
    Etcd(Box<TestEtcd>),
    Never,
}

impl<S: KeyStore> World<S> {
    fn new(store: S, compact: Compact) -> Self {
        let prefix = fresh_prefix();
        Self {
            registry: Registry::new(store.clone(), Prefix::new(&prefix).unwrap()),
            store,
            prefix,
            compact,
        }
    }

    async fn compact(&self, revision: Revision) {
        match &self.compact {
            Compact::Memory(store) => store.compact(revision),
            Compact::Etcd(server) => {
                let mut client = Client::connect([server.url()], None).await.unwrap();
                client.compact(revision, None).await.unwrap();
            }
            Compact::Never => panic!("a shared server is not compacted"),
        }
    }

    /// Writes a key outside the registry.
    async fn put(&self, key: &str, value: &str) {
        let key = format!("{}{key}", self.prefix);
        let transaction = Transaction {
            then: vec![KeyOperation::Put(key, value.into(), None)],
            ..Transaction::default()
        };
        self.store.commit(transaction).await.unwrap();
    }

    async fn get(&self, key: &str) -> Option<String> {
        let key = format!("{}{key}", self.prefix);
        let transaction = Transaction {
            then: vec![KeyOperation::Get(key)],
            ..Transaction::default()
        };
        let found = self.store.commit(transaction).await.unwrap().found;
        let entry = found.into_iter().next()?;
        Some(String::from_utf8(entry.value).unwrap())
    }

    async fn create(&self, name: &str) -> UnitRecord {
        let created = self.create_as(name, "1", DesiredState::Launched).await;
        assert!(matches!(created, Ok(Written::At(_))), "{name}: {created:?}");
        self.find(name).await
    }

    async fn create_as(
        &self,
        name: &str,
        text: &str,
        state: DesiredState,
    ) -> Result<Written, Error> {
        self.registry
            .create_unit(name, &body(text), state, None)
            .await
    }

    async fn replace(
        &self,
        unit: &UnitRecord,
        text: &str,
        state: DesiredState,
    ) -> Result<Written, Error> {
        self.registry
            .replace_unit(unit, &body(text), state, None)
            .await
    }

    async fn find(&self, name: &str) -> UnitRecord {
        self.registry.find_unit(name).await.unwrap().unwrap()
    }

    async fn register(&self, id: &str, lease_seconds: u32) -> Registration {
        let machine = machine(&[("zone", "east")]);
        let registered = self.registry.register_machine(id, &machine, lease_seconds);
        match registered.await.unwrap() {
            Registered::As(registration) => registration,
            Registered::Taken => panic!("{id} is taken"),
        }
    }

    async fn lead(&self, id: &str) -> Leading {
        use hyperfleet_fleet::registry::Acquired;
        let leader = leader(id, 1);
        match self.registry.acquire_leadership(&leader, 60).await.unwrap() {
            Acquired::Leading(leading) => leading,
            Acquired::Standby(other) => panic!("{} leads", other.id),
        }
    }

    async fn place(&self, leading: &Leading, unit: &UnitRecord, machine: &str) {
        let steps = [place(unit, machine)];
        let carried = self.registry.carry_out(leading, &steps).await.unwrap();
        assert!(matches!(carried[..], [Written::At(_)]));
    }
}

async fn etcd() -> World<EtcdKeys> {
    World::new(shared_etcd().await, Compact::Never)
}

async fn own_etcd() -> World<EtcdKeys> {
    let server = TestEtcd::start().await;
    let store = EtcdKeys::connect(etcd_settings(&server.url())).await;
    World::new(store.unwrap(), Compact::Etcd(Box::new(server)))
}

fn memory() -> World<MemoryKeys> {
    let store = MemoryKeys::new();
    World::new(store.clone(), Compact::Memory(store))
}

/// Runs a test in etcd and in memory; `own` for those that compact.
macro_rules! in_every_store {
    ($($fact:ident)*; own $($own:ident)*) => {
        mod in_etcd {
            $(#[tokio::test] async fn $fact() { super::$fact(crate::registry::etcd().await).await; })*
            $(#[tokio::test] async fn $own() { super::$own(crate::registry::own_etcd().await).await; })*
        }
        mod in_memory {
            $(#[tokio::test] async fn $fact() { super::$fact(crate::registry::memory()).await; })*
            $(#[tokio::test] async fn $own() { super::$own(crate::registry::memory()).await; })*
        }
    };
}
use in_every_store;

fn body(text: &str) -> Body {
    Body {
        options: vec![UnitOption {
            section: "Service".into(),
            name: "ExecStart".into(),
            value: format!("/bin/sleep {text}"),
        }],
        hash: format!("hash-of-{text}"),
        global: None,
    }
}

fn machine(metadata: &[(&str, &str)]) -> MachineRecord {
    MachineRecord {
        address: String::new(),
        ip: "10.0.0.1".into(),
        metadata: strings(metadata),
        version: "1".into(),
        halted: false,
        capacity: BTreeMap::new(),
    }
}

fn strings(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

fn leader(id: &str, version: u64) -> Leader {
    Leader {
        id: id.to_owned(),
        version,
    }
}

fn state(active: &str) -> UnitState {
    UnitState {
        load: "loaded".into(),
        active: active.to_owned(),
        sub: "running".into(),
        hash: "hash-of-1".into(),
        launched: true,
        restarts: None,
        error: String::new(),
        result: String::new(),
    }
}
