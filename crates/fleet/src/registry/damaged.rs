//! Units with unreadable records, and leftover records of units that do not exist.

use super::key::{RunKey, check_part};
use super::record::{Run, is_newer};
use super::table::{Family, Key};
use super::units::Written;
use super::{Error, Registry};
use crate::keys::{
    Entry, Guard, KeyOperation, KeyStore, TRANSACTION_OPERATIONS_MAX, Transaction,
    TransactionOutcome,
};

impl<S: KeyStore> Registry<S> {
    /// Removes all keys of a unit, including damaged ones, and the `run/` of every machine: for units with
    /// missing or damaged records. Takes time in proportion to all placed units.
    ///
    /// # Guarantees
    /// The unit's own keys are deleted last, in one transaction: if it is interrupted, the unit is found
    /// damaged again.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if a record is from a newer version: nothing was done.
    pub async fn destroy_damaged_unit(&self, name: &str) -> Result<Written, Error> {
        check_part("unit name", name)?;
        let found = self.get(&Key::own(name)).await?;
        match self.snapshot_of(&found).unreadable_key(name) {
            Some((key, version)) if is_newer(version) => {
                return Err(self.unreadable_error(key, version));
            }
            None if found.found.is_empty() => return Ok(Written::Stale),
            _ => {}
        }
        let own = self.guard_unit_keys(name, &found);
        let runs = self.runs_of(name).await?;
        for some in runs.chunks(TRANSACTION_OPERATIONS_MAX - own.len()) {
            let delete = |run: &Guard| KeyOperation::Delete(run.key().to_owned());
            let deleted = some.iter().map(delete).collect();
            let guards = [&own, some].concat();
            if !self.commit(guards, deleted).await?.succeeded {
                return Ok(Written::Stale);
            }
        }
        let gone = Key::own(name).iter().map(|key| self.delete(key)).collect();
        Ok(self.commit(own, gone).await?.into())
    }

    /// Creates a unit over leftover records of an earlier one, as from a restored backup: only if they are
    /// unchanged since they were read, and without those that the new unit does not overwrite. `None` if the
    /// unit exists.
    pub(super) async fn over_leftovers(
        &self,
        name: &str,
        found: &TransactionOutcome,
        is_global: bool,
        mut then: Vec<KeyOperation>,
    ) -> Result<Option<Transaction>, Error> {
        let (known, unit) = (self.snapshot_of(found), Key::Unit(name.to_owned()));
        if known.bodies.contains_key(name) || known.unreadable.contains_key(&unit) {
            return Ok(None);
        }
        if let Some((key, version)) = known.unreadable_key(name) {
            return Err(self.unreadable_error(key, version));
        }
        then.push(self.delete(&Key::Placement(name.to_owned())));
        if !is_global {
            then.push(self.delete(&Key::Global(name.to_owned())));
        }
        let mut guards = self.guard_unit_keys(name, found);
        if let Some(placement) = known.placements.get(name) {
            let run = Key::run(&placement.value.machine, name);
            let found = self.get(std::slice::from_ref(&run)).await?;
            guards.push(self.overwritable::<Run>(&run, &found)?);
            then.push(self.delete(&run));
        }
        Ok(Some(Transaction {
            guards,
            then,
            otherwise: Vec::new(),
        }))
    }

    /// Guards that all keys of a unit are as a transaction found them.
    fn guard_unit_keys(&self, name: &str, found: &TransactionOutcome) -> Vec<Guard> {
        let own = Key::own(name);
        own.iter()
            .map(|key| self.guard_as_found(key, found))
            .collect()
    }

    /// Guards on `run/` of every agent that has the unit.
    async fn runs_of(&self, name: &str) -> Result<Vec<Guard>, Error> {
        let (mut runs, mut found) = (Vec::new(), Vec::new());
        let take = |entry: Entry| {
            let key = self.prefix.read(&entry.key);
            if let Some(key @ Key::Run(RunKey { unit, .. })) = &key
                && unit == name
            {
                runs.push(key.clone());
                found.push(entry);
            }
        };
        let range = self.prefix.family(Family::Run);
        let read = self.read_each(range, None, take).await?;
        let found = TransactionOutcome {
            succeeded: true,
            revision: read.revision,
            found,
        };
        let runs = runs.iter().map(|run| self.overwritable::<Run>(run, &found));
        runs.collect()
    }
}
