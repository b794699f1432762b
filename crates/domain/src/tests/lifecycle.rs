//! The life of single resources: created, changed, reported on. Deletion is in `deletion`.

use serde_json::{Map, Value, json};

use super::given::{
    at, condition, family, finalized, finalized_by, finalizing, id, kind, origin, origin_of,
    patched, registry, report, reported, required, resource, saying_finalized, snapshot,
};
use crate::ConditionStatus::{False, True, Unknown};
use crate::ReportOutcome::{Accepted, Discarded, Rejected, Repeated, SameTime};
use crate::aggregation::{LAST_KNOWN_RECONCILED, RECONCILED};
use crate::lifecycle::{self, Patch, RefusalReason};
use crate::{
    Discard, EntityRegistry, InvalidReport, Labels, Reference, References, Report, ResourceSnapshot,
};

/// Clusters require adapters a and b, channels none.
fn kinds() -> EntityRegistry {
    registry(&[kind("Cluster", &["a", "b"]), kind("Channel", &[])])
}

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

#[test]
fn a_new_resource_waits_for_its_adapters() {
    let made = resource(&kinds(), "Cluster", 1, None);
    let types: Vec<_> = made.state.conditions.iter().map(|c| &*c.kind).collect();
    assert_eq!(types, [RECONCILED, LAST_KNOWN_RECONCILED]);
    for c in &made.state.conditions {
        assert_eq!((c.status, c.observed_generation), (False, 1), "{c:?}");
        assert_eq!(
            (c.created_at, c.last_updated_at, c.last_transition_at),
            (at(0), at(0), at(0)),
            "{c:?}"
        );
    }
    assert_eq!((made.state.generation, made.state.revision), (1, 1));
    assert_eq!((made.created_at, made.state.updated_at), (at(0), at(0)));
    assert_eq!((&*made.created_by, &*made.updated_by), ("alice", "alice"));
    assert_eq!(made.state.deletion, None);
}

#[test]
fn a_kind_without_adapters_starts_without_conditions() {
    let made = resource(&kinds(), "Channel", 1, None);
    assert_eq!(made.state.conditions, []);
}

#[test]
fn a_patch_that_changes_nothing_writes_nothing() {
    let kinds = kinds();
    let mut before = resource(&kinds, "Cluster", 1, None);
    before.spec = object(&json!({"a": 1, "b": {"c": [1, 2], "d": null}}));
    let reordered = json!({"b": {"d": null, "c": [1, 2]}, "a": 1});
    for patch in [
        Patch::default(),
        Patch {
            spec: Some(object(&reordered)),
            ..Patch::default()
        },
        Patch {
            labels: Some(Labels::default()),
            ..Patch::default()
        },
    ] {
        let patched = patched(&before, &patch, &[], &origin(9));
        assert_eq!(patched, Ok(None), "{patch:?}");
    }
}

#[test]
fn each_part_that_differs_moves_the_generation_by_one_in_all() {
    let kinds = kinds();
    let mut before = resource(&kinds, "Cluster", 1, None);
    before.spec = object(&json!({"list": [1, 2]}));
    let spec = Some(object(&json!({"list": [2, 1]})));
    let labels = [("k".to_owned(), "v".to_owned())];
    let labels = Labels::parse(labels.into()).ok();
    // Sending references counts as a change, even if they are the same.
    let references = Some(References::new());
    let all = Patch {
        spec: spec.clone(),
        labels: labels.clone(),
        references: Some(References::from([(
            "channel".to_owned(),
            vec![Reference {
                kind: "Channel".to_owned(),
                id: id(7),
            }],
        )])),
    };
    let only = Patch::default;
    for patch in [
        Patch { spec, ..only() },
        Patch { labels, ..only() },
        Patch {
            references,
            ..only()
        },
        all,
    ] {
        let required = required(&kinds, "Cluster");
        let by = origin_of("carol", 9);
        let after = patched(&before, &patch, required, &by).unwrap();
        let after = after.expect("it differs");
        assert_eq!(after.state.generation, 2, "{patch:?}");
        assert_eq!(
            (&*after.updated_by, after.state.updated_at),
            ("carol", at(9))
        );
        assert_eq!((&*after.created_by, after.created_at), ("alice", at(0)));
        assert_eq!(after.spec, patch.spec.unwrap_or(before.spec.clone()));
        assert_eq!(after.labels, patch.labels.unwrap_or(before.labels.clone()));
        let links = patch.references.unwrap_or(before.references.clone());
        assert_eq!(after.references, links);
        let reconciled = condition(&after.state.conditions, RECONCILED).unwrap();
        assert_eq!(reconciled.observed_generation, 2);
    }
}

