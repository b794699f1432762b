//! What an agent does with the units of its machine: desired state against current state, as a list of tasks.
//!
//! ```text
//! desired (run/ and global/) ─┐
//!                             ├─▶ tasks ─▶ Unload* Load* Reload? Stop* Start* Restart*
//! current (files, systemd)  ──┘
//! ```
//!
//! The cases and their order are those of the older fleet's agent, but for restarts, which are ours. There the first task that failed ended the pass; here
//! the tasks of one unit say nothing about those of another.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::unit::DesiredState;

/// What a unit is to be on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Desired {
    /// The digest of the file to run.
    pub hash: String,
    pub state: DesiredState,
    /// How often users have asked for a restart.
    pub restarts: u64,
}

/// What the agent has made of a unit on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Current {
    /// The digest of the file that stands in the units directory; `None` if it cannot be read.
    pub hash: Option<String>,
    /// How far the agent has brought it. `Inactive`: there is a file, and nothing is known of it, as after the agent lost
    /// its memory. What systemd has made of it since, or an operator, does not count.
    pub state: DesiredState,
    /// How often users had asked for a restart when the agent last started or restarted it; `None` if that is unknown.
    pub restarts: Option<u64>,
}

/// One thing to do. Ordered as tasks are done, units by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Task {
    /// Stop the unit, wait until it has stopped, and remove its file.
    Unload(String),
    /// Write its file, and make it known to systemd.
    Load(String),
    /// Have systemd read its unit files again: once, after all that was unloaded and loaded.
    Reload,
    Stop(String),
    Start(String),
    Restart(String),
}

/// Why something is to be done, in the words of the older fleet: people search logs for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    NotLoaded,
    NotScheduledHere,
    HashDiffers,
    NotLaunched,
    NotOnlyLoaded,
    RestartAsked,
    FilesChanged,
}

impl Task {
    /// The unit that it is about; `None` for [`Task::Reload`].
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

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotLoaded => "unit scheduled here but not loaded",
            Self::NotScheduledHere => "unit loaded but not scheduled here",
            Self::HashDiffers => "unit loaded but hash differs to expected",
            Self::NotLaunched => "unit currently loaded but desired state is launched",
            Self::NotOnlyLoaded => "unit currently launched but desired state is loaded",
            Self::RestartAsked => "unit launched and a restart is asked for",
            Self::FilesChanged => "always reload unit files",
        })
    }
}

/// What is to be done so that the machine is as desired, in order, with the reason of each task.
///
/// # Guarantees
/// Carried out, it leaves nothing to do. A unit that runs and is to run with the same file is not touched.
pub fn tasks(
    desired: &BTreeMap<String, Desired>,
    current: &BTreeMap<String, Current>,
) -> BTreeMap<Task, Reason> {
    let units: BTreeSet<_> = desired.keys().chain(current.keys()).collect();
    let mut tasks = BTreeMap::new();
    for unit in units {
        for (task, reason) in tasks_of(unit, desired.get(unit), current.get(unit)) {
            tasks.insert(task, reason);
        }
    }
    let changes_files = |task: &Task| matches!(task, Task::Unload(_) | Task::Load(_));
    if tasks.keys().any(changes_files) {
        tasks.insert(Task::Reload, Reason::FilesChanged);
    }
    tasks
}

fn tasks_of(
    unit: &str,
    desired: Option<&Desired>,
    current: Option<&Current>,
) -> Vec<(Task, Reason)> {
    let desired = desired.filter(|desired| desired.state.is_active());
    let name = || unit.to_owned();
    let Some(desired) = desired else {
        let unload = current.map(|_| (Task::Unload(name()), Reason::NotScheduledHere));
        return unload.into_iter().collect();
    };
    let mut tasks = Vec::new();
    let has_file = current.is_some_and(|current| current.hash.as_ref() == Some(&desired.hash));
    if current.is_some() && !has_file {
        tasks.push((Task::Unload(name()), Reason::HashDiffers));
    }
    let state = current.filter(|_| has_file).map(|current| current.state);
    let state = state.unwrap_or_default();
    if !state.is_active() {
        tasks.push((Task::Load(name()), Reason::NotLoaded));
    }
    match (desired.state, state) {
        (DesiredState::Launched, DesiredState::Inactive | DesiredState::Loaded) => {
            tasks.push((Task::Start(name()), Reason::NotLaunched));
        }
        (DesiredState::Loaded, DesiredState::Launched) => {
            tasks.push((Task::Stop(name()), Reason::NotOnlyLoaded));
        }
        (DesiredState::Launched, DesiredState::Launched) => {
            let done = current.and_then(|current| current.restarts);
            if done.is_some_and(|done| done != desired.restarts) {
                tasks.push((Task::Restart(name()), Reason::RestartAsked));
            }
        }
        _ => {}
    }
    tasks
}
