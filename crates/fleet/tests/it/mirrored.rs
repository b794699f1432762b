//! A fleet with its mirror, and other writers of its registry.

use std::collections::BTreeMap;

use etcd_client::Client;
use hyperfleet_fleet::etcd::{EtcdKeys, Settings};
use hyperfleet_fleet::keys::{KeyOperation, KeyStore, Revision, Transaction};
use hyperfleet_fleet::registry::{
    Acquired, Leader, Leading, MachineRecord, Prefix, Registered, Registration, Registry, Reports,
    StateFilter, UnitState,
};
use hyperfleet_fleet::{Error, Fleet, MachineView, Page, Set, SetUnit, StateView, UnitView};
use hyperfleet_fleet_model::unit::UnitOption;
use tokio::task::JoinHandle;

use hyperfleet_testkit::{
    TestEtcd, etcd_settings, fresh_prefix, place, shared_etcd, until, withdraw,
};

/// Small, so that lists in tests have several pages.
pub(crate) const PAGE: usize = 3;

/// A fleet whose mirror is kept as long as this lives.
pub(crate) struct Mirrored<S: KeyStore> {
    pub(crate) fleet: Fleet<S>,
    pub(crate) registry: Registry<S>,
    pub(crate) store: S,
    pub(crate) prefix: String,
    keeper: Option<JoinHandle<()>>,
}

impl<S: KeyStore> Drop for Mirrored<S> {
    fn drop(&mut self) {
        self.stop();
    }
}

/// On a shared server.
pub(crate) async fn on_shared() -> Mirrored<EtcdKeys> {
    Mirrored::start(shared_etcd().await, fresh_prefix()).await
}

/// On a server of its own, with short timeouts.
pub(crate) async fn on(server: &TestEtcd) -> Mirrored<EtcdKeys> {
    let settings = Settings {
        request_timeout: std::time::Duration::from_secs(5),
        ..etcd_settings(&server.url())
    };
    let store = EtcdKeys::connect(settings).await.unwrap();
    Mirrored::start(store, fresh_prefix()).await
}

/// Compacts the history before a revision.
pub(crate) async fn compact(server: &TestEtcd, revision: Revision) {
    let mut client = Client::connect([server.url()], None).await.unwrap();
    client.compact(revision, None).await.unwrap();
}

impl<S: KeyStore> Mirrored<S> {
    pub(crate) async fn start(store: S, prefix: String) -> Self {
        let registry = Registry::new(store.clone(), Prefix::new(&prefix).unwrap());
        let mut mirrored = Self {
            fleet: Fleet::new(registry.clone(), PAGE),
            registry,
            store,
            prefix,
            keeper: None,
        };
        assert!(!mirrored.fleet.is_connected());
        mirrored.keep().await;
        mirrored
    }

    /// Another server of the same fleet.
    pub(crate) async fn beside(&self) -> Self {
        Self::start(self.store.clone(), self.prefix.clone()).await
    }

    pub(crate) async fn keep(&mut self) {
        self.keeper = Some(tokio::spawn(self.fleet.clone().run_mirror()));
        until("the mirror is connected", async || {
            self.fleet.is_connected()
        })
        .await;
    }

