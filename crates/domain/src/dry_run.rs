//! What a change would do, for a client that asks before it changes anything (`docs/decisions/0075-dry-run.md`).

use std::collections::{BTreeSet, HashMap, HashSet};

use super::audit::{Action, Change};
use super::condition_rules::Failure;
use super::lifecycle::Outcome;
use super::{Condition, ConditionStatus, EntityRegistry, ResourceId, ResourceState};

/// Everything that a change would do to resources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DryRunPlan {
    /// In the order of the audit trail.
    pub changes: Vec<PlannedChange>,
    pub conditions: Vec<PlannedCondition>,
    /// The rules that would fail; they stop nothing.
    pub failures: Vec<Failure>,
    /// Whether the change would also affect resources that the caller does not see. They are omitted.
    pub has_hidden: bool,
}

/// One entry that the audit trail would have, with its consequences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedChange {
    pub change: Change,
    /// Whether another resource can take the name afterwards.
    pub frees_name: bool,
    /// The required adapters that have to report on the new generation.
    pub adapters: Vec<String>,
}

/// A condition of a remaining resource that appears, disappears or changes its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedCondition {
    pub kind: String,
    pub id: ResourceId,
    pub name: String,
    /// Type of the condition.
    pub condition: String,
    pub before: Option<ConditionStatus>,
    pub after: Option<ConditionStatus>,
}

impl DryRunPlan {
    /// Entries of one list that an answer has at most.
    pub const LISTED_MAX: usize = 1000;

    /// The plan of a decision on the resources `before`.
    pub fn of(before: &[ResourceState], outcome: &Outcome, registry: &EntityRegistry) -> Self {
        let before: HashMap<_, _> = before.iter().map(|state| (state.id, state)).collect();
        let is_active = |id: &ResourceId| before.get(id).is_some_and(|s| !s.is_finalizing());
        let removed: HashSet<_> = outcome.removed.iter().collect();
        let mut freed = HashSet::new();
        let changes = outcome.changes.iter().map(|change| PlannedChange {
            frees_name: is_end(change.action) && is_active(&change.id) && freed.insert(change.id),
            adapters: match registry.get(&change.kind) {
                Some(kind) if !is_removal(change.action) && !removed.contains(&change.id) => {
                    kind.required_adapters.clone()
                }
                _ => Vec::new(),
            },
            change: change.clone(),
        });
        let saved = outcome.saved.iter();
        let conditions = saved.flat_map(|after| {
            let before = before.get(&after.id);
            moved(before.map_or(&[], |before| &before.conditions), after)
        });
        Self {
            changes: changes.collect(),
            conditions: conditions.collect(),
            failures: outcome.failures.clone(),
            has_hidden: false,
        }
    }

    /// The resources that it names.
    pub fn ids(&self) -> BTreeSet<ResourceId> {
        let changed = self.changes.iter().map(|planned| planned.change.id);
        let moved = self.conditions.iter().map(|condition| condition.id);
        let failed = self.failures.iter().map(|failure| failure.id);
        changed.chain(moved).chain(failed).collect()
    }

    /// Leaves out every resource that the caller does not see.
    pub fn limit_to(&mut self, seen: &HashSet<ResourceId>) {
        self.has_hidden |= self.ids().iter().any(|id| !seen.contains(id));
        self.changes.retain(|p| seen.contains(&p.change.id));
        self.conditions.retain(|c| seen.contains(&c.id));
        self.failures.retain(|f| seen.contains(&f.id));
    }
}

fn is_removal(action: Action) -> bool {
    matches!(action, Action::HardDelete | Action::ForceDelete)
}

/// Whether the resource is no longer active afterwards.
fn is_end(action: Action) -> bool {
    is_removal(action) || action == Action::Delete
}

fn moved(before: &[Condition], after: &ResourceState) -> Vec<PlannedCondition> {
    let status = |all: &[Condition], kind: &str| {
        let found = all.iter().find(|condition| condition.kind == kind);
        found.map(|condition| condition.status)
    };
    let gone = before
        .iter()
        .filter(|condition| status(&after.conditions, &condition.kind).is_none());
    let types = after.conditions.iter().chain(gone);
    let moved = types.map(|condition| PlannedCondition {
        kind: after.kind.clone(),
        id: after.id,
        name: after.name.as_str().to_owned(),
        before: status(before, &condition.kind),
        after: status(&after.conditions, &condition.kind),
        condition: condition.kind.clone(),
    });
    moved.filter(|moved| moved.before != moved.after).collect()
}
