//! The folder of unit files, and what the agent remembers of them over a restart of its process.
//!
//! ```text
//! <units_directory>/web.service      the unit's file, canonical text
//! <units_directory>/.agent.json      how far each unit was brought, and the machine's registration
//! ```
//!
//! Both are small and in memory by default (`/run`), so they are read and written where they stand. A file is written
//! beside its place and then moved there: it is whole or not there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::keys::Revision;
use crate::registry::Registration;
use hyperfleet_fleet_model::unit::{DesiredState, Options, UnitName};

const MEMORY: &str = ".agent.json";

/// What an agent remembers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    /// The run of systemd to which `units` belong.
    pub(super) instance: String,
    /// Units whose file the agent has written, or has found.
    pub(super) units: BTreeMap<String, Known>,
    /// Whether files have changed since systemd has read them.
    pub(super) needs_reload: bool,
    /// Units of which a state may stand in the registry.
    pub(super) reported: BTreeSet<String>,
    /// What was last read of the registry.
    pub(super) history: Option<History>,
    /// Why nothing is done, since the registry went back in time, and the revision at which that was seen.
    pub(super) halt: Option<(String, Revision)>,
    /// The registration to take up, as long as its lease lives.
    pub(super) registration: Option<SavedRegistration>,
}

/// A moment of a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct History {
    pub(super) store: u64,
    /// The newest that was read.
    pub(super) revision: Revision,
    /// Of the machine's last report; 0 if there was none, or the machine has left since.
    #[serde(default)]
    pub(super) last_report: Revision,
}

/// A registration, and what it was made with: with other settings it is not taken up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedRegistration {
    /// The machine's key in etcd.
    pub(super) key: String,
    pub(super) lease: Duration,
    pub(super) registration: Registration,
}

/// What an agent remembers of a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    /// How far the agent has brought it for sure. `Inactive`: its file is there.
    pub(super) state: DesiredState,
    /// Whether it may run although it is not `Launched`: it was told to stop, or nothing is known of it.
    #[serde(default)]
    pub(super) may_run: bool,
    /// The epoch of the engine that placed it here; 0 for a global unit.
    pub(super) epoch: Revision,
    /// How often a restart had been asked for when it was last started; `None` if that is unknown.
    #[serde(default)]
    pub(super) restarts: Option<u64>,
    /// Whether it is `Launched`, and systemd has not said yet what became of its start.
    #[serde(default)]
    pub(super) start_is_awaited: bool,
}

impl Known {
    /// A unit of which there is a file.
    pub(super) const fn file_only(may_run: bool) -> Self {
        Self {
            state: DesiredState::Inactive,
            may_run,
            epoch: 0,
            restarts: None,
            start_is_awaited: false,
        }
    }

    /// It is not `Launched` any more, if it was, and may run all the same.
    pub(super) fn unlaunch(&mut self) {
        self.state = self.state.min(DesiredState::Loaded);
        self.may_run = true;
        self.start_is_awaited = false;
    }
}

/// The folder of unit files.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    folder: PathBuf,
}

impl Disk {
    /// Makes the folder if it is not there.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let folder = fs::canonicalize(folder)?;
        Ok(Self { folder })
    }

    pub(super) fn path(&self, unit: &str) -> PathBuf {
        self.folder.join(unit)
    }

    /// What was remembered; nothing if that was lost. Then files tell which units there are.
    pub(super) fn recall(&self) -> Memory {
        let memory = self.read(MEMORY).unwrap_or_else(|error| {
            tracing::warn!(error, "the agent's memory is unreadable; it starts without");
            None
        });
        memory.unwrap_or_default()
    }

    pub(super) fn remember(&self, memory: &Memory) -> io::Result<()> {
        self.write_json(MEMORY, memory)
    }

    /// A file of JSON; `None` if there is none. An error names the file.
    pub(super) fn read<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, String> {
        let path = self.folder.join(name);
        let read = match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| error.to_string()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.to_string()),
        };
        read.map_err(|error| format!("{}: {error}", path.display()))
    }

    pub(super) fn write_json(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_vec(value)?;
        self.put(name, &text)
    }

    /// The files of units, by name; `None` for a file that cannot be read as one.
    pub(super) fn files(&self) -> io::Result<BTreeMap<String, Option<Options>>> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            // systemd knows no state of templates, and fleet runs none.
            if UnitName::parse(name.as_str()).is_ok_and(|unit| !unit.is_template()) {
                let text = fs::read(entry.path()).ok();
                let options = text.and_then(|text| Options::parse(&text).ok());
                files.insert(name, options);
            }
        }
        Ok(files)
    }

    /// Writes the file of a unit.
    pub(super) fn write(&self, unit: &str, text: &str) -> io::Result<()> {
        self.put(unit, text.as_bytes())
    }

    /// Removes the file of a unit. Fine if there is none.
    pub(super) fn remove(&self, unit: &str) -> io::Result<()> {
        match fs::remove_file(self.path(unit)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn put(&self, name: &str, text: &[u8]) -> io::Result<()> {
        let beside = self
            .folder
            .join(format!(".{}.new", name.trim_start_matches('.')));
        let mut file = fs::File::create(&beside)?;
        file.write_all(text)?;
        // Before it takes its place: a machine that loses power has the old one or the new one.
        file.sync_all()?;
        fs::rename(&beside, self.folder.join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_there_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(&folder.path().join("units")).unwrap();
        assert_eq!(disk.recall(), Memory::default());
        let known = Known {
            restarts: None,
            state: DesiredState::Launched,
            may_run: true,
            epoch: 7,
            start_is_awaited: true,
        };
        let memory = Memory {
            instance: "boot:1".to_owned(),
            units: [("a.service".to_owned(), known)].into(),
            needs_reload: true,
            reported: ["b.service".to_owned()].into(),
            registration: None,
            halt: Some(("it went back".to_owned(), 7)),
            history: Some(History {
                store: u64::MAX,
                revision: 9,
                last_report: 8,
            }),
        };
        disk.remember(&memory).unwrap();
        assert_eq!(disk.recall(), memory);
        fs::write(folder.path().join("units").join(MEMORY), "junk").unwrap();
        assert_eq!(disk.recall(), Memory::default());
    }

    #[test]
    fn files_are_those_of_units() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(folder.path()).unwrap();
        disk.write("a.service", "[Service]\nExecStart=/bin/true\n")
            .unwrap();
        disk.write("b.service", "[Service").unwrap();
        disk.write("t@.service", "[Service]\n").unwrap();
        disk.remember(&Memory::default()).unwrap();
        fs::write(folder.path().join("notes.txt"), "x").unwrap();
        let files = disk.files().unwrap();
        let read: Vec<_> = files
            .iter()
            .map(|(name, options)| (name.as_str(), options.is_some()))
            .collect();
        assert_eq!(read, [("a.service", true), ("b.service", false)]);
        disk.remove("a.service").unwrap();
        disk.remove("a.service").unwrap();
        assert_eq!(disk.files().unwrap().len(), 1);
    }
}
