use super::key::UnusablePart;
use super::table::Key;
use crate::keys::{self, Revision};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The list or history is older than what the store keeps: start over from the present.
    #[error("the list has gone stale: start over")]
    Compacted,
    /// The text is no page token of this list.
    #[error("invalid page token")]
    Token,
    /// The key is unreadable or missing. It was not changed.
    #[error("{name} {}", if super::is_newer(*version) { "was written by a newer version" } else { "holds nothing that can be read" })]
    Unreadable {
        key: Key,
        /// Its name in etcd.
        name: String,
        /// The version that it names. A [newer](super::is_newer) one belongs to a newer program; everything
        /// else is damage.
        version: Option<u64>,
    },
    /// The text cannot be part of a key, or is too large to store. Nothing was done.
    #[error(transparent)]
    Unusable(#[from] UnusablePart),
    /// Other writers were faster too often. Nothing was done.
    #[error("too many changes at the same time")]
    Busy,
    /// This engine no longer leads. Nothing was done.
    #[error("no longer the leader")]
    Deposed,
    /// The machine's lease has expired. Nothing was done.
    #[error("the machine is no longer registered")]
    Unregistered,
    /// The registry does not know the machine's last report: the store was restored. Nothing was done.
    #[error("the registry went back in time")]
    WentBack { revision: Revision },
    #[error("the registry's store failed")]
    Store(#[source] keys::Error),
}

impl From<keys::Error> for Error {
    fn from(error: keys::Error) -> Self {
        match error {
            keys::Error::Compacted => Self::Compacted,
            // Revisions that we read at come from the store, except those in tokens.
            keys::Error::Future => Self::Token,
            other => Self::Store(other),
        }
    }
}
