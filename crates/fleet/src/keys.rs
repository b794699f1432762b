//! What the registry asks of a store of keys: the few things of etcd v3 that it is built on.
//!
//! Every write moves the whole store to a new revision, and a transaction is one write. A range can be read as it
//! was at an earlier revision, and a watch tells what has changed since one, until the history is compacted. Keys
//! that are put on a lease are deleted together when nobody keeps it alive.
//!
//! There are two: [`etcd`](super::etcd), and `MemoryKeys` of the testkit for simulations. One suite of tests holds
//! both to what is said here (`crates/fleet/tests/it/registry`).

use std::error::Error as StdError;
use std::future::Future;

use serde::{Deserialize, Serialize};

/// How many operations, or comparisons, a transaction may hold: etcd's default (`--max-txn-ops`).
pub const TRANSACTION_OPERATIONS_MAX: usize = 128;

/// How often a lease is kept alive within its time to live.
pub(crate) const KEPT_PER_LEASE: u32 = 3;

/// A moment of the store: it grows by one with every write, across all keys. Never 0.
pub type Revision = i64;

/// What keys hang on that are to go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lease(pub i64);

/// A key as it stood at the revision that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name. Others may write below our prefix what is no text.
    pub key: Vec<u8>,
    /// What stands there.
    pub value: Vec<u8>,
    /// When it was created; a key that is deleted and put again is a new one.
    pub created: Revision,
    /// When it was last put.
    pub modified: Revision,
}

/// What must be true for a transaction to go through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// There is no such key.
    Absent(String),
    /// The key is the one that was created then.
    Created(String, Revision),
    /// Nobody has put the key since.
    Modified(String, Revision),
}

impl Guard {
    /// The key that is compared.
    pub fn key(&self) -> &str {
        match self {
            Self::Absent(key) | Self::Created(key, _) | Self::Modified(key, _) => key,
        }
    }

    /// Whether it held, by what was found.
    pub fn holds(&self, found: &Outcome) -> bool {
        let entry = found.entry(self.key());
        match self {
            Self::Absent(_) => entry.is_none(),
            Self::Created(_, at) => entry.is_some_and(|entry| entry.created == *at),
            Self::Modified(_, at) => entry.is_some_and(|entry| entry.modified == *at),
        }
    }
}

/// One step of a transaction. No two of a transaction may concern the same key, unless both read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Reads a key; it is found or not.
    Get(String),
    /// Reads a key as it was at a revision; for transactions that only read.
    GetAt(String, Revision),
    /// Puts a value there, on that lease or on none.
    Put(String, Vec<u8>, Option<Lease>),
    /// Deletes a key; fine if there is none.
    Delete(String),
}

impl Operation {
    /// The key that it reads, puts or deletes.
    pub fn key(&self) -> &str {
        match self {
            Self::Get(key) | Self::GetAt(key, _) | Self::Put(key, ..) | Self::Delete(key) => key,
        }
    }
}

/// What to do if every guard holds, and what to do otherwise: all at one revision, or not at all. The guards are
/// compared with the newest state of the store, also where nothing is read or written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transaction {
    /// All of them must hold.
    pub guards: Vec<Guard>,
    /// Done if so.
    pub then: Vec<Operation>,
    /// Done if not.
    pub otherwise: Vec<Operation>,
}

/// How a transaction went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the guards held.
    pub succeeded: bool,
    /// The revision that it made, or at which it read.
    pub revision: Revision,
    /// Keys that were read and exist, in the order of the operations.
    pub found: Vec<Entry>,
}

impl Outcome {
    /// What was found at a key.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.found.iter().find(|entry| entry.key == key.as_bytes())
    }
}

/// Keys in order, from the first (included) to the last (not included).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    /// The first.
    pub from: Vec<u8>,
    /// The one after the last.
    pub to: Vec<u8>,
}

impl Range {
    /// All keys that begin so.
    pub fn below(prefix: &str) -> Self {
        Self {
            from: prefix.into(),
            to: after_all(prefix),
        }
    }

    /// One key alone.
    pub fn one(key: &[u8]) -> Self {
        let mut to = key.to_vec();
        to.push(0);
        Self {
            from: key.to_vec(),
            to,
        }
    }

    /// The rest of it behind a key.
    pub fn behind(&self, key: &[u8]) -> Self {
        let mut from = key.to_vec();
        from.push(0);
        Self {
            from,
            to: self.to.clone(),
        }
    }

    /// Whether a key lies in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key && key < self.to.as_slice()
    }
}

/// The first key behind all that begin with `prefix`, which ends in a character of one byte.
fn after_all(prefix: &str) -> Vec<u8> {
    let mut key = prefix.as_bytes().to_vec();
    if let Some(last) = key.last_mut() {
        *last += 1;
    }
    key
}

