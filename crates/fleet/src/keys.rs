//! The key store below the registry: the few features of etcd v3 that it is built on.
//!
//! Every write moves the whole store to a new revision, and a transaction is one write. A range can be read as
//! it was at an earlier revision, and a watch reports the changes since one, until the history is compacted.
//! Keys on a lease are deleted together when the lease is not renewed.
//!
//! There are two implementations: [`etcd`](super::etcd), and `MemoryKeys` of the testkit for simulations. One
//! test suite holds both to this description (`crates/fleet/tests/it/registry`).

use std::error::Error as StdError;
use std::future::Future;

use serde::{Deserialize, Serialize};

/// Most operations, or comparisons, of a transaction: etcd's default (`--max-txn-ops`).
pub const TRANSACTION_OPERATIONS_MAX: usize = 128;

/// How often a lease is renewed during its time to live.
pub(crate) const KEPT_PER_LEASE: u32 = 3;

/// A moment of the store: it grows by one with every write, across all keys. Never 0.
pub type Revision = i64;

/// Keys on a lease are deleted together when it expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lease(pub i64);

/// A key and its value at the revision that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Other programs may write keys below our prefix that are not UTF-8.
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    /// Revision of its creation. A key that is deleted and put again is a new one.
    pub created: Revision,
    /// Revision of its last put.
    pub modified: Revision,
}

/// A condition of a transaction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guard {
    /// The key does not exist.
    Absent(String),
    /// The key was created at this revision.
    Created(String, Revision),
    /// The key was last put at this revision.
    Modified(String, Revision),
}

impl Guard {
    pub fn key(&self) -> &str {
        match self {
            Self::Absent(key) | Self::Created(key, _) | Self::Modified(key, _) => key,
        }
    }

    /// Whether the condition was true, according to what was found.
    pub fn holds(&self, found: &TransactionOutcome) -> bool {
        let entry = found.entry(self.key());
        match self {
            Self::Absent(_) => entry.is_none(),
            Self::Created(_, at) => entry.is_some_and(|entry| entry.created == *at),
            Self::Modified(_, at) => entry.is_some_and(|entry| entry.modified == *at),
        }
    }
}

/// One operation of a transaction. No two operations of a transaction may concern the same key, unless both
/// read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyOperation {
    Get(String),
    /// Puts a value, with or without a lease.
    Put(String, Vec<u8>, Option<Lease>),
    /// Deletes a key, if it exists.
    Delete(String),
}

impl KeyOperation {
    pub fn key(&self) -> &str {
        match self {
            Self::Get(key) | Self::Put(key, ..) | Self::Delete(key) => key,
        }
    }
}

/// Operations for the case that every guard holds, and for the other case: all at one revision, or none. Guards
/// are compared with the newest state of the store, even if nothing is read or written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transaction {
    pub guards: Vec<Guard>,
    pub then: Vec<KeyOperation>,
    pub otherwise: Vec<KeyOperation>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionOutcome {
    /// Whether all guards held.
    pub succeeded: bool,
    /// The revision that was made or read.
    pub revision: Revision,
    /// Existing keys that were read, in the order of the operations.
    pub found: Vec<Entry>,
}

impl TransactionOutcome {
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.found.iter().find(|entry| entry.key == key.as_bytes())
    }
}

/// Keys in order, from the first (inclusive) to the last (exclusive).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    pub from: Vec<u8>,
    pub to: Vec<u8>,
}

impl Range {
    /// All keys with a prefix.
    pub fn below(prefix: &str) -> Self {
        Self {
            from: prefix.into(),
            to: after_all(prefix),
        }
    }

    pub fn one(key: &[u8]) -> Self {
        let mut to = key.to_vec();
        to.push(0);
        Self {
            from: key.to_vec(),
            to,
        }
    }

    /// The part of the range after a key.
    pub fn behind(&self, key: &[u8]) -> Self {
        let mut from = key.to_vec();
        from.push(0);
        Self {
            from,
            to: self.to.clone(),
        }
    }

    pub fn contains(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key && key < self.to.as_slice()
    }
}

/// The first key after all that begin with `prefix`, which ends in a one-byte character.
fn after_all(prefix: &str) -> Vec<u8> {
    let mut key = prefix.as_bytes().to_vec();
    if let Some(last) = key.last_mut() {
        *last += 1;
    }
    key
}

/// A part of a range, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangePart {
    pub entries: Vec<Entry>,
    /// Whether the range continues.
    pub more: bool,
    /// The requested revision, or the newest one.
    pub revision: Revision,
}

/// All events up to a revision since the previous batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Everything up to here is delivered. Changes of one revision are never split.
    pub revision: Revision,
    /// Oldest first; empty if the store only reports its progress.
    pub events: Vec<Event>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub key: Vec<u8>,
    /// `None` if the key was deleted.
    pub entry: Option<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    /// It lives for its whole time again.
    Renewed,
    /// It has expired or was revoked, and its keys are gone.
    Expired,
}

/// How far a range was read, with what is needed to detect a later restore of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadPosition {
    pub revision: Revision,
    /// The newest known change of the range up to there. After a list, that of the newest existing entry.
    pub last: Option<LastChange>,
}

