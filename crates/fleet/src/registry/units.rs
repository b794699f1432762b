//! Writes of users: units and their desired states.

use std::collections::BTreeMap;

use super::key::{Key, UnusablePart, check_part};
use super::record::{self, Body, Global, Place, ReplacesOrder, Run, Stored, Want};
use super::{Error, Registry};
use crate::keys::{Guard, KeyStore, Operation, Outcome, Revision, Transaction};
use hyperfleet_fleet_model::unit::DesiredState;

/// Largest stored unit, in bytes. etcd accepts 1.5 MiB per request, and reads fetch many units at once.
pub const BODY_BYTES_MAX: usize = 256 << 10;

/// Files per read. With the largest files a read still fits the store client's limit.
const BODIES_READ_MAX: usize = 64;

/// A unit's records as they were read. Writes are guarded by them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitRecord {
    pub name: String,
    pub body: Stored<Body>,
    pub want: Stored<Want>,
    /// Never set for a global unit.
    pub place: Option<Stored<Place>>,
}

/// The state of the order in which units are given `Replaces`. A write guarded by it was checked against all
/// units that have `Replaces`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplacesTurn {
    /// When a unit was last given `Replaces`. The check must know everything up to here.
    pub last: Option<Revision>,
}

/// The result of a guarded write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// It was written at this revision, or nothing had to change since then.
    At(Revision),
    /// A record has changed since it was read: read and decide again.
    Stale,
}

impl From<Outcome> for Written {
    fn from(outcome: Outcome) -> Self {
        if outcome.succeeded {
            Self::At(outcome.revision)
        } else {
            Self::Stale
        }
    }
}

impl<S: KeyStore> Registry<S> {
    /// The unit with this name.
    ///
    /// # Errors
    /// [`Error::Foreign`] if it is [unreadable](super::Snapshot::unreadable_key).
    pub async fn find_unit(&self, name: &str) -> Result<Option<UnitRecord>, Error> {
        check_part("unit name", name)?;
        let known = self.known(&self.get(&Key::own(name)).await?);
        match known.unreadable_key(name) {
            Some((key, version)) => Err(self.foreign(key, version)),
            None => Ok(known.unit(name).map(|(unit, _)| unit)),
        }
    }

    /// The files of units by name. Missing and unreadable units are left out.
    ///
    /// # Errors
    /// [`Error::Unusable`] for a name that is no key.
    pub async fn find_bodies(&self, names: &[String]) -> Result<BTreeMap<String, Body>, Error> {
        let mut bodies = BTreeMap::new();
        for some in names.chunks(BODIES_READ_MAX) {
            for name in some {
                check_part("unit name", name)?;
            }
            let keys: Vec<_> = some.iter().cloned().map(Key::Unit).collect();
            let found = self.known(&self.get(&keys).await?).bodies;
            bodies.extend(found.into_iter().map(|(name, body)| (name, body.value)));
        }
        Ok(bodies)
    }

    /// Starts to give a unit `Replaces`.
    ///
    /// # Errors
    /// [`Error::Foreign`] if the order is unreadable.
    pub async fn begin_replaces(&self) -> Result<ReplacesTurn, Error> {
        let key = Key::ReplacesOrder;
        let found = self.get(std::slice::from_ref(&key)).await?;
        let last = self.ours::<ReplacesOrder>(&found, key)?;
        let last = last.map(|last| last.revision);
        Ok(ReplacesTurn { last })
    }

    /// Guards that no unit was given `Replaces` since a turn started, and records this one.
    fn end_replaces(&self, unit: &str, turn: Option<ReplacesTurn>) -> (Vec<Guard>, Vec<Operation>) {
        let end = turn.map(|turn| {
            let unit = unit.to_owned();
            let put = self.put(&Key::ReplacesOrder, &ReplacesOrder { unit });
            (self.as_known(&Key::ReplacesOrder, turn.last), put)
        });
        end.into_iter().unzip()
    }

