//! The pages that a registry gives, out of a snapshot of it: the same, with the same tokens, at the snapshot's
//! revision.
//!
//! Where a whole page is not ours to read, those of the registry are empty and go on; these are never empty.

use std::ops::Bound;

use super::Error;
use super::key::{Family, Key};
use super::lists::{ListedUnit, Page, ReportedState, StateFilter};
use super::machines::KnownMachine;
use super::snapshot::Snapshot;
use super::token::PageToken;
use super::units::UnitRecord;

impl Snapshot {
    /// A unit, with what the machine that it is placed on reports of it; none if it is unreadable.
    pub fn unit(&self, name: &str) -> Option<ListedUnit> {
        if self.is_unreadable(name) {
            return None;
        }
        let place = self.places.get(name).cloned();
        let state = place.as_ref().and_then(|place| {
            let pair = (name.to_owned(), place.value.machine.clone());
            self.states.get(&pair).cloned()
        });
        let unit = UnitRecord {
            name: name.to_owned(),
            body: self.bodies.get(name)?.clone(),
            want: self.wants.get(name)?.clone(),
            place,
        };
        Some((unit, state))
    }

    /// What a machine reports of a unit.
    pub fn state(&self, unit: &str, machine: &str) -> Option<ReportedState> {
        let (unit, machine) = (unit.to_owned(), machine.to_owned());
        let pair = (unit, machine);
        let state = self.states.get(&pair)?.clone();
        let (unit, machine) = pair;
        Some(ReportedState {
            unit,
            machine,
            state,
        })
    }

    /// A machine with its metadata.
    pub fn machine(&self, id: &str) -> Option<KnownMachine> {
        let (id, machine) = self.machines.get_key_value(id)?;
        Some(KnownMachine {
            id: id.clone(),
            machine: machine.clone(),
            metadata: self.metadata(id),
        })
    }

    /// Units by name, as [`Registry::list_units`](super::Registry::list_units) gives them. The token's revision is
    /// not looked at, here and below.
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

    /// What machines report, by unit and then by machine. `of_machine` gives the units that a machine reports
    /// on, in order, behind the one that it is given.
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
        let (pairs, more): (Vec<(String, String)>, bool) = match (&filter.unit, &filter.machine) {
            (Some(unit), Some(machine)) => {
                let pair = (unit.clone(), machine.clone());
                let is_new = behind.is_none_or(|behind| behind < pair);
                (Vec::from_iter(is_new.then_some(pair)), false)
            }
            (None, Some(machine)) => {
                let behind = behind.map(|(unit, _)| unit);
                let mut units = of_machine(machine, behind.as_deref());
                let pair = |unit: &str| (unit.to_owned(), machine.clone());
                let pairs = units.by_ref().take(limit.max(1)).map(pair).collect();
                (pairs, units.next().is_some())
            }
            (unit, None) => {
                let from = match (behind, unit) {
                    (Some(behind), _) => Bound::Excluded(behind),
                    (None, Some(unit)) => Bound::Included((unit.clone(), String::new())),
                    (None, None) => Bound::Unbounded,
                };
                let pairs = self.states.range((from, Bound::Unbounded));
                let pairs = pairs.map(|(pair, _)| pair);
                let pairs = pairs.take_while(|pair| unit.as_ref().is_none_or(|u| *u == pair.0));
                let (pairs, more) = some(pairs, limit);
                (pairs.into_iter().cloned().collect(), more.is_some())
            }
        };
        let states: Vec<_> = pairs.iter().filter_map(|(u, m)| self.state(u, m)).collect();
        let last = pairs.last().filter(|_| more);
        let last = last.map(|(unit, machine)| Key::joined(unit, machine));
        Ok(self.page(Family::State, states, last))
    }

    /// Machines that are there, by id, with their metadata.
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

    /// A page, with behind which the list goes on if there is more.
    pub(super) fn page<T>(&self, family: Family, items: Vec<T>, last: Option<String>) -> Page<T> {
        let revision = self.revision;
        Page {
            items,
            revision,
            next: last.map(|last| PageToken::new(family, revision, last)),
        }
    }
}

/// Some of a list; and the last of them, if there is more.
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

/// The unit and the machine that a list of states goes on behind.
fn state_token(token: &PageToken, filter: &StateFilter) -> Result<(String, String), Error> {
    token.check(Family::State)?;
    let (unit, machine) = Key::split(&token.last).ok_or(Error::Token)?;
    if filter.unit.as_ref().is_some_and(|asked| asked != unit) {
        return Err(Error::Token);
    }
    Ok((unit.to_owned(), machine.to_owned()))
}