#[test]
fn a_clock_that_is_set_back_changes_nothing_before_it_was_last_changed() {
    let kinds = kinds();
    let before = resource(&kinds, "Cluster", 1, None);
    let labelled = Patch {
        labels: Some(Labels::default()),
        spec: Some(object(&json!({"changed": true}))),
        ..Patch::default()
    };
    for (now, then) in [(-3600, 0), (0, 0), (1, 1)] {
        let after = patched(&before, &labelled, &[], &origin(now)).unwrap();
        let state = after.unwrap().state;
        assert_eq!((state.updated_at, state.generation), (at(then), 2), "{now}");
        let family = family(snapshot(&kinds, "Cluster", 1, None), Vec::new());
        let (state, _) = lifecycle::delete(&family, &[], &kinds, &origin(now)).unwrap();
        let deletion = state.deletion.unwrap();
        assert_eq!(
            (state.updated_at, deletion.at),
            (at(then), at(then)),
            "{now}"
        );
    }
}

#[test]
fn a_patch_leaves_conditions_of_a_kind_without_adapters() {
    let kinds = kinds();
    let mut before = resource(&kinds, "Channel", 1, None);
    // As after a voluntary report.
    before.state.conditions = resource(&kinds, "Cluster", 2, None).state.conditions;
    let patch = Patch {
        references: Some(References::new()),
        ..Patch::default()
    };
    let after = patched(&before, &patch, &[], &origin(9)).unwrap();
    assert_eq!(after.unwrap().state.conditions, before.state.conditions);
}

#[test]
fn a_finalizing_resource_takes_no_patch_not_even_an_empty_one() {
    let kinds = kinds();
    let mut before = resource(&kinds, "Cluster", 1, None);
    before.state = finalizing(snapshot(&kinds, "Cluster", 1, None)).state;
    let refusal = patched(&before, &Patch::default(), &[], &origin(9)).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "Cluster '00000000-0000-0000-0000-000000000001' is marked for deletion"
    );
    // The same refusal as of the creation of a child.
    assert_eq!(refusal, lifecycle::marked_for_deletion(&before.state));
}

#[test]
fn a_resource_at_the_last_generation_takes_no_more_changes() {
    let mut before = resource(&kinds(), "Cluster", 1, None);
    let change = Patch {
        references: Some(References::new()),
        ..Patch::default()
    };
    before.state.generation = i32::MAX - 1;
    let last = patched(&before, &change, &[], &origin(9)).unwrap();
    let last = last.expect("it differs");
    assert_eq!(last.state.generation, i32::MAX);
    let refusal = patched(&last, &change, &[], &origin(9)).unwrap_err();
    assert_eq!(refusal.reason, RefusalReason::GenerationsExhausted);
    assert_eq!(
        refusal.to_string(),
        "Cluster '00000000-0000-0000-0000-000000000001' has reached the last generation and can no longer be changed"
    );
    // A patch without a change needs no generation.
    let same = patched(&last, &Patch::default(), &[], &origin(9));
    assert_eq!(same, Ok(None));
}

#[test]
fn the_reports_of_all_adapters_reconcile_a_resource() {
    let kinds = kinds();
    let required = required(&kinds, "Cluster");
    let mut cluster = snapshot(&kinds, "Cluster", 1, None);
    for (adapter, expected) in [("a", False), ("b", True)] {
        let (decision, stored) = reported(&cluster, required, &report(adapter, 1, 3, True));
        assert_eq!((decision.outcome, decision.completes), (Accepted, false));
        let reconciled = condition(&decision.conditions, RECONCILED).unwrap();
        assert_eq!(reconciled.status, expected, "after {adapter}");
        cluster.reports.push(stored);
        cluster.state.conditions = decision.conditions;
    }
}

