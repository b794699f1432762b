//! Carries out tasks: brings the units of a machine to their desired state, one failing unit beside many that do not.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use super::disk::{Disk, Known, Memory};
use super::duties::{Files, Orders};
use super::systemd::{Error, Origin, Systemd, SystemdState};
use crate::registry::UnitState;
use hyperfleet_fleet_model::agent::{Current, Reason, Task, tasks};
use hyperfleet_fleet_model::unit::DesiredState;

/// How long a unit rests after its first failure; twice as long after each further one.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_mins(1);
/// How long to wait before a unit that does not stop is looked at again, if no signal comes.
const STOP_PAUSE: Duration = Duration::from_secs(5);

/// The units of a machine, as the agent has made them.
pub(super) struct Units {
    disk: Disk,
    pub(super) memory: Memory,
    /// The digest of each file in the folder; `None` for one that cannot be read.
    hashes: BTreeMap<String, Option<String>>,
    troubles: BTreeMap<String, Trouble>,
    /// Units that are left as they are, with the reason.
    held: BTreeMap<String, String>,
    /// Whether files have changed since systemd has read them.
    needs_reload: bool,
}

/// Why a unit is not as desired, and when it is tried again.
struct Trouble {
    error: String,
    /// The digest of the file that was tried.
    hash: String,
    failures: u32,
    retry_at: Instant,
}

/// Why a task was not done.
enum Undone {
    /// The unit has not stopped yet.
    Stopping,
    Failed(String),
    /// Nothing more can be done before systemd is there again.
    Unreachable(Error),
}

impl From<Error> for Undone {
    fn from(error: Error) -> Self {
        match error {
            Error::Unreachable { .. } => Self::Unreachable(error),
            Error::NoSuchUnit | Error::Refused { .. } => Self::Failed(error.to_string()),
        }
    }
}

impl From<io::Error> for Undone {
    fn from(error: io::Error) -> Self {
        Self::Failed(format!("write a unit file: {error}"))
    }
}

impl Units {
    /// Recalls what the process before has made. Gives the files that are there, by digest.
    pub(super) fn recall(folder: &Path) -> io::Result<(Self, Files)> {
        let disk = Disk::open(folder)?;
        let mut memory = disk.recall();
        let (mut files, mut hashes) = (Files::new(), BTreeMap::new());
        for (unit, options) in disk.files()? {
            let hash = options.as_ref().map(|options| options.hash().to_string());
            if let Some((hash, options)) = hash.clone().zip(options) {
                files.insert(hash, options);
            }
            hashes.insert(unit, hash);
        }
        memory.units.retain(|unit, _| hashes.contains_key(unit));
        for unit in hashes.keys() {
            let known = Known {
                state: DesiredState::Inactive,
                epoch: 0,
            };
            memory.units.entry(unit.clone()).or_insert(known);
        }
        let units = Self {
            disk,
            memory,
            hashes,
            troubles: BTreeMap::new(),
            held: BTreeMap::new(),
            needs_reload: false,
        };
        Ok((units, files))
    }

    /// Takes up a connection to systemd. One that has started since has none of the units.
    pub(super) async fn take_up(&mut self, systemd: &impl Systemd) -> Result<(), Error> {
        let instance = systemd.instance().await?;
        if self.memory.instance != instance {
            self.memory.instance = instance;
            for known in self.memory.units.values_mut() {
                known.state = DesiredState::Inactive;
            }
            self.remember();
        }
        Ok(())
    }

    /// Stores what is to be known after a restart. Without it, units are started once more then: that is no reason to
    /// do nothing now.
    pub(super) fn remember(&self) {
        if let Err(error) = self.disk.remember(&self.memory) {
            tracing::warn!(%error, "the agent cannot store what it has done");
        }
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.memory.units.keys().cloned().collect()
    }

    pub(super) fn has(&self, unit: &str) -> bool {
        self.memory.units.contains_key(unit)
    }

    /// When a unit is to be tried again, if any is.
    pub(super) fn retry_at(&self) -> Option<Instant> {
        self.troubles.values().map(|trouble| trouble.retry_at).min()
    }

    fn current(&self) -> BTreeMap<String, Current> {
        let units = self.memory.units.iter().map(|(unit, known)| {
            let hash = self.hashes.get(unit).cloned().flatten();
            let state = known.state;
            (unit.clone(), Current { hash, state })
        });
        units.collect()
    }

