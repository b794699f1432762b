//! What an engine writes: batches of steps, each batch as few transactions as the store's limits allow, each
//! transaction guarded by the engine's term.

use std::collections::BTreeSet;

use super::engine::Leading;
use super::key::{Key, check_part};
use super::record::{Place, Run, Why};
use super::units::{UnitKeys, Written};
use super::{Error, Registry};
use crate::keys::{
    Guard, KeyStore, Operation, Outcome, Revision, TRANSACTION_OPERATIONS_MAX, Transaction,
};

/// Largest transaction, in bytes of values; etcd takes requests of 1.5 MiB (`--max-request-bytes`).
const TRANSACTION_BYTES_MAX: usize = 1 << 20;

/// What is to be done with one unit, and what that was decided on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Places a unit that is not placed.
    Place {
        /// Which.
        unit: String,
        /// Where.
        machine: String,
        /// What it is to do there.
        run: Run,
        /// The revision of the want that was decided on.
        want: Revision,
    },
    /// Moves a unit, without a moment in which it is nowhere.
    Move {
        /// Which.
        unit: String,
        /// Where it is.
        from: String,
        /// Where to.
        machine: String,
        /// What it is to do there.
        run: Run,
        /// The revision of the want that was decided on.
        want: Revision,
        /// The revision of its place.
        place: Revision,
    },
    /// Takes a unit off its machine.
    Withdraw {
        /// Which.
        unit: String,
        /// Where it is.
        from: String,
        /// The revision of the want that was decided on: a user may have made it fit meanwhile.
        want: Revision,
        /// The revision of its place.
        place: Revision,
    },
    /// Says why a unit is not placed. Placing it takes that back.
    Explain {
        /// Which.
        unit: String,
        /// Why.
        why: Why,
        /// The revision of the want that was decided on.
        want: Revision,
    },
    /// Takes back why a unit is not placed, as when it is not to be placed any more.
    Unexplain {
        /// Which.
        unit: String,
    },
}

/// A step as it is written.
struct Write {
    index: usize,
    unit: String,
    guards: Vec<Guard>,
    then: Vec<Operation>,
}

impl Step {
    /// The unit that it is about.
    pub fn unit(&self) -> &str {
        match self {
            Self::Place { unit, .. }
            | Self::Move { unit, .. }
            | Self::Withdraw { unit, .. }
            | Self::Explain { unit, .. }
            | Self::Unexplain { unit } => unit,
        }
    }

    fn machines(&self) -> Vec<&String> {
        match self {
            Self::Place { machine, .. } => vec![machine],
            Self::Move { from, machine, .. } => vec![from, machine],
            Self::Withdraw { from, .. } => vec![from],
            Self::Explain { .. } | Self::Unexplain { .. } => Vec::new(),
        }
    }
}

