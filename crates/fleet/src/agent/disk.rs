//! The folder of unit files, and the agent's state file, which survives a restart of the process.
//!
//! ```text
//! <units_directory>/web.service      the unit's file, canonical text
//! <units_directory>/.agent.json      what was done with each unit, and the machine's registration
//! ```
//!
//! Both are small and in memory by default (`/run`), so they are read and written synchronously. A file is
//! written under a temporary name and renamed, so it is never partial.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::keys::Revision;
use crate::registry::Registration;
use hyperfleet_fleet_model::unit::{DesiredState, Options, UnitName};

const STATE_FILE: &str = ".agent.json";
/// Permissions of unit files and of their folder. systemd logs a line for each file that is not readable for all users, at
/// every reload, because all users can read its contents from systemd.
const FILE_MODE: u32 = 0o644;
const FOLDER_MODE: u32 = 0o755;
/// Permissions of all other files and folders.
const OWN_FILE_MODE: u32 = 0o600;
const OWN_FOLDER_MODE: u32 = 0o700;
/// A unit file that is being written. No unit has this name, and unlike a longer form of the unit's own name, it is never
/// longer than a file's name may be.
const NEW_FILE: &str = ".unit.new";

/// The agent's state that survives a restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Memory {
    /// The run of systemd that `units` belong to.
    pub(super) instance: String,
    /// Units whose files the agent has written or found.
    pub(super) units: BTreeMap<String, UnitMemory>,
    /// Whether files have changed since systemd last read them.
    pub(super) needs_reload: bool,
    /// Units whose state may be in the registry.
    pub(super) reported: BTreeSet<String>,
    /// The last position that was read from the registry.
    pub(super) history: Option<History>,
    /// Why the agent is halted, and the revision at which the registry had gone back in time.
    pub(super) halt: Option<(String, Revision)>,
}

/// What the state file contains.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Stored {
    #[serde(flatten)]
    memory: Memory,
    /// The registration to resume while its lease lives.
    #[serde(default)]
    registration: Option<SavedRegistration>,
}

/// The state file. Clones write the same one.
///
/// The registration is stored as soon as the machine has registered, also while the agent is busy with units: without it the
/// next process could not resume it, and the engine would move the machine's units.
#[derive(Debug, Clone)]
pub(super) struct StateFile {
    disk: Disk,
    stored: Arc<Mutex<Stored>>,
}

impl StateFile {
    /// Reads the state. If it is lost, the unit files show which units exist.
    pub(super) fn open(disk: Disk) -> Self {
        let stored = disk.read(STATE_FILE).unwrap_or_else(|error| {
            tracing::warn!(error, "agent state unreadable: starting without it");
            None
        });
        let stored = Arc::new(Mutex::new(stored.unwrap_or_default()));
        Self { disk, stored }
    }

    /// The state of the agent as it was stored last.
    pub(super) fn memory(&self) -> Memory {
        self.lock().memory.clone()
    }

    /// The registration as it was stored last.
    pub(super) fn registration(&self) -> Option<SavedRegistration> {
        self.lock().registration.clone()
    }

    pub(super) fn remember(&self, memory: &Memory) {
        self.store(|stored| stored.memory = memory.clone());
    }

    pub(super) fn remember_registration(&self, registration: Option<SavedRegistration>) {
        self.store(|stored| stored.registration = registration);
    }

    /// A failure is logged only, which is better than doing nothing now: the next process would start units once more, or
    /// could not resume the registration.
    fn store(&self, change: impl FnOnce(&mut Stored)) {
        let mut stored = self.lock();
        change(&mut stored);
        if let Err(error) = self.disk.write_json(STATE_FILE, &*stored) {
            tracing::warn!(%error, "saving the agent's state failed");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A position in the history of a registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct History {
    pub(super) store: u64,
    /// Newest revision that was read.
    pub(super) revision: Revision,
    /// Revision of the machine's last report; 0 if there was none, or the machine has left since.
    #[serde(default)]
    pub(super) last_report: Revision,
}

/// A registration and its settings. With other settings it is not resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedRegistration {
    /// The machine's key in etcd.
    pub(super) key: String,
    pub(super) lease: Duration,
    pub(super) registration: Registration,
}

/// What the agent has done with a unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UnitMemory {
    /// The state that the agent has certainly reached. `Inactive`: the unit file is loaded.
    pub(super) state: DesiredState,
    /// Whether it may run although it is not `Launched`: it is stopping, or its state is unknown.
    #[serde(default)]
    pub(super) may_run: bool,
    /// The epoch of the engine that placed the unit here; 0 for a global unit.
    pub(super) epoch: Revision,
    /// The count of requested restarts and stops at its last start or stop; `None` if unknown.
    #[serde(default)]
    pub(super) restarts: Option<u64>,
    /// Whether it is `Launched` and systemd has not reported the result of its start.
    #[serde(default)]
    pub(super) start_is_awaited: bool,
}

impl UnitMemory {
    /// A unit whose file is there.
    pub(super) const fn file_only(may_run: bool) -> Self {
        Self {
            state: DesiredState::Inactive,
            may_run,
            epoch: 0,
            restarts: None,
            start_is_awaited: false,
        }
    }

    /// Marks the unit as no longer launched. It may still run.
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
    /// Creates the folder of unit files if it does not exist.
    pub(super) fn open_for_units(folder: &Path) -> io::Result<Self> {
        let is_new = !folder.exists();
        let disk = Self::open(folder)?;
        if is_new {
            fs::set_permissions(&disk.folder, fs::Permissions::from_mode(FOLDER_MODE))?;
        }
        Ok(disk)
    }

