//! Writes of an engine: batches of steps, each in as few transactions as the store's limits allow, all guarded
//! by the engine's term.

use std::collections::BTreeSet;

use super::engine::Leading;
use super::key::check_part;
use super::record::{Moved, Placement, Run};
use super::table::Key;
use super::units::Written;
use super::{Error, Registry};
use crate::keys::{
    Guard, KeyOperation, KeyStore, Revision, TRANSACTION_OPERATIONS_MAX, Transaction,
};
use hyperfleet_fleet_model::schedule::Task;

/// Largest transaction, in bytes of values. etcd accepts requests of 1.5 MiB (`--max-request-bytes`).
const TRANSACTION_BYTES_MAX: usize = 1 << 20;

/// One change of one unit, with the revisions that it was decided on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all steps are planned ones"
)]
pub enum Step {
    /// Places, moves or withdraws a unit. A moved unit is always placed somewhere. A task that was decided on because
    /// a machine is lost is stale once that machine is registered.
    Planned {
        task: Task,
        /// For a unit that leaves one machine for another, also if its two steps are separate.
        moved: Option<Moved>,
        /// The order to its machine, if it is placed. The epoch is the writer's.
        run: Run,
        /// Revision of the desired state that was decided on.
        desired: Revision,
        /// Revision of the place that it leaves, if any.
        placement: Revision,
        /// Revision of `run/` on the machine that it leaves or stays on; `None` if absent.
        run_from: Option<Revision>,
        /// Revision of `run/` on the machine that it goes to; `None` if absent.
        run_to: Option<Revision>,
    },
    /// Removes an order to move a unit.
    Unmove {
        unit: String,
        /// Revision of the order.
        order: Revision,
    },
}

/// A step in its written form.
struct Write<'a> {
    index: usize,
    unit: &'a str,
    guards: Vec<Guard>,
    then: Vec<KeyOperation>,
}

impl Step {
    pub fn unit(&self) -> &str {
        match self {
            Self::Planned { task, .. } => task.unit.as_str(),
            Self::Unmove { unit, .. } => unit,
        }
    }
}

impl<S: KeyStore> Registry<S> {
    /// Carries out steps in their order, and returns the result of each. A stale step does not block others.
    /// Several steps of one unit are carried out one after another.
    ///
    /// Each transaction is atomic. If a batch needs several, those before an error were committed.
    ///
    /// # Errors
    /// [`Error::Deposed`] once the engine's term has ended: the remaining steps never take effect.
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

    /// Carries out the valid steps of a batch that fits one transaction.
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
            // The transaction failed and read at one revision, so one of the guards did not hold then.
            debug_assert!(steps.len() < before, "a guard failed that holds");
            if steps.len() == before {
                return Ok(());
            }
        }
        Ok(())
    }

    fn batch(&self, leading: &Leading, steps: &[&Write<'_>]) -> Transaction {
        let leads = self.leads(leading);
        let guards = steps.iter().flat_map(|step| &step.guards);
        // Units of one lost machine have one guard for it.
        let guards: BTreeSet<&Guard> = guards.chain([&leads]).collect();
        let guards: Vec<Guard> = guards.into_iter().cloned().collect();
        let read = guards
            .iter()
            .map(|guard| KeyOperation::Get(guard.key().to_owned()));
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
        let placement_key = Key::Placement(unit.to_owned());
        let at = |key: &Key, revision: Revision| Guard::Modified(self.name(key), revision);
        let (guards, then) = match step {
            Step::Planned {
                task,
                moved,
                run,
                desired,
                placement,
                run_from,
                run_to,
            } => {
                let placed = match task.from {
                    Some(_) => at(&placement_key, *placement),
                    None => Guard::Absent(self.name(&placement_key)),
                };
                let desired = at(&Key::Desired(unit.to_owned()), *desired);
                let mut guards = vec![placed, desired];
                if let Some(lost) = task.lost_machine() {
                    let machine_key = Key::Machine(lost.to_string());
                    guards.push(Guard::Absent(self.name(&machine_key)));
                }
                let mut then = match &task.to {
                    Some(machine) => {
                        let run_key = Key::run(machine.as_str(), unit);
                        guards.push(self.guard_at(&run_key, *run_to));
                        let placement = Placement {
                            machine: machine.to_string(),
                            hash: run.hash.clone(),
                            epoch: leading.epoch,
                            moved: moved.clone(),
                        };
                        self.placement_operations(unit, &placement, run)
                    }
                    None => vec![self.delete(&placement_key)],
                };
                if task.from != task.to
                    && let Some(from) = &task.from
                {
                    let run_key = Key::run(from.as_str(), unit);
                    guards.push(self.guard_at(&run_key, *run_from));
                    then.push(self.delete(&run_key));
                }
                (guards, then)
            }
            Step::Unmove { order, .. } => {
                let key = Key::Move(unit.to_owned());
                (vec![at(&key, *order)], vec![self.delete(&key)])
            }
        };
        Write {
            index,
            unit,
            guards,
            then,
        }
    }

    fn placement_operations(
        &self,
        unit: &str,
        placement: &Placement,
        run: &Run,
    ) -> Vec<KeyOperation> {
        let run = Run {
            epoch: placement.epoch,
            ..run.clone()
        };
        vec![
            self.put(&Key::Placement(unit.to_owned()), placement),
            self.put(&Key::run(&placement.machine, unit), &run),
        ]
    }
}

/// How many of the first steps fit one transaction: at least one.
fn fitting(steps: &[Write<'_>]) -> usize {
    let (mut operations, mut bytes) = (0, 0);
    let (mut guards, mut units) = (BTreeSet::new(), BTreeSet::new());
    let mut count = 0;
    for step in steps {
        guards.extend(&step.guards);
        operations += step.then.len();
        bytes += step.then.iter().map(size).sum::<usize>();
        // One more guard is that of the term.
        let fits = guards.len() < TRANSACTION_OPERATIONS_MAX
            && operations <= TRANSACTION_OPERATIONS_MAX
            && bytes <= TRANSACTION_BYTES_MAX;
        if !fits || !units.insert(step.unit) {
            break;
        }
        count += 1;
    }
    count.max(1)
}

fn size(operation: &KeyOperation) -> usize {
    match operation {
        KeyOperation::Put(key, value, _) => key.len() + value.len(),
        KeyOperation::Get(key) | KeyOperation::Delete(key) => key.len(),
    }
}
