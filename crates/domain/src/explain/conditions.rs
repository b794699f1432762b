//! Where the conditions of a resource come from, beside the reports of adapters.

use strum::{IntoStaticStr, VariantNames};

use super::ExplainInput;
use super::words::because;
use crate::aggregation::{LAST_KNOWN_RECONCILED, RECONCILED, adapter_condition_type};
use crate::computed_conditions::Evidence;
use crate::condition_rules::Failure;
use crate::{Condition, ConditionStatus, Entity};

/// How a condition and its rule agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum RuleState {
    /// The rule derives the condition as it is.
    Derived,
    /// `when` of the rule is false, so there is no condition.
    NotApplicable,
    /// The rule fails; its condition stays as it was.
    Failed,
    /// The configuration has changed: the next change or report updates the condition.
    Outdated,
}

/// The origin of one condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionOrigin {
    /// Type of the condition.
    pub kind: String,
    /// The status that the resource shows; unset if it has no such condition.
    pub status: Option<ConditionStatus>,
    pub state: RuleState,
    /// Whether the kind has a rule with this type.
    pub has_rule: bool,
    /// Why the rule fails, without any value, which might be a secret.
    pub error: Option<String>,
    pub sentence: String,
}

/// The origins of derived conditions, by type, then of other conditions that are out of date.
pub(super) fn origins(input: &ExplainInput<'_>) -> Vec<ConditionOrigin> {
    let stored = &input.snapshot.state.conditions;
    let entity = input.entity();
    let (present, failures) = computed_again(input, entity);
    let rules = entity.and_then(|e| e.rules.as_deref());
    let types = rules.iter().flat_map(|rules| rules.types());
    let derived = types.map(|kind| Compared {
        kind,
        stored: find(stored, kind),
        present: find(&present, kind),
        failure: failures.iter().find(|f| f.rule == kind),
        has_rule: true,
    });
    let is_rule = |kind: &str| rules.is_some_and(|rules| rules.types().any(|t| t == kind));
    let others = stored.iter().filter(|c| !is_rule(&c.kind));
    let others = others.map(|condition| Compared {
        kind: &condition.kind,
        stored: Some(condition),
        present: find(&present, &condition.kind),
        failure: None,
        has_rule: false,
    });
    let others = others.filter(|one| !is_current(one, entity));
    derived.chain(others).map(|one| one.origin(input)).collect()
}

/// The conditions as the present configuration computes them from the stored reports, and the rules that fail.
fn computed_again(
    input: &ExplainInput<'_>,
    entity: Option<&Entity>,
) -> (Vec<Condition>, Vec<Failure>) {
    let snapshot = input.snapshot;
    let evidence = Evidence {
        reports: &snapshot.reports,
        has_children: !input.surroundings.descendants.is_empty(),
        facts: snapshot.facts.as_deref(),
        ..Evidence::of(entity)
    };
    let mut state = snapshot.state.clone();
    let failures = if evidence.required.is_empty() {
        evidence.derive(&mut state, &snapshot.state.conditions)
    } else {
        evidence.aggregate_and_derive(&mut state)
    };
    (state.conditions, failures)
}

/// Whether a condition without a rule is as the present configuration computes it. Only the status counts: the texts
/// of aggregated conditions are those of an earlier release until the next report.
fn is_current(one: &Compared<'_>, entity: Option<&Entity>) -> bool {
    let required = entity.map_or(&[][..], |e| &e.required_adapters);
    let is_aggregated = one.kind == RECONCILED
        || one.kind == LAST_KNOWN_RECONCILED
        || required
            .iter()
            .any(|a| adapter_condition_type(a) == one.kind);
    is_aggregated && one.stored.map(|c| c.status) == one.present.map(|c| c.status)
}

/// A condition as it is stored, and as it is computed again.
struct Compared<'a> {
    kind: &'a str,
    stored: Option<&'a Condition>,
    present: Option<&'a Condition>,
    failure: Option<&'a Failure>,
    has_rule: bool,
}

impl Compared<'_> {
    fn origin(self, input: &ExplainInput<'_>) -> ConditionOrigin {
        let content = |c: &Condition| (c.status, c.reason.clone(), c.message.clone());
        let is_same = self.stored.map(content) == self.present.map(content);
        let state = match (self.failure, self.stored) {
            (Some(_), _) => RuleState::Failed,
            (None, _) if !is_same || !self.has_rule => RuleState::Outdated,
            (None, Some(_)) => RuleState::Derived,
            (None, None) => RuleState::NotApplicable,
        };
        ConditionOrigin {
            kind: self.kind.to_owned(),
            status: self.stored.map(|c| c.status),
            state,
            has_rule: self.has_rule,
            error: self.failure.map(|f| f.error.clone()),
            sentence: self.sentence(state, &input.snapshot.state.kind),
        }
    }

    fn sentence(&self, state: RuleState, of: &str) -> String {
        let kind = self.kind;
        let why = self.stored.map_or_else(String::new, |c| {
            because(c.reason.as_deref(), c.message.as_deref())
        });
        let why = why.trim_end_matches('.');
        let is = match self.stored {
            Some(condition) => format!("is {}", condition.status.into_str()),
            None => "is absent".to_owned(),
        };
        match state {
            RuleState::Derived => {
                format!("Condition {kind} {is} by the rule {kind} of kind {of}{why}.")
            }
            RuleState::NotApplicable => {
                format!(
                    "Condition {kind} is absent: the rule {kind} of kind {of} does not apply now."
                )
            }
            RuleState::Failed => {
                let error = self.failure.map_or("", |f| f.error.as_str());
                format!(
                    "Condition {kind} {is} and stays so: the rule {kind} of kind {of} fails: {error}."
                )
            }
            RuleState::Outdated => format!(
                "Condition {kind} {is}, but the present configuration and reports give another result: the next change or report updates it."
            ),
        }
    }
}

fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.kind == kind)
}
