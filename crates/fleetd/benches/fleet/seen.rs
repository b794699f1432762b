//! When changes were observed, by a watch of everything that any client of etcd could have.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyperfleet_fleet::etcd::EtcdKeys;
use hyperfleet_fleet::registry::{KeyChange, Record, Registry, WatchScope, WatchUpdate};
use tokio::sync::watch;
use tokio::time::timeout;

/// Longer than any expected wait.
const PATIENCE: Duration = Duration::from_mins(5);

/// Observed changes with their time. Clones share them.
#[derive(Clone)]
pub(crate) struct Seen {
    times: Arc<Mutex<Times>>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
pub(crate) struct Times {
    /// Where units are placed, and since when.
    pub(crate) placed: HashMap<String, (String, Instant)>,
    /// When agents reported the start of units.
    pub(crate) launched: HashMap<String, Instant>,
    /// When machines disappeared.
    pub(crate) gone: HashMap<String, Instant>,
    pub(crate) machines: usize,
    pub(crate) leader: Option<(String, Instant)>,
}

impl Times {
    fn take_in(&mut self, change: KeyChange, now: Instant) {
        match change {
            KeyChange::Placement(unit, Record::Present(place)) => {
                self.placed.insert(unit, (place.value.machine, now));
            }
            KeyChange::State(key, Record::Present(state)) if state.value.launched => {
                self.launched.entry(key.unit).or_insert(now);
            }
            KeyChange::Machine(_, Record::Present(_)) => self.machines += 1,
            KeyChange::Machine(id, _) => {
                self.machines -= 1;
                self.gone.insert(id, now);
            }
            KeyChange::Leader(leader) => {
                self.leader = leader.into_stored().map(|leader| (leader.value.id, now));
            }
            _ => {}
        }
    }
}

impl Seen {
    /// Watches from the first revision on.
    pub(crate) fn start(registry: &Registry<EtcdKeys>) -> Self {
        let watched = registry.watch(&WatchScope::Everything, 1);
        let mut watched = watched.expect("everything can be watched");
        let seen = Self {
            times: Arc::default(),
            changed: watch::Sender::new(()),
        };
        let keeper = seen.clone();
        tokio::spawn(async move {
            loop {
                let Ok(WatchUpdate::Changes { changes, .. }) = watched.next().await else {
                    continue;
                };
                let now = Instant::now();
                let changes = changes.into_iter();
                changes.for_each(|change| keeper.times().take_in(change, now));
                keeper.changed.send_replace(());
            }
        });
        seen
    }

    pub(crate) fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for an observation.
    pub(crate) async fn until<T>(&self, what: &str, found: impl Fn(&Times) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        let found = async {
            loop {
                changed.mark_unchanged();
                if let Some(found) = found(&self.times()) {
                    return found;
                }
                changed.changed().await.expect("its sender lives here");
            }
        };
        let found = timeout(PATIENCE, found).await;
        found.unwrap_or_else(|_| panic!("never seen: {what}"))
    }

    pub(crate) async fn until_placed(&self, unit: &str) -> Instant {
        let placed = |times: &Times| Some(times.placed.get(unit)?.1);
        self.until(unit, placed).await
    }

    pub(crate) async fn until_launched(&self, unit: &str) -> Instant {
        let launched = |times: &Times| times.launched.get(unit).copied();
        self.until(unit, launched).await
    }
}
