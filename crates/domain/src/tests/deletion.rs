//! DELETE: which resources are removed, which are deleted with them, which wait, and the entries of the audit trail.

use super::given::{
    at, child_kind, condition, family, finalized_by, finalizing, id, kind, origin, origin_of,
    registry, report, reported, snapshot,
};
use crate::aggregation::RECONCILED;
use crate::audit::{Action, Change};
use crate::lifecycle::{Family, LifecycleRefusal, Outcome, Referrer, delete};
use crate::{
    ConditionStatus, Deletion, EntityRegistry, ReportOutcome, ResourceSnapshot, ResourceState,
};

/// ```text
/// Cluster a,b ◀─ cascade ─ Pool a ◀─ cascade ─ Disk (no adapters)
/// Channel (no adapters) ◀─ restrict ─ Version (no adapters)
///                       ◀─ cascade ─ Stream (no adapters) ◀─ restrict ─ Lock (no adapters)
///                                                         ◀─ cascade ─ Build a ◀─ cascade ─ Log a
/// ```
pub(super) fn kinds() -> EntityRegistry {
    registry(&[
        kind("Cluster", &["a", "b"]),
        child_kind("Pool", "Cluster", "cascade", &["a"]),
        child_kind("Disk", "Pool", "cascade", &[]),
        kind("Channel", &[]),
        child_kind("Stream", "Channel", "cascade", &[]),
        child_kind("Build", "Stream", "cascade", &["a"]),
        child_kind("Log", "Build", "cascade", &["a"]),
        child_kind("Lock", "Stream", "restrict", &[]),
        child_kind("Version", "Channel", "restrict", &[]),
    ])
}

pub(super) fn new(kind: &str, number: u128, owner: impl Into<Option<u128>>) -> ResourceSnapshot {
    snapshot(&kinds(), kind, number, owner.into())
}

/// Deleted by alice at second 9, without referrers.
pub(super) fn deleted(family: &Family) -> Result<(ResourceState, Outcome), LifecycleRefusal> {
    delete(family, &[], &kinds(), &origin(9))
}

fn referrer(target: u128, kind: &str, name: &str, number: u128) -> Referrer {
    Referrer {
        target: id(target),
        kind: kind.to_owned(),
        name: name.to_owned(),
        id: id(number),
        is_seen: true,
    }
}

/// A change of the resource that the builders call `r<number>`.
pub(super) fn change(
    action: Action,
    kind: &str,
    number: u128,
    generations: (Option<i32>, Option<i32>),
) -> Change {
    Change {
        action,
        kind: kind.to_owned(),
        id: id(number),
        name: format!("r{number}"),
        generation_before: generations.0,
        generation_after: generations.1,
        reason: None,
    }
}

fn marked(kind: &str, number: u128) -> Change {
    change(Action::Delete, kind, number, (Some(1), Some(2)))
}

pub(super) fn gone(kind: &str, number: u128) -> Change {
    change(Action::HardDelete, kind, number, (Some(2), None))
}

fn by_alice() -> Deletion {
    Deletion {
        at: at(9),
        by: "alice".to_owned(),
    }
}

/// Why the resource is (not) reconciled.
pub(super) fn reason(state: &ResourceState) -> Option<&str> {
    condition(&state.conditions, RECONCILED)?.reason.as_deref()
}

#[test]
fn a_kind_with_adapters_waits_for_them() {
    let (state, outcome) = deleted(&family(new("Cluster", 1, None), vec![])).unwrap();
    assert_eq!(state.deletion, Some(by_alice()));
    assert_eq!((state.generation, state.updated_at), (2, at(9)));
    let reconciled = condition(&state.conditions, RECONCILED).unwrap();
    assert_eq!(reconciled.observed_generation, 2);
    let expected = Outcome {
        saved: vec![state],
        removed: vec![],
        released: vec![id(1)],
        changes: vec![marked("Cluster", 1)],
        failures: vec![],
    };
    assert_eq!(outcome, expected);
}

