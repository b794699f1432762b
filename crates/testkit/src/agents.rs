//! Agents as the registry sees them: each keeps its machine there, does what it is told, and says what became of it.
//! There is no systemd: a unit that is to run, runs.
//!
//! Tests and `make bench-fleet` share this file.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use hyperfleet_fleet::keys::KeyStore;
use hyperfleet_fleet::registry::{
    Change, Error, Machine, Registered, Registration, Registry, Reports, Scope, Seen, Told,
    UnitState, Watch,
};
use hyperfleet_fleet_model::unit::DesiredState;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval, sleep, sleep_until};

/// How long an agent waits after a failure.
const PAUSE: Duration = Duration::from_millis(200);
/// How often a lease is kept in the time for which it lives.
const KEPT_PER_LEASE: u32 = 3;

/// An agent that runs. Dropped, it is lost with its machine.
#[derive(Debug)]
pub struct Agent {
    task: JoinHandle<()>,
    done: Arc<Mutex<Done>>,
}

/// What an agent has done.
#[derive(Debug, Clone, Default)]
pub struct Done {
    /// What it runs, by the digest of its file.
    pub running: BTreeMap<String, String>,
    /// What it was told to stop.
    pub stopped: Vec<String>,
    /// How often it has registered its machine.
    pub registrations: u32,
}

impl Agent {
    /// Begins to register its machine, on leases of that length.
    pub fn start<S: KeyStore>(registry: Registry<S>, machine: &str, lease_seconds: u32) -> Self {
        let done = Arc::<Mutex<Done>>::default();
        let work = Work {
            registry,
            machine: machine.to_owned(),
            lease_seconds,
            orders: BTreeMap::new(),
            done: Arc::clone(&done),
        };
        Self {
            task: tokio::spawn(work.run()),
            done,
        }
    }

