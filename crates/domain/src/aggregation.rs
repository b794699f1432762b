//! Aggregates the reports of adapters into the conditions that users wait for.
//!
//! ```text
//! stored reports ─▶ usable ones ─▶ Reconciled              all required adapters at this generation?
//!                       │       ─▶ LastKnownReconciled     have they ever agreed, and still do?
//!                       └───────▶ <Adapter>Successful      one per required adapter that reported
//! ```
//!
//! It reads no clock: times are those of the reports, or the resource's own update time. `last_updated_at` of
//! `Reconciled` is the age of the *stalest* evidence, because pollers decide by it when to read again; it may
//! therefore go backwards (`docs/concepts/conditions.md`).

use chrono::{DateTime, Utc};

use super::report::AVAILABLE;
use super::{Condition, ConditionStatus, ReportState};

/// Type of the condition «done at the current generation».
pub const RECONCILED: &str = "Reconciled";
/// Type of the condition «done at some generation, and not contradicted since».
pub const LAST_KNOWN_RECONCILED: &str = "LastKnownReconciled";
/// Suffix of an adapter's condition type.
const ADAPTER_SUFFIX: &str = "Successful";

const NOT_YET_REPORTED: &str = "Required adapters have not yet reported status";

/// The part of a resource that aggregation reads.
#[derive(Debug, Clone, Copy)]
pub struct AggregationInput<'a> {
    pub generation: i32,
    /// Replaces the time of reports where there is none.
    pub updated_at: DateTime<Utc>,
    pub is_deleting: bool,
    /// Whether it owns any resource, finalizing ones included.
    pub has_children: bool,
    /// The adapters that its kind requires, in order.
    pub required: &'a [String],
    /// The stored reports, one per adapter, in any order.
    pub reports: &'a [ReportState],
    /// The conditions before.
    pub previous: &'a [Condition],
}

/// Computes every aggregated condition: `Reconciled`, `LastKnownReconciled`, then one per required adapter with a
/// usable report, in the order of `required`.
///
/// # Guarantees
///
/// Deterministic, whatever the order of reports, and idempotent: its own result as `previous` changes nothing.
/// `Reconciled` describes the current generation. A finalizing resource with children is never reconciled. Reports of
/// adapters that are not required are ignored.
pub fn aggregate(subject: &AggregationInput<'_>) -> Vec<Condition> {
    let usable: Vec<_> = subject
        .required
        .iter()
        .filter_map(|adapter| usable(adapter, subject))
        .collect();
    let mut conditions = vec![
        reconciled(subject, &usable),
        last_known_reconciled(subject, &usable),
    ];
    conditions.extend(usable.iter().map(|report| successful(subject, report)));
    conditions
}

/// The condition type of an adapter: `pull-secret` becomes `PullSecretSuccessful`.
pub fn adapter_condition_type(adapter: &str) -> String {
    let mut kind = String::with_capacity(adapter.len() + ADAPTER_SUFFIX.len());
    for part in adapter.split('-') {
        let mut rest = part.chars();
        kind.extend(rest.next().into_iter().flat_map(char::to_uppercase));
        kind.push_str(rest.as_str());
    }
    kind + ADAPTER_SUFFIX
}

/// A report that aggregation uses.
struct Usable<'a> {
    adapter: &'a str,
    generation: i32,
    at: DateTime<Utc>,
    is_available: bool,
    is_finalized: bool,
    reason: Option<&'a str>,
    message: Option<&'a str>,
}

/// The adapter's report, unless it is about a future generation or lacks a known availability.
fn usable<'a>(adapter: &'a str, subject: &AggregationInput<'a>) -> Option<Usable<'a>> {
    let report = subject.reports.iter().find(|r| r.adapter == adapter)?;
    let available = report.condition(AVAILABLE)?;
    let is_usable = report.observed_generation <= subject.generation
        && available.status != ConditionStatus::Unknown;
    is_usable.then(|| Usable {
        adapter,
        generation: report.observed_generation,
        at: report.reported_at,
        is_available: available.status == ConditionStatus::True,
        is_finalized: report.is_finalized(),
        reason: available.reason.as_deref(),
        message: available.message.as_deref(),
    })
}

fn reconciled(subject: &AggregationInput<'_>, usable: &[Usable<'_>]) -> Condition {
    let meets_goal = |report: &Usable<'_>| {
        report.generation == subject.generation
            && if subject.is_deleting {
                report.is_finalized
            } else {
                report.is_available
            }
    };
    let mut unmet: Vec<&str> = subject.required.iter().map(String::as_str).collect();
    unmet.retain(|adapter| {
        !usable
            .iter()
            .any(|r| r.adapter == *adapter && meets_goal(r))
    });
    let is_met = !subject.required.is_empty() && unmet.is_empty();
    let waits = is_met && subject.is_deleting && subject.has_children;

    let at_generation = usable.iter().filter(|r| r.generation == subject.generation);
    let oldest = at_generation.map(|r| r.at).min();
    let status = ConditionStatus::from_bool(is_met && !waits);
    let (reason, message) = if waits {
        (
            "ReconciledWaitingForChildren",
            "Deletion in progress. All required adapters reported Finalized=True but child resources still exist".to_owned(),
        )
    } else if is_met {
        (
            "ReconciledAll",
            "All required adapters reported Available=True or Finalized=True at the current generation".to_owned(),
        )
    } else if oldest.is_none() && !subject.is_deleting {
        ("ReconciledMissingAdapters", NOT_YET_REPORTED.to_owned())
    } else {
        (
            "ReconciledMissingAdapters",
            diagnosis(subject.is_deleting, unmet, usable),
        )
    };

    let previous = previous(subject, RECONCILED);
    let last_updated_at = oldest.unwrap_or(subject.updated_at);
    let last_transition_at = match previous {
        Some(p) if p.status == status => p.last_transition_at,
        // The change of the desired state reset the condition: its time counts.
        Some(p)
            if p.status == ConditionStatus::True && subject.generation > p.observed_generation =>
        {
            subject.updated_at
        }
        _ => last_updated_at,
    };
    Condition {
        created_at: previous.map_or(subject.updated_at, |p| p.created_at),
        last_transition_at,
        last_updated_at,
        message: Some(message),
        observed_generation: subject.generation,
        reason: Some(reason.to_owned()),
        status,
        kind: RECONCILED.to_owned(),
    }
}

