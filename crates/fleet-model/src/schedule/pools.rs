//! Machines by the metadata that units require, each pool in the order in which machines are chosen.
//!
//! A pool belongs to a requirement of units, not to the metadata of a machine: there are few different
//! requirements, but metadata may differ on every machine, such as a host name, and would make a pool for each. A
//! machine is in every pool that it matches. Units without requirements use the pool of all machines.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use super::machine_id::MachineId;
use crate::unit::{UnitName, unmet};

/// Required metadata: for every key one of these values.
pub(super) type Demand = BTreeMap<String, BTreeSet<String>>;
type Metadata = BTreeMap<String, String>;
type Pair = (String, String);

/// A pool that some unit requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PoolId(u64);

/// The pool of all machines.
pub(super) const ALL: PoolId = PoolId(0);

#[derive(Debug, Default)]
pub(super) struct Pool {
    demand: Demand,
    /// How many active units require it.
    asked_by: usize,
    /// The key of the pairs that lead to it, if it has any.
    found_by: Option<String>,
    /// Its machines by load, then id.
    pub(super) machines: BTreeSet<(u32, MachineId)>,
    /// Units that wait for another machine in this pool.
    pub(super) waiting: BTreeSet<UnitName>,
}

#[derive(Debug)]
pub(super) struct Pools {
    by_id: HashMap<PoolId, Pool>,
    by_demand: HashMap<Demand, PoolId>,
    /// Pools by one of the pairs that match.
    by_pair: HashMap<Pair, BTreeSet<PoolId>>,
    /// Machines by their metadata.
    machines: HashMap<Pair, BTreeSet<MachineId>>,
    next: u64,
}

impl Default for Pools {
    fn default() -> Self {
        Self {
            by_id: HashMap::from([(ALL, Pool::default())]),
            by_demand: HashMap::new(),
            by_pair: HashMap::new(),
            machines: HashMap::new(),
            next: 1,
        }
    }
}

impl Pools {
    pub(super) fn get(&self, pool: PoolId) -> &Pool {
        &self.by_id[&pool]
    }

    pub(super) fn get_mut(&mut self, pool: PoolId) -> &mut Pool {
        self.by_id.get_mut(&pool).expect("a required pool exists")
    }

    /// The pool of a requirement and, if it is new, the machines that match it: the caller records it for them.
    pub(super) fn pool_for<'a>(
        &mut self,
        demand: &Demand,
        machines: &impl Fn(&MachineId) -> Option<(u32, &'a Metadata)>,
    ) -> (PoolId, Vec<MachineId>) {
        if demand.is_empty() {
            return (ALL, Vec::new());
        }
        if let Some(&id) = self.by_demand.get(demand) {
            self.get_mut(id).asked_by += 1;
            return (id, Vec::new());
        }
        let id = PoolId(self.next);
        self.next += 1;
        let members = self.suiting(demand, machines);
        let found_by = self.key_with_fewest_pools(demand);
        for value in &demand[&found_by] {
            let pair = (found_by.clone(), value.clone());
            self.by_pair.entry(pair).or_default().insert(id);
        }
        let ids = members.iter().map(|(_, id)| id.clone()).collect();
        let pool = Pool {
            demand: demand.clone(),
            asked_by: 1,
            found_by: Some(found_by),
            machines: members,
            waiting: BTreeSet::new(),
        };
        self.by_id.insert(id, pool);
        self.by_demand.insert(demand.clone(), id);
        (id, ids)
    }

    /// Counts one requirement less. Returns the machines that must forget the pool, if no unit requires it any
    /// more.
    pub(super) fn unask(&mut self, id: PoolId) -> Vec<MachineId> {
        if id == ALL {
            return Vec::new();
        }
        let pool = self.get_mut(id);
        pool.asked_by -= 1;
        if pool.asked_by > 0 {
            return Vec::new();
        }
        let pool = self.by_id.remove(&id).expect("it was there a moment ago");
        self.by_demand.remove(&pool.demand);
        if let Some(key) = pool.found_by {
            for value in &pool.demand[&key] {
                forget(&mut self.by_pair, &(key.clone(), value.clone()), &id);
            }
        }
        pool.machines
            .into_iter()
            .map(|(_, machine)| machine)
            .collect()
    }

    /// Adds a machine. Returns its pools.
    pub(super) fn enter(&mut self, id: &MachineId, load: u32, metadata: &Metadata) -> Vec<PoolId> {
        let mut pools = vec![ALL];
        for (key, value) in metadata {
            let pair = (key.clone(), value.clone());
            let found = self.by_pair.get(&pair).into_iter().flatten().copied();
            pools.extend(found.filter(|pool| unmet(&self.by_id[pool].demand, metadata).is_none()));
            self.machines.entry(pair).or_default().insert(id.clone());
        }
        for &pool in &pools {
            self.get_mut(pool).machines.insert((load, id.clone()));
        }
        pools
    }

    /// Removes a machine from these pools.
    pub(super) fn exit(
        &mut self,
        id: &MachineId,
        load: u32,
        metadata: &Metadata,
        pools: &[PoolId],
    ) {
        for &pool in pools {
            self.get_mut(pool).machines.remove(&(load, id.clone()));
        }
        for (key, value) in metadata {
            forget(&mut self.machines, &(key.clone(), value.clone()), id);
        }
    }

    /// Moves a machine within its pools after a change of load.
    pub(super) fn reload(&mut self, id: &MachineId, from: u32, to: u32, pools: &[PoolId]) {
        for &pool in pools {
            let machines = &mut self.get_mut(pool).machines;
            let mut key = (from, id.clone());
            machines.remove(&key);
            key.0 = to;
            machines.insert(key);
        }
    }

    /// Searches the machines of the least common key.
    fn suiting<'a>(
        &self,
        demand: &Demand,
        machines: &impl Fn(&MachineId) -> Option<(u32, &'a Metadata)>,
    ) -> BTreeSet<(u32, MachineId)> {
        let with = |key: &String, values: &BTreeSet<String>| {
            let sets = values
                .iter()
                .filter_map(|v| self.machines.get(&(key.clone(), v.clone())));
            sets.collect::<Vec<_>>()
        };
        let candidates = demand.iter().map(|(key, values)| with(key, values));
        let fewest = candidates.min_by_key(|sets| sets.iter().map(|s| s.len()).sum::<usize>());
        let candidates = fewest.into_iter().flatten().flatten();
        let suiting = candidates.filter_map(|id| {
            let (load, metadata) = machines(id)?;
            unmet(demand, metadata)
                .is_none()
                .then(|| (load, id.clone()))
        });
        suiting.collect()
    }

    /// So that a machine is checked against as few pools as possible.
    fn key_with_fewest_pools(&self, demand: &Demand) -> String {
        let pools = |(key, values): &(&String, &BTreeSet<String>)| -> usize {
            let pairs = values.iter().map(|v| ((*key).clone(), v.clone()));
            pairs
                .filter_map(|pair| self.by_pair.get(&pair))
                .map(BTreeSet::len)
                .sum()
        };
        let fewest = demand.iter().min_by_key(pools);
        let (key, _) = fewest.expect("units without requirements use the pool of all");
        key.clone()
    }
}

/// Removes a value from the set of a key. Empty sets are removed.
pub(super) fn forget<K, Q, V>(sets: &mut HashMap<K, BTreeSet<V>>, key: &Q, value: &V)
where
    K: Eq + Hash + Borrow<Q>,
    Q: Eq + Hash + ?Sized,
    V: Ord,
{
    if let Some(set) = sets.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}
