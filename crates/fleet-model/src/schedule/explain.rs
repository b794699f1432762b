//! Explains why a unit has no machine.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;

use super::cluster::Cluster;
use super::machine_id::MachineId;
use super::rules::Refusal;
use crate::shown;
use crate::unit::UnitName;

/// How many machines of a group are named.
pub const EXAMPLES_MAX: usize = 5;

/// Why a unit that needs a machine has none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Explanation<'a> {
    NoMachines,
    /// It follows units that follow it: these in turn, starting with itself.
    Cycle(Vec<UnitName>),
    /// It follows this unit, which is on no machine.
    WaitsFor(UnitName),
    /// It is a singleton, and this machine has not stopped it yet.
    Stopping(MachineId),
    Refused(Vec<Group<'a>>),
    /// It leaves its machine only together with these units, and no machine can run all of them.
    Tied(Vec<UnitName>),
    /// It can be placed: the next plan places it here unless something else comes first.
    NotYet(MachineId),
}

/// Machines that refuse a unit for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group<'a> {
    /// The first unmet requirement.
    pub refusal: Refusal<'a>,
    pub count: usize,
    /// The first of them by id, [`EXAMPLES_MAX`] at most.
    pub machines: Vec<&'a str>,
    /// For [`Refusal::Conflict`], the first unit by name that is in the way on each of `machines`; `None` if only a unit
    /// that would move with it is.
    pub rivals: Vec<Option<&'a UnitName>>,
}

