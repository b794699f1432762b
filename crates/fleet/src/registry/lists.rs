//! Lists, in order of names, and page by page as they were at one revision.

use std::collections::BTreeMap;

use super::change::Change;
use super::key::{Family, Key, check_part};
use super::machines::KnownMachine;
use super::record::{Stored, UnitState, Why};
use super::snapshot::{Snapshot, overlay};
use super::token::PageToken;
use super::units::Unit;
use super::{CHUNK_KEYS, Error, Registry};
use crate::keys::{
    KeyStore, Listing, Operation, Range, Revision, TRANSACTION_OPERATIONS_MAX, Transaction,
};

/// Most that a page holds.
pub const LISTED_MAX: usize = CHUNK_KEYS;

/// Some of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// In order.
    pub items: Vec<T>,
    /// When it was so: the same for all pages of a list.
    pub revision: Revision,
    /// Where it goes on; none if this is the end.
    pub next: Option<PageToken>,
}

/// A unit, with what the machine that it is placed on reports of it.
pub type ListedUnit = (Unit, Option<Stored<UnitState>>);

/// What became of a unit on a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedState {
    /// Of which unit.
    pub unit: String,
    /// Who says so.
    pub machine: String,
    /// What.
    pub state: Stored<UnitState>,
}

/// Which states are asked for; the default asks for all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateFilter {
    /// Those of that unit only.
    pub unit: Option<String>,
    /// Those of that machine only.
    pub machine: Option<String>,
}

impl<S: KeyStore> Registry<S> {
    /// Units by name, each with what the machine that it is placed on reports of it.
    ///
    /// [Unreadable](super::unreadable_key) units are left out.
    ///
    /// # Errors
    /// [`Error::Compacted`] if the list has gone stale, [`Error::Token`] for a token of another list.
    pub async fn list_units(
        &self,
        after: Option<&PageToken>,
        limit: usize,
    ) -> Result<Page<ListedUnit>, Error> {
        let (listing, next) = self.page(Family::Unit, after, limit).await?;
        let (Some(first), Some(last)) = (listing.entries.first(), listing.entries.last()) else {
            return Ok(page(Vec::new(), &listing, next));
        };
        let (first, last) = (
            self.rest(Family::Unit, &first.key),
            self.rest(Family::Unit, &last.key),
        );
        let at = listing.revision;
        let mut known = Snapshot::default();
        let bodies = listing.entries.iter();
        known.extend(bodies.map(|entry| Change::of_entry(&self.prefix, entry)));
        for family in [Family::Want, Family::Place, Family::Global] {
            let range = self.between(family, &first, &last);
            let take = |entry| known.apply(Change::of_entry(&self.prefix, &entry));
            self.read_each(range, Some(at), take).await?;
        }
        let units = known.bodies.keys().filter_map(|name| known.unit(name));
        let units: Vec<Unit> = units.map(|(unit, _)| unit).collect();
        let mut states = self.states_at(&units, at).await?;
        let with_state = |unit: Unit| {
            let state = states.remove(&unit.name);
            (unit, state)
        };
        let items = units.into_iter().map(with_state).collect();
        Ok(page(items, &listing, next))
    }

    /// What the machines that units are placed on reported of them by then.
    async fn states_at(
        &self,
        units: &[Unit],
        at: Revision,
    ) -> Result<BTreeMap<String, Stored<UnitState>>, Error> {
        let keys = units.iter().filter_map(|unit| {
            let machine = unit.place.as_ref()?.value.machine.clone();
            let unit = unit.name.clone();
            Some(Operation::GetAt(
                self.name(&Key::State { unit, machine }),
                at,
            ))
        });
        let keys: Vec<_> = keys.collect();
        let mut states = BTreeMap::new();
        for some in keys.chunks(TRANSACTION_OPERATIONS_MAX) {
            let transaction = Transaction {
                then: some.to_vec(),
                ..Transaction::default()
            };
            for entry in self.store.commit(transaction).await?.found {
                if let Change::State { unit, state, .. } = Change::of_entry(&self.prefix, &entry) {
                    states.extend(state.here().map(|state| (unit, state)));
                }
            }
        }
        Ok(states)
    }

    /// What machines report of units, by unit and then by machine. States of one unit are few keys; those of one
    /// machine are looked for among all.
    ///
    /// # Errors
    /// [`Error::Compacted`] if the list has gone stale, [`Error::Token`] for a token of another list.
    pub async fn list_states(
        &self,
        filter: &StateFilter,
        after: Option<&PageToken>,
        limit: usize,
    ) -> Result<Page<ReportedState>, Error> {
        let whole = match &filter.unit {
            Some(unit) => {
                check_part("unit name", unit)?;
                self.prefix.part(Family::State, unit)
            }
            None => self.prefix.family(Family::State),
        };
        let limit = limit.clamp(1, LISTED_MAX);
        let (mut range, mut at) = self.start(Family::State, whole, after)?;
        let mut items = Vec::new();
        loop {
            let some = self.store.list(range.clone(), CHUNK_KEYS, at).await?;
            at = Some(some.revision);
            for entry in &some.entries {
                let Change::State {
                    unit,
                    machine,
                    state,
                } = Change::of_entry(&self.prefix, entry)
                else {
                    continue;
                };
                let asked_for = filter
                    .machine
                    .as_ref()
                    .is_none_or(|wanted| *wanted == machine);
                let Some(state) = state.here().filter(|_| asked_for) else {
                    continue;
                };
                items.push(ReportedState {
                    unit,
                    machine,
                    state,
                });
            }
            match some.entries.last() {
                Some(last) if some.more && items.len() <= limit => range = range.behind(&last.key),
                _ => return Ok(self.cut(items, limit, some.revision)),
            }
        }
    }

