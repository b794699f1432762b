//! The progress of each adapter.

use chrono::{DateTime, Utc};
use strum::{IntoStaticStr, VariantNames};

use super::words::{age, because, quoted, since};
use super::{ExplainInput, STALE_AFTER};
use crate::moment::rfc3339;
use crate::report::{AVAILABLE, FINALIZED, HEALTH};
use crate::{ConditionStatus, ReportState, ReportedCondition};

/// How far an adapter is with the present generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum AdapterState {
    /// Its report says what the resource waits for.
    Done,
    /// No report of it is stored. It may have sent some: those without a mandatory condition are refused.
    NeverReported,
    /// Its stored report is about an earlier generation. It may have sent later ones: those with `Available=Unknown`
    /// are discarded.
    OldGeneration,
    /// Its stored report is about a generation that the resource does not have, as after a restore of the database.
    FutureGeneration,
    /// It reports `Available=Unknown`.
    Unknown,
    /// It reports `Available=False`, and no failure: it is at work, or waits for something.
    NotAvailable,
    /// It reports `Available=False` and `Health=False`.
    Failing,
    /// It knows of the deletion, but has not cleaned up yet.
    NotFinalized,
    /// It has reported, but the kind does not require it, or is no longer configured. Only rules read its report.
    NotRequired,
}

/// One adapter in an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdapterProgress {
    pub adapter: String,
    pub state: AdapterState,
    /// Since when it is in this state. Of a required adapter with a report, no earlier than the present generation; of
    /// one that is not required, the first report.
    pub since: DateTime<Utc>,
    /// The generation and the time of its latest accepted report.
    pub report: Option<(i32, DateTime<Utc>)>,
    /// Whether its latest accepted report is older than [`STALE_AFTER`].
    pub is_stale: bool,
    /// The condition that the state follows from, as the adapter reported it.
    pub condition: Option<ReportedCondition>,
    pub sentence: String,
}

impl AdapterProgress {
    pub fn is_required(&self) -> bool {
        self.state != AdapterState::NotRequired
    }

    pub fn is_waited_for(&self) -> bool {
        !matches!(self.state, AdapterState::Done | AdapterState::NotRequired)
    }

    /// `dns: failing`.
    pub(super) fn short(&self) -> String {
        let state = match self.state {
            AdapterState::NeverReported => "no accepted report".to_owned(),
            state => state.into_str().replace('_', " "),
        };
        format!("{}: {state}", quoted(&self.adapter))
    }
}

/// The required adapters in the order of the configuration, then the others by name.
pub(super) fn progress(input: &ExplainInput<'_>) -> Vec<AdapterProgress> {
    let required = input.entity().map_or(&[][..], |e| &e.required_adapters);
    let reports = &input.snapshot.reports;
    let others = reports.iter().filter(|r| !required.contains(&r.adapter));
    let mut others: Vec<_> = others.collect();
    others.sort_by(|a, b| a.adapter.cmp(&b.adapter));
    let required = required.iter().map(|adapter| {
        let report = reports.iter().find(|report| report.adapter == *adapter);
        let judged = match report {
            None => (AdapterState::NeverReported, input.created_at, None),
            Some(report) => judge(input, report),
        };
        described(input, adapter, report, judged)
    });
    let others = others.into_iter().map(|report| {
        let judged = (AdapterState::NotRequired, report.created_at, None);
        described(input, &report.adapter, Some(report), judged)
    });
    required.chain(others).collect()
}

/// The state, since when, and the condition that both follow from.
type Judged<'a> = (AdapterState, DateTime<Utc>, Option<&'a ReportedCondition>);

/// The state of a required adapter that has reported.
///
/// A condition keeps its time through later generations, and the clock of an adapter may be behind: the state follows
/// from the present generation, so it begins with it at the earliest.
fn judge<'a>(input: &ExplainInput<'_>, report: &'a ReportState) -> Judged<'a> {
    let (progress, since, condition) = reported(input, report);
    (
        progress,
        since.max(input.snapshot.state.updated_at),
        condition,
    )
}

