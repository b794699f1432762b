//! The machine's units as the agent has made them, and one pass over all of them.

mod execute;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use tokio::time::Instant;

use self::execute::Undone;
use super::disk::{Disk, Memory, StateFile, UnitMemory};
use super::duties::{Files, Orders, requirements};
use super::systemd::{Error, Systemd, SystemdSignal as Signal, SystemdState};
use super::telemetry;
use super::unit_backoff::UnitBackoff;
use crate::registry::UnitState;
use hyperfleet_fleet_model::agent::{AgentTask, Current, TaskReason, tasks};
use hyperfleet_fleet_model::unit::{DesiredState, Options};

pub(super) struct Units {
    disk: Disk,
    state_file: StateFile,
    pub(in crate::agent) memory: Memory,
    /// The unit files in the folder; `None` for one that cannot be read.
    on_disk: BTreeMap<String, Option<OnDisk>>,
    backoff: UnitBackoff,
    /// The desired state and the restarts of each unit at the last pass.
    ordered: BTreeMap<String, (DesiredState, u64)>,
    /// Results of jobs of units that were not started, until their states show why.
    not_started: BTreeMap<String, String>,
    /// Units that run although the machine has its own files of their names, each with the run that was found.
    left_to_host: BTreeMap<String, Vec<u8>>,
    /// Why failed units have failed.
    results: BTreeMap<String, String>,
    /// Pinned units, with the reason.
    pinned: BTreeMap<String, String>,
    /// Loaded units that systemd may not have read.
    unread: BTreeSet<String>,
    /// Whether loaded units were found missing.
    has_lost_some: bool,
    /// Whether the state has changed since it was stored.
    is_unsaved: bool,
}

/// What is known of a file in the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OnDisk {
    pub(super) hash: String,
    is_singleton: bool,
}

impl OnDisk {
    pub(super) fn of(unit: &str, file: &Options) -> Self {
        Self {
            hash: file.hash().to_string(),
            is_singleton: requirements(unit, file).is_singleton,
        }
    }
}

impl Units {
    /// Reads the state of the previous process. Also returns the existing files by digest.
    pub(super) fn recall(disk: Disk, state_file: StateFile) -> io::Result<(Self, Files)> {
        let mut memory = state_file.memory();
        let (mut files, mut on_disk) = (Files::new(), BTreeMap::new());
        for (unit, file) in disk.files()? {
            disk.make_readable(&unit);
            let known = file.as_ref().map(|file| OnDisk::of(&unit, file));
            files.extend(file.map(|file| (file.hash().to_string(), file)));
            on_disk.insert(unit, known);
        }
        memory.units.retain(|unit, _| on_disk.contains_key(unit));
        for unit in on_disk.keys() {
            memory
                .units
                .entry(unit.clone())
                .or_insert(UnitMemory::file_only(true));
        }
        let mut units = Self {
            disk,
            state_file,
            memory,
            on_disk,
            backoff: UnitBackoff::default(),
            ordered: BTreeMap::new(),
            not_started: BTreeMap::new(),
            left_to_host: BTreeMap::new(),
            results: BTreeMap::new(),
            pinned: BTreeMap::new(),
            unread: BTreeSet::new(),
            has_lost_some: false,
            is_unsaved: false,
        };
        if units.memory.needs_reload {
            units.unread = units.memory.units.keys().cloned().collect();
        }
        Ok((units, files))
    }

    /// Uses a new connection to systemd. If systemd has restarted, it has none of the units.
    pub(super) async fn adopt_connection(&mut self, systemd: &impl Systemd) -> Result<(), Error> {
        let instance = systemd.instance().await?;
        if self.memory.instance != instance {
            // Without stored state it is unknown which units run.
            let may_run = self.memory.instance.is_empty();
            self.memory.instance = instance;
            for known in self.memory.units.values_mut() {
                *known = UnitMemory {
                    epoch: known.epoch,
                    ..UnitMemory::file_only(may_run)
                };
            }
            self.remember();
        }
        self.not_started.clear();
        // Signals were missed while the agent was disconnected. A start that is queued or done changes nothing.
        for known in self.memory.units.values_mut() {
            if known.start_is_awaited {
                known.unlaunch();
            }
        }
        Ok(())
    }

    /// Stores the state.
    pub(super) fn remember(&self) {
        self.state_file.remember(&self.memory);
    }

    /// Stores the names of units whose state may be in the registry.
    pub(super) fn may_be_reported(&mut self, units: BTreeSet<String>) {
        if self.memory.reported != units {
            self.memory.reported = units;
            self.remember();
        }
    }

    fn names(&self) -> Vec<String> {
        self.memory.units.keys().cloned().collect()
    }