    /// Does what is to be done, as far as it can be done now. Gives whether anything was.
    ///
    /// # Errors
    /// [`Error::Unreachable`]: what was not done is done after the next connection.
    pub(super) async fn bring_about(
        &mut self,
        systemd: &impl Systemd,
        orders: &Orders,
        files: &Files,
    ) -> Result<bool, Error> {
        // What is to be done with another file may succeed.
        self.troubles
            .retain(|unit, trouble| trouble.hash == orders.hash(unit));
        let planned = tasks(&orders.desired, &self.current());
        let now = Instant::now();
        let resting = self
            .troubles
            .iter()
            .filter(|(_, trouble)| now < trouble.retry_at);
        let mut skipped: BTreeSet<String> = resting.map(|(unit, _)| unit.clone()).collect();
        skipped.extend(orders.held.keys().cloned());
        let mut loaded = BTreeSet::<String>::new();
        let mut has_done = false;
        for (task, reason) in planned {
            let unit = task.unit().unwrap_or_default().to_owned();
            if skipped.contains(&unit) {
                continue;
            }
            let done = match &task {
                Task::Reload if !self.needs_reload => continue,
                Task::Reload => {
                    if let Err(error) = self.reload(systemd).await? {
                        // Without it what was loaded cannot be started.
                        for unit in &loaded {
                            self.fail(unit, orders, &error);
                        }
                        skipped.append(&mut loaded);
                    }
                    continue;
                }
                Task::Unload(_) => self.unload(systemd, &unit).await,
                Task::Load(_) => self.load(systemd, &unit, orders, files).await,
                Task::Stop(_) => self.stop(systemd, &unit).await,
                Task::Start(_) => self.start(systemd, &unit).await,
            };
            match done {
                Ok(()) => {
                    has_done = true;
                    log(&task, reason);
                    if matches!(task, Task::Load(_)) {
                        loaded.insert(unit);
                    }
                }
                Err(Undone::Stopping) => {
                    self.wait_until_stopped(&unit, orders);
                    skipped.insert(unit);
                }
                Err(Undone::Failed(error)) => {
                    self.fail(&unit, orders, &error);
                    skipped.insert(unit);
                }
                Err(Undone::Unreachable(error)) => {
                    self.remember();
                    return Err(error);
                }
            }
        }
        // After a reload that failed there may be no other task.
        if self.needs_reload {
            let _ = self.reload(systemd).await?;
        }
        for (unit, epoch) in &orders.epochs {
            if let Some(known) = self.memory.units.get_mut(unit) {
                has_done |= std::mem::replace(&mut known.epoch, *epoch) != *epoch;
            }
        }
        if has_done {
            self.remember();
        }
        // Whoever has nothing left to do is well.
        let left = tasks(&orders.desired, &self.current());
        let left: BTreeSet<_> = left.keys().filter_map(Task::unit).collect();
        self.troubles.retain(|unit, _| left.contains(unit.as_str()));
        self.held.clone_from(&orders.held);
        Ok(has_done)
    }

