//! What a dry run says of a decision.

use std::collections::HashSet;

use super::deletion::{deleted, kinds, new};
use super::given::{family, finalizing, id};
use crate::dry_run::{DryRunPlan, PlannedChange};
use crate::lifecycle::{Family, Outcome, force_delete};
use crate::{ConditionStatus, ResourceState};

fn plan(family: &Family, outcome: &Outcome) -> DryRunPlan {
    let before: Vec<ResourceState> = family.nodes().map(|node| node.state.clone()).collect();
    DryRunPlan::of(&before, outcome, &kinds())
}

/// The action of each change, whether it frees the name, and the adapters that work for it.
fn said(plan: &DryRunPlan) -> Vec<(&'static str, bool, &[String])> {
    let said = |planned: &PlannedChange| (planned.change.action.into_str(), planned.frees_name);
    let changes = plan.changes.iter();
    changes
        .map(|planned| {
            let (action, frees_name) = said(planned);
            (action, frees_name, &planned.adapters[..])
        })
        .collect()
}

#[test]
fn adapters_work_for_what_remains_and_a_name_is_freed_once() {
    let family = family(
        new("Cluster", 1, None),
        vec![new("Pool", 2, 1), new("Disk", 3, 2)],
    );
    let (_, outcome) = deleted(&family).unwrap();
    let expected = [
        ("delete", true, &["a".to_owned(), "b".to_owned()][..]),
        ("delete", true, &["a".to_owned()]),
        ("delete", true, &[]),
        ("hard_delete", false, &[]),
    ];
    assert_eq!(said(&plan(&family, &outcome)), expected);
}

#[test]
fn the_name_of_a_finalizing_resource_is_free_already() {
    let root = finalizing(new("Cluster", 1, None));
    // An import may have left an active child below it.
    let family = family(root, vec![new("Pool", 2, 1)]);
    let outcome = force_delete(&family, "x", &kinds()).unwrap();
    let expected = [
        ("force_delete", true, &[][..]),
        ("force_delete", false, &[]),
    ];
    assert_eq!(said(&plan(&family, &outcome)), expected);
}

#[test]
fn conditions_are_named_if_their_status_is_another_one() {
    let family = family(new("Cluster", 1, None), vec![]);
    let mut after = family.root.state.clone();
    let kind = after.conditions[0].kind.clone();
    let outcome = |after: &ResourceState| Outcome {
        saved: vec![after.clone()],
        ..Outcome::default()
    };
    after.conditions[0].observed_generation = 7;
    assert_eq!(plan(&family, &outcome(&after)).conditions, []);
    let statuses = |after: &ResourceState| {
        let plan = plan(&family, &outcome(after));
        let moved = plan.conditions.into_iter();
        let moved = moved.map(|c| (c.condition, c.before, c.after));
        moved.collect::<Vec<_>>()
    };
    let (is, was) = (ConditionStatus::True, ConditionStatus::False);
    after.conditions[0].status = is;
    assert_eq!(statuses(&after), [(kind.clone(), Some(was), Some(is))]);
    let removed = after.conditions.remove(0);
    assert_eq!(statuses(&after), [(kind.clone(), Some(was), None)]);
    let new = DryRunPlan::of(&[], &outcome(&family.root.state), &kinds());
    let named = new.conditions.iter().find(|c| c.condition == removed.kind);
    assert_eq!(named.map(|c| (c.before, c.after)), Some((None, Some(was))));
}

#[test]
fn what_the_caller_does_not_see_is_left_out() {
    let family = family(new("Cluster", 1, None), vec![new("Pool", 2, 1)]);
    let (_, outcome) = deleted(&family).unwrap();
    let complete = plan(&family, &outcome);
    let mut all = complete.clone();
    all.limit_to(&HashSet::from([id(1), id(2)]));
    assert_eq!(all, complete);
    let mut own = complete;
    own.limit_to(&HashSet::from([id(1)]));
    assert!(own.has_hidden);
    assert_eq!(own.ids().into_iter().collect::<Vec<_>>(), [id(1)]);
}