    /// Creates the folder if it does not exist.
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let mut builder = fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(OWN_FOLDER_MODE)
            .create(folder)?;
        let folder = fs::canonicalize(folder)?;
        Ok(Self { folder })
    }

    pub(super) fn path(&self, unit: &str) -> PathBuf {
        self.folder.join(unit)
    }

    /// Reads a JSON file; `None` if it does not exist. Errors name the file.
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
        let new = format!("{name}.new");
        self.put(name, &new, &text, OWN_FILE_MODE)
    }

    /// The unit files by name; `None` for a file that cannot be read as one.
    pub(super) fn files(&self) -> io::Result<BTreeMap<String, Option<Options>>> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            // systemd has no state for templates, and fleet does not run them.
            if UnitName::parse(name.as_str()).is_ok_and(|unit| !unit.is_template()) {
                let text = fs::read(entry.path()).ok();
                let options = text.and_then(|text| Options::parse(&text).ok());
                files.insert(name, options);
            }
        }
        Ok(files)
    }

    pub(super) fn write(&self, unit: &str, text: &str) -> io::Result<()> {
        self.put(unit, NEW_FILE, text.as_bytes(), FILE_MODE)
    }

    /// Corrects the permissions of a unit's file that an earlier version has written.
    pub(super) fn make_readable(&self, unit: &str) {
        let permissions = fs::Permissions::from_mode(FILE_MODE);
        if let Err(error) = fs::set_permissions(self.path(unit), permissions) {
            tracing::warn!(unit, %error, "unit file not readable for all users");
        }
    }

    /// Removes a unit's file, if it exists.
    pub(super) fn remove(&self, unit: &str) -> io::Result<()> {
        match fs::remove_file(self.path(unit)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn put(&self, name: &str, new: &str, text: &[u8], mode: u32) -> io::Result<()> {
        let beside = self.folder.join(new);
        let mut file = fs::File::create(&beside)?;
        // Whatever the umask is.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(text)?;
        // Synced before the rename, so that a power failure leaves the old file or the new one.
        file.sync_all()?;
        fs::rename(&beside, self.folder.join(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// As release 0.1.0 writes and reads it.
    #[test]
    fn the_state_file_is_that_of_other_releases() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(folder.path()).unwrap();
        let text = json!({
            "instance": "boot:1",
            "units": {"a.service": {
                "state": "launched", "may_run": true, "epoch": 7, "restarts": null, "start_is_awaited": false,
            }},
            "needs_reload": false,
            "reported": ["a.service"],
            "history": {"store": u64::MAX, "revision": 9, "last_report": 8},
            "halt": ["it went back", 7],
            "registration": {
                "key": "/fleet/v3/machine/m1",
                "lease": {"secs": 30, "nanos": 0},
                "registration": {"id": "m1", "lease": 5, "created": 6},
            },
        });
        disk.write_json(STATE_FILE, &text).unwrap();
        let file = StateFile::open(disk.clone());
        let saved = file.registration();
        assert_eq!(
            saved.as_ref().map(|saved| saved.key.as_str()),
            Some("/fleet/v3/machine/m1")
        );
        // Each part is written without the other's knowledge.
        let memory = file.memory();
        file.remember(&Memory::default());
        file.remember_registration(None);
        file.remember(&memory);
        file.remember_registration(saved);
        let written: Option<Value> = disk.read(STATE_FILE).unwrap();
        assert_eq!(written, Some(text));
    }

    #[test]
    fn what_is_remembered_is_there_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(&folder.path().join("units")).unwrap();
        let open = || StateFile::open(disk.clone());
        assert_eq!(open().memory(), Memory::default());
        let known = UnitMemory {
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
            halt: Some(("it went back".to_owned(), 7)),
            history: Some(History {
                store: u64::MAX,
                revision: 9,
                last_report: 8,
            }),
        };
        open().remember(&memory);
        assert_eq!(open().memory(), memory);
        fs::write(folder.path().join("units").join(STATE_FILE), "junk").unwrap();
        assert_eq!(open().memory(), Memory::default());
    }

    #[test]
    fn unit_files_and_no_others_are_readable_for_all_users() {
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let units = folder.path().join("units");
        let disk = Disk::open_for_units(&units).unwrap();
        disk.write("a.service", "[Service]\n").unwrap();
        StateFile::open(disk.clone()).remember(&Memory::default());
        assert_eq!(mode(&units), 0o755);
        assert_eq!(mode(&units.join("a.service")), 0o644);
        assert_eq!(mode(&units.join(STATE_FILE)), 0o600);
        fs::set_permissions(units.join("a.service"), fs::Permissions::from_mode(0o600)).unwrap();
        disk.make_readable("a.service");
        assert_eq!(mode(&units.join("a.service")), 0o644);
        // The folder of the registration that survives a reboot.
        let kept = folder.path().join("kept");
        Disk::open(&kept).unwrap();
        assert_eq!(mode(&kept), 0o700);
    }

    #[test]
    fn the_longest_name_of_a_unit_is_that_of_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(folder.path()).unwrap();
        let longest = format!("{}.service", "a".repeat(UnitName::BYTES_MAX - 8));
        assert!(UnitName::parse(longest.as_str()).is_ok());
        disk.write(&longest, "[Service]\n").unwrap();
        assert!(disk.files().unwrap().contains_key(&longest));
    }

    #[test]
    fn files_are_those_of_units() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(folder.path()).unwrap();
        disk.write("a.service", "[Service]\nExecStart=/bin/true\n")
            .unwrap();
        disk.write("b.service", "[Service").unwrap();
        disk.write("t@.service", "[Service]\n").unwrap();
        StateFile::open(disk.clone()).remember(&Memory::default());
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
