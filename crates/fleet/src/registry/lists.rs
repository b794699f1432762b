//! Lists by name, in pages that all show one revision.

use std::iter;

use super::change::KeyChange;
use super::key::{Family, Key, StateKey, check_part};
use super::machines::KnownMachine;
use super::reading::PART_KEYS;
use super::record::{Stored, UnitState, Why};
use super::snapshot::Snapshot;
use super::token::PageToken;
use super::units::UnitRecord;
use super::{Error, Registry};
use crate::keys::{
    KeyOperation, KeyStore, Range, Revision, TRANSACTION_OPERATIONS_MAX, Transaction,
};

/// Largest page.
pub const LISTED_MAX: usize = PART_KEYS;

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// In order.
    pub items: Vec<T>,
    /// The same for all pages of a list.
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

impl<S: KeyStore> Registry<S> {
    /// Units by name, each with the report of the machine where it is placed.
    ///
    /// [Unreadable](super::Snapshot::unreadable_key) units are left out.
    ///
    /// # Errors
    /// [`Error::Compacted`] if the list is too old, [`Error::Token`] for a token of another list.
    pub async fn list_units(
        &self,
        after: Option<&PageToken>,
        limit: usize,
    ) -> Result<Page<ListedUnit>, Error> {
        let (mut known, ends, next) = self.page(Family::Unit, after, limit).await?;
        if let Some([first, last]) = &ends {
            for family in [Family::Desired, Family::Placement, Family::Global] {
                let range = self.between(family, first, last);
                self.read_into(&mut known, range).await?;
            }
            self.read_states(&mut known).await?;
        }
        let items = known.bodies.keys().filter_map(|name| known.unit(name));
        Ok(known.page(Family::Unit, items.collect(), next))
    }

    /// Reads the reports of the machines where the units were placed at that revision.
    async fn read_states(&self, known: &mut Snapshot) -> Result<(), Error> {
        let placed = known.bodies.keys().filter_map(|unit| {
            let machine = known.placements.get(unit)?.value.machine.clone();
            let unit = unit.clone();
            let name = self.name(&Key::State(StateKey { unit, machine }));
            Some(KeyOperation::GetAt(name, known.revision))
        });
        let keys: Vec<_> = placed.collect();
        for some in keys.chunks(TRANSACTION_OPERATIONS_MAX) {
            let transaction = Transaction {
                then: some.to_vec(),
                ..Transaction::default()
            };
            let found = self.store.commit(transaction).await?.found.into_iter();
            known.extend(found.map(|entry| KeyChange::of_entry(&self.prefix, &entry)));
        }
        Ok(())
    }

    /// Reads a range at a snapshot's revision.
    pub(super) async fn read_into(&self, known: &mut Snapshot, range: Range) -> Result<(), Error> {
        let at = Some(known.revision);
        let take = |entry| _ = known.apply(KeyChange::of_entry(&self.prefix, &entry));
        self.read_each(range, at, take).await?;
        Ok(())
    }

    /// What machines report, by unit and then by machine. The states of one unit are few keys. Those of one
    /// machine are filtered from all states.
    ///
    /// # Errors
    /// [`Error::Compacted`] if the list is too old, [`Error::Token`] for a token of another list.
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
        let mut known = Snapshot::default();
        loop {
            let some = self.store.list(range.clone(), PART_KEYS, at).await?;
            at = Some(some.revision);
            known.revision = some.revision;
            let states = some.entries.iter();
            let states = states.map(|entry| KeyChange::of_entry(&self.prefix, entry));
            known.extend(states.filter(|change| match (change, &filter.machine) {
                (KeyChange::State(key, _), Some(asked)) => key.machine == *asked,
                _ => true,
            }));
            match some.entries.last() {
                Some(last) if some.more && known.states.len() <= limit => {
                    range = range.behind(&last.key);
                }
                _ => {
                    let all = StateFilter::default();
                    return known.list_states(&all, None, limit, |_, _| iter::empty());
                }
            }
        }
    }

    /// Machines by id, with their metadata.
    ///
    /// # Errors
    /// [`Error::Compacted`] if the list is too old, [`Error::Token`] for a token of another list.
    pub async fn list_machines(
        &self,
        after: Option<&PageToken>,
        limit: usize,
    ) -> Result<Page<KnownMachine>, Error> {
        let (mut known, ends, next) = self.page(Family::Machine, after, limit).await?;
        if let Some([first, last]) = &ends {
            self.read_about_machines(&mut known, first, last).await?;
        }
        let items = known.machines.keys().filter_map(|id| known.machine(id));
        Ok(known.page(Family::Machine, items.collect(), next))
    }

    /// Reads labels, cordons and drains of the machines from one id to another, both included.
    pub(super) async fn read_about_machines(
        &self,
        known: &mut Snapshot,
        first: &str,
        last: &str,
    ) -> Result<(), Error> {
        let labels = Range {
            from: self.prefix.part(Family::Label, first).from,
            to: self.prefix.part(Family::Label, last).to,
        };
        self.read_into(known, labels).await?;
        for family in [Family::Cordon, Family::Drain] {
            let range = self.between(family, first, last);
            self.read_into(known, range).await?;
        }
        Ok(())
    }

    /// What a machine reports of a unit.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if it is unreadable.
    pub async fn find_state(
        &self,
        unit: &str,
        machine: &str,
    ) -> Result<Option<Stored<UnitState>>, Error> {
        check_part("unit name", unit)?;
        check_part("machine id", machine)?;
        let (unit, machine) = (unit.to_owned(), machine.to_owned());
        self.find(Key::State(StateKey { unit, machine })).await
    }

    /// The engine's stored reason why a unit is not placed.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if it is unreadable.
    pub async fn find_why(&self, unit: &str) -> Result<Option<Stored<Why>>, Error> {
        check_part("unit name", unit)?;
        self.find(Key::Why(unit.to_owned())).await
    }

    /// A page of a family: its records, its first and last name, and the name after which the list continues.
    async fn page(
        &self,
        family: Family,
        after: Option<&PageToken>,
        limit: usize,
    ) -> Result<(Snapshot, Option<[String; 2]>, Option<String>), Error> {
        let (range, at) = self.start(family, self.prefix.family(family), after)?;
        let limit = limit.clamp(1, LISTED_MAX);
        let listing = self.store.list(range, limit, at).await?;
        let ends = listing.entries.first().zip(listing.entries.last());
        let ends =
            ends.map(|(first, last)| [first, last].map(|e| self.without_folder(family, &e.key)));
        let next = ends.as_ref().filter(|_| listing.more);
        let next = next.map(|[_, last]| last.clone());
        let entries = listing.entries.iter();
        let found = entries.map(|entry| KeyChange::of_entry(&self.prefix, entry));
        Ok((Snapshot::of(listing.revision, found), ends, next))
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
    fn without_folder(&self, family: Family, key: &[u8]) -> String {
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
