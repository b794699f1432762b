//! Explanations agree with the lifecycle: over the random requests of `family_laws`, and over random reports.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::given::{
    at, condition, family, finalizing, kind, origin, registry, report, saying_finalized, snapshot,
};
use super::laws::is_held_back;
use super::world::World;
use crate::aggregation::{AggregationInput, RECONCILED, aggregate};
use crate::explain::{ExplainInput, ResourceExplanation, RuleState, Surroundings, explain};
use crate::lifecycle;
use crate::{ConditionStatus, EntityRegistry, ReportState, ResourceSnapshot};

fn explained(
    registry: &EntityRegistry,
    snapshot: &ResourceSnapshot,
    surroundings: &Surroundings,
) -> ResourceExplanation {
    explain(&ExplainInput {
        snapshot,
        created_at: at(0),
        surroundings,
        registry,
        now: at(100),
    })
}

/// Laws of the explanation of every resource of a world.
pub(super) fn laws_of_explanations(world: &World) {
    for (id, row) in &world.rows {
        let (snapshot, surroundings) = (world.snapshot(*id), world.surroundings(*id));
        let explanation = explained(&world.registry, &snapshot, &surroundings);
        let state = &row.resource.state;
        let printed = format!("{explanation:#?}");
        let entity = world
            .registry
            .get(&state.kind)
            .expect("a kind of the world");
        let reconciled = condition(&state.conditions, RECONCILED);
        let is_reconciled = reconciled.is_some_and(|c| c.status == ConditionStatus::True);
        if state.is_finalizing() {
            let mut again = world.clone();
            again.delete(*id);
            assert_eq!(
                explanation.waits(),
                again.rows.contains_key(id),
                "{printed}"
            );
            assert_eq!(
                explanation.blocked.is_blocked,
                explanation.waits(),
                "{printed}"
            );
        } else {
            let waits = entity.is_reconcilable() && !is_reconciled;
            assert_eq!(explanation.waits(), waits, "{printed}");
            let is_blocked = is_held_back(world, *id);
            assert_eq!(explanation.blocked.is_blocked, is_blocked, "{printed}");
        }
        let mut origins = explanation.conditions.iter();
        let is_outdated = origins.any(|origin| origin.state == RuleState::Outdated);
        assert!(!is_outdated || !entity.is_reconcilable(), "{printed}");
        assert_is_said(&explanation);
    }
}

/// The sentences say what the data say.
fn assert_is_said(explanation: &ResourceExplanation) {
    let says_nothing = explanation.summary.contains("waits for nothing");
    assert_eq!(
        says_nothing,
        !explanation.waits(),
        "{}",
        explanation.summary
    );
    let adapters = explanation.adapters.iter().map(|a| &a.sentence);
    let children = explanation.blocked.children.items.iter();
    let referrers = explanation.blocked.referrers.items.iter();
    let sentences = adapters
        .chain(children.map(|c| &c.sentence))
        .chain(referrers.map(|r| &r.sentence))
        .chain([&explanation.summary, &explanation.blocked.sentence]);
    for sentence in sentences {
        let is_sentence = sentence.ends_with('.') && !sentence.ends_with("..");
        assert!(is_sentence && !sentence.contains('\n'), "{sentence:?}");
    }
}

fn stored() -> impl Strategy<Value = ReportState> {
    use ConditionStatus::{False, True, Unknown};
    let status = || prop_oneof![6 => Just(True), 3 => Just(False), 1 => Just(Unknown)];
    let generation = prop_oneof![1 => Just(1), 6 => Just(2), 1 => Just(3)];
    let said = (status(), option::of(status()));
    (select(&["a", "b", "z"][..]), generation, 0..50_i64, said).prop_map(
        |(adapter, generation, second, (available, finalized))| {
            let mut report = report(adapter, generation, second, available);
            if let Some(status) = finalized {
                report = saying_finalized(report, status);
            }
            report.state
        },
    )
}

/// A resource at generation 2 of a kind that requires these adapters, with the stored reports.
fn situation() -> impl Strategy<Value = (EntityRegistry, ResourceSnapshot)> {
    let required = subsequence(vec!["a", "b"], 0..=2);
    (required, vec(stored(), 0..6), any::<bool>()).prop_map(|(required, reports, is_deleting)| {
        let registry = registry(&[kind("Kind", &required)]);
        let mut snapshot = finalizing(snapshot(&registry, "Kind", 1, None));
        snapshot.state.deletion.take_if(|_| !is_deleting);
        for report in reports {
            snapshot.reports.retain(|r| r.adapter != report.adapter);
            snapshot.reports.push(report);
        }
        (registry, snapshot)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn a_resource_waits_for_nothing_exactly_if_it_is_done((registry, snapshot) in situation()) {
        let explanation = explained(&registry, &snapshot, &Surroundings::default());
        let state = &snapshot.state;
        let required = &registry.entities()[0].required_adapters;
        let is_done = if state.is_finalizing() {
            let family = family(snapshot.clone(), vec![]);
            let (_, outcome) = lifecycle::delete(&family, &[], &registry, &origin(60)).unwrap();
            !outcome.removed.is_empty()
        } else {
            let conditions = aggregate(&AggregationInput {
                generation: state.generation,
                updated_at: state.updated_at,
                is_deleting: false,
                has_children: false,
                required,
                reports: &snapshot.reports,
                previous: &state.conditions,
            });
            let reconciled = condition(&conditions, RECONCILED).unwrap();
            required.is_empty() || reconciled.status == ConditionStatus::True
        };
        prop_assert_eq!(explanation.waits(), !is_done);
        let reported = explanation.adapters.iter().filter(|a| a.is_required() && a.report.is_some());
        let began = reported.map(|a| a.since).chain(explanation.waits_since);
        prop_assert!(began.into_iter().all(|since| since >= state.updated_at));
        assert_is_said(&explanation);
    }

    #[test]
    fn the_order_of_reports_does_not_change_an_explanation(
        ((registry, snapshot), reports) in situation().prop_flat_map(|situation| {
            let reports = Just(situation.1.reports.clone()).prop_shuffle();
            (Just(situation), reports)
        })
    ) {
        let shuffled = ResourceSnapshot { reports, ..snapshot.clone() };
        let surroundings = Surroundings::default();
        prop_assert_eq!(
            explained(&registry, &snapshot, &surroundings),
            explained(&registry, &shuffled, &surroundings)
        );
    }
}
