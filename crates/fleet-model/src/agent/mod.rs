//! The tasks of an agent: desired state against current state of the machine's units.
//!
//! ```text
//! desired (run/ and global/) ─┐
//!                             ├─▶ tasks ─▶ Unload* Load* Reload? Stop* Start* Restart*
//! current (files, systemd)  ──┘
//! ```
//!
//! The cases and their order are those of the older fleet's agent, except restarts, which it did not have. In the
//! older agent the first failed task ended the pass; here a failure affects only the tasks of its unit.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::unit::DesiredState;

/// The desired state of a unit on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Desired {
    /// Digest of the file to run.
    pub hash: String,
    pub state: DesiredState,
    /// How many restarts of the launched unit, and stops of the loaded one, users have requested.
    pub restarts: u64,
}

/// The current state of a unit on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Current {
    /// Digest of the file in the units directory; `None` if it cannot be read.
    pub hash: Option<String>,
    /// What the agent has done. `Inactive`: there is a file and nothing else is known, as after the agent lost
    /// its state. Later changes by systemd or an operator do not count.
    pub state: DesiredState,
    /// The requested restarts and stops when the agent last started, restarted or stopped the unit; `None` if
    /// unknown.
    pub restarts: Option<u64>,
}

/// One task. The order of variants is the order in which tasks are done, units by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentTask {
    /// Stop the unit, wait until it has stopped, and remove its file.
    Unload(String),
    /// Write its file and link it in systemd.
    Load(String),
    /// Make systemd read its unit files again: once, after all tasks of the two kinds above.
    Reload,
    Stop(String),
    Start(String),
    Restart(String),
}

/// Why a task is done, in the words of the older fleet, because people search logs for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskReason {
    NotLoaded,
    NotScheduledHere,
    HashDiffers,
    NotLaunched,
    NotOnlyLoaded,
    RestartAsked,
    StopAsked,
    FilesChanged,
}

impl AgentTask {
    /// The task's unit; `None` for [`AgentTask::Reload`].
    pub fn unit(&self) -> Option<&str> {
        match self {
            Self::Unload(unit)
            | Self::Load(unit)
            | Self::Stop(unit)
            | Self::Start(unit)
            | Self::Restart(unit) => Some(unit),
            Self::Reload => None,
        }
    }
}

impl fmt::Display for TaskReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotLoaded => "unit scheduled here but not loaded",
            Self::NotScheduledHere => "unit loaded but not scheduled here",
            Self::HashDiffers => "unit loaded but hash differs to expected",
            Self::NotLaunched => "unit currently loaded but desired state is launched",
            Self::NotOnlyLoaded => "unit currently launched but desired state is loaded",
            Self::RestartAsked => "unit launched and a restart is asked for",
            Self::StopAsked => "unit loaded and a stop is asked for",
            Self::FilesChanged => "always reload unit files",
        })
    }
}

/// Whether an agent may act on orders that it read at one revision of etcd, when its machine was registered at
/// another.
///
/// Until its registration the machine may have counted as lost, and the engine may have given its units to other
/// machines. Older orders would run these units twice. From the registration on, the engine moves no unit for that
/// reason, so orders of that revision or a later one are complete.
pub const fn may_follow(read_at: i64, registered_at: i64) -> bool {
    read_at >= registered_at
}

/// The tasks that bring the machine to its desired state, in order, each with its reason.
///
/// # Guarantees
/// After they are done, nothing is left to do. A running unit whose file and state are as desired is not
/// touched.
pub fn tasks(
    desired: &BTreeMap<String, Desired>,
    current: &BTreeMap<String, Current>,
) -> BTreeMap<AgentTask, TaskReason> {
    let units: BTreeSet<_> = desired.keys().chain(current.keys()).collect();
    let mut tasks = BTreeMap::new();
    for unit in units {
        for (task, reason) in tasks_of(unit, desired.get(unit), current.get(unit)) {
            tasks.insert(task, reason);
        }
    }
    let changes_files =
        |task: &AgentTask| matches!(task, AgentTask::Unload(_) | AgentTask::Load(_));
    if tasks.keys().any(changes_files) {
        tasks.insert(AgentTask::Reload, TaskReason::FilesChanged);
    }
    tasks
}

fn tasks_of(
    unit: &str,
    desired: Option<&Desired>,
    current: Option<&Current>,
) -> Vec<(AgentTask, TaskReason)> {
    let desired = desired.filter(|desired| desired.state.is_active());
    let name = || unit.to_owned();
    let Some(desired) = desired else {
        let unload = current.map(|_| (AgentTask::Unload(name()), TaskReason::NotScheduledHere));
        return unload.into_iter().collect();
    };
    let mut tasks = Vec::new();
    let has_file = current.is_some_and(|current| current.hash.as_ref() == Some(&desired.hash));
    if current.is_some() && !has_file {
        tasks.push((AgentTask::Unload(name()), TaskReason::HashDiffers));
    }
    let state = current.filter(|_| has_file).map(|current| current.state);
    let state = state.unwrap_or_default();
    if !state.is_active() {
        tasks.push((AgentTask::Load(name()), TaskReason::NotLoaded));
    }
    let is_asked = || {
        let done = current.and_then(|current| current.restarts);
        done.is_some_and(|done| done != desired.restarts)
    };
    match (desired.state, state) {
        (DesiredState::Launched, DesiredState::Inactive | DesiredState::Loaded) => {
            tasks.push((AgentTask::Start(name()), TaskReason::NotLaunched));
        }
        (DesiredState::Loaded, DesiredState::Launched) => {
            tasks.push((AgentTask::Stop(name()), TaskReason::NotOnlyLoaded));
        }
        (DesiredState::Launched, DesiredState::Launched) if is_asked() => {
            tasks.push((AgentTask::Restart(name()), TaskReason::RestartAsked));
        }
        // systemd may have started it for another unit.
        (DesiredState::Loaded, DesiredState::Loaded) if is_asked() => {
            tasks.push((AgentTask::Stop(name()), TaskReason::StopAsked));
        }
        _ => {}
    }
    tasks
}
