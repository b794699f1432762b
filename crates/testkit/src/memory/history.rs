//! Every key at every revision that is not compacted.

use std::collections::BTreeMap;
use std::ops::Bound;

use hyperfleet_fleet::keys::{
    Batch, Entry, Error, Event, Guard, KeyOperation, Lease, Range, RangePart, Revision,
    TRANSACTION_OPERATIONS_MAX, Transaction, TransactionOutcome,
};

/// Every key with its versions, oldest first.
#[derive(Debug, Clone)]
pub(super) struct History {
    keys: BTreeMap<Vec<u8>, Vec<Version>>,
    newest: Revision,
    compacted: Revision,
}

/// The state of a key since a revision.
#[derive(Debug, Clone)]
struct Version {
    revision: Revision,
    put: Option<Put>,
}

#[derive(Debug, Clone)]
struct Put {
    value: Vec<u8>,
    created: Revision,
    lease: Option<Lease>,
}

impl Default for History {
    fn default() -> Self {
        Self {
            keys: BTreeMap::new(),
            newest: 1, // as an empty etcd
            compacted: 0,
        }
    }
}

impl Version {
    fn entry(&self, key: &[u8]) -> Option<Entry> {
        let put = self.put.as_ref()?;
        Some(Entry {
            key: key.to_vec(),
            value: put.value.clone(),
            created: put.created,
            modified: self.revision,
        })
    }
}

impl History {
    pub(super) fn newest(&self) -> Revision {
        self.newest
    }

    pub(super) fn compact(&mut self, revision: Revision) {
        self.compacted = self.compacted.max(revision.min(self.newest));
        let compacted = self.compacted;
        for versions in self.keys.values_mut() {
            let old = versions.iter().filter(|v| v.revision <= compacted).count();
            versions.drain(..old.saturating_sub(1));
        }
        self.keys.retain(|_, versions| {
            !matches!(versions.as_slice(), [only] if only.put.is_none() && only.revision < compacted)
        });
    }

    /// Applies everything in one revision, or nothing. `lives` says whether a lease exists.
    pub(super) fn commit(
        &mut self,
        transaction: Transaction,
        lives: impl Fn(Lease) -> bool,
    ) -> Result<TransactionOutcome, Error> {
        let Transaction {
            guards,
            then,
            otherwise,
        } = transaction;
        check(&guards, &then, &otherwise)?;
        let succeeded = guards.iter().all(|guard| self.holds(guard));
        let operations = if succeeded { then } else { otherwise };
        let puts_on = |operation: &KeyOperation| match operation {
            KeyOperation::Put(_, _, lease) => *lease,
            KeyOperation::Get(_) | KeyOperation::Delete(_) => None,
        };
        if operations.iter().filter_map(puts_on).any(|l| !lives(l)) {
            return Err(Error::LeaseGone { doing: "put a key" });
        }
        let revision = self.newest + 1;
        let mut found = Vec::new();
        for operation in operations {
            match operation {
                KeyOperation::Get(key) => found.extend(self.entry(key.as_bytes(), revision)),
                KeyOperation::Put(key, value, lease) => self.put(key, value, lease, revision),
                KeyOperation::Delete(key) => self.delete(key.as_bytes(), revision),
            }
        }
        Ok(TransactionOutcome {
            succeeded,
            revision: self.newest,
            found,
        })
    }

    fn holds(&self, guard: &Guard) -> bool {
        let now = |key: &String| self.entry(key.as_bytes(), self.newest);
        match guard {
            Guard::Absent(key) => now(key).is_none(),
            Guard::Created(key, at) => now(key).is_some_and(|entry| entry.created == *at),
            Guard::Modified(key, at) => now(key).is_some_and(|entry| entry.modified == *at),
        }
    }

    fn entry(&self, key: &[u8], at: Revision) -> Option<Entry> {
        let versions = self.keys.get(key)?;
        versions.iter().rfind(|v| v.revision <= at)?.entry(key)
    }