/// Names the adapters that are not done, and those that have reported anything; sorted.
fn diagnosis(is_deleting: bool, mut unmet: Vec<&str>, usable: &[Usable<'_>]) -> String {
    let goal = if is_deleting {
        "Finalized"
    } else {
        "Available"
    };
    let mut reporting: Vec<&str> = usable.iter().map(|r| r.adapter).collect();
    unmet.sort_unstable();
    reporting.sort_unstable();
    format!(
        "Required adapters not reporting {goal}=True: [{}]. Currently reporting: [{}]",
        unmet.join(", "),
        reporting.join(", "),
    )
}

/// «Did all required adapters agree on `Available=True` at some common generation, without a contradiction *at that
/// generation* since?»
fn last_known_reconciled(subject: &AggregationInput<'_>, usable: &[Usable<'_>]) -> Condition {
    let previous = previous(subject, LAST_KNOWN_RECONCILED);
    let was_true = previous.is_some_and(|p| p.status == ConditionStatus::True);
    let tracked = previous.map_or(1, |p| p.observed_generation);

    let is_missing = usable.is_empty() || usable.len() < subject.required.len();
    let all_available = !is_missing && usable.iter().all(|r| r.is_available);
    let agreed = usable
        .first()
        .map(|r| r.generation)
        .filter(|&g| all_available && usable.iter().all(|r| r.generation == g));
    let is_contradicted = usable
        .iter()
        .any(|r| !r.is_available && r.generation == tracked);
    // Sticky: once true, only silence or a failure at that very generation makes it false.
    let holds = agreed.is_some() || (was_true && !is_missing && !is_contradicted);

    let observed_generation = if subject.required.is_empty() {
        1
    } else if holds {
        agreed.unwrap_or(tracked)
    } else {
        usable.iter().map(|r| r.generation).max().unwrap_or(tracked)
    };
    let unchanged = previous.map_or(subject.updated_at, |p| p.last_updated_at);
    let at_generation = || {
        usable
            .iter()
            .filter(|r| r.generation == observed_generation)
    };
    let last_updated_at = if subject.required.is_empty() {
        subject.updated_at
    } else if agreed.is_some() || at_generation().any(|r| !r.is_available) {
        at_generation().map(|r| r.at).min().unwrap_or(unchanged)
    } else {
        unchanged
    };

    let (reason, message) = if holds {
        (
            "AllAdaptersReconciled",
            "All required adapters report Available=True for the tracked generation",
        )
    } else if is_missing {
        ("AdaptersMissingReports", NOT_YET_REPORTED)
    } else if usable.iter().any(|r| !r.is_available) {
        (
            "AdapterReportedNotAvailable",
            "One or more required adapters report Available=False",
        )
    } else {
        (
            "AdaptersNotAtSameGeneration",
            "Required adapters do not report a consistent Available state",
        )
    };
    let status = ConditionStatus::from_bool(holds);
    Condition {
        created_at: previous.map_or(subject.updated_at, |p| p.created_at),
        last_transition_at: transition(previous, status, last_updated_at),
        last_updated_at,
        message: Some(message.to_owned()),
        observed_generation,
        reason: Some(reason.to_owned()),
        status,
        kind: LAST_KNOWN_RECONCILED.to_owned(),
    }
}

fn successful(subject: &AggregationInput<'_>, report: &Usable<'_>) -> Condition {
    let kind = adapter_condition_type(report.adapter);
    let previous = previous(subject, &kind);
    let status = ConditionStatus::from_bool(report.is_available);
    Condition {
        created_at: previous.map_or(subject.updated_at, |p| p.created_at),
        last_transition_at: transition(previous, status, report.at),
        last_updated_at: report.at,
        message: report.message.map(ToOwned::to_owned),
        observed_generation: report.generation,
        reason: report.reason.map(ToOwned::to_owned),
        status,
        kind,
    }
}

fn previous<'a>(subject: &AggregationInput<'a>, kind: &str) -> Option<&'a Condition> {
    subject.previous.iter().find(|c| c.kind == kind)
}

/// The transition time changes only with the status.
fn transition(
    previous: Option<&Condition>,
    status: ConditionStatus,
    moved_at: DateTime<Utc>,
) -> DateTime<Utc> {
    match previous {
        Some(p) if p.status == status => p.last_transition_at,
        _ => moved_at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn condition_types_are_made_from_adapter_names() {
        for (adapter, kind) in [
            ("validation", "ValidationSuccessful"),
            ("pull-secret", "PullSecretSuccessful"),
            ("pullsecret", "PullsecretSuccessful"),
            ("x1--y", "X1YSuccessful"),
            ("myAdapter", "MyAdapterSuccessful"),
            ("a_b", "A_bSuccessful"),
            ("-a-", "ASuccessful"),
        ] {
            assert_eq!(adapter_condition_type(adapter), kind);
        }
    }
}
