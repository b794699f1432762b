//! The state of fleet: units, their desired states, places and reports, and machines.
//!
//! ```text
//! users  ─▶ unit/ want/ global/          desired states
//! engine ─▶ place/ run/                  decisions, every write guarded by the leader's term
//! agents ─▶ machine/ state/              reports, on the machine's lease
//! ```
//!
//! Related records are written in one transaction, guarded by what was read before: a decision on outdated
//! records changes nothing. All keys, their values and writers are in `docs/internals/keys.md`. The rules of
//! desired states and placement are not here.
//!
//! The registry works on every [`KeyStore`]: etcd, and memory for simulations.

mod damaged;
mod decide;
mod engine;
mod error;
mod key;
mod machines;
mod pages;
mod reading;
mod record;
mod reports;
mod snapshot;
mod steps;
mod table;
mod token;
mod units;
mod watch;

pub use decide::decide_and_commit;
pub use engine::{Acquired, EngineGate, Leading};
pub use error::Error;
pub use key::{LabelKey, PART_BYTES_MAX, Prefix, RunKey, StateKey, UnusablePart, is_part};
pub use machines::{BriefDrain, KnownMachine, LABELS_MAX, Registered, Registration};
pub use pages::{LISTED_MAX, ListedUnit, Page, ReportedState, StateFilter};
pub use record::{
    Body, DesiredRecord, Drain, EngineVersion, Global, GlobalRule, Label, Leader, MachineRecord,
    MoveOrder, Moved, Placement, Record, ReplacesOrder, Resume, Run, Stored, UnitState, is_newer,
};
pub use reports::Reports;
pub use steps::Step;
pub use table::{Key, KeyChange, Snapshot, UnreadableKeys};
pub use token::{PageToken, TOKEN_CHARACTERS_MAX};
pub use units::{BODY_BYTES_MAX, ReplacesTurn, UnitRecord, Written};
pub use watch::{Watch, WatchScope, WatchUpdate};

use serde::de::DeserializeOwned;

use self::reading::Reading;
use crate::keys::{
    Entry, Guard, KeyOperation, KeyStore, Range, ReadPosition, Revision, Transaction,
    TransactionOutcome,
};

/// The state of fleet in a key store.
#[derive(Debug, Clone)]
pub struct Registry<S> {
    store: S,
    prefix: Prefix,
}

impl<S: KeyStore> Registry<S> {
    /// The registry below a prefix.
    pub fn new(store: S, prefix: Prefix) -> Self {
        Self { store, prefix }
    }

    /// Everything at one revision.
    ///
    /// # Errors
    /// [`Error::Compacted`] if the history was compacted meanwhile: start over.
    pub async fn snapshot(&self) -> Result<Snapshot, Error> {
        let (found, position) = self.list(&WatchScope::Everything).await?;
        Ok(Snapshot::of(position.revision, found))
    }

    /// The newest revision. Earlier writes are not later than it.
    pub async fn newest(&self) -> Result<Revision, Error> {
        Ok(self.get(&[Key::Leader]).await?.revision)
    }

    /// Checks that the history after a revision is still known.
    ///
    /// # Errors
    /// [`Error::Compacted`] if it is not, [`Error::Token`] for a future revision.
    pub async fn check_history(&self, after: Revision) -> Result<(), Error> {
        // For etcd, revision 0 means the newest.
        if after < 1 {
            return Err(Error::Token);
        }
        let everything = self.prefix.everything();
        self.store.list(everything, 1, Some(after)).await?;
        Ok(())
    }

    async fn read_each(
        &self,
        range: Range,
        at: Option<Revision>,
        mut take: impl FnMut(Entry) + Send,
    ) -> Result<ReadPosition, Error> {
        let mut reading = Reading::new(range, at);
        loop {
            let (entries, ended) = reading.next(self).await?;
            entries.into_iter().for_each(&mut take);
            if let Some(position) = ended {
                return Ok(position);
            }
        }
    }

    /// A key's name in etcd.
    pub fn name(&self, key: &Key) -> String {
        self.prefix.name(key)
    }

    /// The records of a transaction as a snapshot of those keys alone.
    fn snapshot_of(&self, found: &TransactionOutcome) -> Snapshot {
        let entries = found.found.iter();
        let changes = entries.map(|entry| KeyChange::of_entry(&self.prefix, entry));
        Snapshot::of(found.revision, changes)
    }

    /// Reads a key.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if it is unreadable.
    async fn find<T: DeserializeOwned>(&self, key: Key) -> Result<Option<Stored<T>>, Error> {
        let found = self.get(std::slice::from_ref(&key)).await?;
        self.read_record(&found, key)
    }

    /// Reads a key from the result of a transaction.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if it is unreadable.
    fn read_record<T: DeserializeOwned>(
        &self,
        found: &TransactionOutcome,
        key: Key,
    ) -> Result<Option<Stored<T>>, Error> {
        match record::read(found.entry(&self.name(&key))) {
            Record::Present(stored) => Ok(Some(stored)),
            Record::Absent => Ok(None),
            Record::Unreadable { version } => Err(self.unreadable_error(key, version)),
        }
    }

    fn unreadable_error(&self, key: Key, version: Option<u64>) -> Error {
        let name = self.name(&key);
        Error::Unreadable { key, name, version }
    }

    /// Reads some keys, all at one revision.
    async fn get(&self, keys: &[Key]) -> Result<TransactionOutcome, Error> {
        let gets = keys.iter().map(|key| KeyOperation::Get(self.name(key)));
        let transaction = Transaction {
            then: gets.collect(),
            ..Transaction::default()
        };
        Ok(self.store.commit(transaction).await?)
    }

    async fn commit(
        &self,
        guards: Vec<Guard>,
        then: Vec<KeyOperation>,
    ) -> Result<TransactionOutcome, Error> {
        let transaction = Transaction {
            guards,
            then,
            otherwise: Vec::new(),
        };
        Ok(self.store.commit(transaction).await?)
    }

    /// Guards that a key is unchanged since a transaction read it.
    fn guard_as_found(&self, key: &Key, found: &TransactionOutcome) -> Guard {
        let entry = found.entry(&self.name(key));
        self.guard_at(key, entry.map(|entry| entry.modified))
    }

    /// Guards a key that is to be overwritten or deleted. Damaged records may be overwritten, records of a
    /// newer version not.
    fn overwritable<T: DeserializeOwned>(
        &self,
        key: &Key,
        found: &TransactionOutcome,
    ) -> Result<Guard, Error> {
        match record::read::<T>(found.entry(&self.name(key))) {
            Record::Unreadable { version } if is_newer(version) => {
                Err(self.unreadable_error(key.clone(), version))
            }
            _ => Ok(self.guard_as_found(key, found)),
        }
    }

    fn put(&self, key: &Key, value: &impl serde::Serialize) -> KeyOperation {
        KeyOperation::Put(self.name(key), record::write(value), None)
    }

    fn delete(&self, key: &Key) -> KeyOperation {
        KeyOperation::Delete(self.name(key))
    }

    /// Guards that a key is as it was read, or still absent.
    fn unchanged<T>(&self, key: &Key, stored: Option<&Stored<T>>) -> Guard {
        self.guard_at(key, stored.map(|stored| stored.revision))
    }

    /// Guards that a key was last put at a revision, or is absent.
    fn guard_at(&self, key: &Key, revision: Option<Revision>) -> Guard {
        let name = self.name(key);
        match revision {
            Some(revision) => Guard::Modified(name, revision),
            None => Guard::Absent(name),
        }
    }
}
