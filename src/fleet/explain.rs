//! Why a unit is where it is, or nowhere.

use super::mirror::Picture;
use super::units::ours;
use super::view::{UnitView, current};
use super::{Error, Fleet};
use crate::domain::schedule::{self, EXAMPLES_MAX, Job, MachineId, UnitName, globals_on};
use crate::domain::unit::fleet_section::FleetSection;
use crate::domain::unit::{DesiredState, NameParts};
use crate::storage::keys::KeyStore;
use crate::storage::registry::{GlobalRule, Refusal, Unit, UnitState};

/// Why a unit is where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The unit.
    pub unit: UnitView,
    /// A sentence for people.
    pub reason: String,
    /// If machines refuse it: by which requirement, as the engine last found.
    pub refusals: Vec<Refusal>,
}

impl<S: KeyStore> Fleet<S> {
    /// Says why a unit is where it is, or nowhere. What is said of the unit is its newest state; what other machines
    /// and units have to do with it comes from the mirror.
    ///
    /// # Errors
    /// [`Error::NoUnit`].
    pub async fn explain(&self, name: &str) -> Result<Explained, Error> {
        let unit = self.stored_unit(name).await?;
        let generation = unit.want.value.generation;
        let why = ours(self.registry.find_why(name).await)?.map(|why| why.value);
        let why = why.filter(|why| why.generation == generation);
        let state = self.state_of(&unit).await?;
        let (reason, refusals) = match (unit.want.value.state, &unit.place, why) {
            (DesiredState::Inactive, ..) => (inactive(&unit), Vec::new()),
            _ if unit.body.value.global.is_some() => (self.global(name).await, Vec::new()),
            (_, Some(place), _) => {
                let state = state.as_ref().map(|state| &state.value);
                (self.placed(&place.value.machine, state), Vec::new())
            }
            (_, None, Some(why)) => (why.reason, why.refusals),
            (_, None, None) => (self.waiting(), Vec::new()),
        };
        let unit = UnitView::new(unit, state.as_ref());
        Ok(Explained {
            unit,
            reason,
            refusals,
        })
    }

    fn placed(&self, machine: &str, state: Option<&UnitState>) -> String {
        let is_there = self
            .mirror
            .read(|picture| picture.known.machines.contains_key(machine));
        if !is_there {
            return format!("placed on {machine}, which is not there any more: about to be moved");
        }
        match current(state) {
            DesiredState::Inactive => format!("placed on {machine}, which has not reported it yet"),
            current => format!("placed on {machine}, and {current} there"),
        }
    }

    fn waiting(&self) -> String {
        let leader = self.mirror.read(|picture| {
            let leader = picture.known.leader.as_ref();
            leader.map(|leader| leader.value.id.clone())
        });
        match leader {
            None => "not looked at yet: no engine leads".to_owned(),
            Some(id) => format!("not looked at yet: the engine on {id} has yet to do so"),
        }
    }

    /// Machine by machine, so that the mirror is never held for long.
    async fn global(&self, name: &str) -> String {
        let ids: Vec<String> = self.mirror.read(|picture| {
            let ids = picture.known.machines.keys();
            ids.cloned().collect()
        });
        let mut on = Vec::new();
        for id in &ids {
            if self.mirror.read(|picture| belongs(picture, name, id)) {
                on.push(id.as_str());
            }
            tokio::task::yield_now().await;
        }
        let count = ids.len();
        if on.is_empty() {
            return format!("global: belongs on none of {count} machines");
        }
        let more = if on.len() > EXAMPLES_MAX { ", …" } else { "" };
        let some = on[..on.len().min(EXAMPLES_MAX)].join(", ");
        let of = on.len();
        format!("global: belongs on {of} of {count} machines ({some}{more})")
    }
}

fn inactive(unit: &Unit) -> String {
    match &unit.place {
        None => "inactive: it is to be on no machine".to_owned(),
        Some(place) => {
            let machine = &place.value.machine;
            format!("inactive: about to leave {machine}")
        }
    }
}

/// Whether a global unit belongs on a machine.
fn belongs(picture: &Picture, name: &str, machine: &str) -> bool {
    let known = &picture.known;
    let metadata = known.metadata(machine);
    let global = known.bodies.get(name).and_then(|b| b.value.global.as_ref());
    let suits = |rule: &GlobalRule| {
        let mut wanted = rule.metadata.iter();
        wanted.all(|(key, values)| {
            metadata
                .get(key)
                .is_some_and(|value| values.contains(value))
        })
    };
    if !known.machines.contains_key(machine) || !global.is_some_and(suits) {
        return false;
    }
    let first = (machine.to_owned(), String::new());
    let placed = known.runs.range(first..).map(|(pair, _)| pair);
    let placed = placed.take_while(|(id, _)| id == machine);
    let placed: Vec<Job> = placed.filter_map(|(_, unit)| job(picture, unit)).collect();
    let globals = known.globals.keys();
    let globals: Vec<Job> = globals.filter_map(|unit| job(picture, unit)).collect();
    let machine = schedule::Machine {
        id: MachineId::new(machine),
        metadata,
    };
    let on = globals_on(&machine, &placed, &globals);
    on.iter().any(|unit| unit.as_str() == name)
}

/// A unit as decisions see it.
fn job(picture: &Picture, name: &str) -> Option<Job> {
    let body = &picture.known.bodies.get(name)?.value;
    let section = FleetSection::of(&body.options);
    let place = picture.known.places.get(name);
    Some(Job {
        name: UnitName::new(name),
        requirements: section.requirements(NameParts::of(name)),
        desired: picture.known.wants.get(name)?.value.state,
        placed_on: place.map(|place| MachineId::new(place.value.machine.as_str())),
    })
}