    pub(super) fn count(&self) -> usize {
        self.memory.units.len()
    }

    /// Whether no unit is left that the agent can stop.
    pub(super) fn are_stopped(&self) -> bool {
        let mut units = self.memory.units.keys();
        units.all(|unit| self.left_to_host.contains_key(unit))
    }

    pub(super) fn is_launched(&self, unit: &str) -> bool {
        let known = self.memory.units.get(unit);
        known.is_some_and(|known| known.state == DesiredState::Launched)
    }

    /// When the next unit is due for a retry.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.backoff.retry_at()
    }

    /// Applies a signal. Returns whether it concerns one of the units.
    pub(super) fn apply_signal(&mut self, signal: &Signal) -> bool {
        let unit = signal.unit();
        let Some(known) = self.memory.units.get_mut(unit) else {
            return false;
        };
        match signal {
            Signal::Started { .. } => known.start_is_awaited = false,
            // Otherwise the start of a unit that has been stopped since was cancelled.
            Signal::NotStarted { result, .. } if known.state == DesiredState::Launched => {
                self.not_started.insert(unit.to_owned(), result.clone());
            }
            Signal::Changed { .. } | Signal::NotStarted { .. } => {}
        }
        // It may fail again for another reason.
        self.results.remove(unit);
        // The next pass stores it.
        self.is_unsaved |= !matches!(signal, Signal::Changed { .. });
        self.backoff.changed(unit);
        true
    }

    /// Decides about units whose start was not successful: those that have run and failed count as launched, and the
    /// others are started again later.
    pub(super) async fn check_not_started(&mut self, systemd: &impl Systemd) -> Result<(), Error> {
        if self.not_started.is_empty() {
            return Ok(());
        }
        let states = systemd.states(self.not_started.keys().cloned().collect());
        let states = states.await?;
        for (unit, result) in std::mem::take(&mut self.not_started) {
            let Some(state) = states.get(&unit) else {
                continue;
            };
            // A unit that fails while it starts also has this result. A service does nothing else before it runs, and systemd
            // may have forgotten it since (`CollectMode=`).
            let has_run = match result.as_str() {
                "failed" | "timeout" => unit.ends_with(".service") || state.active != "inactive",
                _ => !state.has_stopped(),
            };
            if has_run {
                self.change(&unit, |known| known.start_is_awaited = false);
            } else if self.is_launched(&unit) {
                let error = why_not_started(systemd, &unit, &result).await?;
                self.change(&unit, UnitMemory::unlaunch);
                let hash = self.on_disk.get(&unit).and_then(Option::as_ref);
                let hash = hash.map_or("", |on_disk| on_disk.hash.as_str());
                self.backoff.not_started(&unit, hash, &error);
                telemetry::failed(&AgentTask::Start(unit));
            }
            self.is_unsaved = true;
        }
        Ok(())
    }

    /// Units for which a user has ordered something since the last pass: it may succeed now.
    fn ordered_anew(&mut self, orders: &Orders) -> Vec<String> {
        let ordered = orders.desired.iter();
        let ordered: BTreeMap<_, _> = ordered
            .map(|(unit, desired)| (unit.clone(), (desired.state, desired.restarts)))
            .collect();
        let before = std::mem::replace(&mut self.ordered, ordered);
        let changed = before
            .into_iter()
            .filter(|(unit, order)| self.ordered.get(unit) != Some(order));
        changed.map(|(unit, _)| unit).collect()
    }

    fn current(&self) -> BTreeMap<String, Current> {
        let units = self.memory.units.iter().map(|(unit, known)| {
            let hash = self.on_disk.get(unit).and_then(Option::as_ref);
            let hash = hash.map(|on_disk| on_disk.hash.clone());
            let current = Current {
                hash,
                state: known.state,
                restarts: known.restarts,
            };
            (unit.clone(), current)
        });
        units.collect()
    }

    /// The tasks to do, in order.
    fn planned(&self, orders: &Orders) -> BTreeMap<AgentTask, TaskReason> {
        let mut planned = tasks(&orders.desired, &self.current());
        let may_run = self.memory.units.iter().filter(|(_, known)| known.may_run);
        for (unit, _) in may_run {
            let desired = orders.desired.get(unit).map(|desired| desired.state);
            if desired == Some(DesiredState::Loaded) {
                planned.insert(AgentTask::Stop(unit.clone()), TaskReason::NotOnlyLoaded);
            }
        }
        // An earlier pass may have been interrupted.
        if self.memory.needs_reload {
            planned.insert(AgentTask::Reload, TaskReason::FilesChanged);
        }
        planned
    }

    fn running_singletons(&self) -> impl Iterator<Item = &String> {
        let running = self.memory.units.iter().filter(|(unit, known)| {
            let on_disk = self.on_disk.get(*unit).and_then(Option::as_ref);
            (known.state == DesiredState::Launched || known.may_run)
                && on_disk.is_some_and(|on_disk| on_disk.is_singleton)
        });
        running.map(|(unit, _)| unit)
    }

    /// Whether a unit that must never run twice may run.
    pub(super) fn may_run_singletons(&self) -> bool {
        self.running_singletons().next().is_some()
    }

    /// Stops units that must never run twice, regardless of their desired state: another machine may be about
    /// to start them.
    pub(super) async fn stop_singletons(&mut self, systemd: &impl Systemd) -> Result<(), Error> {
        let running: Vec<String> = self.running_singletons().cloned().collect();
        let waiting = self.backoff.waiting();
        for unit in running.into_iter().filter(|unit| !waiting.contains(unit)) {
            match self.stop(systemd, &unit, None).await {
                Ok(()) => tracing::warn!(
                    unit,
                    "machine lease not kept: stopping a unit that must not run twice"
                ),
                Err(Undone::Unreachable(error)) => return Err(error),
                Err(Undone::Failed(error)) => self.backoff.fail(&unit, "", &error),
                Err(Undone::Stopping) => {}
            }
        }
        Ok(())
    }

    /// Carries out all tasks that can be done now.
    ///
    /// # Errors
    /// [`Error::Unreachable`]: the remaining tasks are done after the next connection.
    pub(super) async fn converge(
        &mut self,
        systemd: &impl Systemd,
        orders: &Orders,
        files: &Files,
    ) -> Result<(), Error> {
        let before = self.memory.clone();
        let done = self.run_tasks(systemd, orders, files).await;
        for (unit, known) in &mut self.memory.units {
            // Counting starts here, also for a unit that an agent of an older version started without a count.
            if known.state.is_active() && known.restarts.is_none() {
                known.restarts = orders.restarts(unit);
            }
        }
        for (unit, epoch) in &orders.epochs {
            if let Some(known) = self.memory.units.get_mut(unit) {
                known.epoch = *epoch;
            }
        }
        if self.memory != before || std::mem::take(&mut self.is_unsaved) {
            self.remember();
        }
        let left = self.planned(orders);
        let left = left.keys().filter_map(AgentTask::unit);
        let left = left.filter(|unit| !orders.pinned.contains_key(*unit));
        let left: BTreeSet<&str> = left.collect();
        let is_awaited = |unit: &str| {
            let known = self.memory.units.get(unit);
            known.is_some_and(|known| known.start_is_awaited)
        };
        self.backoff.retain(&left, is_awaited);
        self.pinned.clone_from(&orders.pinned);
        done
    }

    async fn run_tasks(
        &mut self,
        systemd: &impl Systemd,
        orders: &Orders,
        files: &Files,
    ) -> Result<(), Error> {
        self.backoff.retain_current(|unit| orders.hash(unit));
        for unit in self.ordered_anew(orders) {
            self.backoff.forget(&unit);
        }
        let mut has_loaded = false;
        let mut skipped = self.backoff.waiting();
        skipped.extend(orders.pinned.keys().cloned());
        for (task, reason) in self.planned(orders) {
            let unit = task.unit().unwrap_or_default().to_owned();
            if skipped.contains(&unit) {
                continue;
            }
            let done = match &task {
                AgentTask::Reload if !self.memory.needs_reload => continue,
                AgentTask::Reload => self.reload(systemd).await,
                AgentTask::Unload(_) => self.unload(systemd, &unit).await,
                AgentTask::Load(_) => self.load(systemd, &unit, orders, files).await,
                AgentTask::Stop(_) => self.stop(systemd, &unit, Some(orders)).await,
                AgentTask::Start(_) => self.start(systemd, &unit, orders).await,
                AgentTask::Restart(_) => self.restart(systemd, &unit, orders).await,
            };
            match done {
                Ok(()) => {
                    telemetry::task_completed(&task, reason);
                    has_loaded |= matches!(task, AgentTask::Load(_));
                    if task == AgentTask::Reload && has_loaded {
                        // What they need may be among the units that were loaded.
                        let due = self.backoff.retry_starts();
                        let is_due = |unit: &String| due.contains(unit);
                        skipped.retain(|unit| !is_due(unit) || orders.pinned.contains_key(unit));
                    }
                }
                Err(Undone::Unreachable(error)) => return Err(error),
                Err(Undone::Stopping) => {
                    self.backoff.stopping(&unit, orders.hash(&unit));
                    skipped.insert(unit);
                }
                Err(Undone::Failed(error)) => {
                    telemetry::failed(&task);
                    // If a reload fails, every unit that was loaded before it fails: they must not be started.
                    let failed = match task {
                        AgentTask::Reload => self.unread.clone(),
                        _ => [unit].into(),
                    };
                    for unit in &failed {
                        let hash = orders.hash(unit);
                        if matches!(task, AgentTask::Start(_)) {
                            self.backoff.not_started(unit, hash, &error);
                        } else {
                            self.backoff.fail(unit, hash, &error);
                        }
                    }
                    skipped.extend(failed);
                }
            }
        }
        Ok(())
    }

    /// Returns and clears whether loaded units were found missing.
    pub(super) fn take_lost_units(&mut self) -> bool {
        std::mem::take(&mut self.has_lost_some)
    }

    /// Asks why units have failed that were not known to have failed.
    async fn ask_results(
        &mut self,
        systemd: &impl Systemd,
        states: &BTreeMap<String, SystemdState>,
    ) -> Result<(), Error> {
        let has_failed = |unit: &str| {
            states
                .get(unit)
                .is_some_and(|state| state.active == "failed")
        };
        self.results.retain(|unit, _| has_failed(unit));
        for unit in states.keys().filter(|unit| has_failed(unit)) {
            if !self.results.contains_key(unit) {
                let result = systemd.result(unit).await?;
                self.results.insert(unit.clone(), result);
            }
        }
        Ok(())
    }

    /// The states to report: of each unit that is here, and of each that cannot be.
    pub(super) async fn report(
        &mut self,
        systemd: &impl Systemd,
    ) -> Result<BTreeMap<String, UnitState>, Error> {
        let states = systemd.states(self.names()).await?;
        self.ask_results(systemd, &states).await?;
        let mut reported = BTreeMap::new();
        for (unit, known) in &mut self.memory.units {
            let Some(state) = states.get(unit) else {
                continue;
            };
            let was_launched = known.state == DesiredState::Launched;
            // The unit was unlinked outside of fleet: it is loaded again.
            if state.load == "not-found" && known.state.is_active() {
                known.state = DesiredState::Inactive;
                known.may_run = !state.has_stopped();
                self.has_lost_some = true;
            }
            if known.start_is_awaited && !state.has_stopped() {
                known.start_is_awaited = false;
                self.is_unsaved = true;
            }
            let on_disk = self.on_disk.get(unit).and_then(Option::as_ref);
            let report = UnitState {
                load: state.load.clone(),
                active: state.active.clone(),
                sub: state.sub.clone(),
                hash: on_disk.map_or_else(String::new, |on_disk| on_disk.hash.clone()),
                // While a start is queued, the unit's state does not show it.
                launched: was_launched && !state.start_is_queued && !known.start_is_awaited,
                restarts: known.restarts,
                error: self.pinned.get(unit).cloned().unwrap_or_default(),
                result: self.results.get(unit).cloned().unwrap_or_default(),
            };
            reported.insert(unit.clone(), report);
        }
        if std::mem::take(&mut self.is_unsaved) {
            self.remember();
        }
        for (unit, hash, error) in self.backoff.errors() {
            let is_started = self.is_launched(unit);
            if is_started && self.backoff.is_not_started(unit) {
                // Started since, after an earlier refusal. It keeps its pause in case it is refused again.
                continue;
            }
            let failed = || UnitState {
                load: "error".to_owned(),
                active: "inactive".to_owned(),
                sub: "dead".to_owned(),
                hash: hash.to_owned(),
                launched: false,
                restarts: None,
                error: String::new(),
                result: String::new(),
            };
            let report = reported.entry(unit.to_owned()).or_insert_with(failed);
            error.clone_into(&mut report.error);
            if report.load == "not-found" {
                "error".clone_into(&mut report.load);
            }
        }
        Ok(reported)
    }
}

/// Why systemd has not started a unit, by the result of the job.
async fn why_not_started(
    systemd: &impl Systemd,
    unit: &str,
    result: &str,
) -> Result<String, Error> {
    let why = match result {
        "dependency" => {
            return Ok(
                "systemd gave up its start: a unit that it requires did not start".to_owned(),
            );
        }
        "assert" => "an Assert…= option is not met".to_owned(),
        _ => {
            let missing = match systemd.missing_triggered(unit).await {
                Err(error @ Error::Unreachable { .. }) => return Err(error),
                missing => missing.unwrap_or_default(),
            };
            if missing.is_empty() {
                format!("its job has the result {result:?}, and the unit's journal may say why")
            } else {
                format!("it triggers {}, which is not loaded", missing.join(", "))
            }
        }
    };
    Ok(format!("systemd refused its start: {why}"))
}