    /// Creates a unit in one transaction; stale if it exists. Readable leftovers of an earlier unit of this
    /// name are replaced. `replaces` is for a unit with `Replaces`, and makes the write stale if another unit
    /// was given it meanwhile.
    ///
    /// # Errors
    /// [`Error::Unusable`] for a name that is no key, or a unit that is too large; [`Error::Foreign`] for an
    /// unreadable leftover.
    pub async fn create_unit(
        &self,
        name: &str,
        body: &Body,
        state: DesiredState,
        replaces: Option<ReplacesTurn>,
    ) -> Result<Written, Error> {
        check_part("unit name", name)?;
        let want = Want {
            state,
            generation: 1,
            restarts: 0,
        };
        let (in_turn, mut then) = self.end_replaces(name, replaces);
        then.extend([
            self.put_body(name, body)?,
            self.put(&Key::Want(name.to_owned()), &want),
        ]);
        then.extend(self.put_global(name, body, &want));
        let own = Key::own(name);
        let absent = own.iter().map(|key| Guard::Absent(self.name(key)));
        let transaction = Transaction {
            guards: in_turn.iter().cloned().chain(absent).collect(),
            then: then.clone(),
            otherwise: own
                .iter()
                .map(|key| Operation::Get(self.name(key)))
                .collect(),
        };
        let mut outcome = self.store.commit(transaction).await?;
        if !outcome.succeeded {
            let is_global = body.global.is_some();
            let over = self.over_leftovers(name, &outcome, is_global, then);
            let Some(mut transaction) = over.await? else {
                return Ok(Written::Stale);
            };
            transaction.guards.extend(in_turn);
            outcome = self.store.commit(transaction).await?;
        }
        Ok(outcome.into())
    }

    /// Replaces a unit's file and desired state. It stays where it is placed, unless it becomes global. Without
    /// a difference nothing is written. `replaces` is as for [`create_unit`](Self::create_unit).
    ///
    /// # Errors
    /// [`Error::Unusable`] if it is too large; [`Error::Foreign`] if its `run/` is of a newer version.
    pub async fn replace_unit(
        &self,
        unit: &UnitRecord,
        body: &Body,
        state: DesiredState,
        replaces: Option<ReplacesTurn>,
    ) -> Result<Written, Error> {
        if *body == unit.body.value {
            return self.set_desired_state(unit, state).await;
        }
        let (in_turn, mut then) = self.end_replaces(&unit.name, replaces);
        let want = next_want(unit, state);
        let want_key = Key::Want(unit.name.clone());
        then.extend([self.put_body(&unit.name, body)?, self.put(&want_key, &want)]);
        then.extend(self.put_global(&unit.name, body, &want));
        if body.global.is_some() {
            then.extend(self.delete_place(unit));
            then.push(self.delete(&Key::Why(unit.name.clone())));
        } else {
            if unit.body.value.global.is_some() {
                then.push(self.delete(&Key::Global(unit.name.clone())));
            }
            then.extend(self.put_run(unit, &body.hash, &want));
        }
        self.write(unit, in_turn, then).await
    }

    /// Sets a unit's desired state. Without a difference nothing is written.
    ///
    /// The same write changes the order to its machine, or to all machines, so it works without an engine.
    ///
    /// # Errors
    /// [`Error::Foreign`] if its `run/` is of a newer version.
    pub async fn set_desired_state(
        &self,
        unit: &UnitRecord,
        state: DesiredState,
    ) -> Result<Written, Error> {
        if state == unit.want.value.state {
            let revision = unit.body.revision.max(unit.want.revision);
            return Ok(Written::At(revision));
        }
        self.set_want(unit, &next_want(unit, state)).await
    }

    /// Requests a restart from all machines that run a unit.
    ///
    /// # Errors
    /// [`Error::Foreign`] if its `run/` is of a newer version.
    pub async fn restart_unit(&self, unit: &UnitRecord) -> Result<Written, Error> {
        let want = &unit.want.value;
        let want = Want {
            restarts: want.restarts.saturating_add(1),
            ..want.clone()
        };
        self.set_want(unit, &want).await
    }