    fn cut(
        &self,
        mut items: Vec<ReportedState>,
        limit: usize,
        revision: Revision,
    ) -> Page<ReportedState> {
        let more = items.len() > limit;
        items.truncate(limit);
        let last = items.last().filter(|_| more);
        let next = last.map(|last| {
            let key = Key::State {
                unit: last.unit.clone(),
                machine: last.machine.clone(),
            };
            let last = self.rest(Family::State, self.name(&key).as_bytes());
            PageToken::new(Family::State, revision, last)
        });
        Page {
            items,
            revision,
            next,
        }
    }

    /// Machines that are there, by id, with their metadata.
    ///
    /// # Errors
    /// [`Error::Compacted`] if the list has gone stale, [`Error::Token`] for a token of another list.
    pub async fn list_machines(
        &self,
        after: Option<&PageToken>,
        limit: usize,
    ) -> Result<Page<KnownMachine>, Error> {
        let (listing, next) = self.page(Family::Machine, after, limit).await?;
        let mut machines = Vec::new();
        for entry in &listing.entries {
            if let Change::Machine(id, seen) = Change::of_entry(&self.prefix, entry)
                && let Some(machine) = seen.here()
            {
                let metadata = machine.value.metadata.clone();
                machines.push(KnownMachine {
                    id,
                    machine,
                    metadata,
                });
            }
        }
        if let (Some(first), Some(last)) = (machines.first(), machines.last()) {
            let labels = Range {
                from: self.prefix.part(Family::Label, &first.id).from,
                to: self.prefix.part(Family::Label, &last.id).to,
            };
            for entry in self.read_all(labels, Some(listing.revision)).await?.0 {
                if let Change::Label {
                    machine,
                    key,
                    label,
                } = Change::of_entry(&self.prefix, &entry)
                    && let Some(label) = label.here()
                    && let Ok(index) = machines.binary_search_by(|m| m.id.cmp(&machine))
                {
                    overlay(&mut machines[index].metadata, &key, &label.value);
                }
            }
        }
        Ok(page(machines, &listing, next))
    }

    /// What a machine reports of a unit.
    ///
    /// # Errors
    /// [`Error::Foreign`] if that is not ours to read.
    pub async fn find_state(
        &self,
        unit: &str,
        machine: &str,
    ) -> Result<Option<Stored<UnitState>>, Error> {
        check_part("unit name", unit)?;
        check_part("machine id", machine)?;
        let (unit, machine) = (unit.to_owned(), machine.to_owned());
        let key = Key::State { unit, machine };
        let found = self.get(std::slice::from_ref(&key)).await?;
        self.ours(&found, key)
    }

    /// Why a unit is not placed, as the engine last found.
    ///
    /// # Errors
    /// [`Error::Foreign`] if that is not ours to read.
    pub async fn find_why(&self, unit: &str) -> Result<Option<Stored<Why>>, Error> {
        check_part("unit name", unit)?;
        let key = Key::Why(unit.to_owned());
        let found = self.get(std::slice::from_ref(&key)).await?;
        self.ours(&found, key)
    }

    /// A page of keys, and where the list goes on behind it.
    async fn page(
        &self,
        family: Family,
        after: Option<&PageToken>,
        limit: usize,
    ) -> Result<(Listing, Option<PageToken>), Error> {
        let (range, at) = self.start(family, self.prefix.family(family), after)?;
        let limit = limit.clamp(1, LISTED_MAX);
        let listing = self.store.list(range, limit, at).await?;
        let last = listing.entries.last().filter(|_| listing.more);
        let next = last.map(|entry| {
            let last = self.rest(family, &entry.key);
            PageToken::new(family, listing.revision, last)
        });
        Ok((listing, next))
    }

    fn start(
        &self,
        family: Family,
        whole: Range,
        after: Option<&PageToken>,
    ) -> Result<(Range, Option<Revision>), Error> {
        let Some(token) = after else {
            return Ok((whole, None));
        };
        token.check(family)?;
        let mut last = self.prefix.family(family).from;
        last.extend(token.last.as_bytes());
        if !whole.contains(&last) {
            return Err(Error::Token);
        }
        Ok((whole.behind(&last), Some(token.revision)))
    }

    /// A key without the folder of its family.
    fn rest(&self, family: Family, key: &[u8]) -> String {
        let folder = self.prefix.family(family).from.len();
        String::from_utf8_lossy(key.get(folder..).unwrap_or_default()).into_owned()
    }

    /// From one name to another, both included.
    fn between(&self, family: Family, first: &str, last: &str) -> Range {
        let name = |name: &str| [&self.prefix.family(family).from, name.as_bytes()].concat();
        let mut to = name(last);
        to.push(0);
        Range {
            from: name(first),
            to,
        }
    }
}

fn page<T>(items: Vec<T>, listing: &Listing, next: Option<PageToken>) -> Page<T> {
    Page {
        items,
        revision: listing.revision,
        next,
    }
}
