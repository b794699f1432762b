//! Explanations by name: one situation each, with its sentences.

use chrono::TimeDelta;
use serde_json::json;

use super::given::{
    at, child_kind, finalized_by, finalizing, id, kind, registry, report, resource,
    saying_finalized, snapshot,
};
use crate::condition_rules::{Facts, RuleConfig};
use crate::entity_config::EntityConfig;
use crate::explain::{
    AdapterState, DESCENDANTS_MAX, Descendant, ExplainInput, Kin, LISTED_MAX, REFERRERS_MAX,
    ResourceExplanation, RuleState, SourceOfReference, Surroundings, explain,
};
use crate::report::HEALTH;
use crate::{ConditionStatus, EntityRegistry, Report, ResourceSnapshot};
use ConditionStatus::{False, True, Unknown};

/// ```text
/// Cluster a,b ◀─ cascade ─ Pool a
///             ◀─ restrict ─ Key a
/// Channel (no adapters)
/// ```
fn kinds() -> EntityRegistry {
    registry(&[
        kind("Cluster", &["a", "b"]),
        child_kind("Pool", "Cluster", "cascade", &["a"]),
        child_kind("Key", "Cluster", "restrict", &["a"]),
        kind("Channel", &[]),
    ])
}

fn new(kind: &str) -> ResourceSnapshot {
    snapshot(&kinds(), kind, 1, None)
}

/// The resource with the latest reports of adapters.
fn with(mut snapshot: ResourceSnapshot, reports: &[Report]) -> ResourceSnapshot {
    snapshot.reports = reports.iter().map(|r| r.state.clone()).collect();
    snapshot
}

fn explained_with(snapshot: &ResourceSnapshot, around: &Surroundings) -> ResourceExplanation {
    explained_by(&kinds(), snapshot, around)
}

/// Ten minutes after the resource was created.
fn explained_by(
    registry: &EntityRegistry,
    snapshot: &ResourceSnapshot,
    surroundings: &Surroundings,
) -> ResourceExplanation {
    explain(&ExplainInput {
        snapshot,
        created_at: at(0),
        surroundings,
        registry,
        now: at(600),
    })
}

fn explained(snapshot: &ResourceSnapshot) -> ResourceExplanation {
    explained_with(snapshot, &Surroundings::default())
}

/// A report of adapter a with this reason and message of its condition `Available`.
fn failing(reason: &str, message: &str) -> Report {
    let mut report = report("a", 1, 30, False);
    report.state.conditions[0].reason = Some(reason.to_owned());
    report.state.conditions[0].message = Some(message.to_owned());
    report
}

/// The same, which also says `Health=False` for that reason.
fn unhealthy(reason: &str, message: &str) -> Report {
    let mut report = failing(reason, message);
    let health = report.state.conditions.iter_mut();
    for health in health.filter(|condition| condition.kind == HEALTH) {
        health.status = False;
        health.reason = Some(reason.to_owned());
        health.message = Some(message.to_owned());
    }
    report
}

fn descendant(kind: &str, number: u128, level: usize) -> Descendant {
    Descendant {
        kin: kin(kind, number, Some(1)),
        level,
        updated_at: at(5),
        deleted_at: None,
        reconciled: None,
        is_seen: true,
    }
}

fn kin(kind: &str, number: u128, owner: Option<u128>) -> Kin {
    Kin {
        kind: kind.to_owned(),
        name: format!("r{number}"),
        id: id(number),
        owner: owner.map(id),
    }
}

fn reference(number: u128, target: u128) -> SourceOfReference {
    SourceOfReference {
        kin: kin("App", number, None),
        ref_type: "base".to_owned(),
        target: id(target),
        is_inside: false,
        is_seen: true,
    }
}

