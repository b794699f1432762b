//! Applies the rules of one kind.

use hyperfleet_expressions::{Evaluation, Expression, Meter, on_deep_stack};

use super::failure::Failure;
use super::{Paths, RuleInput, view};
use crate::{Condition, ConditionStatus};

/// Longest reason of a derived condition, in bytes; with a longer one there is no condition.
pub const REASON_BYTES_MAX: usize = 256;
/// Longest message of a derived condition, in bytes; a longer one is cut.
pub const MESSAGE_BYTES_MAX: usize = 2048;

#[derive(Debug)]
pub(crate) struct Rule {
    pub(super) kind: String,
    pub(super) when: Expression,
    pub(super) status: Expression,
    pub(super) reason: Expression,
    pub(super) message: Expression,
}

#[derive(Debug)]
pub struct KindRules {
    /// By type.
    sorted: Vec<Rule>,
    paths: Paths,
    is_deep: bool,
}

/// The result of a kind's rules for one resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Derived {
    /// Sorted by type.
    pub conditions: Vec<Condition>,
    /// The rules that failed, in the same order.
    pub failures: Vec<Failure>,
}

/// The condition that a rule derives, if any, and its error.
type RuleResult = (Option<Condition>, Option<String>);

impl Rule {
    fn expressions(&self) -> [&Expression; 4] {
        [&self.when, &self.status, &self.reason, &self.message]
    }

    /// The rule's result for a subject. Fails if it cannot be computed.
    fn evaluate(
        &self,
        subject: &RuleInput<'_>,
        previous: Option<&Condition>,
        evaluation: &mut Evaluation<'_>,
    ) -> Result<RuleResult, String> {
        // One for all four: the limit applies to the cost of the rule.
        let meter = Meter::default();
        let holds = evaluation.run_bool(&self.when, &meter);
        let holds = holds.map_err(|error| format!("when: {error}"))?;
        if !holds {
            return Ok((None, None));
        }
        let mut text = |part: &str, expression| {
            let text = evaluation.run_text(expression, &meter);
            text.map_err(|error| format!("{part}: {error}"))
        };
        let status = text("status", &self.status)?;
        let reason = text("reason", &self.reason)?;
        let mut message = text("message", &self.message)?;
        if reason.len() > REASON_BYTES_MAX {
            let error = format!(
                "reason: it is longer than {REASON_BYTES_MAX} bytes, so there is no condition"
            );
            return Ok((None, Some(error)));
        }
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
        let status = match status.to_lowercase().as_str() {
            "true" => ConditionStatus::True,
            "false" => ConditionStatus::False,
            _ => return Err("status: it is neither True nor False".to_owned()),
        };
        // The time of the last change of the desired state, not of the report: rules have no clock.
        let reference = subject.state.updated_at;
        let same = previous.filter(|p| p.status == status);
        let condition = Condition {
            created_at: previous.map_or(reference, |p| p.created_at),
            last_transition_at: same.map_or(reference, |p| p.last_transition_at),
            last_updated_at: reference,
            message: Some(message),
            observed_generation: subject.state.generation,
            reason: Some(reason),
            status,
            kind: self.kind.clone(),
        };
        Ok((Some(condition), None))
    }
}

impl KindRules {
    /// Checked rules, of a kind whose resources have these paths.
    pub(crate) fn new(mut rules: Vec<Rule>, paths: Paths) -> Self {
        rules.sort_by(|a, b| a.kind.cmp(&b.kind));
        let is_deep = rules
            .iter()
            .flat_map(Rule::expressions)
            .any(Expression::is_deep);
        Self {
            is_deep,
            sorted: rules,
            paths,
        }
    }

    /// The types of the derived conditions, sorted.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        self.sorted.iter().map(|rule| rule.kind.as_str())
    }

    /// Computes every derived condition.
    ///
    /// # Guarantees
    ///
    /// Deterministic: neither clock nor order of reports matter. Never panics, and ends: a rule that costs too much
    /// fails. A rule that fails leaves its condition as it was, none if it was never computed, and changes no other.
    pub fn derive(&self, subject: &RuleInput<'_>) -> Derived {
        // One stack for all rules, because a thread costs more than a rule.
        let on_stack = || on_deep_stack(self.is_deep, || self.derive_here(subject));
        let derived = view::fits(subject).and_then(|()| on_stack());
        derived.unwrap_or_else(|error| self.derive_by(subject, |_, _| Err(error.clone())))
    }

    /// The same on this stack, for a subject within its limits.
    fn derive_here(&self, subject: &RuleInput<'_>) -> Derived {
        let mut evaluation = view::evaluation(subject, &self.paths);
        self.derive_by(subject, |rule, previous| {
            rule.evaluate(subject, previous, &mut evaluation)
        })
    }

    /// Combines the results of all rules with the earlier conditions.
    fn derive_by(
        &self,
        subject: &RuleInput<'_>,
        mut say: impl FnMut(&Rule, Option<&Condition>) -> Result<RuleResult, String>,
    ) -> Derived {
        let mut derived = Derived::default();
        for rule in &self.sorted {
            let previous = subject.previous.iter().find(|c| c.kind == rule.kind);
            let said = say(rule, previous);
            let (condition, error) = said.unwrap_or_else(|error| (previous.cloned(), Some(error)));
            derived.conditions.extend(condition);
            derived.failures.extend(error.map(|error| Failure {
                kind: subject.state.kind.clone(),
                id: subject.state.id,
                rule: rule.kind.clone(),
                error,
            }));
        }
        derived
    }
}