#[test]
fn a_kind_without_adapters_goes_at_once() {
    let (state, outcome) = deleted(&family(new("Channel", 1, None), vec![])).unwrap();
    // The answer still shows it, as it was when it was removed.
    assert_eq!((state.deletion, state.generation), (Some(by_alice()), 2));
    let expected = Outcome {
        saved: vec![],
        removed: vec![id(1)],
        released: vec![id(1)],
        changes: vec![marked("Channel", 1), gone("Channel", 1)],
        failures: vec![],
    };
    assert_eq!(outcome, expected);
}

#[test]
fn an_active_child_of_a_restricting_kind_holds_its_owner_back() {
    let channel = family(new("Channel", 1, None), vec![new("Version", 2, 1)]);
    let refusal = deleted(&channel).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "Cannot delete Channel '00000000-0000-0000-0000-000000000001': active Version(s) exist"
    );
}

#[test]
fn a_finalizing_child_of_a_restricting_kind_is_waited_for() {
    let version = finalizing(new("Version", 2, 1));
    // With something to wait for, because otherwise it would be removed immediately.
    let kinds = registry(&[
        kind("Channel", &[]),
        child_kind("Version", "Channel", "restrict", &["a"]),
    ]);
    let channel = family(new("Channel", 1, None), vec![version]);
    let (state, outcome) = delete(&channel, &[], &kinds, &origin(9)).unwrap();
    assert_eq!(outcome.removed, []);
    assert_eq!(outcome.saved, [state]);
    assert_eq!(outcome.changes, [marked("Channel", 1)]);
}

#[test]
fn a_restricting_child_deep_in_the_tree_holds_all_of_it_back() {
    let kinds = registry(&[
        kind("A", &[]),
        child_kind("B", "A", "cascade", &[]),
        child_kind("C", "B", "", &[]),
    ]);
    let tree = family(
        snapshot(&kinds, "A", 1, None),
        vec![
            snapshot(&kinds, "B", 2, Some(1)),
            snapshot(&kinds, "C", 3, Some(2)),
        ],
    );
    let refusal = delete(&tree, &[], &kinds, &origin(9)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "Cannot delete B '00000000-0000-0000-0000-000000000002': active C(s) exist"
    );
}

#[test]
fn a_tree_three_kinds_deep_goes_along() {
    let tree = family(
        new("Cluster", 1, None),
        vec![
            new("Pool", 2, 1),
            new("Pool", 3, 1),
            new("Disk", 4, 2),
            new("Disk", 5, 3),
        ],
    );
    let (state, outcome) = deleted(&tree).unwrap();
    // Disks have nothing to wait for; pools and the cluster wait for their adapters.
    assert_eq!(outcome.removed, [id(5), id(4)]);
    let saved: Vec<_> = outcome.saved.iter().map(|s| s.id).collect();
    assert_eq!(saved, [id(3), id(2), id(1)]);
    for saved in &outcome.saved {
        assert_eq!((saved.generation, &saved.deletion), (2, &Some(by_alice())));
        let reconciled = condition(&saved.conditions, RECONCILED).unwrap();
        assert_eq!(reconciled.observed_generation, 2);
    }
    assert_eq!(outcome.saved.last(), Some(&state));
    assert_eq!(outcome.released, [1, 2, 3, 4, 5].map(id));
    let expected = [
        marked("Cluster", 1),
        marked("Pool", 2),
        marked("Pool", 3),
        marked("Disk", 4),
        marked("Disk", 5),
        gone("Disk", 5),
        gone("Disk", 4),
    ];
    assert_eq!(outcome.changes, expected);
}

#[test]
fn a_tree_without_adapters_is_removed_children_first() {
    let tree = family(
        new("Channel", 1, None),
        vec![new("Stream", 2, 1), new("Stream", 3, 1)],
    );
    let (_, outcome) = deleted(&tree).unwrap();
    assert_eq!(outcome.saved, []);
    assert_eq!(outcome.removed, [id(3), id(2), id(1)]);
}

