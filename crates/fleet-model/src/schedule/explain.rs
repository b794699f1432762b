//! Why a unit has no machine (decision F6).

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;

use super::cluster::Cluster;
use super::machine_id::MachineId;
use super::rules::Refusal;
use crate::shown;
use crate::unit::{Requirements, UnitName};

/// How many machines of a group are named.
pub const EXAMPLES_MAX: usize = 5;

/// Why a unit that is to be on a machine is on none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Explanation {
    /// No machine is there.
    NoMachines,
    /// It follows units that follow it: these, in turn, beginning with itself.
    Cycle(Vec<UnitName>),
    /// It follows this unit, which is on no machine.
    WaitsFor(UnitName),
    /// No machine can run it.
    Refused(Vec<Group>),
    /// Nothing is in its way: the next plan places it, here if nothing comes first.
    NotYet(MachineId),
}

/// Machines that cannot run a unit for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The first requirement of each that it does not meet.
    pub requirement: Requirement,
    /// How many there are.
    pub count: usize,
    /// The first of them by id, [`EXAMPLES_MAX`] at most.
    pub machines: Vec<MachineId>,
}

/// A requirement that machines do not meet, in the order in which they are looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Requirement {
    /// `MachineID`: it asks for this one.
    MachineId(String),
    /// `MachineMetadata`: none of the values that it asks for under a key.
    Metadata {
        /// The key.
        key: String,
        /// The first of the values that it asks for, in order, [`EXAMPLES_MAX`] at most.
        values: Vec<String>,
        /// Whether it asks for more of them.
        more: bool,
    },
    /// `MachineOf`: this unit is on another machine.
    MachineOf(String),
    /// `Conflicts`, its own or that of a unit there.
    Conflicts,
}

impl Cluster {
    /// Why a unit is on no machine. `None` if it is on one, is to be on none or runs everywhere, or
    /// there is no such unit. Takes time in proportion to the machines.
    pub fn explain(&self, unit: &str) -> Option<Explanation> {
        let job = &self.units.get(unit)?.job;
        if !job.is_placeable() || job.placed_on.is_some() {
            return None;
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
        Some(Explanation::Refused(self.groups(&job.name)))
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

    /// The shortest way from a unit over those that it follows back to it; global ones follow nobody.
    fn cycle(&self, name: &UnitName) -> Option<Vec<UnitName>> {
        // By which unit each was come to: ways are not copied, or long chains would cost their square.
        let mut come_by: HashMap<&str, &str> = HashMap::new();
        let mut ahead = VecDeque::from([name.as_str()]);
        while let Some(last) = ahead.pop_front() {
            let unit = self.units.get(last).filter(|unit| unit.job.is_placeable());
            for next in unit
                .iter()
                .flat_map(|unit| &unit.job.requirements.machine_of)
            {
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

    fn groups(&self, name: &UnitName) -> Vec<Group> {
        let unit = &self.units[name];
        let mut groups: BTreeMap<Refusal<'_>, (usize, Vec<MachineId>)> = BTreeMap::new();
        for id in &self.ids {
            let Err(refusal) = self.judge(unit, id, &self.machines[id]) else {
                continue;
            };
            let (count, machines) = groups.entry(refusal).or_default();
            *count += 1;
            if machines.len() < EXAMPLES_MAX {
                machines.push(id.clone());
            }
        }
        let groups = groups.into_iter();
        groups
            .map(|(refusal, (count, machines))| Group {
                requirement: Requirement::of(refusal, &unit.job.requirements),
                count,
                machines,
            })
            .collect()
    }
}

impl Requirement {
    fn of(refusal: Refusal<'_>, asked: &Requirements) -> Self {
        match refusal {
            Refusal::MachineId(wanted) => Self::MachineId(wanted.to_owned()),
            Refusal::Metadata(key) => {
                let values = asked.metadata.get(key);
                let count = values.map_or(0, BTreeSet::len);
                let values = values.into_iter().flatten().take(EXAMPLES_MAX);
                Self::Metadata {
                    key: key.to_owned(),
                    values: values.cloned().collect(),
                    more: count > EXAMPLES_MAX,
                }
            }
            Refusal::MachineOf(leader) => Self::MachineOf(leader.to_owned()),
            Refusal::Conflict => Self::Conflicts,
        }
    }
}

impl fmt::Display for Explanation {
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
            Self::NotYet(machine) => write!(f, "about to be placed on {machine}"),
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machines = if self.count == 1 {
            "machine"
        } else {
            "machines"
        };
        write!(f, "{}: {} {machines} (", self.requirement, self.count)?;
        for (index, machine) in self.machines.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{machine}")?;
        }
        f.write_str(if self.count > self.machines.len() {
            ", …)"
        } else {
            ")"
        })
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MachineId(wanted) => write!(f, "MachineID={wanted}"),
            Self::Metadata { key, values, more } => {
                let separator = format!(" or {key}=");
                let values: Vec<_> = values.iter().map(|value| shown(value)).collect();
                let more = if *more { " or …" } else { "" };
                write!(f, "MachineMetadata={key}={}{more}", values.join(&separator))
            }
            Self::MachineOf(leader) => write!(f, "MachineOf={leader}"),
            Self::Conflicts => f.write_str("Conflicts"),
        }
    }
}
