//! Writes of users: units and their desired states.

use std::collections::BTreeMap;

use super::key::{UnusablePart, check_part};
use super::record::{self, Body, DesiredRecord, Global, Placement, ReplacesOrder, Run, Stored};
use super::table::Key;
use super::{Error, Registry};
use crate::keys::{Guard, KeyOperation, KeyStore, Revision, Transaction, TransactionOutcome};
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
    pub desired: Stored<DesiredRecord>,
    /// Never set for a global unit.
    pub placement: Option<Stored<Placement>>,
}

impl UnitRecord {
    /// The revision of its last change.
    pub(crate) fn revision(&self) -> Revision {
        let placement = self.placement.as_ref().map_or(0, |it| it.revision);
        self.body.revision.max(self.desired.revision).max(placement)
    }
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

impl From<TransactionOutcome> for Written {
    fn from(outcome: TransactionOutcome) -> Self {
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
    /// [`Error::Unreadable`] if it is [unreadable](super::Snapshot::unreadable_key).
    pub async fn find_unit(&self, name: &str) -> Result<Option<UnitRecord>, Error> {
        check_part("unit name", name)?;
        let known = self.snapshot_of(&self.get(&Key::own(name)).await?);
        match known.unreadable_key(name) {
            Some((key, version)) => Err(self.unreadable_error(key, version)),
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
            let found = self.snapshot_of(&self.get(&keys).await?).bodies;
            bodies.extend(found.into_iter().map(|(name, body)| (name, body.value)));
        }
        Ok(bodies)
    }

    /// Starts to give a unit `Replaces`.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the order is unreadable.
    pub async fn begin_replaces(&self) -> Result<ReplacesTurn, Error> {
        let key = Key::ReplacesOrder;
        let found = self.get(std::slice::from_ref(&key)).await?;
        let last = self.read_record::<ReplacesOrder>(&found, key)?;
        let last = last.map(|last| last.revision);
        Ok(ReplacesTurn { last })
    }

    /// Guards that no unit was given `Replaces` since a turn started, and records this one.
    fn end_replaces(
        &self,
        unit: &str,
        turn: Option<ReplacesTurn>,
    ) -> (Vec<Guard>, Vec<KeyOperation>) {
        let end = turn.map(|turn| {
            let unit = unit.to_owned();
            let put = self.put(&Key::ReplacesOrder, &ReplacesOrder { unit });
            (self.guard_at(&Key::ReplacesOrder, turn.last), put)
        });
        end.into_iter().unzip()
    }

    /// Creates a unit in one transaction; stale if it exists. Readable leftovers of an earlier unit of this
    /// name are replaced. `replaces` is for a unit with `Replaces`, and makes the write stale if another unit
    /// was given it meanwhile.
    ///
    /// # Errors
    /// [`Error::Unusable`] for a name that is no key, or a unit that is too large; [`Error::Unreadable`] for an
    /// unreadable leftover.
    pub async fn create_unit(
        &self,
        name: &str,
        body: &Body,
        state: DesiredState,
        replaces: Option<ReplacesTurn>,
    ) -> Result<Written, Error> {
        check_part("unit name", name)?;
        let desired = DesiredRecord {
            state,
            generation: 1,
            restarts: 0,
        };
        let (in_turn, mut then) = self.end_replaces(name, replaces);
        then.extend([
            self.put_body(name, body)?,
            self.put(&Key::Desired(name.to_owned()), &desired),
        ]);
        then.extend(self.put_global(name, body, &desired));
        let own = Key::own(name);
        let absent = own.iter().map(|key| Guard::Absent(self.name(key)));
        let transaction = Transaction {
            guards: in_turn.iter().cloned().chain(absent).collect(),
            then: then.clone(),
            otherwise: own
                .iter()
                .map(|key| KeyOperation::Get(self.name(key)))
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
    /// [`Error::Unusable`] if it is too large; [`Error::Unreadable`] if its `run/` is of a newer version.
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
        let desired = next_desired(unit, state);
        let desired_key = Key::Desired(unit.name.clone());
        then.extend([
            self.put_body(&unit.name, body)?,
            self.put(&desired_key, &desired),
        ]);
        then.extend(self.put_global(&unit.name, body, &desired));
        if body.global.is_some() {
            then.extend(self.delete_placement(unit));
        } else {
            if unit.body.value.global.is_some() {
                then.push(self.delete(&Key::Global(unit.name.clone())));
            }
            then.extend(self.put_run(unit, &body.hash, &desired));
        }
        self.write(unit, in_turn, then).await
    }

    /// Sets a unit's desired state. Without a difference nothing is written.
    ///
    /// The same write changes the order to its machine, or to all machines, so it works without an engine.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if its `run/` is of a newer version.
    pub async fn set_desired_state(
        &self,
        unit: &UnitRecord,
        state: DesiredState,
    ) -> Result<Written, Error> {
        if state == unit.desired.value.state {
            let revision = unit.body.revision.max(unit.desired.revision);
            return Ok(Written::At(revision));
        }
        self.set_desired(unit, &next_desired(unit, state)).await
    }

    /// Requests from all machines of a unit that they carry out its desired state again: a launched unit restarts,
    /// and a loaded one stops.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if its `run/` is of a newer version.
    pub async fn repeat_order(&self, unit: &UnitRecord) -> Result<Written, Error> {
        let desired = &unit.desired.value;
        let desired = DesiredRecord {
            restarts: desired.restarts.saturating_add(1),
            ..desired.clone()
        };
        self.set_desired(unit, &desired).await
    }

    async fn set_desired(
        &self,
        unit: &UnitRecord,
        desired: &DesiredRecord,
    ) -> Result<Written, Error> {
        let body = &unit.body.value;
        let mut then = vec![self.put(&Key::Desired(unit.name.clone()), desired)];
        then.extend(self.put_global(&unit.name, body, desired));
        then.extend(self.put_run(unit, &body.hash, desired));
        self.write(unit, Vec::new(), then).await
    }

    /// Removes all records of a unit, except what agents report until they have unloaded it.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if its `run/` is of a newer version.
    pub async fn destroy_unit(&self, unit: &UnitRecord) -> Result<Written, Error> {
        let gone = [Key::Unit, Key::Desired, Key::Global];
        let gone = gone.map(|key| self.delete(&key(unit.name.clone())));
        let mut then = Vec::from(gone);
        then.extend(self.delete_placement(unit));
        self.write(unit, Vec::new(), then).await
    }

    async fn write(
        &self,
        unit: &UnitRecord,
        mut guards: Vec<Guard>,
        then: Vec<KeyOperation>,
    ) -> Result<Written, Error> {
        guards.extend([
            self.unchanged(&Key::Unit(unit.name.clone()), Some(&unit.body)),
            self.unchanged(&Key::Desired(unit.name.clone()), Some(&unit.desired)),
            self.unchanged(&Key::Placement(unit.name.clone()), unit.placement.as_ref()),
        ]);
        let Some(placement) = &unit.placement else {
            return Ok(self.commit(guards, then).await?.into());
        };
        // A change of a placed unit changes `run/` too. `run/` was put with `place/` or later with `want/`, so
        // its revision is known without a read.
        let run = Key::run(&placement.value.machine, &unit.name);
        let revision = placement.revision.max(unit.desired.revision);
        let run_guard = Guard::Modified(self.name(&run), revision);
        let all = [guards.as_slice(), &[run_guard]].concat();
        let reads = all
            .iter()
            .map(|guard| KeyOperation::Get(guard.key().to_owned()));
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

    fn put_body(&self, name: &str, body: &Body) -> Result<KeyOperation, Error> {
        let value = record::write(body);
        if value.len() > BODY_BYTES_MAX {
            let rule = format!("at most {BODY_BYTES_MAX} bytes as it is stored");
            return Err(UnusablePart { what: "unit", rule }.into());
        }
        let name = self.name(&Key::Unit(name.to_owned()));
        Ok(KeyOperation::Put(name, value, None))
    }

    fn put_global(&self, name: &str, body: &Body, desired: &DesiredRecord) -> Option<KeyOperation> {
        let global = Global {
            hash: body.hash.clone(),
            state: desired.state,
            restarts: desired.restarts,
            rule: body.global.clone()?,
        };
        Some(self.put(&Key::Global(name.to_owned()), &global))
    }

    /// Writes the order to the unit's machine.
    fn put_run(
        &self,
        unit: &UnitRecord,
        hash: &str,
        desired: &DesiredRecord,
    ) -> Option<KeyOperation> {
        let placement = unit.placement.as_ref()?;
        let run = Run {
            hash: hash.to_owned(),
            state: desired.state,
            epoch: placement.value.epoch,
            restarts: desired.restarts,
        };
        Some(self.put(&Key::run(&placement.value.machine, &unit.name), &run))
    }

    fn delete_placement(&self, unit: &UnitRecord) -> Vec<KeyOperation> {
        let Some(placement) = &unit.placement else {
            return Vec::new();
        };
        let run = Key::run(&placement.value.machine, &unit.name);
        vec![
            self.delete(&Key::Placement(unit.name.clone())),
            self.delete(&run),
        ]
    }
}

/// A unit's desired state after a change.
///
/// A unit that was to stop and is to run again has a restart requested: its agent may see both orders as one.
fn next_desired(unit: &UnitRecord, state: DesiredState) -> DesiredRecord {
    let before = &unit.desired.value;
    let starts_again = state == DesiredState::Launched && before.state != DesiredState::Launched;
    DesiredRecord {
        state,
        generation: before.generation.saturating_add(1),
        restarts: before.restarts.saturating_add(u64::from(starts_again)),
    }
}