    fn put(&mut self, key: String, value: Vec<u8>, lease: Option<Lease>, revision: Revision) {
        let versions = self.keys.entry(key.into_bytes()).or_default();
        let before = versions.last().and_then(|version| version.put.as_ref());
        let created = before.map_or(revision, |put| put.created);
        let put = Some(Put {
            value,
            created,
            lease,
        });
        versions.push(Version { revision, put });
        self.newest = revision;
    }

    fn delete(&mut self, key: &[u8], revision: Revision) {
        let Some(versions) = self.keys.get_mut(key) else {
            return;
        };
        if versions.last().is_some_and(|version| version.put.is_some()) {
            let put = None;
            versions.push(Version { revision, put });
            self.newest = revision;
        }
    }

    /// Deletes the keys on a lease, in one revision.
    pub(super) fn delete_leased(&mut self, lease: Lease) {
        let hangs = |versions: &[Version]| {
            let put = versions.last().and_then(|version| version.put.as_ref());
            put.is_some_and(|put| put.lease == Some(lease))
        };
        let keys = self.keys.iter().filter(|(_, versions)| hangs(versions));
        let keys: Vec<Vec<u8>> = keys.map(|(key, _)| key.clone()).collect();
        let revision = self.newest + 1;
        for key in keys {
            self.delete(&key, revision);
        }
    }

    pub(super) fn list(
        &self,
        range: &Range,
        limit: usize,
        at: Option<Revision>,
    ) -> Result<RangePart, Error> {
        let revision = at.unwrap_or(self.newest);
        self.check_revision(revision)?;
        let keys = self.within(range).map(|(key, _)| key);
        let mut entries = keys.filter_map(|key| self.entry(key, revision));
        let some = entries.by_ref().take(limit).collect();
        Ok(RangePart {
            entries: some,
            more: entries.next().is_some(),
            revision,
        })
    }

    fn check_revision(&self, revision: Revision) -> Result<(), Error> {
        if revision < self.compacted {
            return Err(Error::Compacted);
        }
        if revision > self.newest {
            return Err(Error::Future);
        }
        Ok(())
    }

    /// Events after a revision in their order; keys of one revision by name.
    pub(super) fn since(&self, range: &Range, after: Revision) -> Result<Batch, Error> {
        if after + 1 < self.compacted {
            return Err(Error::Compacted);
        }
        if after > self.newest {
            return Err(Error::Future);
        }
        let mut events = Vec::new();
        for (key, versions) in self.within(range) {
            let newer = versions.iter().filter(|version| version.revision > after);
            events.extend(newer.map(|version| {
                let event = Event {
                    key: key.clone(),
                    entry: version.entry(key),
                };
                (version.revision, event)
            }));
        }
        events.sort_by_key(|(revision, _)| *revision);
        Ok(Batch {
            revision: self.newest.max(after),
            events: events.into_iter().map(|(_, event)| event).collect(),
        })
    }

    fn within(&self, range: &Range) -> impl Iterator<Item = (&Vec<u8>, &Vec<Version>)> {
        let to = Bound::Excluded(range.to.clone());
        let is_empty = range.from >= range.to;
        let from = Bound::Included(range.from.clone());
        let bounds = (!is_empty).then_some((from, to));
        bounds
            .into_iter()
            .flat_map(|bounds| self.keys.range(bounds))
    }
}

/// Refuses what etcd refuses: too many operations, and two that write the same key.
fn check(guards: &[Guard], then: &[KeyOperation], otherwise: &[KeyOperation]) -> Result<(), Error> {
    let refuse = |why: &str| Error::Failed {
        doing: "commit a transaction",
        source: why.into(),
    };
    for operations in [then, otherwise] {
        let mut written: Vec<&String> = operations.iter().filter_map(written).collect();
        let count = written.len();
        written.sort_unstable();
        written.dedup();
        if written.len() < count {
            return Err(refuse("duplicate key given in txn request"));
        }
    }
    let longest = guards.len().max(then.len()).max(otherwise.len());
    if longest > TRANSACTION_OPERATIONS_MAX {
        return Err(refuse("too many operations in txn request"));
    }
    Ok(())
}

fn written(operation: &KeyOperation) -> Option<&String> {
    match operation {
        KeyOperation::Put(key, ..) | KeyOperation::Delete(key) => Some(key),
        KeyOperation::Get(_) => None,
    }
}
