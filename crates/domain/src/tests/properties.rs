//! Laws of aggregation, and of the choice between two reports of one adapter, over random input.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::given::{at, condition, finalized, report, saying_finalized};
use crate::aggregation::{AggregationInput, LAST_KNOWN_RECONCILED, RECONCILED, aggregate};
use crate::report::{AVAILABLE, FINALIZED, MANDATORY};
use crate::{Condition, ConditionStatus, ReportOutcome, ReportState, ReportedCondition};

const ADAPTERS: [&str; 4] = ["a", "b", "pull-secret", "z"];
const GENERATION_MAX: i32 = 4;

/// The input of aggregation, owned.
#[derive(Debug, Clone)]
struct Situation {
    generation: i32,
    updated_second: i64,
    is_deleting: bool,
    has_children: bool,
    required: Vec<String>,
    reports: Vec<ReportState>,
}

impl Situation {
    fn conditions(&self, previous: &[Condition]) -> Vec<Condition> {
        aggregate(&AggregationInput {
            generation: self.generation,
            updated_at: at(self.updated_second),
            is_deleting: self.is_deleting,
            has_children: self.has_children,
            required: &self.required,
            reports: &self.reports,
            previous,
        })
    }

    /// Its conditions after those of other situations, one made from the other.
    fn conditions_after(&self, earlier: &[Situation]) -> (Vec<Condition>, Vec<Condition>) {
        let previous = earlier.iter().fold(Vec::new(), |previous, situation| {
            situation.conditions(&previous)
        });
        (self.conditions(&previous), previous)
    }
}

fn status() -> impl Strategy<Value = ConditionStatus> {
    use ConditionStatus::{False, True, Unknown};
    prop_oneof![6 => Just(True), 3 => Just(False), 1 => Just(Unknown)]
}

fn stored(adapter: &'static str) -> impl Strategy<Value = ReportState> {
    let condition = |kind: &str, status, second| ReportedCondition {
        last_transition_at: at(second),
        message: None,
        reason: Some(format!("{status:?}")),
        status,
        kind: kind.to_owned(),
    };
    let said = (option::weighted(0.95, status()), option::of(status()));
    (1..=GENERATION_MAX + 1, 0..20_i64, said).prop_map(
        move |(observed_generation, second, (available, finalized))| {
            let available = available.map(|s| condition(AVAILABLE, s, second));
            let finalized = finalized.map(|s| condition(FINALIZED, s, second));
            ReportState {
                adapter: adapter.to_owned(),
                observed_generation,
                created_at: at(0),
                reported_at: at(second),
                conditions: available.into_iter().chain(finalized).collect(),
            }
        },
    )
}

fn stored_reports() -> impl Strategy<Value = Vec<ReportState>> {
    let each = ADAPTERS.map(|adapter| option::weighted(0.85, stored(adapter)));
    let reports = each.prop_map(|reports| reports.into_iter().flatten().collect::<Vec<_>>());
    reports.prop_shuffle()
}

fn situation() -> impl Strategy<Value = Situation> {
    let required = subsequence(ADAPTERS.to_vec(), 0..ADAPTERS.len()).prop_shuffle();
    // Mostly few and equal generations, or agreement would be rare.
    let generation = prop_oneof![3 => Just(2), 1 => 1..=GENERATION_MAX];
    let flags = (any::<bool>(), any::<bool>());
    (generation, 0..20_i64, flags, required, stored_reports()).prop_map(
        |(generation, updated_second, (is_deleting, has_children), required, mut reports)| {
            // Half of all reports speak of the present generation.
            for report in reports.iter_mut().filter(|r| r.reported_at < at(10)) {
                report.observed_generation = generation;
            }
            Situation {
                generation,
                updated_second,
                is_deleting,
                has_children,
                required: required.into_iter().map(ToOwned::to_owned).collect(),
                reports,
            }
        },
    )
}