#[test]
fn each_state_of_an_adapter_has_its_sentence() {
    use AdapterState::{
        Done, Failing, FutureGeneration, NeverReported, NotAvailable, NotFinalized, NotRequired,
        OldGeneration,
    };
    let b = || report("b", 1, 20, True);
    let gone = |report: Report| with(finalizing(new("Cluster")), &[report]);
    let cases = [
        (
            with(new("Cluster"), &[b()]),
            NeverReported,
            "Adapter a has no accepted report on the resource, created at 2026-01-01T00:00:00Z (10 min ago).",
        ),
        (
            with(new("Cluster"), &[report("a", 1, 30, True)]),
            Done,
            "Adapter a reports Available=True at generation 1 since 2026-01-01T00:00:30Z (9 min).",
        ),
        (
            with(new("Cluster"), &[unhealthy("NoQuota", "no room\nleft.")]),
            Failing,
            "Adapter a reports Available=False and Health=False at generation 1 since 2026-01-01T00:00:30Z (9 min): NoQuota: no room left.",
        ),
        (
            with(new("Cluster"), &[failing("NoQuota", "no room\nleft.")]),
            NotAvailable,
            "Adapter a reports Available=False at generation 1 since 2026-01-01T00:00:30Z (9 min): NoQuota: no room left.",
        ),
        (
            with(new("Cluster"), &[report("a", 1, 30, Unknown)]),
            AdapterState::Unknown,
            "Adapter a reports Available=Unknown at generation 1 since 2026-01-01T00:00:30Z (9 min): AvailableReason.",
        ),
        (
            with(new("Cluster"), &[report("a", 9, 30, True)]),
            FutureGeneration,
            "Adapter a reported on generation 9, but the resource is at generation 1: the report does not end the wait.",
        ),
        (
            gone(report("a", 1, 3, True)),
            OldGeneration,
            "Adapter a has an accepted report on generation 1, but none on generation 2, declared at 2026-01-01T00:00:05Z (9 min ago).",
        ),
        (
            gone(report("a", 2, 30, True)),
            NotFinalized,
            "Adapter a has an accepted report on generation 2, but none with Finalized=True since 2026-01-01T00:00:05Z (9 min).",
        ),
        (
            gone(saying_finalized(report("a", 2, 30, True), False)),
            NotFinalized,
            "Adapter a has an accepted report on generation 2, but none with Finalized=True since 2026-01-01T00:00:05Z (9 min): FinalizedReason.",
        ),
        (
            finalized_by(finalizing(new("Cluster")), "a"),
            Done,
            "Adapter a reports Finalized=True at generation 2 since 2026-01-01T00:00:06Z (9 min).",
        ),
        (
            with(new("Channel"), &[report("a", 1, 30, True)]),
            NotRequired,
            "Adapter a has reported, but kind Channel does not require it: the resource does not wait for it.",
        ),
    ];
    for (snapshot, state, sentence) in cases {
        let explanation = explained(&snapshot);
        let a = explanation
            .adapters
            .iter()
            .find(|a| a.adapter == "a")
            .unwrap();
        assert_eq!((a.state, &*a.sentence), (state, sentence));
        assert_eq!(a.is_waited_for(), !matches!(state, Done | NotRequired));
        assert!(!a.is_stale, "{sentence}");
    }
}

#[test]
fn no_wait_begins_before_the_generation_that_it_is_for() {
    // Since second 30 the adapter has been reporting False, first on generation 1, now on generation 2 of second 300.
    let mut snapshot = with(new("Pool"), &[failing("NoQuota", "no room")]);
    let mut again = snapshot.reports[0].clone();
    again.observed_generation = 2;
    again.reported_at = at(310);
    let entity = kinds();
    let mut first = failing("NoQuota", "no room");
    let before = new("Pool");
    let decided = crate::lifecycle::report(&before, entity.get("Pool"), &mut first);
    snapshot.state.conditions = decided.conditions;
    snapshot.state.generation = 2;
    snapshot.state.updated_at = at(300);
    let old = explained(&snapshot);
    snapshot.reports = vec![again];
    let failing = explained(&snapshot);
    for (explanation, state) in [
        (&old, AdapterState::OldGeneration),
        (&failing, AdapterState::NotAvailable),
    ] {
        let adapter = &explanation.adapters[0];
        assert_eq!((adapter.state, adapter.since), (state, at(300)));
        assert_eq!(explanation.waits_since, Some(at(300)));
        let summary = &explanation.summary;
        let since = ", since 2026-01-01T00:05:00Z (5 min).";
        assert!(summary.ends_with(since), "{summary}");
    }
    assert_eq!(
        failing.adapters[0].sentence,
        "Adapter a reports Available=False at generation 2 since 2026-01-01T00:05:00Z (5 min): NoQuota: no room."
    );
}

