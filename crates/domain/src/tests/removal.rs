//! Removal: owners that are removed with their last child, and force-delete.

use super::deletion::{change, deleted, gone, kinds, new, reason};
use super::given::{condition, family, finalized_by, finalizing, id};
use crate::aggregation::RECONCILED;
use crate::audit::{Action, Change};
use crate::lifecycle::{Family, Outcome, force_delete, remove};
use crate::{ConditionStatus, ResourceSnapshot};

fn owning(mut snapshot: ResourceSnapshot, children: usize) -> ResourceSnapshot {
    snapshot.children = children;
    snapshot
}

#[test]
fn owners_that_only_waited_go_with_their_last_child_over_two_levels() {
    let build = finalized_by(finalizing(new("Build", 3, 2)), "a");
    let stream = owning(finalizing(new("Stream", 2, 1)), 1);
    let channel = owning(finalizing(new("Channel", 1, None)), 1);
    let outcome = remove(&build, &[stream.clone(), channel.clone()], &kinds());
    let expected = Outcome {
        saved: vec![],
        removed: vec![id(3), id(2), id(1)],
        released: vec![],
        changes: vec![gone("Build", 3), gone("Stream", 2), gone("Channel", 1)],
        failures: vec![],
    };
    assert_eq!(outcome, expected);

    // The topmost one still owns another.
    let before = channel.state.revision;
    let outcome = remove(&build, &[stream, owning(channel, 2)], &kinds());
    assert_eq!(outcome.removed, [id(3), id(2)]);
    // A report that was judged with the removed child notices that.
    let saved: Vec<_> = outcome.saved.iter().map(|s| (s.id, s.revision)).collect();
    assert_eq!(saved, [(id(1), before + 1)]);
}

#[test]
fn an_owner_that_its_adapters_have_finalized_goes_with_its_last_child() {
    let pool = finalized_by(finalizing(new("Pool", 2, 1)), "a");
    let cluster = owning(finalized_by(finalizing(new("Cluster", 1, None)), "a"), 1);
    // Adapter b has not finalized it: it stays, and says that it waits for b, not for children.
    let outcome = remove(&pool, std::slice::from_ref(&cluster), &kinds());
    assert_eq!(outcome.removed, [id(2)]);
    assert_eq!(outcome.saved.len(), 1);
    assert_eq!(reason(&outcome.saved[0]), Some("ReconciledMissingAdapters"));
    assert_eq!(outcome.changes, [gone("Pool", 2)]);

    let done = finalized_by(cluster, "b");
    let outcome = remove(&pool, std::slice::from_ref(&done), &kinds());
    assert_eq!(outcome.removed, [id(2), id(1)]);
    assert_eq!(outcome.saved, []);

    // Not the last child: it still waits, and is not reconciled.
    let outcome = remove(&pool, &[owning(done, 2)], &kinds());
    assert_eq!(outcome.removed, [id(2)]);
    let reconciled = condition(&outcome.saved[0].conditions, RECONCILED).unwrap();
    assert_eq!(reconciled.status, ConditionStatus::False);
    assert_eq!(
        reason(&outcome.saved[0]),
        Some("ReconciledWaitingForChildren")
    );
}

#[test]
fn an_active_owner_is_not_touched_when_a_child_goes() {
    let version = family(new("Version", 2, 1), vec![]);
    let version = Family {
        ancestors: vec![owning(new("Channel", 1, None), 1)],
        ..version
    };
    let (_, outcome) = deleted(&version).unwrap();
    assert_eq!(outcome.removed, [id(2)]);
    assert_eq!(outcome.saved, []);
}

#[test]
fn deleting_the_last_child_also_removes_waiting_owners() {
    let stream = Family {
        ancestors: vec![owning(finalizing(new("Channel", 1, None)), 1)],
        root: finalizing(new("Stream", 2, 1)),
        descendants: vec![],
    };
    let (_, outcome) = deleted(&stream).unwrap();
    assert_eq!(outcome.removed, [id(2), id(1)]);
    assert_eq!(outcome.changes, [gone("Stream", 2), gone("Channel", 1)]);
}

#[test]
fn only_finalizing_resources_are_forced_out() {
    let cluster = family(new("Cluster", 1, None), vec![]);
    let refusal = force_delete(&cluster, "stuck", &kinds()).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "Cluster '00000000-0000-0000-0000-000000000001' is not in Finalizing state"
    );
}

#[test]
fn force_takes_everything_below_children_first_and_says_why() {
    let tree = Family {
        ancestors: vec![owning(finalizing(new("Channel", 9, None)), 1)],
        root: finalizing(new("Stream", 1, 9)),
        // Neither policy nor state counts: an active child of a restricting kind goes too.
        descendants: vec![
            finalizing(new("Build", 2, 1)),
            new("Lock", 3, 1),
            finalizing(new("Log", 4, 2)),
        ],
    };
    let outcome = force_delete(&tree, "stuck", &kinds()).unwrap();
    assert_eq!(outcome.removed, [4, 3, 2, 1, 9].map(id));
    assert_eq!((outcome.saved, outcome.released), (vec![], vec![]));
    let forced = |kind: &str, number, generation| Change {
        reason: Some("stuck".to_owned()),
        ..change(Action::ForceDelete, kind, number, (Some(generation), None))
    };
    let expected = [
        forced("Log", 4, 2),
        forced("Lock", 3, 1),
        forced("Build", 2, 2),
        forced("Stream", 1, 2),
        // The owner was not removed by force: it had nothing to wait for any more.
        gone("Channel", 9),
    ];
    assert_eq!(outcome.changes, expected);
}
