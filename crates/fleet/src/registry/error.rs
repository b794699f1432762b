use super::key::{Key, UnusablePart};
use crate::keys::{self, Revision};

/// What can go wrong with the registry.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What was read, or was to be gone on with, is older than the history: start over from the present.
    #[error("the list has gone stale: start over")]
    Compacted,
    /// The text is no page token of this list.
    #[error("invalid page token")]
    Token,
    /// The key holds what is not ours to read, or lacks what belongs there. It was left alone.
    #[error("{name} {}", if super::is_newer(*version) { "was written by a newer version" } else { "holds nothing that can be read" })]
    Foreign {
        /// Which one.
        key: Key,
        /// What it is called in etcd.
        name: String,
        /// The version that it names. Only a [newer](super::is_newer) one is somebody's; all else is damage.
        version: Option<u64>,
    },
    /// It would not make a key, or is more than may be stored. Nothing was done.
    #[error(transparent)]
    Unusable(#[from] UnusablePart),
    /// Somebody else decides now, or nobody. Nothing was done.
    #[error("no longer the leader")]
    Deposed,
    /// The machine is not registered any more: its lease has expired. Nothing was done.
    #[error("the machine is no longer registered")]
    Unregistered,
    /// The machine's last report is not known here: the store was restored. Nothing was done.
    #[error("the registry went back in time")]
    WentBack {
        /// The newest revision there.
        revision: Revision,
    },
    /// Anything that is the store's.
    #[error("the registry's store failed")]
    Store(#[source] keys::Error),
}

impl From<keys::Error> for Error {
    fn from(error: keys::Error) -> Self {
        match error {
            keys::Error::Compacted => Self::Compacted,
            // Revisions that we read at come from the store, but for those of tokens.
            keys::Error::Future => Self::Token,
            other => Self::Store(other),
        }
    }
}