#[test]
fn a_report_of_more_than_half_an_hour_ago_is_stale() {
    let snapshot = with(new("Cluster"), &[failing("NoQuota", "no room")]);
    let (registry, surroundings) = (kinds(), Surroundings::default());
    let input = |seconds| ExplainInput {
        snapshot: &snapshot,
        created_at: at(0),
        surroundings: &surroundings,
        registry: &registry,
        now: at(30) + TimeDelta::seconds(seconds),
    };
    assert!(!explain(&input(1800)).adapters[0].is_stale);
    let explanation = explain(&input(1801));
    let stale = &explanation.adapters[0];
    assert!(stale.is_stale);
    assert_eq!(
        stale.sentence,
        "Adapter a reports Available=False at generation 1 since 2026-01-01T00:00:30Z (30 min): NoQuota: no room; \
         its latest accepted report is stale, from 2026-01-01T00:00:30Z (30 min ago)."
    );
}

#[test]
fn an_adapter_of_a_kind_that_is_not_configured_any_more_is_not_required() {
    let mut snapshot = with(new("Channel"), &[report("a", 1, 30, True)]);
    snapshot.state.kind = "Other".to_owned();
    let explanation = explained(&snapshot);
    assert_eq!(explanation.adapters[0].state, AdapterState::NotRequired);
    assert_eq!(
        explanation.adapters[0].sentence,
        "Adapter a has reported, but kind Other is no longer configured: the resource does not wait for it."
    );
}

#[test]
fn a_summary_counts_what_the_resource_waits_for() {
    let done = |adapter| report(adapter, 1, 20, True);
    let children = Surroundings {
        descendants: vec![descendant("Pool", 2, 1), descendant("Pool", 3, 1)],
        ..Surroundings::default()
    };
    let none = Surroundings::default();
    let gone = || finalizing(new("Cluster"));
    let finalized = || finalized_by(finalized_by(gone(), "a"), "b");
    let mut unconfigured = new("Channel");
    unconfigured.state.kind = "Other".to_owned();
    for (snapshot, surroundings, summary) in [
        (
            with(new("Cluster"), &[done("b")]),
            &none,
            "Cluster \"r1\" waits for 1 of 2 required adapters to report Available=True at generation 1 \
             (a: no accepted report), since 2026-01-01T00:00:00Z (10 min).",
        ),
        (
            with(new("Cluster"), &[done("b"), done("a")]),
            &children,
            "Cluster \"r1\" waits for nothing: all 2 required adapters report Available=True at generation 1.",
        ),
        (
            with(new("Pool"), &[done("a")]),
            &none,
            "Pool \"r1\" waits for nothing: its required adapter reports Available=True at generation 1.",
        ),
        (
            new("Channel"),
            &none,
            "Channel \"r1\" waits for nothing: its kind requires no adapters.",
        ),
        (
            unconfigured,
            &none,
            "Other \"r1\" waits for nothing: its kind is no longer configured.",
        ),
        (
            finalized_by(gone(), "b"),
            &children,
            "Cluster \"r1\" is finalizing and waits for 1 of 2 required adapters to report Finalized=True at \
             generation 2 (a: no accepted report), and for the removal of 2 descendants (Pool \"r2\", Pool \"r3\"), since \
             2026-01-01T00:00:05Z (9 min).",
        ),
        (
            finalized(),
            &children,
            "Cluster \"r1\" is finalizing and waits for the removal of 2 descendants (Pool \"r2\", Pool \"r3\"), since \
             2026-01-01T00:00:05Z (9 min).",
        ),
        (
            finalized(),
            &none,
            "Cluster \"r1\" is finalizing and waits for nothing: a repeated DELETE removes it.",
        ),
    ] {
        let explanation = explained_with(&snapshot, surroundings);
        assert_eq!(explanation.summary, summary);
        assert_eq!(explanation.waits(), !summary.contains("waits for nothing"));
    }
}

#[test]
fn a_summary_names_adapters_that_have_reported_in_vain() {
    let others = || [report("bb", 1, 20, True), report("aa", 1, 20, True)];
    let waiting = explained(&with(new("Pool"), &others()));
    assert_eq!(
        waiting.summary,
        "Pool \"r1\" waits for 1 of 1 required adapters to report Available=True at generation 1 (a: no accepted \
         report), since 2026-01-01T00:00:00Z (10 min). Its kind does not require adapters that have reported: aa, bb."
    );
    let [first, second] = others();
    let done = explained(&with(
        new("Pool"),
        &[first, second, report("a", 1, 20, True)],
    ));
    assert!(
        !done.summary.contains("require adapters"),
        "{}",
        done.summary
    );
}