/// The state as the report has it, with the adapter's own time.
fn reported<'a>(input: &ExplainInput<'_>, report: &'a ReportState) -> Judged<'a> {
    let state = &input.snapshot.state;
    let available = report.condition(AVAILABLE);
    if report.observed_generation > state.generation {
        return (
            AdapterState::FutureGeneration,
            report.reported_at,
            available,
        );
    }
    if report.observed_generation < state.generation {
        return (AdapterState::OldGeneration, state.updated_at, available);
    }
    let since = |condition: Option<&ReportedCondition>| {
        condition.map_or(report.reported_at, |c| c.last_transition_at)
    };
    if !state.is_finalizing() {
        return match available.map(|c| c.status) {
            Some(ConditionStatus::True) => (AdapterState::Done, since(available), available),
            Some(ConditionStatus::False) => match unhealthy(report) {
                Some(health) => {
                    let since = since(available).max(health.last_transition_at);
                    (AdapterState::Failing, since, Some(health))
                }
                None => (AdapterState::NotAvailable, since(available), available),
            },
            Some(ConditionStatus::Unknown) | None => {
                (AdapterState::Unknown, since(available), available)
            }
        };
    }
    let finalized = report.condition(FINALIZED);
    if report.is_finalized() {
        return (AdapterState::Done, since(finalized), finalized);
    }
    // Without a word about the clean-up, a failure is the best hint.
    let failure = available.filter(|c| c.status == ConditionStatus::False);
    let hint = finalized.or(unhealthy(report)).or(failure);
    (AdapterState::NotFinalized, state.updated_at, hint)
}

/// The condition by which an adapter reports that it fails.
fn unhealthy(report: &ReportState) -> Option<&ReportedCondition> {
    let health = report.condition(HEALTH);
    health.filter(|c| c.status == ConditionStatus::False)
}

fn described(
    input: &ExplainInput<'_>,
    adapter: &str,
    report: Option<&ReportState>,
    judged: Judged<'_>,
) -> AdapterProgress {
    let observed = report.map(|r| r.observed_generation);
    let mut sentence = sentence(input, adapter, observed, judged);
    let stale = report.filter(|r| input.now - r.reported_at > STALE_AFTER);
    if let Some(stale) = stale {
        let (at, age) = (
            rfc3339(stale.reported_at),
            age(input.now - stale.reported_at),
        );
        sentence =
            format!("{sentence}; its latest accepted report is stale, from {at} ({age} ago)");
    }
    let (progress, since, condition) = judged;
    AdapterProgress {
        adapter: adapter.to_owned(),
        state: progress,
        since,
        report: report.map(|r| (r.observed_generation, r.reported_at)),
        is_stale: stale.is_some(),
        condition: condition.cloned(),
        sentence: sentence + ".",
    }
}

/// A sentence without its full stop.
fn sentence(
    input: &ExplainInput<'_>,
    adapter: &str,
    observed: Option<i32>,
    (state, at, condition): Judged<'_>,
) -> String {
    let resource = &input.snapshot.state;
    let (generation, observed) = (resource.generation, observed.unwrap_or_default());
    let since = since(at, input.now);
    let why = condition.map_or_else(String::new, |c| {
        because(c.reason.as_deref(), c.message.as_deref())
    });
    // The end of an adapter's text does not end the sentence.
    let why = why.trim_end_matches('.');
    let goal = input.goal();
    let rest = match state {
        AdapterState::NeverReported => {
            let (created, age) = (rfc3339(at), age(input.now - at));
            format!("has no accepted report on the resource, created at {created} ({age} ago)")
        }
        AdapterState::Done => format!("reports {goal}=True at generation {generation} {since}"),
        AdapterState::OldGeneration => {
            let (declared, age) = (rfc3339(at), age(input.now - at));
            format!(
                "has an accepted report on generation {observed}, but none on generation {generation}, declared at {declared} ({age} ago)"
            )
        }
        AdapterState::FutureGeneration => format!(
            "reported on generation {observed}, but the resource is at generation {generation}: the report does not end the wait"
        ),
        AdapterState::Unknown => {
            format!("reports Available=Unknown at generation {generation} {since}{why}")
        }
        AdapterState::NotAvailable => {
            format!("reports Available=False at generation {generation} {since}{why}")
        }
        AdapterState::Failing => format!(
            "reports Available=False and Health=False at generation {generation} {since}{why}"
        ),
        AdapterState::NotFinalized => {
            format!(
                "has an accepted report on generation {generation}, but none with Finalized=True {since}{why}"
            )
        }
        AdapterState::NotRequired => {
            let kind = &resource.kind;
            let why = match input.entity() {
                Some(_) => "does not require it",
                None => "is no longer configured",
            };
            format!("has reported, but kind {kind} {why}: the resource does not wait for it")
        }
    };
    format!("Adapter {} {rest}", quoted(adapter))
}
