//! Observation by programs beside fleet: some units with the reports of all machines, at one moment.

use std::collections::BTreeMap;

use super::mirror::Picture;
use super::view::state_view;
use super::{Error, Fleet, StateView};
use crate::keys::KeyStore;
use hyperfleet_fleet_model::unit::{DesiredState, UnitOption};

/// A unit as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedUnit {
    pub options: Vec<UnitOption>,
    /// Digest of its file, 40 digits.
    pub hash: String,
    pub desired: DesiredState,
    /// The machine that the engine has chosen; never set for a global unit.
    pub machine: Option<String>,
}

/// A unit, and what machines report under its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// `None` if there is no such unit, or if it is unreadable.
    pub unit: Option<ObservedUnit>,
    /// By machine. A machine may report a destroyed unit until it has stopped it.
    pub states: Vec<StateView>,
}

/// Whether fleet can place and start units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FleetReadiness {
    pub has_leader: bool,
    /// Machines with a live lease.
    pub machines: usize,
}

impl<S: KeyStore> Fleet<S> {
    /// Units by name, all of one moment, which is not before the last write of this process.
    ///
    /// # Errors
    /// [`Error::Unavailable`] while the mirror is not connected or has not reached this process's writes.
    pub async fn observe(&self, names: &[String]) -> Result<BTreeMap<String, Observed>, Error> {
        let all = |picture: &Picture| {
            let observed = names.iter().map(|name| (name.clone(), of(picture, name)));
            observed.collect()
        };
        self.mirrored(all).await
    }

    /// The mirror's view of engines and machines. It is outdated while the mirror is not connected.
    pub fn readiness(&self) -> FleetReadiness {
        self.mirror.read(|picture| FleetReadiness {
            has_leader: picture.snapshot.leader.is_some(),
            machines: picture.snapshot.machines.len(),
        })
    }
}

fn of(picture: &Picture, name: &str) -> Observed {
    let states = picture.snapshot.states_of(name);
    let states = states.map(|(key, state)| state_view((key.clone(), state.clone())));
    let unit = picture.snapshot.unit(name);
    Observed {
        unit: unit.map(|(unit, _)| ObservedUnit {
            options: unit.body.value.options,
            hash: unit.body.value.hash,
            desired: unit.desired.value.state,
            machine: unit.placement.map(|placement| placement.value.machine),
        }),
        states: states.collect(),
    }
}