#[test]
fn only_active_children_of_restricting_kinds_block_the_deletion_of_an_active_resource() {
    let mut going = descendant("Key", 4, 1);
    going.deleted_at = Some(at(5));
    let surroundings = Surroundings {
        descendants: vec![descendant("Pool", 2, 1), descendant("Key", 3, 1), going],
        ..Surroundings::default()
    };
    let explanation = explained_with(&new("Cluster"), &surroundings);
    let blocked = &explanation.blocked;
    assert!(blocked.is_blocked);
    assert_eq!(
        blocked.sentence,
        "A DELETE is refused: 1 active descendant (Key \"r3\") must be deleted first."
    );
    let sentences: Vec<_> = blocked
        .children
        .items
        .iter()
        .map(|c| &*c.sentence)
        .collect();
    assert_eq!(
        sentences,
        [
            "Key \"r3\" is active, and its kind restricts the deletion of its parent: delete it first."
        ]
    );
    // Of a finalizing one, every descendant holds back the removal.
    let explanation = explained_with(&finalizing(new("Cluster")), &surroundings);
    assert_eq!(explanation.blocked.children.total, 3);
}

#[test]
fn references_from_outside_block_the_deletion_of_an_active_resource() {
    let mut from_inside = reference(3, 1);
    from_inside.is_inside = true;
    let surroundings = Surroundings {
        descendants: vec![descendant("Pool", 2, 1)],
        referrers: vec![reference(9, 2), reference(8, 1), from_inside],
    };
    let explanation = explained_with(&new("Cluster"), &surroundings);
    let blocked = &explanation.blocked;
    assert_eq!(
        blocked.sentence,
        "A DELETE is refused: 2 references (App \"r8\", App \"r9\") must be removed first."
    );
    let sentences: Vec<_> = blocked
        .referrers
        .items
        .iter()
        .map(|r| &*r.sentence)
        .collect();
    assert_eq!(
        sentences,
        [
            "App \"r8\" references the resource as \"base\": remove the reference first.",
            "App \"r9\" references Pool \"r2\" below it as \"base\": remove the reference first.",
        ]
    );
    assert!(!explained(&new("Cluster")).blocked.is_blocked);
    let sentence = explained(&new("Cluster")).blocked.sentence;
    assert_eq!(sentence, "Nothing prevents a DELETE.");
}

#[test]
fn resources_of_other_tenants_are_counted_but_not_named() {
    let mut key = descendant("Key", 3, 1);
    key.is_seen = false;
    let mut outside = reference(9, 3);
    outside.is_seen = false;
    let surroundings = Surroundings {
        descendants: vec![key],
        referrers: vec![outside, reference(8, 3)],
    };
    let explanation = explained_with(&new("Cluster"), &surroundings);
    let blocked = &explanation.blocked;
    assert_eq!(
        blocked.sentence,
        "A DELETE is refused: 1 active descendant (1 of other tenants) must be deleted first, and 2 references \
         (App \"r8\", 1 of other tenants) must be removed first."
    );
    assert_eq!((blocked.children.total, blocked.children.hidden), (1, 1));
    assert_eq!(blocked.children.items, []);
    assert_eq!(blocked.referrers.items[0].target, None);
    let sentence = &blocked.referrers.items[0].sentence;
    assert!(
        sentence.contains("references a resource below it"),
        "{sentence}"
    );
}

#[test]
fn long_lists_are_cut_and_counted() {
    let many = |count| {
        (0..count)
            .map(|n| descendant("Key", 10 + n as u128, 1))
            .collect()
    };
    for (count, total, is_partial) in [
        (DESCENDANTS_MAX, DESCENDANTS_MAX, false),
        (DESCENDANTS_MAX + 1, DESCENDANTS_MAX, true),
    ] {
        let surroundings = Surroundings {
            descendants: many(count),
            referrers: Vec::new(),
        };
        let children = explained_with(&new("Cluster"), &surroundings)
            .blocked
            .children;
        assert_eq!((children.total, children.is_partial), (total, is_partial));
        assert_eq!(children.items.len(), LISTED_MAX);
        let sentence = explained_with(&new("Cluster"), &surroundings)
            .blocked
            .sentence;
        let more = if is_partial { "at least " } else { "" };
        let start = format!("A DELETE is refused: {more}1000 active descendants (Key \"r10\", ");
        assert!(sentence.starts_with(&start), "{sentence}");
        assert!(sentence.contains(", …)"), "{sentence}");
    }
    let surroundings = Surroundings {
        descendants: Vec::new(),
        referrers: (0..=REFERRERS_MAX)
            .map(|n| reference(10 + n as u128, 1))
            .collect(),
    };
    let referrers = explained_with(&new("Cluster"), &surroundings)
        .blocked
        .referrers;
    assert_eq!(
        (referrers.total, referrers.is_partial),
        (REFERRERS_MAX, true)
    );
    // Without a blocker among those that were read, there may be others.
    let surroundings = Surroundings {
        descendants: (0..=DESCENDANTS_MAX)
            .map(|n| descendant("Pool", 10 + n as u128, 1))
            .collect(),
        referrers: Vec::new(),
    };
    let sentence = explained_with(&new("Cluster"), &surroundings)
        .blocked
        .sentence;
    assert!(
        sentence.ends_with("that were checked; there are more."),
        "{sentence}"
    );
}