#[test]
fn owners_without_adapters_wait_for_a_grandchild_without_conditions() {
    let tree = family(
        new("Channel", 1, None),
        vec![new("Stream", 2, 1), new("Build", 3, 2)],
    );
    let (state, outcome) = deleted(&tree).unwrap();
    assert_eq!(outcome.removed, []);
    assert_eq!(state.conditions, []);
    assert_eq!(outcome.saved[1].conditions, []);
    assert_eq!(reason(&outcome.saved[0]), Some("ReconciledMissingAdapters"));
}

#[test]
fn an_owner_without_adapters_waits_without_the_conditions_of_voluntary_reports() {
    let kinds = kinds();
    let spoken = |state: &mut ResourceSnapshot, second| {
        let report = report("z", 1, second, ConditionStatus::True);
        let (decision, report) = reported(state, &[], &report);
        assert_eq!(decision.outcome, ReportOutcome::Accepted, "it is new");
        state.reports = vec![report];
        state.state.conditions.clone_from(&decision.conditions);
        decision.conditions.len()
    };
    let mut channel = new("Channel", 1, None);
    assert_eq!(spoken(&mut channel, 3), 2);

    let tree = family(channel.clone(), vec![new("Build", 2, 1)]);
    let (state, _) = delete(&tree, &[], &kinds, &origin(5)).unwrap();
    assert_eq!(state.conditions, []);

    channel.state = state;
    channel.children = 1;
    assert_eq!(spoken(&mut channel, 6), 0);
}

#[test]
fn children_that_are_finalizing_already_stay_as_they_are() {
    let pool = finalizing(new("Pool", 2, 1));
    let tree = family(new("Cluster", 1, None), vec![pool]);
    let (state, outcome) = deleted(&tree).unwrap();
    assert_eq!(outcome.saved, [state]);
    assert_eq!(outcome.released, [id(1)]);
    assert_eq!(outcome.changes, [marked("Cluster", 1)]);
}

#[test]
fn a_repeated_delete_changes_nothing() {
    let tree = family(
        finalizing(new("Cluster", 1, None)),
        vec![finalizing(new("Pool", 2, 1))],
    );
    let by = origin_of("mallory", 99);
    // Referrers no longer matter: the first DELETE checked them.
    let referrers = [referrer(1, "Cluster", "other", 9)];
    let (state, outcome) = delete(&tree, &referrers, &kinds(), &by).unwrap();
    assert_eq!(outcome, Outcome::default());
    assert_eq!(state, tree.root.state);
}

#[test]
fn a_repeated_delete_finishes_what_can_be_finished() {
    // As after a change of the configuration: everything that is still asked for is there.
    let pool = finalized_by(finalizing(new("Pool", 2, 1)), "a");
    let tree = family(finalizing(new("Cluster", 1, None)), vec![pool.clone()]);
    let by = origin_of("mallory", 99);
    let (state, outcome) = delete(&tree, &[], &kinds(), &by).unwrap();
    assert_eq!(outcome.removed, [id(2)]);
    assert_eq!(outcome.released, []);
    assert_eq!(outcome.changes, [gone("Pool", 2)]);
    // Its owner, which lost a child, is evaluated again and retains the facts of the first DELETE.
    assert_eq!(outcome.saved, std::slice::from_ref(&state));
    assert_eq!(state.deletion, tree.root.state.deletion);
    assert_eq!((state.generation, state.updated_at), (2, at(5)));

    let done = finalized_by(finalizing(new("Cluster", 1, None)), "a");
    let tree = family(finalized_by(done, "b"), vec![pool]);
    let (_, outcome) = delete(&tree, &[], &kinds(), &by).unwrap();
    assert_eq!(outcome.removed, [id(2), id(1)]);
    assert_eq!(outcome.saved, []);
}