impl From<Revision> for ReadPosition {
    fn from(revision: Revision) -> Self {
        Self {
            revision,
            last: None,
        }
    }
}

/// A put or deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastChange {
    pub key: Vec<u8>,
    pub revision: Revision,
    /// Whether it was a put.
    pub is_put: bool,
}

impl LastChange {
    /// The newer of a change and the put of an entry.
    pub(crate) fn or_newer(last: Option<Self>, entry: &Entry) -> Self {
        match last {
            Some(last) if last.revision >= entry.modified => last,
            _ => Self {
                key: entry.key.clone(),
                revision: entry.modified,
                is_put: true,
            },
        }
    }
}

/// Failures of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store is unreachable or cannot serve now. A transaction in progress may have been committed.
    #[error("cannot {doing}: the store is unavailable")]
    Unavailable {
        doing: &'static str,
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The store refuses us permanently: wrong password, no right to the key. Nothing was done.
    #[error("cannot {doing}: the store refuses us: {message}")]
    Refused {
        doing: &'static str,
        message: String,
    },
    /// The revision is older than the history: start over from the present.
    #[error("the revision has been compacted: start over")]
    Compacted,
    /// The response is larger than we accept, or than the store can send. Nothing was done.
    #[error("cannot {doing}: the answer is too large")]
    TooLarge { doing: &'static str },
    /// The revision is not reached yet, or belongs to another store.
    #[error("the revision is in the future")]
    Future,
    /// The lease of a put is gone. Nothing was done.
    #[error("cannot {doing}: the lease has expired")]
    LeaseGone { doing: &'static str },
    #[error("cannot {doing}")]
    Failed {
        /// Verb and object, such as "read a range".
        doing: &'static str,
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
}

/// A store of keys with revisions, transactions, leases and watches.
pub trait KeyStore: Clone + Send + Sync + 'static {
    type Watch: KeyWatch;

    /// Commits a transaction, as one write if it writes.
    fn commit(
        &self,
        transaction: Transaction,
    ) -> impl Future<Output = Result<TransactionOutcome, Error>> + Send;

    /// Reads up to `limit` keys of a range, at the newest revision or `at` an earlier one.
    ///
    /// # Errors
    /// [`Error::Compacted`] and [`Error::Future`] for a revision that cannot be read.
    fn list(
        &self,
        range: Range,
        limit: usize,
        at: Option<Revision>,
    ) -> impl Future<Output = Result<RangePart, Error>> + Send;

    /// Identifies the store. Revisions of another store are unrelated. etcd derives its identity from the
    /// addresses of its servers, so a store restored at the same addresses keeps it.
    fn identity(&self) -> impl Future<Output = Result<u64, Error>> + Send;

    /// Creates a lease with this time to live. The store may make it longer.
    fn grant(&self, seconds: u32) -> impl Future<Output = Result<Lease, Error>> + Send;

    /// Renews a lease.
    fn renew(&self, lease: Lease) -> impl Future<Output = Result<Renewal, Error>> + Send;

    /// Ends a lease and deletes its keys, if it still lives.
    fn revoke(&self, lease: Lease) -> impl Future<Output = Result<(), Error>> + Send;

    /// Watches a range after a position.
    fn watch(&self, range: Range, after: ReadPosition) -> Self::Watch;
}

/// A key that lives as long as its lease: its holder is registered, leads, or works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeasedKey {
    pub lease: Lease,
    /// The revision that created the key. Writes are guarded by this revision, so a write of an earlier holder fails.
    pub created: Revision,
}

/// Creates a key on a lease of its own, unless the key exists.
///
/// After an error the transaction may have been committed: the lease is revoked, because no key may be held by a caller
/// that does not know it.
///
/// `Ok(Err(found))` if the key exists: another caller holds it. `found` has its entry.
pub async fn acquire<S: KeyStore>(
    store: &S,
    key: String,
    value: Vec<u8>,
    seconds: u32,
) -> Result<Result<LeasedKey, TransactionOutcome>, Error> {
    let lease = store.grant(seconds).await?;
    let created = store.commit(Transaction {
        guards: vec![Guard::Absent(key.clone())],
        then: vec![KeyOperation::Put(key.clone(), value, Some(lease))],
        otherwise: vec![KeyOperation::Get(key)],
    });
    match created.await {
        Ok(outcome) if outcome.succeeded => {
            let created = outcome.revision;
            Ok(Ok(LeasedKey { lease, created }))
        }
        not_created => {
            // If the revocation also fails, the lease expires.
            let _ = store.revoke(lease).await;
            not_created.map(Err)
        }
    }
}

pub trait KeyWatch: Send {
    /// Waits for the next batch. Cancel-safe.
    ///
    /// # Errors
    /// After [`Error::Compacted`], [`Error::TooLarge`] and [`Error::Future`] (the store has gone back behind
    /// what was delivered) the watch is over: list the range again. After any other error call it again: it
    /// reconnects and resumes.
    fn next(&mut self) -> impl Future<Output = Result<Batch, Error>> + Send;
}