/// A kind with the rules `Seen`, which applies to sizes above 1, and `Broken`, which reads a missing member.
fn ruled() -> EntityRegistry {
    let rule = |kind: &str, when: &str, message: &str| -> RuleConfig {
        let expression = |text: &str| json!({"expression": text});
        let output = json!({
            "status": expression("true"), "reason": expression("'Sized'"), "message": expression(message),
        });
        let rule = json!({"type": kind, "when": expression(when), "output": output});
        serde_json::from_value(rule).unwrap()
    };
    registry(&[EntityConfig {
        conditions: vec![
            rule(
                "Seen",
                "resource.spec.size > 1",
                "'size ' + string(resource.spec.size)",
            ),
            rule("Broken", "resource.spec.missing == 1", "''"),
        ],
        ..kind("Site", &["a"])
    }])
}

/// A site of this size whose conditions are those of a site of the other size.
fn site(registry: &EntityRegistry, size: i32, derived_for: i32) -> ResourceSnapshot {
    let facts = |size: i32| {
        let mut sized = resource(registry, "Site", 1, None);
        sized.spec.insert("size".to_owned(), size.into());
        Box::new(Facts::of(&sized, std::collections::BTreeMap::new()))
    };
    let mut snapshot = snapshot(registry, "Site", 1, None);
    snapshot.facts = Some(facts(derived_for));
    let entity = registry.get("Site");
    let mut report = report("a", 1, 20, True);
    let decided = crate::lifecycle::report(&snapshot, entity, &mut report);
    snapshot.state.conditions = decided.conditions;
    snapshot.reports = vec![report.state];
    snapshot.facts = Some(facts(size));
    snapshot
}

#[test]
fn derived_conditions_name_their_rule() {
    let registry = ruled();
    for (size, derived_for, state, sentence) in [
        (
            2,
            2,
            RuleState::Derived,
            "Condition Seen is True by the rule Seen of kind Site: Sized: size 2.",
        ),
        (
            1,
            1,
            RuleState::NotApplicable,
            "Condition Seen is absent: the rule Seen of kind Site does not apply now.",
        ),
        (
            3,
            2,
            RuleState::Outdated,
            "Condition Seen is True, but the present configuration and reports give another result: the next change or report updates it.",
        ),
    ] {
        let snapshot = site(&registry, size, derived_for);
        let explanation = explained_by(&registry, &snapshot, &Surroundings::default());
        let [broken, seen] = &explanation.conditions[..] else {
            panic!("{:?}", explanation.conditions);
        };
        assert_eq!((seen.state, &*seen.sentence), (state, sentence));
        assert_eq!(broken.state, RuleState::Failed);
        assert_eq!(broken.status, None);
        let error = broken.error.as_deref().unwrap();
        assert_eq!(
            broken.sentence,
            format!(
                "Condition Broken is absent and stays so: the rule Broken of kind Site fails: {error}."
            )
        );
    }
}

#[test]
fn conditions_of_an_earlier_configuration_are_outdated() {
    let registry = ruled();
    let mut snapshot = site(&registry, 2, 2);
    let mut old = snapshot.state.conditions[0].clone();
    old.kind = "Ancient".to_owned();
    snapshot.state.conditions.push(old);
    // The kind requires one adapter more by now.
    snapshot.state.conditions[0].status = False;
    let explanation = explained_by(&registry, &snapshot, &Surroundings::default());
    let outdated = explanation.conditions.iter();
    let outdated = outdated.filter(|c| c.state == RuleState::Outdated);
    let outdated: Vec<_> = outdated.map(|c| (&*c.kind, c.has_rule)).collect();
    assert_eq!(outdated, [("Reconciled", false), ("Ancient", false)]);
}
