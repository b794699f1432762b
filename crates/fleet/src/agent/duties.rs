//! The agent's view of the registry: the units that this machine must run.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::disk::UnitMemory;
use crate::keys::{KeyStore, Revision};
use crate::registry::{
    Error, Global, Key, Registry, Run, RunKey, Snapshot, Watch, WatchScope, WatchUpdate,
};
use hyperfleet_fleet_model::agent::{Desired, may_follow};
use hyperfleet_fleet_model::schedule::{Job, Machine, MachineId, globals_on};
use hyperfleet_fleet_model::unit::{FleetSection, NameParts, Options, Requirements, UnitName};
use hyperfleet_server_kit::causes::chain;

/// Pause before a failed watch is retried.
const PAUSE: Duration = Duration::from_millis(500);

/// Unit files by digest.
pub(super) type Files = BTreeMap<String, Options>;

/// The keys that an agent follows: `run/` and `label/` of its machine, `global/` and `order/`.
#[derive(Debug, Default)]
pub(super) struct Duties {
    /// One snapshot per scope, with only that scope's keys.
    snapshots: BTreeMap<usize, Snapshot>,
    /// Scopes that must be listed again.
    expected: BTreeSet<usize>,
    /// The machine's registration. What was read before it does not count.
    registered_at: Revision,
}

/// News of one watched scope.
#[derive(Debug)]
pub(super) struct ScopeUpdate {
    scope: usize,
    update: WatchUpdate,
    /// The position of a list; `None` for changes.
    pub(super) listed: Option<Listed>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Listed {
    /// Identity of the store.
    pub(super) store: u64,
    /// Whether the store is behind what the agent had read or written before it asked for the list.
    pub(super) went_back: bool,
}

/// How far the agent has read the registry. Shared with its followers.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Newest revision of any scope that was applied.
    newest: AtomicI64,
    /// Revision of the machine's last written report; 0 for none.
    last_report: AtomicI64,
}

impl Progress {
    pub(super) fn store(&self, newest: Revision, last_report: Revision) {
        self.newest.store(newest, Ordering::Release);
        self.last_report.store(last_report, Ordering::Release);
    }
}

impl ScopeUpdate {
    pub(super) fn revision(&self) -> Revision {
        match &self.update {
            WatchUpdate::Changes { revision, .. } | WatchUpdate::Relisted { revision, .. } => {
                *revision
            }
        }
    }
}

/// Follows the keys of a machine's agent. The first news of each scope is a list.
pub(super) fn follow<S: KeyStore>(
    registry: &Registry<S>,
    machine: &str,
    progress: &Arc<Progress>,
) -> (JoinSet<()>, mpsc::UnboundedReceiver<ScopeUpdate>) {
    let (tell, update) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    for (index, scope) in scopes(machine).into_iter().enumerate() {
        let follower = Follower {
            registry: registry.clone(),
            index,
            scope,
            machine: machine.to_owned(),
            progress: Arc::clone(progress),
            watch: None,
        };
        tasks.spawn(follower.follow(tell.clone()));
    }
    (tasks, update)
}

fn scopes(machine: &str) -> [WatchScope; 4] {
    let machine = machine.to_owned();
    let runs = WatchScope::Runs {
        machine: machine.clone(),
    };
    [
        runs,
        WatchScope::Globals,
        WatchScope::Labels { machine },
        WatchScope::Order,
    ]
}

/// Follows one scope.
struct Follower<S: KeyStore> {
    registry: Registry<S>,
    index: usize,
    scope: WatchScope,
    machine: String,
    progress: Arc<Progress>,
    watch: Option<Watch<S>>,
}