    async fn set_want(&self, unit: &UnitRecord, want: &Want) -> Result<Written, Error> {
        let body = &unit.body.value;
        let mut then = vec![self.put(&Key::Want(unit.name.clone()), want)];
        then.extend(self.put_global(&unit.name, body, want));
        then.extend(self.put_run(unit, &body.hash, want));
        self.write(unit, Vec::new(), then).await
    }

    /// Removes all records of a unit, except what agents report until they have unloaded it.
    ///
    /// # Errors
    /// [`Error::Foreign`] if its `run/` is of a newer version.
    pub async fn destroy_unit(&self, unit: &UnitRecord) -> Result<Written, Error> {
        let gone = [Key::Unit, Key::Want, Key::Global, Key::Why];
        let gone = gone.map(|key| self.delete(&key(unit.name.clone())));
        let mut then = Vec::from(gone);
        then.extend(self.delete_place(unit));
        self.write(unit, Vec::new(), then).await
    }

    async fn write(
        &self,
        unit: &UnitRecord,
        mut guards: Vec<Guard>,
        then: Vec<Operation>,
    ) -> Result<Written, Error> {
        guards.extend([
            self.unchanged(&Key::Unit(unit.name.clone()), Some(&unit.body)),
            self.unchanged(&Key::Want(unit.name.clone()), Some(&unit.want)),
            self.unchanged(&Key::Place(unit.name.clone()), unit.place.as_ref()),
        ]);
        let Some(place) = &unit.place else {
            return Ok(self.commit(guards, then).await?.into());
        };
        // A change of a placed unit changes `run/` too. `run/` was put with `place/` or later with `want/`, so
        // its revision is known without a read.
        let run = Key::run(&place.value.machine, &unit.name);
        let revision = place.revision.max(unit.want.revision);
        let run_guard = Guard::Modified(self.name(&run), revision);
        let all = [guards.as_slice(), &[run_guard]].concat();
        let reads = all
            .iter()
            .map(|guard| Operation::Get(guard.key().to_owned()));
        let transaction = Transaction {
            otherwise: reads.collect(),
            then: then.clone(),
            guards: all,
        };
        let found = self.store.commit(transaction).await?;
        if found.succeeded || !guards.iter().all(|guard| guard.holds(&found)) {
            return Ok(found.into());
        }
        // Another writer has put `run/`.
        let guards = [guards, vec![self.overwritable::<Run>(&run, &found)?]].concat();
        Ok(self.commit(guards, then).await?.into())
    }

    fn put_body(&self, name: &str, body: &Body) -> Result<Operation, Error> {
        let value = record::write(body);
        if value.len() > BODY_BYTES_MAX {
            let rule = format!("at most {BODY_BYTES_MAX} bytes as it is stored");
            return Err(UnusablePart { what: "unit", rule }.into());
        }
        let name = self.name(&Key::Unit(name.to_owned()));
        Ok(Operation::Put(name, value, None))
    }

    fn put_global(&self, name: &str, body: &Body, want: &Want) -> Option<Operation> {
        let global = Global {
            hash: body.hash.clone(),
            state: want.state,
            restarts: want.restarts,
            rule: body.global.clone()?,
        };
        Some(self.put(&Key::Global(name.to_owned()), &global))
    }

    /// Writes the order to the unit's machine.
    fn put_run(&self, unit: &UnitRecord, hash: &str, want: &Want) -> Option<Operation> {
        let place = unit.place.as_ref()?;
        let run = Run {
            hash: hash.to_owned(),
            state: want.state,
            epoch: place.value.epoch,
            restarts: want.restarts,
        };
        Some(self.put(&Key::run(&place.value.machine, &unit.name), &run))
    }

    fn delete_place(&self, unit: &UnitRecord) -> Vec<Operation> {
        let Some(place) = &unit.place else {
            return Vec::new();
        };
        let run = Key::run(&place.value.machine, &unit.name);
        vec![
            self.delete(&Key::Place(unit.name.clone())),
            self.delete(&run),
        ]
    }
}

/// A unit's desired state after a change.
fn next_want(unit: &UnitRecord, state: DesiredState) -> Want {
    Want {
        state,
        generation: unit.want.value.generation.saturating_add(1),
        restarts: unit.want.value.restarts,
    }
}