#[test]
fn a_newer_report_takes_the_place_of_the_older_one() {
    let kinds = kinds();
    let required = &required(&kinds, "Cluster")[..1];
    let mut cluster = snapshot(&kinds, "Cluster", 1, None);
    cluster.reports = vec![finalized("a", 1, 3)];
    let (decision, _) = reported(&cluster, required, &report("a", 1, 4, True));
    assert_eq!(decision.outcome, Accepted);
    assert_eq!(
        condition(&decision.conditions, RECONCILED).unwrap().status,
        True
    );
}

#[test]
fn a_first_report_of_unknown_is_stored_but_moves_no_condition() {
    let kinds = kinds();
    let required = required(&kinds, "Cluster");
    let mut cluster = snapshot(&kinds, "Cluster", 1, None);
    // Stale on purpose: to recompute them would show.
    cluster.state.updated_at = at(2);
    cluster.state.conditions.clear();
    let (first, stored) = reported(&cluster, required, &report("a", 1, 3, Unknown));
    assert_eq!((first.outcome, first.completes), (Accepted, false));
    assert_eq!(first.conditions, []);
    cluster.reports.push(stored);
    let (second, _) = reported(&cluster, required, &report("a", 1, 4, Unknown));
    assert_eq!(second.outcome, Discarded(Discard::Unknown));
}

#[test]
fn a_voluntary_report_gives_a_kind_without_adapters_conditions() {
    let channel = snapshot(&kinds(), "Channel", 1, None);
    let (decision, _) = reported(&channel, &[], &report("z", 1, 3, True));
    assert_eq!(decision.outcome, Accepted);
    let conditions = decision.conditions.iter();
    let statuses: Vec<_> = conditions.map(|c| (&*c.kind, c.status)).collect();
    let expected = [(RECONCILED, False), (LAST_KNOWN_RECONCILED, False)];
    assert_eq!(statuses, expected);
}

#[test]
fn there_is_a_limit_to_adapters_but_not_to_their_reports() {
    let kinds = kinds();
    let mut cluster = snapshot(&kinds, "Cluster", 1, None);
    let adapter = |number: usize| format!("adapter-{number}");
    let known = (0..Report::ADAPTERS_MAX).map(|n| finalized(&adapter(n), 1, 3));
    cluster.reports = known.collect();
    let outcome =
        |cluster: &ResourceSnapshot, report: &Report| reported(cluster, &[], report).0.outcome;
    let one_more = outcome(&cluster, &report("one-more", 1, 4, True));
    assert_eq!(one_more, Rejected(InvalidReport::TooManyAdapters));
    assert_eq!(
        InvalidReport::TooManyAdapters.to_string(),
        "this resource has reports of 256 adapters already"
    );
    // A report that would be discarded anyway is discarded.
    let ahead = outcome(&cluster, &report("one-more", 2, 4, True));
    assert_eq!(ahead, Discarded(Discard::FutureGeneration));
    let again = outcome(&cluster, &report("adapter-7", 1, 4, True));
    assert_eq!(again, Accepted);
    cluster.reports.pop();
    let last = outcome(&cluster, &report("one-more", 1, 4, True));
    assert_eq!(last, Accepted);
}

#[test]
fn a_report_without_a_mandatory_condition_is_refused() {
    let cluster = snapshot(&kinds(), "Cluster", 1, None);
    let mut lacking = report("a", 1, 3, True);
    lacking.state.conditions.retain(|c| c.kind != "Applied");
    let Rejected(invalid) = reported(&cluster, &[], &lacking).0.outcome else {
        panic!("not rejected");
    };
    assert_eq!(
        invalid.to_string(),
        "missing mandatory condition 'Applied': all adapters must report Available, Applied, and Health"
    );
}

/// The decision about `report` on a finalizing resource that `b` has finalized, and whether it completes the deletion.
fn completes(report: &Report, children: usize) -> bool {
    let kinds = kinds();
    let mut cluster = finalized_by(finalizing(snapshot(&kinds, "Cluster", 1, None)), "b");
    cluster.children = children;
    let (decision, _) = reported(&cluster, required(&kinds, "Cluster"), report);
    assert!(
        matches!(decision.outcome, Accepted | Repeated),
        "{decision:?}"
    );
    decision.completes
}