impl<S: KeyStore> Registry<S> {
    /// Carries out steps, in their order, and says for each what became of it. One that has gone stale holds up
    /// no other. Several about one unit are carried out one after another.
    ///
    /// Each transaction is whole; of a batch that needs several, those before an error were carried out.
    ///
    /// # Errors
    /// [`Error::Deposed`] once the engine's term has ended: what was not carried out by then never will be.
    /// [`Error::Unusable`] for a name that is no key: nothing was done.
    pub async fn carry_out(
        &self,
        leading: &Leading,
        steps: &[Step],
    ) -> Result<Vec<Written>, Error> {
        let mut written = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            check_part("unit name", step.unit())?;
            for machine in step.machines() {
                check_part("machine id", machine)?;
            }
            written.push(self.written(leading, index, step));
        }
        let mut carried = vec![Written::Stale; steps.len()];
        let mut rest = written.as_slice();
        while !rest.is_empty() {
            let (batch, behind) = rest.split_at(fitting(rest));
            self.carry_batch(leading, batch, &mut carried).await?;
            rest = behind;
        }
        Ok(carried)
    }

    /// Carries out what is not stale of a batch that fits a transaction.
    async fn carry_batch(
        &self,
        leading: &Leading,
        batch: &[Write],
        carried: &mut [Written],
    ) -> Result<(), Error> {
        let mut steps: Vec<&Write> = batch.iter().collect();
        while !steps.is_empty() {
            let outcome = self.store.commit(self.batch(leading, &steps)).await?;
            if outcome.succeeded {
                for step in steps {
                    carried[step.index] = Written::At(outcome.revision);
                }
                return Ok(());
            }
            if !holds(&self.leads(leading), &outcome) {
                return Err(Error::Deposed);
            }
            let before = steps.len();
            steps.retain(|step| step.guards.iter().all(|guard| holds(guard, &outcome)));
            // The transaction failed and read at one moment: one of the guards did not hold then.
            debug_assert!(steps.len() < before, "a guard failed that holds");
            if steps.len() == before {
                return Ok(());
            }
        }
        Ok(())
    }

    fn batch(&self, leading: &Leading, steps: &[&Write]) -> Transaction {
        let mut guards = vec![self.leads(leading)];
        guards.extend(steps.iter().flat_map(|step| step.guards.iter().cloned()));
        let read = guards
            .iter()
            .map(|guard| Operation::Get(name(guard).clone()));
        Transaction {
            otherwise: read.collect(),
            then: steps
                .iter()
                .flat_map(|step| step.then.iter().cloned())
                .collect(),
            guards,
        }
    }

    fn written(&self, leading: &Leading, index: usize, step: &Step) -> Write {
        let keys = UnitKeys::new(step.unit());
        let at = |key: &Key, revision: Revision| Guard::Modified(self.name(key), revision);
        let (guards, then) = match step {
            Step::Place {
                machine, run, want, ..
            } => {
                let guards = vec![Guard::Absent(self.name(&keys.place)), at(&keys.want, *want)];
                (guards, self.placed(leading, &keys, machine, run))
            }
            Step::Move {
                from,
                machine,
                run,
                want,
                place,
                ..
            } => {
                let mut then = self.placed(leading, &keys, machine, run);
                if from != machine {
                    then.push(self.delete(&keys.run(from)));
                }
                (vec![at(&keys.place, *place), at(&keys.want, *want)], then)
            }
            Step::Withdraw {
                from, want, place, ..
            } => {
                let then = vec![self.delete(&keys.place), self.delete(&keys.run(from))];
                (vec![at(&keys.place, *place), at(&keys.want, *want)], then)
            }
            Step::Explain { why, want, .. } => {
                (vec![at(&keys.want, *want)], vec![self.put(&keys.why, why)])
            }
            Step::Unexplain { .. } => (Vec::new(), vec![self.delete(&keys.why)]),
        };
        Write {
            index,
            unit: step.unit().to_owned(),
            guards,
            then,
        }
    }

    fn placed(
        &self,
        leading: &Leading,
        keys: &UnitKeys,
        machine: &str,
        run: &Run,
    ) -> Vec<Operation> {
        let place = Place {
            machine: machine.to_owned(),
            hash: run.hash.clone(),
            epoch: leading.epoch,
        };
        vec![
            self.put(&keys.place, &place),
            self.put(&keys.run(machine), run),
            self.delete(&keys.why),
        ]
    }
}

/// How many steps, from the first, one transaction takes: at least one.
fn fitting(steps: &[Write]) -> usize {
    let (mut guards, mut operations, mut bytes) = (1, 0, 0);
    let mut units = BTreeSet::new();
    let mut count = 0;
    for step in steps {
        guards += step.guards.len();
        operations += step.then.len();
        bytes += step.then.iter().map(size).sum::<usize>();
        let fits = guards <= TRANSACTION_OPERATIONS_MAX
            && operations <= TRANSACTION_OPERATIONS_MAX
            && bytes <= TRANSACTION_BYTES_MAX;
        if !fits || !units.insert(step.unit.as_str()) {
            break;
        }
        count += 1;
    }
    count.max(1)
}

fn size(operation: &Operation) -> usize {
    match operation {
        Operation::Put(key, value, _) => key.len() + value.len(),
        Operation::Get(key) | Operation::GetAt(key, _) | Operation::Delete(key) => key.len(),
    }
}

fn name(guard: &Guard) -> &String {
    match guard {
        Guard::Absent(name) | Guard::Created(name, _) | Guard::Modified(name, _) => name,
    }
}

/// Whether a guard held, by what was read instead.
fn holds(guard: &Guard, found: &Outcome) -> bool {
    let key = name(guard).as_bytes();
    let entry = found.found.iter().find(|entry| entry.key == key);
    match guard {
        Guard::Absent(_) => entry.is_none(),
        Guard::Created(_, at) => entry.is_some_and(|entry| entry.created == *at),
        Guard::Modified(_, at) => entry.is_some_and(|entry| entry.modified == *at),
    }
}
