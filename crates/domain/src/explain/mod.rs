//! Explains what a resource waits for, since when, and what prevents its deletion.
//!
//! ```text
//! required adapters × reports ─▶ adapters     each with its progress
//! descendants, referrers ──────▶ deletion     those that block a DELETE or a removal
//! rules × conditions ──────────▶ conditions   the rule of each derived condition
//!                                   └─▶ summary, one sentence
//! ```
//!
//! It reads the same rules' input as the lifecycle, and agrees with it (`tests/explain_laws`): an active resource waits
//! for nothing exactly if `Reconciled` is true or its kind requires no adapters, a finalizing one exactly if a DELETE
//! would remove it now.

mod adapters;
mod conditions;
mod deletion;
mod surroundings;
mod words;

use chrono::{DateTime, TimeDelta, Utc};

pub use adapters::{AdapterProgress, AdapterState};
pub use conditions::{ConditionOrigin, RuleState};
pub use deletion::{BlockedDeletion, BlockingChild, BlockingReferrer};
pub use surroundings::{
    Blockers, DESCENDANTS_MAX, Descendant, Kin, LEVELS_MAX, LISTED_MAX, REFERRERS_MAX,
    SourceOfReference, Surroundings,
};

use super::aggregation::RECONCILED;
use super::{ConditionStatus, Deletion, Entity, EntityRegistry, ResourceSnapshot};
use words::{counted, names, quoted, since};

/// A report that is older than this is stale. Equals the greatest age that an observation may have on arrival.
pub const STALE_AFTER: TimeDelta = TimeDelta::minutes(super::Report::AGE_MINUTES_MAX);

/// Everything that an explanation is computed from.
#[derive(Debug, Clone, Copy)]
pub struct ExplainInput<'a> {
    pub snapshot: &'a ResourceSnapshot,
    pub created_at: DateTime<Utc>,
    pub surroundings: &'a Surroundings,
    pub registry: &'a EntityRegistry,
    pub now: DateTime<Utc>,
}

/// What a resource waits for, as data and in sentences.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceExplanation {
    /// The resource itself.
    pub subject: Kin,
    pub generation: i32,
    /// Set while the resource is finalizing.
    pub deletion: Option<Deletion>,
    /// When the explanation was computed.
    pub explained_at: DateTime<Utc>,
    /// Since when the resource waits; unset if it waits for nothing.
    pub waits_since: Option<DateTime<Utc>>,
    pub summary: String,
    /// The required adapters in the order of the configuration, then the others that have reported.
    pub adapters: Vec<AdapterProgress>,
    pub blocked: BlockedDeletion,
    /// Derived conditions, and conditions that the present configuration does not explain.
    pub conditions: Vec<ConditionOrigin>,
}

impl ResourceExplanation {
    pub fn waits(&self) -> bool {
        self.waits_since.is_some()
    }
}

impl ExplainInput<'_> {
    /// The configuration of the kind, unless the kind is no longer configured.
    fn entity(&self) -> Option<&Entity> {
        self.registry.get(&self.snapshot.state.kind)
    }

    /// The condition that every required adapter must report to be done.
    fn goal(&self) -> &'static str {
        if self.snapshot.state.is_finalizing() {
            super::report::FINALIZED
        } else {
            super::report::AVAILABLE
        }
    }
}

/// Explains a resource.
///
/// # Guarantees
///
/// Deterministic, whatever the order of reports, descendants and referrers. It names no resource that the caller does
/// not see. The size of lists and sentences does not depend on the number of descendants and referrers.
pub fn explain(input: &ExplainInput<'_>) -> ResourceExplanation {
    let state = &input.snapshot.state;
    let adapters = adapters::progress(input);
    let waits_for_adapters = adapters.iter().any(AdapterProgress::is_waited_for);
    let blocked = deletion::blocked(input, waits_for_adapters);
    let waits = waits_for_adapters || state.is_finalizing() && blocked.is_blocked;
    ResourceExplanation {
        subject: Kin::of(state),
        generation: state.generation,
        deletion: state.deletion.clone(),
        explained_at: input.now,
        waits_since: waits.then(|| waits_since(input)),
        summary: summary(input, &adapters, &blocked),
        conditions: conditions::origins(input),
        adapters,
        blocked,
    }
}

/// Since when a waiting resource waits: since its deletion, or since it is no longer reconciled, but no longer than
/// it has the present generation, which it waits for.
fn waits_since(input: &ExplainInput<'_>) -> DateTime<Utc> {
    let state = &input.snapshot.state;
    if let Some(deletion) = &state.deletion {
        return deletion.at;
    }
    let mut conditions = state.conditions.iter();
    let reconciled = conditions.find(|c| c.kind == RECONCILED);
    let unreconciled = reconciled.filter(|c| c.status == ConditionStatus::False);
    unreconciled.map_or(state.updated_at, |c| {
        c.last_transition_at.max(state.updated_at)
    })
}

/// The explanation in one sentence, and another one that names adapters that the kind does not require.
fn summary(
    input: &ExplainInput<'_>,
    adapters: &[AdapterProgress],
    blocked: &BlockedDeletion,
) -> String {
    let state = &input.snapshot.state;
    let subject = format!("{} \"{}\"", state.kind, state.name.as_str());
    let (generation, goal) = (state.generation, input.goal());
    let required = adapters.iter().filter(|a| a.is_required()).count();
    let mut waits_for = Vec::new();
    let waited_for: Vec<_> = adapters.iter().filter(|a| a.is_waited_for()).collect();
    if !waited_for.is_empty() {
        let each = waited_for.iter().map(|adapter| adapter.short());
        let (count, each) = (waited_for.len(), names(waited_for.len(), each));
        waits_for.push(format!(
            "{count} of {required} required adapters to report {goal}=True at generation {generation} ({each})"
        ));
    }
    let is_finalizing = state.is_finalizing();
    if is_finalizing && blocked.children.total > 0 {
        let many = counted(&blocked.children, "descendant");
        waits_for.push(format!("the removal of {many}"));
    }
    let prefix = if is_finalizing {
        "is finalizing and "
    } else {
        ""
    };
    if !waits_for.is_empty() {
        let (all, since) = (
            waits_for.join(", and for "),
            since(waits_since(input), input.now),
        );
        let unrequired = unrequired(adapters);
        return format!("{subject} {prefix}waits for {all}, {since}.{unrequired}");
    }
    let why = match (input.entity(), required) {
        _ if is_finalizing => "a repeated DELETE removes it".to_owned(),
        (None, _) => "its kind is no longer configured".to_owned(),
        (Some(_), 0) => "its kind requires no adapters".to_owned(),
        (Some(_), 1) => {
            format!("its required adapter reports {goal}=True at generation {generation}")
        }
        (Some(_), count) => {
            format!("all {count} required adapters report {goal}=True at generation {generation}")
        }
    };
    format!("{subject} {prefix}waits for nothing: {why}.")
}

/// Adapters that have reported but are not required. A name may be misspelled, in the reports or in the configuration.
fn unrequired(adapters: &[AdapterProgress]) -> String {
    let others: Vec<_> = adapters.iter().filter(|a| !a.is_required()).collect();
    if others.is_empty() {
        return String::new();
    }
    let each = names(others.len(), others.iter().map(|a| quoted(&a.adapter)));
    format!(" Its kind does not require adapters that have reported: {each}.")
}
