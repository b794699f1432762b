//! Moves that even out the load of machines, when an operator asks for them. The engine moves nothing for
//! balance by itself.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::cluster::Cluster;
use super::machine_id::MachineId;
use super::model::{Availability, Task};
use super::reason::Reason;
use crate::unit::UnitName;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    pub unit: UnitName,
    pub from: MachineId,
    pub to: MachineId,
}

impl Cluster {
    /// How many units count on each existing machine.
    pub fn loads(&self) -> BTreeMap<MachineId, u32> {
        let machines = self.machines.iter();
        machines.map(|(id, node)| (id.clone(), node.load)).collect()
    }

    /// Moves from the most loaded machines to the least loaded ones, and the loads after them. Each move
    /// reduces a difference of two or more, and breaks no requirement. Units tied by `MachineOf`, and
    /// singletons, stay. The state does not change.
    pub fn rebalance(&mut self, moves_max: usize) -> (Vec<Move>, BTreeMap<MachineId, u32>) {
        let mut moves = Vec::new();
        while moves.len() < moves_max {
            let Some(next) = self.best_move() else {
                break;
            };
            self.set_placement(&next.unit, Some(next.to.clone()));
            moves.push(next);
        }
        let after = self.loads();
        self.take_back(&moves);
        (moves, after)
    }

    /// The tasks of those moves that are valid, each after the ones before it: the unit is still on its machine
    /// and may be placed on the other. The state does not change.
    pub fn carry_moves(&mut self, asked: &[Move]) -> Vec<Task> {
        let mut right = Vec::new();
        for next in asked {
            if self.may_move(&next.unit, &next.from) && self.may_come(next) {
                self.set_placement(&next.unit, Some(next.to.clone()));
                right.push(next.clone());
            }
        }
        self.take_back(&right);
        let task = |one: Move| Task {
            unit: one.unit,
            from: Some(one.from),
            to: Some(one.to),
            reason: Reason::Rebalanced,
        };
        right.into_iter().map(task).collect()
    }

    fn take_back(&mut self, moves: &[Move]) {
        for done in moves.iter().rev() {
            self.set_placement(&done.unit, Some(done.from.clone()));
        }
    }

    fn best_move(&self) -> Option<Move> {
        let open = self.machines.iter();
        let open = open.filter(|(_, node)| node.availability == Availability::Open);
        let mut by_load: Vec<_> = open.map(|(id, node)| (Reverse(node.load), id)).collect();
        by_load.sort_unstable();
        let (Reverse(least), _) = *by_load.last()?;
        by_load.into_iter().find_map(|(Reverse(load), from)| {
            // Further moves have no benefit.
            if load < least + 2 {
                return None;
            }
            self.units_on(from.as_str()).find_map(|unit| {
                let to = self
                    .may_move(unit, from)
                    .then(|| self.choose(unit, Some(from)))??;
                (self.machines[&to].load + 2 <= load).then(|| Move {
                    unit: unit.clone(),
                    from: from.clone(),
                    to,
                })
            })
        })
    }

    fn may_move(&self, unit: &UnitName, from: &MachineId) -> bool {
        let job = self.job(unit.as_str());
        job.is_some_and(|job| {
            job.is_placeable()
                && !job.is_pinned
                && !job.requirements.is_singleton
                && job.placed_on.as_ref() == Some(from)
                && self.companions(unit, from).len() == 1
        })
    }

    fn may_come(&self, asked: &Move) -> bool {
        let (unit, node) = (&self.units[&asked.unit], self.machines.get(&asked.to));
        asked.from != asked.to
            && node.is_some_and(|node| self.admit(unit, &asked.to, node).is_ok())
            && self.is_free_of_meetings(&asked.unit, &asked.to)
    }
}
