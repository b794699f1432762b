//! Lists in pages, from a snapshot, in the order of keys.
//!
//! The token of a page is its last key, and the next page has the keys after it as they are then. So an item that exists
//! all the time is in the list once. Unreadable records are left out.

use std::ops::Bound;

use super::Error;
use super::key::{KeyPart as _, StateKey};
use super::machines::KnownMachine;
use super::reading::PART_KEYS;
use super::record::{Stored, UnitState};
use super::table::{Family, Snapshot};
use super::token::PageToken;
use super::units::UnitRecord;
use crate::keys::Revision;

/// Largest page.
pub const LISTED_MAX: usize = PART_KEYS;

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// In order.
    pub items: Vec<T>,
    /// The page shows this revision. The next page may show a later one.
    pub revision: Revision,
    /// Token of the next page; `None` at the end.
    pub next: Option<PageToken>,
}

impl<T> Page<T> {
    /// The same page with mapped items.
    pub(crate) fn map<R>(self, item: impl Fn(T) -> R) -> Page<R> {
        Page {
            items: self.items.into_iter().map(item).collect(),
            revision: self.revision,
            next: self.next,
        }
    }

    /// The opaque token for clients; `None` at the end.
    pub fn token(&self) -> Option<String> {
        self.next.as_ref().map(PageToken::text)
    }
}

/// A unit, with the report of the machine where it is placed.
pub type ListedUnit = (UnitRecord, Option<Stored<UnitState>>);

/// What a machine reports of a unit.
pub type ReportedState = (StateKey, Stored<UnitState>);

/// Selects states. The default selects all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateFilter {
    pub unit: Option<String>,
    pub machine: Option<String>,
}

impl Snapshot {
    /// A unit, with the report of the machine where it is placed; `None` if it is unreadable.
    pub fn unit(&self, name: &str) -> Option<ListedUnit> {
        if self.is_unreadable(name) {
            return None;
        }
        let placement = self.placements.get(name).cloned();
        let state = placement.as_ref().and_then(|placement| {
            let (unit, machine) = (name.to_owned(), placement.value.machine.clone());
            self.states.get(&StateKey { unit, machine }).cloned()
        });
        let unit = UnitRecord {
            name: name.to_owned(),
            body: self.bodies.get(name)?.clone(),
            desired: self.desired.get(name)?.clone(),
            placement,
        };
        Some((unit, state))
    }

    /// What a machine reports of a unit.
    pub fn state(&self, key: StateKey) -> Option<ReportedState> {
        let state = self.states.get(&key)?.clone();
        Some((key, state))
    }

    pub fn machine(&self, id: &str) -> Option<KnownMachine> {
        let (id, machine) = self.machines.get_key_value(id)?;
        Some(KnownMachine {
            id: id.clone(),
            machine: machine.clone(),
            metadata: self.metadata(id),
            availability: self.availability(id),
        })
    }

    /// Units by name, each with the report of the machine where it is placed.
    ///
    /// # Errors
    /// [`Error::Token`] for a token of another list.
    pub fn list_units(
        &self,
        after: Option<&PageToken>,
        limit: usize,
    ) -> Result<Page<ListedUnit>, Error> {
        let behind = behind(Family::Unit, after)?;
        let names = self.bodies.range::<str, _>((behind, Bound::Unbounded));
        let names = names.map(|(name, _)| name);
        let names = names.filter(|name| !self.is_unreadable(name));
        let (names, more) = some(names, limit);
        let units = names.iter().filter_map(|name| self.unit(name)).collect();
        Ok(self.page(Family::Unit, units, more.cloned()))
    }

    /// What machines report, by unit and then by machine. `of_machine` returns the units that a machine
    /// reports, in order, after a given one.
    ///
    /// # Errors
    /// [`Error::Token`] for a token of another list.
    pub fn list_states<'a, I: Iterator<Item = &'a str>>(
        &'a self,
        filter: &StateFilter,
        after: Option<&PageToken>,
        limit: usize,
        of_machine: impl FnOnce(&str, Option<&str>) -> I,
    ) -> Result<Page<ReportedState>, Error> {
        let behind = match after {
            None => None,
            Some(token) => Some(state_token(token, filter)?),
        };
        let key = |unit: &str, machine: &String| StateKey {
            unit: unit.to_owned(),
            machine: machine.clone(),
        };
        let (keys, more): (Vec<StateKey>, bool) = match (&filter.unit, &filter.machine) {
            (Some(unit), Some(machine)) => {
                let key = key(unit, machine);
                let is_new = behind.is_none_or(|behind| behind < key);
                (Vec::from_iter(is_new.then_some(key)), false)
            }
            (None, Some(machine)) => {
                let behind = behind.map(|behind| behind.unit);
                let mut units = of_machine(machine, behind.as_deref());
                let keys = units.by_ref().take(limit.max(1));
                let keys = keys.map(|unit| key(unit, machine)).collect();
                (keys, units.next().is_some())
            }
            (unit, None) => {
                let from = match (behind, unit) {
                    (Some(behind), _) => Bound::Excluded(behind),
                    (None, Some(unit)) => Bound::Included(key(unit, &String::new())),
                    (None, None) => Bound::Unbounded,
                };
                let keys = self.states.range((from, Bound::Unbounded));
                let keys = keys.map(|(key, _)| key);
                let keys = keys.take_while(|key| unit.as_ref().is_none_or(|u| *u == key.unit));
                let (keys, more) = some(keys, limit);
                (keys.into_iter().cloned().collect(), more.is_some())
            }
        };
        let last = keys.last().filter(|_| more).map(StateKey::to_string);
        let states = keys.into_iter().filter_map(|key| self.state(key));
        Ok(self.page(Family::State, states.collect(), last))
    }

    /// Machines by id, with their metadata.
    ///
    /// # Errors
    /// [`Error::Token`] for a token of another list.
    pub fn list_machines(
        &self,
        after: Option<&PageToken>,
        limit: usize,
    ) -> Result<Page<KnownMachine>, Error> {
        let behind = behind(Family::Machine, after)?;
        let machines = self.machines.range::<str, _>((behind, Bound::Unbounded));
        let (machines, more) = some(machines, limit);
        let more = more.map(|(id, _)| id.clone());
        let known = machines.into_iter().filter_map(|(id, _)| self.machine(id));
        Ok(self.page(Family::Machine, known.collect(), more))
    }

    /// A page, with its token if the list continues.
    fn page<T>(&self, family: Family, items: Vec<T>, last: Option<String>) -> Page<T> {
        let revision = self.revision;
        Page {
            items,
            revision,
            next: last.map(|last| PageToken::new(family, revision, last)),
        }
    }
}

/// The first items of a list, and the last of them if there are more.
fn some<T: Copy>(mut list: impl Iterator<Item = T>, limit: usize) -> (Vec<T>, Option<T>) {
    let some: Vec<T> = list.by_ref().take(limit.max(1)).collect();
    let end = some.last().copied();
    (some, list.next().and(end))
}

fn behind(family: Family, after: Option<&PageToken>) -> Result<Bound<&str>, Error> {
    let Some(token) = after else {
        return Ok(Bound::Unbounded);
    };
    token.check(family)?;
    Ok(Bound::Excluded(&token.last))
}

/// The unit and the machine after which a list of states continues.
fn state_token(token: &PageToken, filter: &StateFilter) -> Result<StateKey, Error> {
    token.check(Family::State)?;
    let key = StateKey::parse(&token.last).ok_or(Error::Token)?;
    if filter.unit.as_ref().is_some_and(|unit| *unit != key.unit) {
        return Err(Error::Token);
    }
    Ok(key)
}