#[test]
fn the_last_adapter_to_finalize_completes_a_deletion() {
    let report =
        |g, available, finalized| saying_finalized(report("a", g, 9, available), finalized);
    assert!(completes(&report(2, False, True), 0));
    // The raw condition counts, whatever `Available` is: a first report may say Unknown.
    assert!(completes(&report(2, Unknown, True), 0));
    assert!(completes(&report(2, True, True), 0));

    assert!(!completes(&report(2, False, False), 0));
    assert!(!completes(&report(2, False, Unknown), 0));
    // The adapter finalized generation 1, before the deletion. It has not yet confirmed generation 2.
    assert!(!completes(&report(1, False, True), 0));
    assert!(!completes(&report(2, False, True), 1));
}

#[test]
fn only_a_report_that_says_finalized_completes_a_deletion() {
    let kinds = kinds();
    let done = finalizing(snapshot(&kinds, "Cluster", 1, None));
    let done = finalized_by(finalized_by(done, "a"), "b");
    let required = required(&kinds, "Cluster");
    let voluntary = |report: &Report| {
        let (decision, _) = reported(&done, required, report);
        assert_eq!(decision.outcome, Accepted);
        decision.completes
    };
    assert!(!voluntary(&report("z", 2, 9, True)));
    // The adapter does not matter.
    assert!(voluntary(&saying_finalized(report("z", 2, 9, True), True)));

    // The stored report stays, but the resource may be removed.
    let repeated = saying_finalized(report("a", 2, 6, False), True);
    let (repeated, _) = reported(&done, required, &repeated);
    assert_eq!((repeated.outcome, repeated.completes), (SameTime, true));
    let (silent, _) = reported(&done, required, &report("a", 2, 6, False));
    assert_eq!((silent.outcome, silent.completes), (SameTime, false));
}

#[test]
fn finalized_replaces_a_report_of_its_time_while_deleting() {
    let kinds = kinds();
    let waits = |snapshot: ResourceSnapshot, says| {
        let mut snapshot = finalized_by(snapshot, "b");
        let generation = snapshot.state.generation;
        let report = saying_finalized(report("a", generation, 9, True), says);
        snapshot.reports.push(report.state);
        snapshot
    };
    let outcome = |snapshot: &ResourceSnapshot, says| {
        let generation = snapshot.state.generation;
        let report = saying_finalized(report("a", generation, 9, False), says);
        let (decision, _) = reported(snapshot, required(&kinds, "Cluster"), &report);
        (decision.outcome, decision.completes)
    };
    let active = snapshot(&kinds, "Cluster", 1, None);
    let deleted = finalizing(active.clone());
    assert_eq!(
        outcome(&waits(deleted.clone(), False), True),
        (Accepted, true)
    );
    assert_eq!(
        outcome(&waits(deleted.clone(), False), False),
        (SameTime, false)
    );
    // A report that is sent again does not take it back.
    assert_eq!(
        outcome(&waits(deleted.clone(), True), False),
        (SameTime, false)
    );
    assert_eq!(outcome(&waits(deleted, True), True), (SameTime, true));
    assert_eq!(outcome(&waits(active, False), True), (SameTime, false));
}

#[test]
fn no_report_completes_the_deletion_of_an_active_resource() {
    let kinds = kinds();
    let cluster = finalized_by(snapshot(&kinds, "Cluster", 1, None), "b");
    let last = saying_finalized(report("a", 1, 9, False), True);
    let (decision, _) = reported(&cluster, required(&kinds, "Cluster"), &last);
    assert_eq!((decision.outcome, decision.completes), (Accepted, false));
}

#[test]
fn children_keep_a_finalized_resource_unreconciled() {
    let kinds = kinds();
    let mut cluster = finalized_by(finalizing(snapshot(&kinds, "Cluster", 1, None)), "b");
    let last = saying_finalized(report("a", 2, 9, False), True);
    for (children, status, reason) in [
        (0, True, "ReconciledAll"),
        (1, False, "ReconciledWaitingForChildren"),
    ] {
        cluster.children = children;
        let (decision, _) = reported(&cluster, required(&kinds, "Cluster"), &last);
        assert_eq!(decision.outcome, Accepted);
        let reconciled = condition(&decision.conditions, RECONCILED).unwrap();
        let got = (reconciled.status, reconciled.reason.as_deref());
        assert_eq!(got, (status, Some(reason)));
    }
}