    /// Stops the keeper of the mirror.
    pub(crate) fn stop(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            keeper.abort();
        }
    }

    /// Writes a key that is not fleet's.
    pub(crate) async fn put(&self, key: &str, value: &str) -> Revision {
        let key = format!("{}{key}", self.prefix);
        let transaction = Transaction {
            then: vec![KeyOperation::Put(key, value.into(), None)],
            ..Transaction::default()
        };
        self.store.commit(transaction).await.unwrap().revision
    }

    pub(crate) async fn create(&self, name: &str, lines: &[&str], desired: &str) {
        let set = self.fleet.set_unit(name, request(lines, desired)).await;
        assert_eq!(set.unwrap(), Set::Created, "{name}");
    }

    pub(crate) async fn set_desired(&self, name: &str, desired: &str) {
        let set = self.fleet.set_unit(name, request(&[], desired)).await;
        assert_eq!(set.unwrap(), Set::Updated, "{name}");
    }

    pub(crate) async fn register(&self, id: &str, metadata: &[(&str, &str)]) -> Registration {
        let machine = machine(metadata);
        let registered = self.registry.register_machine(id, &machine, 60).await;
        match registered.unwrap() {
            Registered::As(registration) => registration,
            Registered::Taken => panic!("{id} is taken"),
        }
    }

    pub(crate) async fn lead(&self, id: &str) -> Leading {
        let leader = Leader {
            id: id.to_owned(),
            version: 1,
        };
        let acquired = self.registry.acquire_leadership(&leader, 60).await;
        match acquired.unwrap() {
            Acquired::Leading(leading) => leading,
            Acquired::Standby(other) => panic!("{} leads", other.id),
        }
    }

    pub(crate) async fn place(&self, leading: &Leading, unit: &str, machine: &str) {
        let unit = self.registry.find_unit(unit).await.unwrap().unwrap();
        let step = place(&unit, machine);
        self.registry.carry_out(leading, &[step]).await.unwrap();
    }

    pub(crate) async fn withdraw(&self, leading: &Leading, unit: &str) {
        let unit = self.registry.find_unit(unit).await.unwrap().unwrap();
        let step = withdraw(&unit);
        self.registry.carry_out(leading, &[step]).await.unwrap();
    }

    pub(crate) async fn report(&self, reports: &mut Reports, states: &[(&str, UnitState)]) {
        let states = states.iter().cloned();
        let current = states.map(|(unit, state)| (unit.to_owned(), state));
        let current: BTreeMap<_, _> = current.collect();
        reports.publish(&self.registry, &current).await.unwrap();
    }

    /// Waits until the mirror has reached the current revision.
    pub(crate) async fn settle(&self) {
        let beside = self.beside().await;
        until("the mirror has come to the present", async || {
            everything(&self.fleet).await == everything(&beside.fleet).await
        })
        .await;
    }
}

/// The contents of all lists.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Everything {
    pub(crate) units: Vec<UnitView>,
    pub(crate) states: Vec<StateView>,
    pub(crate) machines: Vec<MachineView>,
}

pub(crate) async fn everything<S: KeyStore>(fleet: &Fleet<S>) -> Everything {
    let filter = StateFilter::default();
    Everything {
        units: all(async |token| fleet.list_units(token).await).await,
        states: all(async |token| fleet.list_states(&filter, token).await).await,
        machines: all(async |token| fleet.list_machines(token).await).await,
    }
}

pub(crate) async fn all<T>(list: impl AsyncFn(Option<&str>) -> Result<Page<T>, Error>) -> Vec<T> {
    let (mut items, mut token) = (Vec::new(), None);
    loop {
        let page = list(token.as_deref()).await.unwrap();
        token = page.token();
        items.extend(page.items);
        if token.is_none() {
            return items;
        }
    }
}

/// A request with these lines of `[X-Fleet]`, or of `[Service]` if they begin with `ExecStart`; an empty state is
/// none.
pub(crate) fn request(lines: &[&str], desired: &str) -> SetUnit {
    let options: Vec<_> = lines.iter().map(|line| option(line)).collect();
    SetUnit {
        options: (!options.is_empty()).then_some(options),
        desired: (!desired.is_empty()).then(|| desired.parse().unwrap()),
    }
}

pub(crate) fn option(line: &str) -> UnitOption {
    let (name, value) = line.split_once('=').unwrap();
    let section = if name == "ExecStart" {
        "Service"
    } else {
        "X-Fleet"
    };
    UnitOption::new(section, name, value)
}

pub(crate) fn machine(metadata: &[(&str, &str)]) -> MachineRecord {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    MachineRecord {
        address: String::new(),
        ip: "10.0.0.1".into(),
        metadata: metadata.iter().map(owned).collect(),
        version: "1".into(),
        halted: false,
        capacity: BTreeMap::new(),
    }
}

pub(crate) fn state(active: &str, launched: bool) -> UnitState {
    UnitState {
        load: "loaded".into(),
        active: active.to_owned(),
        sub: "running".into(),
        hash: "h".into(),
        launched,
        restarts: None,
        error: String::new(),
        result: String::new(),
    }
}
