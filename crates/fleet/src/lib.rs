//! Fleet: what its users may ask and say, and the loops beside them (`docs/concepts/fleet.md`).
//!
//! ```text
//! set_unit, units, states, machines, draining, explain, follow, observe, inspect     what users ask and say: the use cases of the API
//!        │                  │
//!        │                  ▼
//!        │               mirror ◀── engine     what is there, in memory, kept by one watch;
//!        ▼                  │          │       the one of all that leads decides which unit runs where
//!     registry ◀────────────┴──────────┘       what is there, and the one way to change it
//! ```
//!
//! Whatever is changed, and a single unit or state that is asked for, goes to the registry: that is the newest there
//! is. Lists come from the mirror. Beside them is [`engine`]: the loop that decides what runs where, in one process of
//! all; it follows the mirror, too.

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
pub mod registry;
mod set_unit;
pub mod settings;
pub mod start;
mod states;
mod turns;
mod units;
mod view;

use std::sync::Arc;

use tokio::sync::Semaphore;

pub use self::error::Error;
pub use self::follow::{Follow, Followed, Item, Told};
pub use self::observe::{Condition, Observed};
pub use self::registry::{Page, Refusal, StateFilter, StateKey};
pub use self::set_unit::Set;
pub use hyperfleet_fleet_model::wire::{
    DrainView, ExplanationView, MachineView, MetadataChange, MoveView, RebalanceView, SetUnit,
    StateView, UnitView,
};

use self::mirror::{Mirror, Picture};
use self::turns::Turns;
use crate::etcd::EtcdKeys;
use crate::keys::KeyStore;
use crate::registry::{LISTED_MAX, PageToken, Registry};

/// How often something is read and decided anew because others were faster. Who writes here takes turns, so those
/// are other processes; one of those who contend gets through each time.
const ATTEMPTS_MAX: u32 = 32;

/// Fleet as the users of its API see it. Clones share one mirror, and take turns where they write the same unit.
#[derive(Debug, Clone)]
pub struct Fleet<S: KeyStore> {
    registry: Registry<S>,
    mirror: Arc<Mirror>,
    turns: Arc<Turns>,
    page_size: usize,
    /// For plans that an operator asks for.
    planning: Arc<Semaphore>,
}

/// Fleet on etcd.
pub type EtcdFleet = Fleet<EtcdKeys>;

/// A follower of it.
pub type EtcdFollow<T> = Follow<EtcdKeys, T>;

impl<S: KeyStore> Fleet<S> {
    /// What is in a registry, in pages of that many ([`LISTED_MAX`] at most).
    ///
    /// Somebody has to [keep the mirror](Self::keep_mirror): until then it is not connected.
    pub fn new(registry: Registry<S>, page_size: usize) -> Self {
        Self {
            registry,
            mirror: Arc::default(),
            turns: Arc::default(),
            page_size: page_size.clamp(1, LISTED_MAX),
            planning: Arc::new(Semaphore::new(1)),
        }
    }

    /// What it reads and writes, for an agent beside it.
    pub fn registry(&self) -> &Registry<S> {
        &self.registry
    }

    /// Whether what the mirror knows is the present, as far as can be told: everything was listed, and the watch
    /// lives. A server that falls silent is noticed within fifteen seconds, one that is gone at once.
    pub fn is_connected(&self) -> bool {
        self.mirror.is_connected()
    }

    /// A page from the mirror; none if the mirror cannot give it.
    ///
    /// It can if it lives and has come to what this process wrote; and of a list that goes on, if nothing has
    /// changed since its first page.
    async fn mirrored<T>(
        &self,
        after: Option<&PageToken>,
        list: impl FnOnce(&Picture) -> Result<T, registry::Error>,
    ) -> Result<Option<T>, Error> {
        let is_current = match after {
            None => self.mirror.has_own_writes().await,
            Some(_) => self.mirror.is_connected(),
        };
        if !is_current {
            return Ok(None);
        }
        let listed = self.mirror.read(|picture| {
            let is_its = after.is_none_or(|token| token.revision() == picture.known.revision);
            is_its.then(|| list(picture)).transpose()
        });
        Ok(listed?)
    }
}

/// The token that a client sends back.
fn parse_token(token: Option<&str>) -> Result<Option<PageToken>, Error> {
    Ok(token.map(PageToken::parse).transpose()?)
}
