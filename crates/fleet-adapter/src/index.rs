//! Which units belong to which resources, and since when their services are active, kept current by following
//! fleet.
//!
//! It is stored nowhere. After a start it is read from the units themselves, so the adapter finds its earlier
//! units. The current state of units is read from fleet when a resource is reconciled.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyperfleet_fleet::keys::KeyStore;
use hyperfleet_fleet::{
    Error, Fleet, FollowUpdate, Item, StateFilter, StateKey, StateView, UnitView,
};
use hyperfleet_fleet_model::unit::DesiredState;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep};

use crate::domain::Ownership;

/// Pause before following is retried.
const PAUSE: Duration = Duration::from_millis(500);

/// The index. It wakes the adapter when a unit of a resource, or its state, changes.
#[derive(Debug)]
pub struct Index {
    adapter: String,
    indexed: Mutex<IndexedUnits>,
    wakes: mpsc::UnboundedSender<String>,
    is_read: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct IndexedUnits {
    units: HashMap<String, Unit>,
    resources: HashMap<String, Units>,
    /// By unit and machine: the active file, and since when; `None` for services that were active before this
    /// adapter started.
    active: HashMap<StateKey, (String, Option<Instant>)>,
    /// Machines that report a unit, by unit.
    reporting: HashMap<String, BTreeSet<String>>,
    /// Owners of destroyed units that are still reported.
    destroyed: HashMap<String, Ownership>,
    /// Units that are not stopping.
    active_count: usize,
}

#[derive(Debug)]
struct Unit {
    owner: Ownership,
    is_active: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Units {
    /// Path of the resource in the API.
    pub path: String,
    pub names: BTreeSet<String>,
}

/// Whether something existed when the index began to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstSeen {
    AtStart,
    Later,
}

impl Index {
    /// An index of an adapter's units, and the channel of resources to reconcile.
    pub fn new(adapter: impl Into<String>) -> (Self, mpsc::UnboundedReceiver<String>) {
        let (wakes, woken) = mpsc::unbounded_channel();
        let index = Self {
            adapter: adapter.into(),
            indexed: Mutex::default(),
            wakes,
            is_read: watch::channel(false).0,
        };
        (index, woken)
    }

    fn lock(&self) -> MutexGuard<'_, IndexedUnits> {
        self.indexed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows fleet for ever.
    pub async fn follow<S: KeyStore>(&self, fleet: &Fleet<S>) {
        loop {
            if let Err(error) = self.follow_once(fleet).await
                && fleet.is_connected()
            {
                tracing::debug!(error = %error, "following fleet from its current state");
            }
            sleep(PAUSE).await;
        }
    }

    async fn follow_once<S: KeyStore>(&self, fleet: &Fleet<S>) -> Result<(), Error> {
        let mut units = fleet.follow_units(None).await?;
        let mut states = fleet.follow_states(StateFilter::default(), None).await?;
        let seen = if *self.is_read.borrow() {
            FirstSeen::Later
        } else {
            FirstSeen::AtStart
        };
        let (mut listed, mut listed_states) = (HashSet::new(), HashSet::new());
        loop {
            // States first: an active service has been active since before the first unit is read.
            tokio::select! {
                biased;
                told = states.next() => match told? {
                    FollowUpdate::Listed { revision, items } => {
                        for state in items {
                            listed_states.insert(key(&state));
                            self.see_state(&state, seen);
                        }
                        if revision.is_some() {
                            self.forget_states_but(&listed_states);
                        }
                    }
                    FollowUpdate::Changed { items, .. } => items.into_iter().for_each(|item| self.apply_state(item)),
                },
                told = units.next() => match told? {
                    FollowUpdate::Listed { revision, items } => {
                        for unit in items {
                            listed.insert(unit.name.clone());
                            self.see_unit(&unit);
                        }
                        if revision.is_some() {
                            self.forget_all_but(&listed);
                            self.is_read.send_replace(true);
                        }
                    }
                    FollowUpdate::Changed { items, .. } => items.into_iter().for_each(|item| self.apply_unit(item)),
                },
            }
        }
    }

    /// Waits until all units were read once.
    pub async fn wait_until_read(&self) {
        // The sender lives as long as the index.
        let _ = self.is_read.subscribe().wait_for(|is_read| *is_read).await;
    }

    fn apply_unit(&self, item: Item<UnitView>) {
        match item {
            Item::Is(unit) => self.see_unit(&unit),
            Item::Gone(name) => self.forget(&name),
        }
    }

    fn see_unit(&self, unit: &UnitView) {
        let owner = Ownership::of(&unit.options).filter(|owner| owner.adapter == self.adapter);
        let Some(owner) = owner else {
            return self.forget(&unit.name);
        };
        let is_active = unit.desired != DesiredState::Inactive;
        let mut indexed = self.lock();
        indexed.remove(&unit.name);
        indexed.active_count += usize::from(is_active);
        let resource = indexed.resources.entry(owner.resource.clone()).or_default();
        resource.names.insert(unit.name.clone());
        resource.path.clone_from(&owner.path);
        let path = owner.path.clone();
        indexed.destroyed.remove(&unit.name);
        indexed
            .units
            .insert(unit.name.clone(), Unit { owner, is_active });
        drop(indexed);
        self.wake(path);
    }

