//! The last known state of the cluster, with the indexes that make decisions cheap.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::machine_id::MachineId;
use super::model::{Availability, Job};
use super::patterns::{PatternId, Patterns};
use super::pools::{ALL, PoolId, Pools};
use super::rules::{Neighbours, Refusal, can_run};
use crate::unit::{Requirements, UnitName};

/// The known machines and units. A plan costs what has changed since the last one, not the size of the cluster.
///
/// # Guarantees
/// The plan depends only on the state, not on the order of changes or on earlier plans.
#[derive(Debug, Default)]
pub struct Cluster {
    pub(super) machines: HashMap<MachineId, Node>,
    /// The ids in order.
    pub(super) ids: BTreeSet<MachineId>,
    /// Machines that may or may not exist.
    pub(super) unclear: BTreeSet<MachineId>,
    /// Whether every missing machine counts as one of these.
    pub(super) awaits_machines: bool,
    pub(super) units: HashMap<UnitName, Unit>,
    /// The names in order.
    pub(super) names: BTreeSet<UnitName>,
    /// Active ordinary units by the machine that they are placed on, existing or not.
    pub(super) placed: HashMap<MachineId, BTreeSet<UnitName>>,
    pub(super) globals: BTreeSet<UnitName>,
    /// Active ordinary units by the units that they follow.
    pub(super) followers: HashMap<String, BTreeSet<UnitName>>,
    /// Units that wait for this one to be placed.
    pub(super) waiting: HashMap<String, BTreeSet<UnitName>>,
    pub(super) pools: Pools,
    pub(super) patterns: Patterns,
    /// Active ordinary units that replace others.
    pub(super) replacers: BTreeSet<UnitName>,
    /// Units that must be checked: they may be misplaced, or may find a machine now. No other unit needs a
    /// change.
    pub(super) suspects: BTreeSet<UnitName>,
}

/// An existing machine.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) availability: Availability,
    /// How many units count on it. All units weigh the same.
    pub(super) load: u32,
    /// Global units that run there.
    pub(super) globals: BTreeSet<UnitName>,
    pub(super) pools: Vec<PoolId>,
}

/// A unit, with its index entries while it is active.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) job: Job,
    pub(super) pool: PoolId,
    /// Patterns that it declares, without repetition.
    pub(super) conflicts: Vec<PatternId>,
    pub(super) replaces: Vec<PatternId>,
    /// Patterns that match its name.
    pub(super) matched: Vec<PatternId>,
    /// Whether it waits for a machine, after a check that found none.
    pub(super) is_waiting: bool,
}

impl Node {
    /// Whether the machine takes further units, whatever their requirements.
    pub(super) fn admits<'a>(&self) -> Result<(), Refusal<'a>> {
        match self.availability {
            Availability::Open => Ok(()),
            Availability::Cordoned | Availability::Draining => Err(Refusal::Cordoned),
        }
    }
}

impl Unit {
    pub(super) fn new(job: Job) -> Self {
        Self {
            job,
            pool: ALL,
            conflicts: Vec::new(),
            replaces: Vec::new(),
            matched: Vec::new(),
            is_waiting: false,
        }
    }

    /// Every pattern that concerns the unit.
    pub(super) fn patterns(&self) -> impl Iterator<Item = PatternId> + '_ {
        let declared = self.conflicts.iter().chain(&self.replaces);
        declared.chain(&self.matched).copied()
    }
}

/// The units that count on one machine, through the indexes.
pub(super) struct OnMachine<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) machine: &'a MachineId,
}

impl Neighbours for OnMachine<'_> {
    fn has(&self, unit: &str) -> bool {
        self.cluster.counts_on(unit, self.machine)
    }

    fn conflicts(&self, unit: &UnitName, _: &Requirements) -> bool {
        self.cluster.is_crowded(unit, self.machine)
    }
}

impl Cluster {
    /// An empty cluster.
    pub fn new() -> Self {
        Self::default()
    }

    pub fn job(&self, unit: &str) -> Option<&Job> {
        self.units.get(unit).map(|unit| &unit.job)
    }

