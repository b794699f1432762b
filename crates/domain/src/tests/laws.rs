//! Laws of parents and children that hold at any time, after any request, and for any outcome.

use std::collections::{BTreeMap, BTreeSet};

use super::given::{condition, required};
use super::world::{Row, World};
use crate::aggregation::RECONCILED;
use crate::audit::{Action, Change};
use crate::lifecycle::Outcome;
use crate::{ConditionStatus, DeletePolicy, ReportState, ResourceId};

pub(super) type Rows = BTreeMap<ResourceId, Row>;

/// Any difference of generations comes from an ordinary change, of `count` resources.
pub(super) fn assert_generations_moved(before: &Rows, after: &Rows, count: usize) {
    assert_eq!(before.len(), after.len());
    let moved = before
        .iter()
        .filter(|(id, row)| after[id].resource.state.generation != row.resource.state.generation);
    assert_eq!(moved.count(), count);
}

/// Whether a deletion must be refused: something in the tree has an active child of a restricting kind, or an active
/// referrer from outside.
pub(super) fn is_held_back(world: &World, root: ResourceId) -> bool {
    let owner = |id: &ResourceId| world.rows[id].resource.state.owner;
    let is_inside =
        |id: &ResourceId| std::iter::successors(Some(*id), owner).any(|above| above == root);
    let mut active = world.rows.values().map(|row| &row.resource);
    active.any(|resource| {
        let state = &resource.state;
        let entity = world
            .registry
            .get(&state.kind)
            .expect("a kind of the world");
        let restricts = entity.on_parent_delete == DeletePolicy::Restrict
            && state.owner.as_ref().is_some_and(is_inside);
        let mut links = resource.references.values().flatten();
        let links_in = !is_inside(&state.id) && links.any(|link| is_inside(&link.id));
        !state.is_finalizing() && (restricts || links_in)
    })
}

/// Laws of every state.
pub(super) fn laws_of_the_state(world: &World) {
    for (id, row) in &world.rows {
        let state = &row.resource.state;
        if let Some(owner) = state.owner {
            let owner = world
                .rows
                .get(&owner)
                .expect("the owner of a resource exists");
            assert!(
                state.is_finalizing() || !owner.resource.state.is_finalizing(),
                "{id} is active below a finalizing owner"
            );
        }
        for link in row.resource.references.values().flatten() {
            let target = world.rows.get(&link.id).expect("what is linked to exists");
            assert!(!state.is_finalizing(), "{id} goes but still has links");
            assert!(
                !target.resource.state.is_finalizing(),
                "{id} links to what goes"
            );
        }
        let children = world.children(*id).count();
        let reconciled = condition(&state.conditions, RECONCILED);
        let is_reconciled = reconciled.is_some_and(|c| c.status == ConditionStatus::True);
        let required = required(&world.registry, &state.kind);
        if state.is_finalizing() {
            assert!(
                !is_reconciled || children == 0,
                "{id} is reconciled with children"
            );
            let is_finalized = |adapter: &String| {
                let mut reports = row.reports.iter().filter(|r| r.adapter == *adapter);
                reports.any(|r| r.is_finalized() && r.observed_generation == state.generation)
            };
            let is_done = children == 0 && required.iter().all(is_finalized);
            assert!(!is_done, "{id} has nothing to wait for");
        }
        // Only a report gives a kind without adapters conditions, and only the next renews them.
        if let (Some(reconciled), false) = (reconciled, required.is_empty()) {
            assert_eq!(
                reconciled.observed_generation, state.generation,
                "{id} is stale"
            );
        }
    }
}

/// Laws of the difference between two states.
pub(super) fn laws_of_the_step(before: &Rows, after: &Rows) {
    for (id, old) in before {
        let Some(new) = after.get(id) else { continue };
        let (old_state, new_state) = (&old.resource.state, &new.resource.state);
        let grown = new_state.generation - old_state.generation;
        assert!((0..=1).contains(&grown), "{id} grew by {grown} generations");
        if old_state.deletion.is_some() {
            assert_eq!(
                old_state.deletion, new_state.deletion,
                "{id} was deleted again"
            );
            assert_eq!(grown, 0, "{id} changed while finalizing");
            assert_eq!(old_state.updated_at, new_state.updated_at);
        }
        for report in &old.reports {
            let stored = new.reports.iter().filter(|r| r.adapter == report.adapter);
            let stored: Vec<_> = stored.collect();
            assert_eq!(stored.len(), 1, "one row for each adapter");
            let age = |r: &ReportState| (r.observed_generation, r.reported_at);
            assert!(age(stored[0]) >= age(report), "{id}: a report got older");
            assert_eq!(stored[0].created_at, report.created_at);
        }
        for old in &old_state.conditions {
            let Some(new) = condition(&new_state.conditions, &old.kind) else {
                continue;
            };
            assert_eq!(new.created_at, old.created_at);
            if new.status == old.status {
                assert_eq!(new.last_transition_at, old.last_transition_at);
            }
        }
    }
}

/// Laws of the rows and entries that a deletion or removal writes.
pub(super) fn laws_of_the_outcome(before: &Rows, world: &World, outcome: &Outcome) {
    let unique = |ids: Vec<ResourceId>| {
        let set: BTreeSet<_> = ids.iter().copied().collect();
        assert_eq!(
            set.len(),
            ids.len(),
            "something is there twice: {outcome:?}"
        );
        set
    };
    let saved = unique(outcome.saved.iter().map(|s| s.id).collect());
    let removed = unique(outcome.removed.clone());
    let released = unique(outcome.released.clone());
    assert!(saved.is_disjoint(&removed), "{outcome:?}");

    // Resources that the outcome does not name are unchanged.
    for (id, row) in before {
        if !saved.contains(id) && !removed.contains(id) && !released.contains(id) {
            let stored = &world.rows[id].resource;
            assert_eq!(row.resource.state.generation, stored.state.generation);
            assert_eq!(row.resource.references, stored.references);
        }
    }
    // The audit trail has, for each resource, that it became finalizing, then that it was removed.
    let mut recorded = BTreeMap::<_, Vec<&Change>>::new();
    for change in &outcome.changes {
        recorded.entry(change.id).or_default().push(change);
    }
    let touched: BTreeSet<_> = removed.union(&released).copied().collect();
    assert_eq!(recorded.keys().copied().collect::<BTreeSet<_>>(), touched);
    for (id, changes) in recorded {
        let old = &before[&id].resource.state;
        let mut changes = changes.into_iter();
        let mut generation = old.generation;
        if released.contains(&id) {
            assert!(!old.is_finalizing(), "{id} was finalizing before");
            let deleted = changes.next().expect("it was counted");
            generation += 1;
            let counted = (deleted.generation_before, deleted.generation_after);
            assert_eq!(counted, (Some(old.generation), Some(generation)));
            assert_eq!(deleted.action, Action::Delete);
        }
        if removed.contains(&id) {
            let gone = changes.next().expect("its end has an entry");
            let counted = (gone.generation_before, gone.generation_after);
            assert_eq!(counted, (Some(generation), None));
            let is_forced = gone.action == Action::ForceDelete;
            assert!(is_forced || gone.action == Action::HardDelete);
            assert_eq!(gone.reason.is_some(), is_forced, "force has a reason");
            // What was active a moment ago has no report at the generation that it got then.
            let required = required(&world.registry, &old.kind);
            assert!(is_forced || old.is_finalizing() || required.is_empty());
        }
        assert_eq!(changes.next(), None);
    }
}