#[test]
fn active_referrers_from_outside_hold_a_resource_back_and_are_named_in_order() {
    let channel = family(new("Channel", 1, None), vec![]);
    let referrers = [
        referrer(1, "Version", "v2", 8),
        referrer(1, "Cluster", "z", 9),
        referrer(1, "Version", "v1", 7),
        // The same one under two reference types.
        referrer(1, "Version", "v1", 7),
        // Links to something else.
        referrer(5, "Cluster", "other", 6),
    ];
    let refusal = delete(&channel, &referrers, &kinds(), &origin(9)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "cannot delete Channel \"r1\": referenced by Cluster \"z\", Version \"v1\", Version \"v2\" \
         — remove the reference(s) before deleting"
    );
}

#[test]
fn referrers_that_the_caller_does_not_see_hold_it_back_without_a_name() {
    let channel = family(new("Channel", 1, None), vec![]);
    let hidden = |number| Referrer {
        is_seen: false,
        ..referrer(1, "Version", "secret", number)
    };
    let of_another = Referrer {
        is_seen: false,
        ..referrer(5, "Cluster", "other", 6)
    };
    let seen = referrer(1, "Version", "v1", 7);
    for (referrers, by) in [
        (vec![hidden(8), hidden(9)], "resources of other tenants"),
        (
            vec![hidden(8), seen.clone()],
            "Version \"v1\", resources of other tenants",
        ),
        (vec![of_another, seen], "Version \"v1\""),
    ] {
        let refusal = delete(&channel, &referrers, &kinds(), &origin(9)).unwrap_err();
        assert_eq!((&*refusal.kind, refusal.id), ("Channel", id(1)));
        let expected = format!(
            "cannot delete Channel \"r1\": referenced by {by} — remove the reference(s) before deleting"
        );
        assert_eq!(refusal.to_string(), expected);
    }
}

#[test]
fn a_referrer_of_a_descendant_blocks_the_deletion_of_the_tree() {
    let tree = family(
        new("Cluster", 1, None),
        vec![new("Pool", 2, 1), new("Disk", 3, 2)],
    );
    let referrers = [referrer(3, "Cluster", "other", 9)];
    let refusal = delete(&tree, &referrers, &kinds(), &origin(9)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "cannot delete Disk \"r3\": referenced by Cluster \"other\" — remove the reference(s) before deleting"
    );
}

#[test]
fn links_from_inside_the_family_hold_nothing_back() {
    let tree = family(
        new("Cluster", 1, None),
        vec![new("Pool", 2, 1), new("Pool", 3, 1)],
    );
    let inside = [
        referrer(1, "Cluster", "r1", 1),
        referrer(1, "Pool", "r2", 2),
        referrer(2, "Pool", "r3", 3),
        referrer(3, "Cluster", "r1", 1),
    ];
    assert!(delete(&tree, &inside, &kinds(), &origin(9)).is_ok());
}

#[test]
fn a_resource_at_the_last_generation_cannot_be_deleted() {
    let mut pool = new("Pool", 2, 1);
    pool.state.generation = i32::MAX;
    let refusal = deleted(&family(new("Cluster", 1, None), vec![pool])).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "Pool '00000000-0000-0000-0000-000000000002' has reached the last generation and can no longer be changed"
    );
}

#[test]
fn a_registry_knows_who_owns_whom_over_all_levels() {
    let registry = kinds();
    assert_eq!(registry.entities().len(), 9);
    let owned = registry.children_of("Stream").map(|e| &*e.kind);
    assert_eq!(owned.collect::<Vec<_>>(), ["Build", "Lock"]);
    for (kind, above, below) in [
        ("Channel", 0, 3),
        ("Stream", 1, 2),
        ("Build", 2, 1),
        ("Log", 3, 0),
        ("Version", 1, 0),
        ("Nothing", 0, 0),
    ] {
        assert_eq!(registry.depth(kind), above, "{kind}");
        assert_eq!(registry.levels_below(kind), below, "{kind}");
    }
}
