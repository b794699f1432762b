//! Use cases: load, let the domain decide, store. One transaction each.
//!
//! Writers of one row read it, decide, and save under the condition that the row has not moved on;
//! otherwise they start over, and after a few attempts they lock it first, so that a busy row
//! lets everybody through. What touches several rows locks them from the start.

mod address;
mod audit;
mod deletion;
mod effects;
mod error;
mod finalizing_lists;
pub mod import;
mod keyed;
mod list;
mod reports;
mod resources;
mod unreconciled;
mod unrequired_adapters;

use std::sync::Arc;
use std::time::Duration;

pub use crate::storage::postgres::{Connections, Unreconciled};
pub use address::{Address, Collection};
pub use deletion::Deleted;
pub use error::Error;
pub use keyed::{KeyedAnswer, WriteAnswer};
pub use list::ListRequest;

use crate::domain::{Entity, EntityRegistry, shown};
use crate::storage::postgres::{self, Store};
use finalizing_lists::FinalizingLists;
use unrequired_adapters::UnrequiredAdapters;

/// How often a writer saves on the chance that nobody else does, before it locks the row.
const UNLOCKED_ATTEMPTS_MAX: usize = 5;

/// Everything that can be done with resources. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    store: Store,
    registry: Arc<EntityRegistry>,
    lists_include_deleted: bool,
    keys_kept: Duration,
    finalizing_lists: Arc<FinalizingLists>,
    unrequired_adapters: Arc<UnrequiredAdapters>,
}

impl Service {
    /// How long idempotency keys and their answers are kept, unless set.
    pub const KEYS_KEPT: Duration = Duration::from_hours(24);

    /// Serves the kinds of `registry` from `store`. `lists_include_deleted` is the default for
    /// lists that do not say (setting `lists.include_deleted`,
    /// `docs/decisions/0003-lists-leave-out-deleted.md`).
    pub fn new(store: Store, registry: Arc<EntityRegistry>, lists_include_deleted: bool) -> Self {
        Self {
            finalizing_lists: Arc::new(FinalizingLists::new(&registry)),
            unrequired_adapters: Arc::default(),
            store,
            registry,
            lists_include_deleted,
            keys_kept: Self::KEYS_KEPT,
        }
    }

    /// The same service, with another time for which idempotency keys and their answers are kept.
    #[must_use]
    pub fn keeping_keys(self, keys_kept: Duration) -> Self {
        Self { keys_kept, ..self }
    }

    /// The same service over connections of its own, one of `shares` equal parts.
    pub fn share(&self, shares: usize) -> Self {
        Self {
            store: self.store.share(shares),
            ..self.clone()
        }
    }

    /// The same service for one request that begins now: all that it does in the database ends by one deadline,
    /// whatever the number of statements and waits.
    pub fn for_request(&self) -> Self {
        let service = self.clone();
        Self {
            store: service.store.for_request(),
            ..service
        }
    }

    /// Shows what can be counted of these kinds, and of the database, from now on, at 0.
    pub fn count_from_zero(&self) {
        effects::count_from_zero(&self.registry);
        postgres::count_from_zero();
    }

    /// The kind of that name.
    pub fn entity(&self, kind: &str) -> Result<&Entity, Error> {
        let found = self.registry.get(kind);
        found.ok_or_else(|| Error::UnknownKind(shown(kind)))
    }

    /// The kinds that are served.
    pub fn registry(&self) -> &Arc<EntityRegistry> {
        &self.registry
    }
}