    fn forget(&self, name: &str) {
        let mut indexed = self.lock();
        let owner = indexed.remove(name);
        if let Some(owner) = &owner
            && indexed.reporting.contains_key(name)
        {
            indexed.destroyed.insert(name.to_owned(), owner.clone());
        }
        drop(indexed);
        if let Some(owner) = owner {
            self.wake(owner.path);
        }
    }

    fn forget_all_but(&self, listed: &HashSet<String>) {
        let indexed = self.lock();
        let gone = indexed.units.keys().filter(|name| !listed.contains(*name));
        let gone: Vec<String> = gone.cloned().collect();
        drop(indexed);
        for name in gone {
            self.forget(&name);
        }
    }

    fn apply_state(&self, item: Item<StateView>) {
        match item {
            Item::Is(state) => self.see_state(&state, FirstSeen::Later),
            Item::Gone(key) => self.forget_state(&key),
        }
    }

    fn forget_state(&self, key: &StateKey) {
        let mut indexed = self.lock();
        indexed.active.remove(key);
        if let Some(machines) = indexed.reporting.get_mut(&key.unit) {
            machines.remove(&key.machine);
            if machines.is_empty() {
                indexed.reporting.remove(&key.unit);
            }
        }
        let is_gone = !indexed.reporting.contains_key(&key.unit);
        let owner = indexed.destroyed.get(&key.unit).cloned();
        if is_gone {
            indexed.destroyed.remove(&key.unit);
        }
        drop(indexed);
        match owner {
            Some(owner) => self.wake(owner.path),
            None => self.wake_owner(&key.unit),
        }
    }

    fn forget_states_but(&self, listed: &HashSet<StateKey>) {
        let indexed = self.lock();
        let reported = indexed.reporting.iter().flat_map(|(unit, machines)| {
            machines.iter().map(|machine| StateKey {
                unit: unit.clone(),
                machine: machine.clone(),
            })
        });
        let gone: Vec<StateKey> = reported.filter(|key| !listed.contains(key)).collect();
        drop(indexed);
        for key in gone {
            self.forget_state(&key);
        }
    }

    fn see_state(&self, state: &StateView, seen: FirstSeen) {
        let key = key(state);
        let mut indexed = self.lock();
        let machines = indexed.reporting.entry(state.unit.clone()).or_default();
        machines.insert(state.machine.clone());
        if state.active == "active" {
            let is_same = indexed
                .active
                .get(&key)
                .is_some_and(|(hash, _)| *hash == state.hash);
            if !is_same {
                let since = (seen == FirstSeen::Later).then(Instant::now);
                indexed.active.insert(key, (state.hash.clone(), since));
            }
        } else {
            indexed.active.remove(&key);
        }
        drop(indexed);
        self.wake_owner(&state.unit);
    }

    fn wake_owner(&self, unit: &str) {
        let indexed = self.lock();
        let path = indexed.units.get(unit).map(|unit| unit.owner.path.clone());
        drop(indexed);
        if let Some(path) = path {
            self.wake(path);
        }
    }

    fn wake(&self, path: String) {
        // Without a receiver nothing reconciles.
        let _ = self.wakes.send(path);
    }

    /// Wakes every resource that has units.
    pub fn wake_all(&self) {
        for (_, units) in self.resources() {
            self.wake(units.path);
        }
    }

    /// Names of a resource's units.
    pub fn names(&self, resource: &str) -> BTreeSet<String> {
        let indexed = self.lock();
        let units = indexed.resources.get(resource);
        let mut names = units.map(|units| units.names.clone()).unwrap_or_default();
        let destroyed = indexed.destroyed.iter();
        let destroyed = destroyed.filter(|(_, owner)| owner.resource == resource);
        names.extend(destroyed.map(|(name, _)| name.clone()));
        names
    }

    /// The owner of a destroyed unit that machines still have.
    pub fn destroyed(&self, name: &str) -> Option<Ownership> {
        self.lock().destroyed.get(name).cloned()
    }

    /// Ids of resources with units.
    pub fn ids(&self) -> HashSet<String> {
        self.lock().resources.keys().cloned().collect()
    }

    /// All resources with units, by id.
    pub fn resources(&self) -> Vec<(String, Units)> {
        let indexed = self.lock();
        let resources = indexed.resources.iter();
        resources
            .map(|(id, units)| (id.clone(), units.clone()))
            .collect()
    }

    /// How many of the adapter's units are not stopping.
    pub fn active_count(&self) -> usize {
        self.lock().active_count
    }

    /// How long a service has been active on a machine with its file; the longest duration if it was active
    /// before the adapter started.
    pub fn active_for(&self, state: &StateView) -> Duration {
        match self.lock().active.get(&key(state)) {
            Some((hash, None)) if *hash == state.hash => Duration::MAX,
            Some((hash, Some(since))) if *hash == state.hash => since.elapsed(),
            _ => Duration::ZERO,
        }
    }
}

impl IndexedUnits {
    /// Removes a unit. Returns its owner.
    fn remove(&mut self, name: &str) -> Option<Ownership> {
        let Unit { owner, is_active } = self.units.remove(name)?;
        self.active_count -= usize::from(is_active);
        let units = self.resources.get_mut(&owner.resource)?;
        units.names.remove(name);
        if units.names.is_empty() {
            self.resources.remove(&owner.resource);
        }
        Some(owner)
    }
}

fn key(state: &StateView) -> StateKey {
    StateKey {
        unit: state.unit.clone(),
        machine: state.machine.clone(),
    }
}

#[cfg(test)]
#[path = "tests/index.rs"]
mod tests;