impl<S: KeyStore> Follower<S> {
    async fn follow(mut self, tell: mpsc::UnboundedSender<ScopeUpdate>) {
        let mut is_logged = false;
        loop {
            match self.next().await {
                Ok(update) => {
                    is_logged = false;
                    if tell.send(update).is_err() {
                        return;
                    }
                }
                Err(error) => {
                    if !std::mem::replace(&mut is_logged, true) {
                        let (error, scope) = (chain(&error), &self.scope);
                        tracing::warn!(error, ?scope, "etcd connection lost: units keep running");
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// The next news. A list comes first, after a gap in the history, and after etcd was unreachable, because
    /// it may have been restored. Otherwise news are changes.
    async fn next(&mut self) -> Result<ScopeUpdate, Error> {
        let scope = self.index;
        // A watch lists a scope again without the store's identity, so restored stores are detected only by our
        // own list.
        if let Some(mut watch) = self.watch.take()
            && let update @ WatchUpdate::Changes { .. } = watch.next().await?
        {
            self.watch = Some(watch);
            let listed = None;
            return Ok(ScopeUpdate {
                scope,
                update,
                listed,
            });
        }
        let newest = self.progress.newest.load(Ordering::Acquire);
        let reported = self.progress.last_report.load(Ordering::Acquire);
        let store = self.registry.identity().await?;
        let (found, position) = self.registry.list(&self.scope).await?;
        let revision = position.revision;
        let last_report = self.registry.last_report(&self.machine).await?;
        let last_report = last_report.unwrap_or_default();
        self.watch = Some(self.registry.watch(&self.scope, position)?);
        let update = WatchUpdate::Relisted { revision, found };
        let listed = Some(Listed {
            store,
            went_back: revision < newest || last_report < reported,
        });
        Ok(ScopeUpdate {
            scope,
            update,
            listed,
        })
    }
}

/// The desired states of a machine's units.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub(super) desired: BTreeMap<String, Desired>,
    /// The epoch of each unit that is placed here.
    pub(super) epochs: BTreeMap<String, i64>,
    /// Pinned units, with the reason.
    pub(super) pinned: BTreeMap<String, String>,
}

impl Duties {
    pub(super) fn apply(&mut self, update: ScopeUpdate) {
        let (index, read_at) = (update.scope, update.revision());
        match update.update {
            WatchUpdate::Relisted { revision, found } => {
                self.snapshots.insert(index, Snapshot::of(revision, found));
            }
            WatchUpdate::Changes { revision, changes } => {
                let known = self.snapshots.entry(index).or_default();
                known.extend(changes);
                known.revision = revision;
            }
        }
        // Changes come after a list.
        if may_follow(read_at, self.registered_at) {
            self.expected.remove(&index);
        }
    }

    /// Whether every scope has been listed once. Until then nothing is known, and nothing may be stopped.
    pub(super) fn are_listed(&self) -> bool {
        self.snapshots.len() == scopes("").len()
    }

    /// Marks every scope as outdated until it has been listed again, not before the machine's registration. Call it
    /// together with [`follow`].
    pub(super) fn expect_all(&mut self, registered_at: Revision) {
        self.expected = (0..scopes("").len()).collect();
        self.registered_at = registered_at;
    }

    /// Whether some scope has not been listed since [`expect_all`](Self::expect_all).
    pub(super) fn are_expected(&self) -> bool {
        !self.expected.is_empty()
    }

    /// Revision of the operator's last order to resume after the registry went back in time.
    pub(super) fn resumed_at(&self) -> Option<Revision> {
        let resumes = self
            .snapshots
            .values()
            .filter_map(|known| known.resume.as_ref());
        resumes.map(|resume| resume.revision).max()
    }

    /// Forgets the order to resume: it was about an earlier state of the registry.
    pub(super) fn forget_resume(&mut self) {
        for known in self.snapshots.values_mut() {
            known.resume = None;
        }
    }

    /// When `run/` of a unit placed here was last written.
    pub(super) fn ordered_at(&self, machine: &str, unit: &str) -> Option<Revision> {
        let (machine, unit) = (machine.to_owned(), unit.to_owned());
        let key = RunKey { machine, unit };
        let mut runs = self
            .snapshots
            .values()
            .filter_map(|known| known.runs.get(&key));
        runs.next().map(|run| run.revision)
    }

    /// Units placed on this machine.
    pub(super) fn placed_here(&self) -> Vec<String> {
        self.runs().map(|(unit, _)| unit.to_owned()).collect()
    }

    fn runs(&self) -> impl Iterator<Item = (&str, &Run)> {
        let runs = self.snapshots.values().flat_map(|known| &known.runs);
        runs.map(|(key, run)| (key.unit.as_str(), &run.value))
    }

    fn globals(&self) -> impl Iterator<Item = (&str, &Global)> {
        let globals = self.snapshots.values().flat_map(|known| &known.globals);
        globals.map(|(unit, global)| (unit.as_str(), &global.value))
    }

    /// A machine's configured metadata, overridden by its labels.
    pub(super) fn metadata(
        &self,
        machine: &str,
        configured: &BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        let scopes = self.snapshots.values();
        scopes.fold(configured.clone(), |metadata, known| {
            known.over_metadata(machine, metadata)
        })
    }

    /// Units that may have to run here, each with the digest of its file.
    pub(super) fn hashes(&self) -> impl Iterator<Item = (&str, &str)> {
        let runs = self.runs().filter(|(_, run)| run.state.is_active());
        let runs = runs.map(|(unit, run)| (unit, run.hash.as_str()));
        let globals = self.globals();
        let globals = globals.filter(|(_, global)| global.state.is_active());
        runs.chain(globals.map(|(unit, global)| (unit, global.hash.as_str())))
    }

    /// The desired state of each unit, given the known files and what was done so far.
    ///
    /// A unit is pinned, so neither stopped nor replaced, if its record is unreadable, if its file is not known
    /// yet, or if the record is from an engine of an earlier term than the one that placed it.
    pub(super) fn orders(
        &self,
        machine: &Machine,
        files: &Files,
        known: &BTreeMap<String, UnitMemory>,
    ) -> Orders {
        let mut orders = Orders::default();
        for key in self
            .snapshots
            .values()
            .flat_map(|known| known.unreadable.keys())
        {
            if let Some(unit) = key.unit() {
                let reason = "its desired state is unreadable for this version of fleet".to_owned();
                orders.pinned.insert(unit.to_owned(), reason);
            }
        }
        let mut foreign = self
            .snapshots
            .values()
            .flat_map(|known| known.unreadable.keys());
        if foreign.any(|key| matches!(key, Key::Label(_))) {
            for (unit, _) in self.globals() {
                let reason =
                    "metadata of this machine is unreadable for this version of fleet".to_owned();
                orders.pinned.insert(unit.to_owned(), reason);
            }
        }
        for (unit, run) in self.runs() {
            let seen = known.get(unit).map_or(0, |known| known.epoch);
            if run.epoch < seen {
                let reason = format!(
                    "epoch {} is older than {seen}, which placed it here",
                    run.epoch
                );
                orders.pinned.insert(unit.to_owned(), reason);
            } else {
                orders.epochs.insert(unit.to_owned(), run.epoch);
                let desired = Desired {
                    hash: run.hash.clone(),
                    state: run.state,
                    restarts: run.restarts,
                };
                orders.add(unit, desired);
            }
        }
        let here = self.globals_here(machine, files);
        for (unit, global) in self.globals().filter(|(unit, _)| here.contains(*unit)) {
            let desired = Desired {
                hash: global.hash.clone(),
                state: global.state,
                restarts: global.restarts,
            };
            orders.add(unit, desired);
        }
        orders.desired.retain(|unit, desired| {
            let is_ready = !desired.state.is_active() || files.contains_key(&desired.hash);
            if !is_ready {
                let reason = "its file has not been read yet".to_owned();
                orders.pinned.entry(unit.clone()).or_insert(reason);
            }
            is_ready
        });
        orders
    }

    /// The global units that belong here, by the same rule as in the engine.
    fn globals_here(&self, machine: &Machine, files: &Files) -> BTreeSet<String> {
        let placed: Vec<Job> = self
            .runs()
            .map(|(unit, run)| job(unit, run, machine, files))
            .collect();
        let globals: Vec<Job> = self
            .globals()
            .map(|(unit, global)| {
                let (name, rule) = (UnitName::stored(unit), &global.rule);
                Job::new(name, rule.requirements(), global.state, None)
            })
            .collect();
        let here = globals_on(machine, &placed, &globals);
        here.into_iter()
            .map(|unit| unit.as_str().to_owned())
            .collect()
    }
}

fn job(unit: &str, run: &Run, machine: &Machine, files: &Files) -> Job {
    let file = files.get(&run.hash);
    let requirements = file.map_or_else(Requirements::default, |file| requirements(unit, file));
    let placed_on = MachineId::new(machine.id.as_str());
    Job::new(
        UnitName::stored(unit),
        requirements,
        run.state,
        Some(placed_on),
    )
}

/// A unit's requirements, from its file.
pub(super) fn requirements(unit: &str, file: &Options) -> Requirements {
    FleetSection::of(file.list()).requirements(NameParts::of(unit))
}

impl Orders {
    fn add(&mut self, unit: &str, desired: Desired) {
        // Placed units take precedence over global units.
        self.desired.entry(unit.to_owned()).or_insert(desired);
    }

    /// These orders with every unit pinned, for a reason.
    pub(super) fn halted(self, reason: &str, known: &BTreeMap<String, UnitMemory>) -> Self {
        let units = self.desired.into_keys().chain(known.keys().cloned());
        Self {
            pinned: units.map(|unit| (unit, reason.to_owned())).collect(),
            ..Self::default()
        }
    }

    /// The requested restart count of a unit.
    pub(super) fn restarts(&self, unit: &str) -> Option<u64> {
        self.desired.get(unit).map(|desired| desired.restarts)
    }

    /// The digest of the file that the unit must have; empty if the unit does not belong here.
    pub(super) fn hash(&self, unit: &str) -> &str {
        let desired = self.desired.get(unit);
        let desired = desired.filter(|desired| desired.state.is_active());
        desired.map_or("", |desired| desired.hash.as_str())
    }
}