    pub fn machine_count(&self) -> usize {
        self.machines.len()
    }

    /// Units that an active ordinary unit follows.
    pub(super) fn leaders(&self, name: &str) -> impl Iterator<Item = &String> {
        let unit = self.units.get(name).filter(|unit| unit.job.is_placeable());
        let unit = unit.into_iter();
        unit.flat_map(|unit| &unit.job.requirements.machine_of)
    }

    pub(super) fn judge<'a>(
        &self,
        unit: &'a Unit,
        id: &MachineId,
        node: &Node,
    ) -> Result<(), Refusal<'a>> {
        let there = OnMachine {
            cluster: self,
            machine: id,
        };
        can_run(
            &unit.job.name,
            &unit.job.requirements,
            (id, &node.metadata),
            &there,
        )
    }

    /// Whether a unit that is elsewhere or unplaced may be placed on a machine.
    pub(super) fn admit<'a>(
        &self,
        unit: &'a Unit,
        id: &MachineId,
        node: &Node,
    ) -> Result<(), Refusal<'a>> {
        self.judge(unit, id, node)?;
        node.admits()
    }

    pub(super) fn is_draining(&self, machine: &MachineId) -> bool {
        let node = self.machines.get(machine);
        node.is_some_and(|node| node.availability == Availability::Draining)
    }

    /// Whether a unit needs another machine than it has: it is on none, or on a drained one.
    pub fn needs_machine(&self, unit: &str) -> bool {
        self.job(unit).is_some_and(|job| {
            let placed_on = job.placed_on.as_ref();
            job.is_placeable() && placed_on.is_none_or(|machine| self.is_draining(machine))
        })
    }

    /// The active ordinary units that are placed on a machine, by name.
    pub fn units_on(&self, machine: &str) -> impl Iterator<Item = &UnitName> {
        self.placed.get(machine).into_iter().flatten()
    }

    /// Whether an active unit is on that machine and the machine exists.
    pub(super) fn counts_on(&self, unit: &str, machine: &MachineId) -> bool {
        self.units.get(unit).is_some_and(|unit| {
            if unit.job.is_active_global() {
                let node = self.machines.get(machine);
                return node.is_some_and(|node| node.globals.contains(&unit.job.name));
            }
            unit.job.is_placeable() && unit.job.placed_on.as_ref() == Some(machine)
        })
    }

    /// Whether another unit on that machine and an active unit exclude each other.
    pub(super) fn is_crowded(&self, name: &UnitName, machine: &MachineId) -> bool {
        let unit = &self.units[name];
        if unit.conflicts.is_empty() && unit.matched.is_empty() {
            return false;
        }
        let itself = |ids: &[PatternId], id| {
            u32::from(ids.contains(id) && self.counts_on(name.as_str(), machine))
        };
        let matched = unit.conflicts.iter().any(|id| {
            let on = self.patterns.get(*id).matched_on.get(machine);
            on.is_some_and(|&count| count > itself(&unit.matched, id))
        });
        matched
            || unit.matched.iter().any(|id| {
                let on = self.patterns.get(*id).declared_on.get(machine);
                on.is_some_and(|&count| count > itself(&unit.conflicts, id))
            })
    }

    /// Units on a machine that exclude a unit or are excluded by it, by name.
    pub(super) fn rivals<'a>(
        &'a self,
        name: &'a UnitName,
        machine: &'a MachineId,
    ) -> impl Iterator<Item = &'a UnitName> {
        let unit = &self.units[name].job;
        let globals = self.machines.get(machine).map(|node| &node.globals);
        let there = self
            .placed
            .get(machine)
            .into_iter()
            .chain(globals)
            .flatten();
        there.filter(move |other| {
            *other != name
                && (unit.requirements.conflicts_with(other.as_str())
                    || self.units[*other]
                        .job
                        .requirements
                        .conflicts_with(name.as_str()))
        })
    }

    pub(super) fn suspect(&mut self, unit: &UnitName) {
        self.suspects.insert(unit.clone());
    }
}
