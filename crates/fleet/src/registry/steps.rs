//! What an engine writes: batches of steps, each batch as few transactions as the store's limits allow, each
//! transaction guarded by the engine's term.

use std::collections::BTreeSet;

use super::engine::Leading;
use super::key::{Key, check_part};
use super::record::{Place, Run, Why};
use super::units::Written;
use super::{Error, Registry};
use crate::keys::{Guard, KeyStore, Operation, Revision, TRANSACTION_OPERATIONS_MAX, Transaction};
use hyperfleet_fleet_model::schedule::Task;

/// Largest transaction, in bytes of values; etcd takes requests of 1.5 MiB (`--max-request-bytes`).
const TRANSACTION_BYTES_MAX: usize = 1 << 20;

/// What is to be done with one unit, and what that was decided on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Does what is planned. A unit that goes from one machine to another is at no moment nowhere.
    Planned {
        /// What.
        task: Task,
        /// What it is to do on the machine that it is placed on, if it is; the epoch is that of the writer.
        run: Run,
        /// The revision of the want that was decided on: a user may have made it fit meanwhile.
        want: Revision,
        /// The revision of its place, if it is taken from one.
        place: Revision,
        /// The revision of `run/` on the machine that it leaves or stays on; none if there is none.
        run_from: Option<Revision>,
        /// The same on the machine where it goes.
        run_to: Option<Revision>,
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
    /// Takes back that a unit is to go to another machine.
    Unmove {
        /// Which.
        unit: String,
        /// The revision of the order.
        order: Revision,
    },
    /// Takes back why a unit is not placed, as when it is not to be placed any more.
    Unexplain {
        /// Which.
        unit: String,
    },
}

/// A step as it is written.
struct Write<'a> {
    index: usize,
    unit: &'a str,
    guards: Vec<Guard>,
    then: Vec<Operation>,
}

impl Step {
    /// The unit that it is about.
    pub fn unit(&self) -> &str {
        match self {
            Self::Planned { task, .. } => task.unit.as_str(),
            Self::Explain { unit, .. } | Self::Unmove { unit, .. } | Self::Unexplain { unit } => {
                unit
            }
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
            if let Step::Planned { task, .. } = step {
                for machine in task.from.iter().chain(&task.to) {
                    check_part("machine id", machine.as_str())?;
                }
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
        batch: &[Write<'_>],
        carried: &mut [Written],
    ) -> Result<(), Error> {
        let mut steps: Vec<&Write<'_>> = batch.iter().collect();
        while !steps.is_empty() {
            let outcome = self.store.commit(self.batch(leading, &steps)).await?;
            if outcome.succeeded {
                for step in steps {
                    carried[step.index] = Written::At(outcome.revision);
                }
                return Ok(());
            }
            if !self.leads(leading).holds(&outcome) {
                return Err(Error::Deposed);
            }
            let before = steps.len();
            steps.retain(|step| step.guards.iter().all(|guard| guard.holds(&outcome)));
            // The transaction failed and read at one moment: one of the guards did not hold then.
            debug_assert!(steps.len() < before, "a guard failed that holds");
            if steps.len() == before {
                return Ok(());
            }
        }
        Ok(())
    }

    fn batch(&self, leading: &Leading, steps: &[&Write<'_>]) -> Transaction {
        let mut guards = vec![self.leads(leading)];
        guards.extend(steps.iter().flat_map(|step| step.guards.iter().cloned()));
        let read = guards
            .iter()
            .map(|guard| Operation::Get(guard.key().to_owned()));
        Transaction {
            otherwise: read.collect(),
            then: steps
                .iter()
                .flat_map(|step| step.then.iter().cloned())
                .collect(),
            guards,
        }
    }

    fn written<'a>(&self, leading: &Leading, index: usize, step: &'a Step) -> Write<'a> {
        let unit = step.unit();
        let place_key = Key::Place(unit.to_owned());
        let at = |key: &Key, revision: Revision| Guard::Modified(self.name(key), revision);
        let wanted = |revision: Revision| at(&Key::Want(unit.to_owned()), revision);
        let (guards, then) = match step {
            Step::Planned {
                task,
                run,
                want,
                place,
                run_from,
                run_to,
            } => {
                let placed = match task.from {
                    Some(_) => at(&place_key, *place),
                    None => Guard::Absent(self.name(&place_key)),
                };
                let mut guards = vec![placed, wanted(*want)];
                let mut then = match &task.to {
                    Some(machine) => {
                        let run_key = Key::run(machine.as_str(), unit);
                        guards.push(self.as_known(&run_key, *run_to));
                        self.placed(leading, unit, machine.as_str(), run)
                    }
                    None => vec![self.delete(&place_key)],
                };
                if task.from != task.to
                    && let Some(from) = &task.from
                {
                    let run_key = Key::run(from.as_str(), unit);
                    guards.push(self.as_known(&run_key, *run_from));
                    then.push(self.delete(&run_key));
                }
                (guards, then)
            }
            Step::Unmove { order, .. } => {
                let key = Key::Move(unit.to_owned());
                (vec![at(&key, *order)], vec![self.delete(&key)])
            }
            Step::Explain { why, want, .. } => {
                let why = self.put(&Key::Why(unit.to_owned()), why);
                (vec![wanted(*want)], vec![why])
            }
            Step::Unexplain { .. } => (Vec::new(), vec![self.delete(&Key::Why(unit.to_owned()))]),
        };
        Write {
            index,
            unit,
            guards,
            then,
        }
    }

    fn placed(&self, leading: &Leading, unit: &str, machine: &str, run: &Run) -> Vec<Operation> {
        let epoch = leading.epoch;
        let place = Place {
            machine: machine.to_owned(),
            hash: run.hash.clone(),
            epoch,
        };
        let run = Run {
            epoch,
            ..run.clone()
        };
        vec![
            self.put(&Key::Place(unit.to_owned()), &place),
            self.put(&Key::run(machine, unit), &run),
            self.delete(&Key::Why(unit.to_owned())),
        ]
    }
}

/// How many steps, from the first, one transaction takes: at least one.
fn fitting(steps: &[Write<'_>]) -> usize {
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
        if !fits || !units.insert(step.unit) {
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