/// Some of a range, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// What was found.
    pub entries: Vec<Entry>,
    /// Whether there is more behind it.
    pub more: bool,
    /// When it was so: the revision that was asked for, or the newest.
    pub revision: Revision,
}

/// What a watch tells: all that happened up to a revision, since the last time it told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    /// Everything up to here has been told. Changes of one revision are never split.
    pub revision: Revision,
    /// Oldest first; none if the store only says how far it has got.
    pub events: Vec<Event>,
}

/// A key was put or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name.
    pub key: Vec<u8>,
    /// What it became; none if it was deleted.
    pub entry: Option<Entry>,
}

/// Whether a lease could be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// It lives for its whole time again.
    Alive,
    /// It has expired or was revoked, and its keys are gone.
    Gone,
}

/// How far a range has been read, with what it takes to notice that the store was restored since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Everything up to here has been read.
    pub revision: Revision,
    /// The newest change of the range up to there that is known: of a list, the newest of what is still there.
    pub last: Option<LastChange>,
}

impl From<Revision> for Position {
    fn from(revision: Revision) -> Self {
        Self {
            revision,
            last: None,
        }
    }
}

/// That a key was put or deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastChange {
    /// Its name.
    pub key: Vec<u8>,
    /// When.
    pub revision: Revision,
    /// Whether it was put.
    pub is_put: bool,
}

impl LastChange {
    /// The newer one of a change and the one that put an entry.
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

/// What can go wrong between us and the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot be reached, or cannot serve right now. A transaction that was under way may have gone through.
    #[error("cannot {doing}: the store is unavailable")]
    Unavailable {
        /// Verb and object.
        doing: &'static str,
        /// What the client or the server says.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// It lets us in neither now nor later: wrong password, no right to the key. Nothing was done.
    #[error("cannot {doing}: the store refuses us: {message}")]
    Refused {
        /// Verb and object.
        doing: &'static str,
        /// What it says.
        message: String,
    },
    /// The revision is older than its history: start over from the present.
    #[error("the revision has been compacted: start over")]
    Compacted,
    /// The answer is larger than we take, or than the store can send. Nothing was done.
    #[error("cannot {doing}: the answer is too large")]
    TooLarge {
        /// Verb and object.
        doing: &'static str,
    },
    /// The revision has not come yet in this store, or was one of another store in its place.
    #[error("the revision is in the future")]
    Future,
    /// The lease to put a key on is gone. Nothing was done.
    #[error("cannot {doing}: the lease has expired")]
    LeaseGone {
        /// Verb and object.
        doing: &'static str,
    },
    /// Anything else, with what was being done.
    #[error("cannot {doing}")]
    Failed {
        /// Verb and object: «read a range».
        doing: &'static str,
        /// What the client says.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
}

/// A store of keys with revisions, transactions, leases and watches.
pub trait KeyStore: Clone + Send + Sync + 'static {
    /// What its watches are.
    type Watch: KeyWatch;

    /// Carries out a transaction, as one write if it writes.
    fn commit(
        &self,
        transaction: Transaction,
    ) -> impl Future<Output = Result<Outcome, Error>> + Send;

    /// Reads up to `limit` keys of a range, as they are or as they were `at` a revision.
    ///
    /// # Errors
    /// [`Error::Compacted`] and [`Error::Future`] for a revision that cannot be read.
    fn list(
        &self,
        range: Range,
        limit: usize,
        at: Option<Revision>,
    ) -> impl Future<Output = Result<Listing, Error>> + Send;

    /// Names the store. The revisions of another one say nothing of those of this one. etcd makes its name from the
    /// addresses of its servers, so one that was restored at the same addresses has the same.
    fn identity(&self) -> impl Future<Output = Result<u64, Error>> + Send;

    /// Makes a lease that lives for that long unless it is kept. The store may make it longer.
    fn grant(&self, seconds: u32) -> impl Future<Output = Result<Lease, Error>> + Send;

    /// Makes the lease live for its whole time again.
    fn keep(&self, lease: Lease) -> impl Future<Output = Result<Kept, Error>> + Send;

    /// Ends a lease, and deletes the keys that hang on it. Fine if it is gone.
    fn revoke(&self, lease: Lease) -> impl Future<Output = Result<(), Error>> + Send;

    /// Tells what happens in a range after a position of it.
    fn watch(&self, range: Range, after: Position) -> Self::Watch;
}

/// A watch of a range.
pub trait KeyWatch: Send {
    /// Waits for what happens next. May be given up half-way, nothing is lost.
    ///
    /// # Errors
    /// [`Error::Compacted`], [`Error::TooLarge`], and [`Error::Future`] where the store has gone back behind what was
    /// told: it will tell nothing more, and what happened has to be listed.
    /// After all others it may be asked again: it connects anew and goes on where it was.
    fn next(&mut self) -> impl Future<Output = Result<Batch, Error>> + Send;
}
