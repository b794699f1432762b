//! Use cases: load, let the domain decide, store. One transaction each.
//!
//! A writer of one row reads it, decides, and saves on the condition that the row has not changed. Otherwise it starts
//! over, and after a few attempts it locks the row first, so that every writer of a busy row succeeds
//! (`docs/decisions/0028-compare-and-set.md`). Writers of several rows lock them from the start.

mod audit;
mod change;
mod command;
mod deletion;
mod effects;
mod error;
mod expiry;
mod explanations;
mod finalizing_lists;
mod history;
mod keyed;
mod leases;
mod list;
mod path;
mod reports;
mod resources;
mod sealing;
pub mod trail;
mod turns;
mod unreconciled;
mod unrequired_adapters;
mod watch;

use std::sync::Arc;
use std::time::Duration;

pub use command::{Author, ChangeAnswer, Command, CommandResult, Deleted, Mode, WriteAnswer};
pub use error::Error;
pub use hyperfleet_storage::{Connections, Unreconciled};
pub use list::ListRequest;
pub use path::{Collection, ResourcePath};
pub use sealing::{ENTRIES_MAX, UnsealedTail};
pub use watch::{WatchEnd, WatchEvent, WatchRequest, WatchStep, Watcher};

use finalizing_lists::FinalizingLists;
use hyperfleet_domain::{Entity, EntityRegistry, excerpt};
use hyperfleet_storage::Store;
use unrequired_adapters::UnrequiredAdapters;
use watch::Watches;

/// How often a writer saves on the condition that the row has not changed, before it locks the row.
const UNLOCKED_ATTEMPTS_MAX: usize = 5;

/// Every use case of the API. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    store: Store,
    registry: Arc<EntityRegistry>,
    lists_include_deleted: bool,
    key_retention: Duration,
    watch_behind_max: Duration,
    finalizing_lists: Arc<FinalizingLists>,
    unrequired_adapters: Arc<UnrequiredAdapters>,
    watches: Watches,
}

impl Service {
    /// Default retention of idempotency keys and their responses.
    pub const KEY_RETENTION: Duration = Duration::from_hours(24);

    /// How long a watch that has been up to date may be behind the changes, unless set.
    pub const WATCH_BEHIND_MAX: Duration = Duration::from_mins(1);

    /// Serves the kinds of `registry` from `store`. `lists_include_deleted` is the default of lists (setting
    /// `lists.include_deleted`, `docs/decisions/0003-lists-leave-out-deleted.md`).
    pub fn new(store: Store, registry: Arc<EntityRegistry>, lists_include_deleted: bool) -> Self {
        Self {
            finalizing_lists: Arc::new(FinalizingLists::new(&registry)),
            unrequired_adapters: Arc::default(),
            watches: Watches::new(),
            store,
            registry,
            lists_include_deleted,
            key_retention: Self::KEY_RETENTION,
            watch_behind_max: Self::WATCH_BEHIND_MAX,
        }
    }

    /// The same service, with another retention of idempotency keys and their responses.
    #[must_use]
    pub fn with_key_retention(self, key_retention: Duration) -> Self {
        Self {
            key_retention,
            ..self
        }
    }

    /// The same service, with another time after which watches that are behind end.
    #[must_use]
    pub fn ending_slow_watches_after(self, watch_behind_max: Duration) -> Self {
        Self {
            watch_behind_max,
            ..self
        }
    }

    /// The same service with its own connections, one of `shares` equal parts.
    pub fn share(&self, shares: usize) -> Self {
        Self {
            store: self.store.share(shares),
            ..self.clone()
        }
    }

    /// The same service for one request that begins now: everything it does in the database ends by one deadline,
    /// whatever the number of statements and waits.
    pub fn for_request(&self) -> Self {
        let service = self.clone();
        Self {
            store: service.store.for_request(),
            ..service
        }
    }

    /// Creates the series of these kinds and of the database with the value 0.
    pub fn count_from_zero(&self) {
        effects::count_from_zero(&self.registry);
        watch::count_from_zero();
        hyperfleet_storage::count_from_zero();
    }

    pub fn entity(&self, kind: &str) -> Result<&Entity, Error> {
        let found = self.registry.get(kind);
        found.ok_or_else(|| Error::UnknownKind(excerpt(kind)))
    }

    pub fn registry(&self) -> &Arc<EntityRegistry> {
        &self.registry
    }
}