impl Cluster {
    /// Why a unit has no suitable machine: it is on none, or on a drained one. `None` if it needs none or does
    /// not exist. Takes time in proportion to the machines.
    pub fn explain(&self, unit: &str) -> Option<Explanation<'_>> {
        let job = &self.units.get(unit)?.job;
        if !self.needs_machine(unit) {
            return None;
        }
        if let Some(machine) = &job.placed_on {
            return Some(self.explain_stuck(&job.name, machine));
        }
        if let Some(machine) = &job.stopping_on {
            return Some(Explanation::Stopping(machine.clone()));
        }
        if self.machines.is_empty() {
            return Some(Explanation::NoMachines);
        }
        if let Some(cycle) = self.cycle(&job.name) {
            return Some(Explanation::Cycle(cycle));
        }
        let mut leaders = job.requirements.machine_of.iter();
        if let Some(leader) = leaders.find(|leader| !self.is_somewhere(leader)) {
            return Some(Explanation::WaitsFor(UnitName::stored(leader.as_str())));
        }
        if let Some(machine) = self.choose(&job.name, None) {
            return Some(Explanation::NotYet(machine));
        }
        Some(Explanation::Refused(
            self.groups(&job.name, &BTreeSet::new()),
        ))
    }

    /// Why a unit has not left its drained machine.
    fn explain_stuck(&self, name: &UnitName, machine: &MachineId) -> Explanation<'_> {
        let companions = self.companions(name, machine);
        if let Some(machine) = self.choose_for_all(&companions, machine) {
            return Explanation::NotYet(machine);
        }
        let groups = self.groups(name, &companions);
        let is_refused_everywhere =
            groups.iter().map(|group| group.count).sum::<usize>() == self.machines.len();
        if is_refused_everywhere {
            return Explanation::Refused(groups);
        }
        let others = companions.into_iter().filter(|other| other != name);
        Explanation::Tied(others.collect())
    }

    fn is_somewhere(&self, unit: &str) -> bool {
        let Some(unit) = self.units.get(unit) else {
            return false;
        };
        if unit.job.is_active_global() {
            let name = &unit.job.name;
            return self
                .machines
                .values()
                .any(|node| node.globals.contains(name));
        }
        let placed_on = unit.job.placed_on.as_ref();
        unit.job.is_placeable() && placed_on.is_some_and(|id| self.machines.contains_key(id))
    }

    /// The shortest circle of units that follow each other through this one. Global units follow none.
    fn cycle(&self, name: &UnitName) -> Option<Vec<UnitName>> {
        // The predecessor of each visited unit: copied paths would cost the square of a long chain.
        let mut come_by: HashMap<&str, &str> = HashMap::new();
        let mut ahead = VecDeque::from([name.as_str()]);
        while let Some(last) = ahead.pop_front() {
            for next in self.leaders(last) {
                if next == name.as_str() {
                    let way = std::iter::successors(Some(last), |at| come_by.get(at).copied());
                    let mut way: Vec<_> = way.map(UnitName::stored).collect();
                    way.reverse();
                    return Some(way);
                }
                if let Entry::Vacant(new) = come_by.entry(next) {
                    new.insert(last);
                    ahead.push_back(next);
                }
            }
        }
        None
    }

    /// The machines that refuse a unit together with its companions.
    fn groups(&self, name: &UnitName, together: &BTreeSet<UnitName>) -> Vec<Group<'_>> {
        let mut groups: BTreeMap<Refusal<'_>, Group<'_>> = BTreeMap::new();
        for id in &self.ids {
            let Err(refusal) = self.admit_with(name, id, together) else {
                continue;
            };
            let group = groups.entry(refusal).or_insert_with(|| Group {
                refusal,
                count: 0,
                machines: Vec::new(),
                rivals: Vec::new(),
            });
            group.count += 1;
            if group.machines.len() < EXAMPLES_MAX {
                group.machines.push(id.as_str());
                if refusal == Refusal::Conflict {
                    let name = &self.units[name].job.name;
                    group.rivals.push(self.rivals(name, id).min());
                }
            }
        }
        groups.into_values().collect()
    }
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMachines => f.write_str("there are no machines"),
            Self::Cycle(units) => {
                f.write_str("follows itself: ")?;
                for unit in units {
                    write!(f, "{unit} → ")?;
                }
                units.first().map_or(Ok(()), |first| write!(f, "{first}"))
            }
            Self::WaitsFor(leader) => write!(f, "waits for {leader}, which is on no machine"),
            Self::Refused(groups) => {
                f.write_str("no machine can run it: ")?;
                for (index, group) in groups.iter().enumerate() {
                    let separator = if index == 0 { "" } else { "; " };
                    write!(f, "{separator}{group}")?;
                }
                Ok(())
            }
            Self::Stopping(machine) => {
                write!(
                    f,
                    "waits until {machine} has stopped it: it must never run twice"
                )
            }
            Self::Tied(units) => {
                let some = units.iter().take(EXAMPLES_MAX);
                let some: Vec<_> = some.map(UnitName::as_str).collect();
                let more = if units.len() > EXAMPLES_MAX {
                    ", …"
                } else {
                    ""
                };
                let some = some.join(", ");
                write!(f, "no machine can run it together with {some}{more}")
            }
            Self::NotYet(machine) => write!(f, "about to be placed on {machine}"),
        }
    }
}

impl fmt::Display for Group<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.count == 1 {
            "machine"
        } else {
            "machines"
        };
        let is_part = self.count > self.machines.len();
        let more = if is_part { ", …" } else { "" };
        let machines = self.machines.iter().enumerate();
        let machines =
            machines.map(
                |(index, machine)| match self.rivals.get(index).copied().flatten() {
                    Some(rival) => format!("{machine}: {rival}"),
                    None => (*machine).to_owned(),
                },
            );
        let machines = machines.collect::<Vec<_>>().join(", ");
        write!(
            f,
            "{}: {} {noun} ({machines}{more})",
            self.refusal, self.count
        )
    }
}

impl fmt::Display for Refusal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MachineId(wanted) => write!(f, "MachineID={wanted}"),
            Self::Metadata(key, values) => {
                let some = values.iter().take(EXAMPLES_MAX);
                let some: Vec<_> = some.map(|value| shown(value)).collect();
                let some = some.join(&format!(" or {key}="));
                let is_part = values.len() > EXAMPLES_MAX;
                let more = if is_part { " or …" } else { "" };
                write!(f, "MachineMetadata={key}={some}{more}")
            }
            Self::MachineOf(leader) => write!(f, "MachineOf={leader}"),
            Self::Conflict => f.write_str("Conflicts"),
            Self::Cordoned => f.write_str("cordoned"),
        }
    }
}