/// Situations of one resource, in the order in which its generation grows.
fn life() -> impl Strategy<Value = (Vec<Situation>, Situation)> {
    vec(situation(), 1..4).prop_map(|mut situations| {
        situations.sort_by_key(|s| s.generation);
        let last = situations.pop().expect("there is at least one");
        (situations, last)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_order_of_reports_is_immaterial(
        ((earlier, now), reports) in life().prop_flat_map(|(earlier, now)| {
            let shuffled = Just(now.reports.clone()).prop_shuffle();
            (Just((earlier, now)), shuffled)
        })
    ) {
        let shuffled = Situation { reports, ..now.clone() };
        prop_assert_eq!(now.conditions_after(&earlier), shuffled.conditions_after(&earlier));
    }

    #[test]
    fn aggregating_again_changes_nothing((earlier, now) in life()) {
        let (conditions, _) = now.conditions_after(&earlier);
        prop_assert_eq!(now.conditions(&conditions), conditions);
    }

    #[test]
    fn adapters_that_are_not_required_take_no_part((earlier, now) in life()) {
        let mut without = now.clone();
        without.reports.retain(|r| now.required.contains(&r.adapter));
        prop_assert_eq!(now.conditions_after(&earlier), without.conditions_after(&earlier));
    }

    #[test]
    fn reconciled_speaks_of_the_present_generation((earlier, now) in life()) {
        let (conditions, _) = now.conditions_after(&earlier);
        let reconciled = condition(&conditions, RECONCILED).unwrap();
        prop_assert_eq!(reconciled.observed_generation, now.generation);
    }

    #[test]
    fn an_active_reconciled_resource_is_known_to_be_so((earlier, mut now) in life()) {
        now.is_deleting = false;
        let (conditions, _) = now.conditions_after(&earlier);
        let reconciled = condition(&conditions, RECONCILED).unwrap();
        let known = condition(&conditions, LAST_KNOWN_RECONCILED).unwrap();
        if reconciled.status == ConditionStatus::True {
            let known = (known.status, known.observed_generation);
            prop_assert_eq!(known, (ConditionStatus::True, now.generation));
        }
    }

    #[test]
    fn nothing_is_known_of_generations_to_come((earlier, now) in life()) {
        let (conditions, _) = now.conditions_after(&earlier);
        for condition in &conditions {
            prop_assert!(condition.observed_generation <= now.generation, "{:?}", condition);
        }
    }

    #[test]
    fn a_finalizing_resource_with_children_is_never_reconciled((earlier, mut now) in life()) {
        (now.is_deleting, now.has_children) = (true, true);
        let (conditions, _) = now.conditions_after(&earlier);
        let reconciled = condition(&conditions, RECONCILED).unwrap();
        prop_assert_eq!(reconciled.status, ConditionStatus::False);
    }

    #[test]
    fn a_condition_keeps_its_creation_and_without_a_new_status_its_transition(
        (earlier, now) in life()
    ) {
        let (conditions, previous) = now.conditions_after(&earlier);
        for condition in &conditions {
            let Some(before) = previous.iter().find(|p| p.kind == condition.kind) else {
                continue;
            };
            prop_assert_eq!(condition.created_at, before.created_at);
            if condition.status == before.status {
                prop_assert_eq!(condition.last_transition_at, before.last_transition_at);
            }
        }
    }

    #[test]
    fn conditions_come_in_the_order_of_the_adapters_each_once((earlier, now) in life()) {
        let (conditions, _) = now.conditions_after(&earlier);
        let kinds: Vec<_> = conditions.iter().map(|c| c.kind.clone()).collect();
        let usable = |adapter: &&String| now.reports.iter().any(|r| {
            let available = r.condition(AVAILABLE).map(|c| c.status);
            r.adapter == **adapter
                && r.observed_generation <= now.generation
                && matches!(available, Some(ConditionStatus::True | ConditionStatus::False))
        });
        let reporting = now.required.iter().filter(usable).map(|adapter| {
            BTreeMap::from([
                ("a", "ASuccessful"),
                ("b", "BSuccessful"),
                ("pull-secret", "PullSecretSuccessful"),
                ("z", "ZSuccessful"),
            ])[&**adapter]
        });
        let expected: Vec<_> = [RECONCILED, LAST_KNOWN_RECONCILED].into_iter().chain(reporting).collect();
        prop_assert_eq!(kinds, expected);
    }
}

/// A report of adapter a, with or without every mandatory condition.
fn incoming() -> impl Strategy<Value = ReportState> {
    let lacking = option::weighted(0.1, select(&["Available", "Applied", "Health"][..]));
    let said = (status(), option::of(status()), lacking);
    (1..=GENERATION_MAX, 0..8_i64, said).prop_map(
        |(generation, second, (available, finalized, lacking))| {
            let mut report = report("a", generation, second, available);
            if let Some(status) = finalized {
                report = saying_finalized(report, status);
            }
            report
                .state
                .conditions
                .retain(|c| Some(&*c.kind) != lacking);
            report.state
        },
    )
}

/// The stored reports after each incoming one.
fn stored_after(reports: &[ReportState], generation: i32) -> Vec<Option<ReportState>> {
    let mut history = vec![None];
    for report in reports {
        let existing: Option<ReportState> = history.last().cloned().flatten();
        let next = match report.judge(generation, existing.as_ref()) {
            ReportOutcome::Accepted => {
                let mut stored = report.clone();
                stored.follow(existing.as_ref());
                Some(stored)
            }
            ReportOutcome::Repeated
            | ReportOutcome::SameTime
            | ReportOutcome::Discarded(_)
            | ReportOutcome::Rejected(_) => existing,
        };
        history.push(next);
    }
    history
}

fn age(report: &ReportState) -> (i32, chrono::DateTime<chrono::Utc>) {
    (report.observed_generation, report.reported_at)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn what_is_stored_of_an_adapter_never_gets_older(
        reports in vec(incoming(), 0..20),
        generation in 1..=GENERATION_MAX,
    ) {
        let history = stored_after(&reports, generation);
        for pair in history.windows(2) {
            let (Some(before), after) = (&pair[0], &pair[1]) else { continue };
            let after = after.as_ref().expect("what is stored stays");
            prop_assert!(age(after) > age(before) || after == before, "{before:?} {after:?}");
            prop_assert_eq!(after.created_at, before.created_at);
            for condition in &after.conditions {
                let same = before.condition(&condition.kind);
                if let Some(same) = same.filter(|s| s.status == condition.status) {
                    prop_assert_eq!(condition.last_transition_at, same.last_transition_at);
                }
            }
            prop_assert!(after.observed_generation <= generation);
        }
    }

    #[test]
    fn the_latest_report_wins_in_whatever_order_they_arrive(
        reports in vec(incoming(), 1..8).prop_shuffle(),
    ) {
        // Unknown is dropped after anything else, so its fate does depend on the order.
        let said = |r: &ReportState| r.status_of(AVAILABLE) != Some(ConditionStatus::Unknown);
        let is_complete = |r: &ReportState| MANDATORY.iter().all(|kind| r.status_of(kind).is_some());
        let reports: Vec<_> = reports.into_iter().filter(|r| said(r) && is_complete(r)).collect();
        let latest = reports.iter().map(age).max();
        let history = stored_after(&reports, GENERATION_MAX);
        prop_assert_eq!(history.last().unwrap().as_ref().map(age), latest);
    }

    #[test]
    fn a_report_that_came_too_late_stays_too_late(
        reports in vec(incoming(), 1..12),
        late in incoming(),
    ) {
        let mut was_discarded = false;
        for existing in stored_after(&reports, GENERATION_MAX) {
            let outcome = late.judge(GENERATION_MAX, existing.as_ref());
            let is_discarded = matches!(outcome, ReportOutcome::Discarded(_));
            prop_assert!(is_discarded || !was_discarded, "{outcome:?}");
            was_discarded = is_discarded;
        }
    }

    #[test]
    fn a_report_that_is_sent_again_is_not_stored_again(
        reports in vec(incoming(), 1..8),
        generation in 1..=GENERATION_MAX,
    ) {
        let history = stored_after(&reports, generation);
        for (report, stored) in reports.iter().zip(&history[1..]) {
            let again = report.judge(generation, stored.as_ref());
            prop_assert_ne!(again, ReportOutcome::Accepted);
        }
    }
}

/// `Reconciled` after it was true at `tracked`, once the only adapter has failed at generation 2, the desired state
/// since second 5, in a report of second 7.
fn fallen(tracked: i32) -> Condition {
    let mut failed = finalized("a", 2, 7);
    failed.conditions.retain(|c| c.kind != FINALIZED);
    let was = Condition {
        created_at: at(0),
        last_transition_at: at(1),
        last_updated_at: at(1),
        message: None,
        observed_generation: tracked,
        reason: None,
        status: ConditionStatus::True,
        kind: RECONCILED.to_owned(),
    };
    let conditions = aggregate(&AggregationInput {
        generation: 2,
        updated_at: at(5),
        is_deleting: false,
        has_children: false,
        required: &["a".to_owned()],
        reports: &[failed],
        previous: &[was],
    });
    condition(&conditions, RECONCILED).unwrap().clone()
}

#[test]
fn a_fall_is_dated_by_the_change_that_brought_it_or_else_by_the_report() {
    for (tracked, fell_at) in [(1, at(5)), (2, at(7))] {
        let reconciled = fallen(tracked);
        assert_eq!(reconciled.status, ConditionStatus::False);
        assert_eq!(reconciled.last_transition_at, fell_at, "from {tracked}");
    }
}
