//! Fleet: the use cases of its API, and the loops beside them (`docs/concepts/fleet.md`).
//!
//! ```text
//! set_unit, units, older_client, states, machines, draining, explain, follow, observe, inspect     the use cases of the API
//!        │                  │
//!        │                  ▼
//!        │               mirror ◀── engine     the registry in memory, kept by one watch;
//!        ▼                  │          │       the leading engine decides which unit runs where
//!     registry ◀────────────┴──────────┘       the state of fleet, and the only way to change it
//! ```
//!
//! Writes, and reads of a single unit or state, go to the registry, so they see the newest state. Lists come
//! from the mirror. [`engine`] is the loop that decides which unit runs where. It also follows the mirror. Only one
//! engine of the cluster leads at a time. [`agent`] runs the units of its machine.

pub mod agent;
pub mod api;
mod draining;
pub mod engine;
mod error;
pub mod etcd;
mod explain;
mod follow;
pub mod inspect;
pub mod keys;
mod known_units;
mod machines;
mod mirror;
mod observe;
mod older_client;
mod reasons;
pub mod registry;
mod set_unit;
pub mod settings;
pub mod start;
mod states;
mod units;
mod view;

use std::sync::{Arc, OnceLock};

use tokio::sync::{Semaphore, watch};

pub use self::error::Error;
pub use self::follow::{FollowUpdate, Followed, Follower, Item};
pub use self::observe::{FleetReadiness, Observed, ObservedUnit};
pub use self::registry::{Page, StateFilter, StateKey};
pub use self::set_unit::{Set, SetUnit};
pub use hyperfleet_fleet_model::wire::{
    DrainView, ExplanationView, MachineView, MetadataChange, MoveView, RebalanceView, StateView,
    UnitView,
};

use self::mirror::{Mirror, Picture};
use self::older_client::OlderStops;
use crate::etcd::EtcdKeys;
use crate::keys::KeyStore;
use crate::registry::{LISTED_MAX, PageToken, Registry};

/// Fleet as the users of its API see it. Clones share one mirror.
#[derive(Debug, Clone)]
pub struct Fleet<S: KeyStore> {
    registry: Registry<S>,
    mirror: Arc<Mirror>,
    older_stops: Arc<OlderStops>,
    /// The machine of this process's agent.
    own_machine: Arc<OnceLock<OwnMachine>>,
    page_size: usize,
    /// Limits plans of rebalancing to one at a time.
    planning: Arc<Semaphore>,
}

pub type EtcdFleet = Fleet<EtcdKeys>;

pub type EtcdFollower<T> = Follower<EtcdKeys, T>;

impl<S: KeyStore> Fleet<S> {
    /// Fleet on a registry, with lists in pages of `page_size` ([`LISTED_MAX`] at most).
    ///
    /// The caller must [keep the mirror](Self::run_mirror): until then it is not connected.
    pub fn new(registry: Registry<S>, page_size: usize) -> Self {
        Self {
            registry,
            mirror: Arc::default(),
            older_stops: Arc::default(),
            own_machine: Arc::default(),
            page_size: page_size.clamp(1, LISTED_MAX),
            planning: Arc::new(Semaphore::new(1)),
        }
    }

    /// The registry, for an agent of the same process.
    pub fn registry(&self) -> &Registry<S> {
        &self.registry
    }

    /// Sets the machine of this process's agent, which may be set once.
    pub fn set_own_machine(&self, id: &str, status: watch::Receiver<agent::Status>) {
        let id = id.to_owned();
        let _ = self.own_machine.set(OwnMachine { id, status });
    }

    /// The id of this process's machine, and whether it is a member of the cluster; `None` without an agent.
    pub fn own_machine(&self) -> Option<(&str, bool)> {
        let own = self.own_machine.get()?;
        Some((&own.id, own.status.borrow().is_registered))
    }

    /// Whether the mirror is current to its own knowledge: everything was listed, and the watch lives. A
    /// silent server is noticed within fifteen seconds, a stopped one at once.
    pub fn is_connected(&self) -> bool {
        self.mirror.is_connected()
    }

    /// Reads the mirror, which has this process's writes.
    ///
    /// # Errors
    /// [`Error::Unavailable`] while the mirror is not connected, or does not receive the writes.
    async fn mirrored<T>(&self, read: impl FnOnce(&Picture) -> T) -> Result<T, Error> {
        if !self.mirror.has_own_writes().await {
            return Err(Error::Unavailable(None));
        }
        Ok(self.mirror.read(read))
    }
}

/// The machine of this process's agent.
#[derive(Debug, Clone)]
struct OwnMachine {
    id: String,
    status: watch::Receiver<agent::Status>,
}

/// Parses the token of a client.
fn parse_token(token: Option<&str>) -> Result<Option<PageToken>, Error> {
    Ok(token.map(PageToken::parse).transpose()?)
}