    pub fn done(&self) -> Done {
        lock(&self.done).clone()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(done: &Mutex<Done>) -> MutexGuard<'_, Done> {
    done.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an agent has to do with a unit.
#[derive(Debug, Clone)]
struct Order {
    hash: String,
    state: DesiredState,
}

struct Work<S: KeyStore> {
    registry: Registry<S>,
    machine: String,
    lease_seconds: u32,
    /// By whether they are for all machines, and the unit.
    orders: BTreeMap<(bool, String), Order>,
    done: Arc<Mutex<Done>>,
}

/// What tells an agent what to do.
struct Watches<S: KeyStore> {
    runs: Watch<S>,
    globals: Watch<S>,
    rest_until: Instant,
}

impl<S: KeyStore> Work<S> {
    /// A lease that has run out stops nothing: it registers again and goes on (decision F5).
    async fn run(mut self) {
        let mut registration = self.register().await;
        let mut watches = self.listen().await;
        loop {
            self.serve(registration, &mut watches).await;
            registration = self.register().await;
        }
    }

    async fn register(&self) -> Registration {
        let machine = Machine {
            ip: "192.0.2.1".to_owned(),
            version: "1".to_owned(),
            ..Machine::default()
        };
        loop {
            let (id, seconds) = (&self.machine, self.lease_seconds);
            let registered = self.registry.register_machine(id, &machine, seconds).await;
            if let Ok(Registered::As(registration)) = registered {
                lock(&self.done).registrations += 1;
                return registration;
            }
            sleep(PAUSE).await;
        }
    }

    /// Reads its orders, and begins to watch them.
    async fn listen(&mut self) -> Watches<S> {
        let runs = Scope::Runs {
            machine: self.machine.clone(),
        };
        let runs = self.follow(&runs).await;
        let globals = self.follow(&Scope::Globals).await;
        Watches {
            runs,
            globals,
            rest_until: Instant::now(),
        }
    }

    async fn follow(&mut self, scope: &Scope) -> Watch<S> {
        loop {
            if let Ok((found, revision)) = self.registry.list(scope).await {
                self.take_in(found);
                let watch = self.registry.watch(scope, revision);
                return watch.expect("it could be listed");
            }
            sleep(PAUSE).await;
        }
    }

    /// Does its work until its machine is not registered any more.
    async fn serve(&mut self, registration: Registration, watches: &mut Watches<S>) {
        let lease = Duration::from_secs(self.lease_seconds.into());
        let mut signs = interval(lease / KEPT_PER_LEASE);
        let mut reports = Reports::new(registration.clone());
        let mut publish_at = Some(Instant::now());
        loop {
            tokio::select! {
                biased;
                _ = signs.tick() => match self.registry.keep_machine(&registration).await {
                    Ok(()) => {}
                    Err(Error::Unregistered) => return,
                    Err(_) => signs.reset_after(PAUSE),
                },
                told = watches.next() => if self.obey(told, watches) {
                    publish_at = Some(Instant::now());
                },
                () = sleep_until(publish_at.unwrap_or_else(Instant::now)), if publish_at.is_some() => {
                    let states = self.act();
                    publish_at = match reports.publish(&self.registry, &states).await {
                        Ok(_) => None,
                        Err(Error::Unregistered) => return,
                        Err(_) => Some(Instant::now() + PAUSE),
                    };
                }
            }
        }
    }

    /// Takes in what was told, and all that is there with it. Whether there was anything.
    fn obey(&mut self, told: (bool, Result<Told, Error>), watches: &mut Watches<S>) -> bool {
        let (mut told, mut is_news) = (Some(told), false);
        while let Some((is_global, news)) = told {
            match news {
                Ok(Told::Changes { changes, .. }) => {
                    is_news |= !changes.is_empty();
                    self.take_in(changes);
                }
                Ok(Told::Relisted { found, .. }) => {
                    is_news = true;
                    self.orders.retain(|(global, _), _| *global != is_global);
                    self.take_in(found);
                }
                Err(_) => watches.rest_until = Instant::now() + PAUSE,
            }
            told = watches.next().now_or_never();
        }
        is_news
    }

    fn take_in(&mut self, changes: Vec<Change>) {
        for change in changes {
            let (key, order) = match change {
                Change::Run(key, run) => {
                    let run = run.here().map(|run| (run.value.hash, run.value.state));
                    ((false, key.unit), run)
                }
                Change::Global(unit, Seen::Here(global)) => {
                    ((true, unit), Some((global.value.hash, global.value.state)))
                }
                Change::Global(unit, _) => ((true, unit), None),
                _ => continue,
            };
            match order {
                Some((hash, state)) => self.orders.insert(key, Order { hash, state }),
                None => self.orders.remove(&key),
            };
        }
    }

    /// Starts and stops units as it is told. Gives what is then.
    fn act(&self) -> BTreeMap<String, UnitState> {
        let orders = self.orders.iter();
        let orders: BTreeMap<_, _> = orders.map(|((_, unit), order)| (unit, order)).collect();
        let launched = orders.iter();
        let launched = launched.filter(|(_, order)| order.state == DesiredState::Launched);
        let running: BTreeMap<_, _> = launched
            .map(|(unit, order)| ((*unit).clone(), order.hash.clone()))
            .collect();
        let mut done = lock(&self.done);
        let before = std::mem::take(&mut done.running);
        let stopped = before
            .into_keys()
            .filter(|unit| !running.contains_key(unit));
        done.stopped.extend(stopped);
        done.running = running;
        let states = orders.into_iter();
        states
            .map(|(unit, order)| (unit.clone(), state(order)))
            .collect()
    }
}

impl<S: KeyStore> Watches<S> {
    /// What is told next, and whether it is about all machines.
    async fn next(&mut self) -> (bool, Result<Told, Error>) {
        sleep_until(self.rest_until).await;
        tokio::select! {
            told = self.runs.next() => (false, told),
            told = self.globals.next() => (true, told),
        }
    }
}

/// In systemd's words.
fn state(order: &Order) -> UnitState {
    let is_launched = order.state == DesiredState::Launched;
    let (active, sub) = if is_launched {
        ("active", "running")
    } else {
        ("inactive", "dead")
    };
    UnitState {
        load: "loaded".to_owned(),
        active: active.to_owned(),
        sub: sub.to_owned(),
        hash: order.hash.clone(),
        launched: is_launched,
        error: String::new(),
    }
}