    fn trouble<'a>(&'a mut self, unit: &str, orders: &Orders) -> &'a mut Trouble {
        let trouble = Trouble {
            error: String::new(),
            hash: orders.hash(unit).to_owned(),
            failures: 0,
            retry_at: Instant::now(),
        };
        self.troubles.entry(unit.to_owned()).or_insert(trouble)
    }

    fn fail(&mut self, unit: &str, orders: &Orders, error: &str) {
        let trouble = self.trouble(unit, orders);
        let pause = PAUSE.saturating_mul(1 << trouble.failures.min(10));
        trouble.failures += 1;
        trouble.retry_at = Instant::now() + pause.min(PAUSE_MAX);
        if trouble.error != error {
            error.clone_into(&mut trouble.error);
            tracing::warn!(unit, error, "a unit cannot be brought to its desired state");
        }
    }

    /// A signal says when it has stopped; this is in case it is missed.
    fn wait_until_stopped(&mut self, unit: &str, orders: &Orders) {
        self.trouble(unit, orders).retry_at = Instant::now() + STOP_PAUSE;
    }

    /// A unit has changed: what waited for it to stop waits no more.
    pub(super) fn changed(&mut self, unit: &str) {
        if let Some(trouble) = self.troubles.get_mut(unit)
            && trouble.error.is_empty()
        {
            trouble.retry_at = Instant::now();
        }
    }

    async fn unload(&mut self, systemd: &impl Systemd, unit: &str) -> Result<(), Undone> {
        // A unit of this name that fleet did not write stays as it is.
        if self.stranger(systemd, unit).await?.is_none() {
            systemd.stop(unit).await?;
            if !state_of(systemd, unit).await?.has_stopped() {
                return Err(Undone::Stopping);
            }
            systemd.disable(unit).await?;
            systemd.reset_failed(unit).await?;
        }
        self.disk.remove(unit)?;
        self.hashes.remove(unit);
        self.memory.units.remove(unit);
        self.needs_reload = true;
        Ok(())
    }

    async fn load(
        &mut self,
        systemd: &impl Systemd,
        unit: &str,
        orders: &Orders,
        files: &Files,
    ) -> Result<(), Undone> {
        self.check_origin(systemd, unit).await?;
        let desired = orders.desired.get(unit);
        let file = desired.and_then(|desired| files.get(&desired.hash));
        // Units without a file are held.
        let file = file.ok_or_else(|| Undone::Failed("its file is not known".to_owned()))?;
        self.disk.write(unit, &file.text())?;
        let known = Known {
            state: DesiredState::Inactive,
            epoch: orders.epochs.get(unit).copied().unwrap_or_default(),
        };
        self.memory.units.insert(unit.to_owned(), known);
        self.hashes
            .insert(unit.to_owned(), Some(file.hash().to_string()));
        self.needs_reload = true;
        let path = self.disk.path(unit);
        systemd.link(&path).await?;
        if file.list().iter().any(|option| option.section == "Install")
            && let Err(error) = systemd.enable(&path).await
        {
            systemd.disable(unit).await?;
            self.disk.remove(unit)?;
            self.hashes.remove(unit);
            self.memory.units.remove(unit);
            return Err(match Undone::from(error) {
                Undone::Failed(error) => {
                    Undone::Failed(format!("Failed to enable systemd unit {unit}: {error}"))
                }
                other => other,
            });
        }
        self.set_state(unit, DesiredState::Loaded);
        Ok(())
    }

    async fn start(&mut self, systemd: &impl Systemd, unit: &str) -> Result<(), Undone> {
        self.check_origin(systemd, unit).await?;
        systemd.start(unit).await?;
        self.set_state(unit, DesiredState::Launched);
        Ok(())
    }

    async fn stop(&mut self, systemd: &impl Systemd, unit: &str) -> Result<(), Undone> {
        self.check_origin(systemd, unit).await?;
        systemd.stop(unit).await?;
        self.set_state(unit, DesiredState::Loaded);
        Ok(())
    }

    fn set_state(&mut self, unit: &str, state: DesiredState) {
        if let Some(known) = self.memory.units.get_mut(unit) {
            known.state = state;
        }
    }

    async fn reload(&mut self, systemd: &impl Systemd) -> Result<Result<(), String>, Error> {
        match systemd.reload().await {
            Ok(()) => {
                self.needs_reload = false;
                Ok(Ok(()))
            }
            Err(error @ Error::Unreachable { .. }) => Err(error),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    /// Refuses a unit that is there and that fleet did not write.
    async fn check_origin(&self, systemd: &impl Systemd, unit: &str) -> Result<(), Undone> {
        match self.stranger(systemd, unit).await? {
            None => Ok(()),
            Some(from) => Err(Undone::Failed(format!(
                "this machine has a unit {unit} that fleet did not write, from {from}: it is left alone"
            ))),
        }
    }

    /// Where a unit is from that fleet did not write.
    async fn stranger(&self, systemd: &impl Systemd, unit: &str) -> Result<Option<String>, Error> {
        let ours = self.disk.path(unit);
        Ok(match systemd.origin(unit).await? {
            Origin::None => None,
            Origin::File(path) if path == ours => None,
            // A link to it.
            Origin::File(path) if std::fs::read_link(&path).is_ok_and(|to| to == ours) => None,
            Origin::File(path) => Some(path.display().to_string()),
            Origin::Other => Some("systemd itself".to_owned()),
        })
    }

    /// What is to be reported: the state of each unit that is here, and of each that cannot be.
    pub(super) async fn report(
        &mut self,
        systemd: &impl Systemd,
    ) -> Result<BTreeMap<String, UnitState>, Error> {
        let states = systemd.states(self.names()).await?;
        let mut reported = BTreeMap::new();
        for (unit, known) in &mut self.memory.units {
            let Some(state) = states.get(unit) else {
                continue;
            };
            // Somebody else has unlinked it: it is loaded again when all is looked at next.
            if state.load == "not-found" {
                known.state = DesiredState::Inactive;
            }
            let report = UnitState {
                load: state.load.clone(),
                active: state.active.clone(),
                sub: state.sub.clone(),
                hash: self.hashes.get(unit).cloned().flatten().unwrap_or_default(),
                launched: known.state == DesiredState::Launched,
                error: self.held.get(unit).cloned().unwrap_or_default(),
            };
            reported.insert(unit.clone(), report);
        }
        for (unit, trouble) in self
            .troubles
            .iter()
            .filter(|(_, trouble)| !trouble.error.is_empty())
        {
            let failed = || UnitState {
                load: "error".to_owned(),
                active: "inactive".to_owned(),
                sub: "dead".to_owned(),
                hash: trouble.hash.clone(),
                launched: false,
                error: String::new(),
            };
            let report = reported.entry(unit.clone()).or_insert_with(failed);
            report.error.clone_from(&trouble.error);
        }
        Ok(reported)
    }
}

async fn state_of(systemd: &impl Systemd, unit: &str) -> Result<SystemdState, Error> {
    let mut states = systemd.states(vec![unit.to_owned()]).await?;
    // One that systemd says nothing of does not run.
    Ok(states.remove(unit).unwrap_or_else(|| SystemdState {
        load: "not-found".to_owned(),
        active: "inactive".to_owned(),
        sub: "dead".to_owned(),
    }))
}

fn log(task: &Task, reason: Reason) {
    let reason = reason.to_string();
    match task {
        Task::Unload(unit) => tracing::info!(unit, reason, "unit unloaded"),
        Task::Load(unit) => tracing::info!(unit, reason, "unit loaded"),
        Task::Stop(unit) => tracing::info!(unit, reason, "unit is told to stop"),
        Task::Start(unit) => tracing::info!(unit, reason, "unit is told to start"),
        Task::Reload => {}
    }
}
