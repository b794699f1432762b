//! The rules of one kind, and what follows from them.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cel::common::types::CelBool;
use cel::common::value::CowVal;
use cel::{Context, Value as Cel};

use super::expression::Expression;
use super::failure::{Failure, describe};
use super::functions::{self, LANGUAGE};
use super::meter::Meter;
use super::scope::depth;
use super::{Paths, Subject, value, view};
use crate::domain::{Condition, ConditionStatus};

/// Longest reason of a derived condition, in bytes; with a longer one there is no condition.
pub const REASON_BYTES_MAX: usize = 256;
/// Longest message of a derived condition, in bytes; a longer one is cut.
pub const MESSAGE_BYTES_MAX: usize = 2048;

/// How deep expressions may be to run on whatever stack there is; ordinary ones are half as deep.
/// The interpreter is recursive and takes up to 40 KiB a level in a debug build.
const DEPTH_HERE_MAX: usize = 16;
/// The stack that deeper ones get: four times what the deepest that pass need in a debug build.
const STACK_BYTES: usize = 16 << 20;

/// One rule, checked.
#[derive(Debug)]
pub(in crate::domain) struct Rule {
    pub(super) kind: String,
    pub(super) when: Expression,
    pub(super) status: Expression,
    pub(super) reason: Expression,
    pub(super) message: Expression,
}

/// The rules of a kind.
#[derive(Debug)]
pub struct Rules {
    /// By type.
    sorted: Vec<Rule>,
    paths: Paths,
    /// Of the deepest expression.
    depth: usize,
}

/// What a kind's rules give for one resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Derived {
    /// Sorted by type.
    pub conditions: Vec<Condition>,
    /// The rules that could not be computed, in the same order.
    pub failures: Vec<Failure>,
}

impl Rule {
    fn expressions(&self) -> [&Expression; 4] {
        [&self.when, &self.status, &self.reason, &self.message]
    }

    /// The condition that it gives, if any, and what is wrong with it. Fails if it cannot be known.
    fn say(
        &self,
        subject: &Subject<'_>,
        previous: Option<&Condition>,
        context: &mut Context<'_, '_>,
        meter: &Meter,
    ) -> Result<(Option<Condition>, Option<String>), String> {
        let holds = run(&self.when, context, meter, |value| {
            let holds = value.downcast_ref::<CelBool>().map(|b| *b.inner());
            holds.ok_or_else(|| "it is neither true nor false".to_owned())
        });
        let holds = holds.map_err(|error| format!("when: {error}"))?;
        if !holds {
            return Ok((None, None));
        }
        let mut text = |part: &str, expression| {
            let text = run(expression, context, meter, |value| {
                let text = value::shown(&**value).filter(|text| !text.contains('\0'));
                text.ok_or_else(|| "it is no text".to_owned())
            });
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
        // When what is wanted last changed, whenever the report came that led to the condition (domain
        // rule 6.4).
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

impl Rules {
    /// Rules that were checked, of a kind whose resources have these paths.
    pub(in crate::domain) fn new(mut rules: Vec<Rule>, paths: Paths) -> Self {
        rules.sort_by(|a, b| a.kind.cmp(&b.kind));
        let expressions = rules.iter().flat_map(Rule::expressions);
        let depth = expressions.map(|e| depth(&e.metered)).max().unwrap_or(0);
        Self {
            sorted: rules,
            paths,
            depth,
        }
    }

    /// The types of the conditions that they give, sorted.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        self.sorted.iter().map(|rule| rule.kind.as_str())
    }

    /// Computes every derived condition.
    ///
    /// # Guarantees
    ///
    /// Deterministic: neither clock nor order of reports matter. Never panics, and ends: a rule that
    /// costs too much fails. A rule that fails leaves its condition as it was, none if it was never
    /// computed, and touches no other.
    pub fn derive(&self, subject: &Subject<'_>) -> Derived {
        let fits = view::fits(subject);
        if self.depth <= DEPTH_HERE_MAX || fits.is_err() {
            return self.derive_here(subject, &fits);
        }
        let on_own_stack = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            let running = thread.spawn_scoped(scope, || self.derive_here(subject, &Ok(())));
            running.ok()?.join().ok()
        });
        let no_stack = || self.derive_here(subject, &Err("there is no stack for it".to_owned()));
        on_own_stack.unwrap_or_else(no_stack)
    }

    /// The same on this stack. Does not `fit`: every rule fails.
    fn derive_here(&self, subject: &Subject<'_>, fits: &Result<(), String>) -> Derived {
        let mut derived = Derived::default();
        let meter = Meter::default();
        let mut context = Context::with_env(Arc::clone(&LANGUAGE));
        if fits.is_ok() {
            context.add_variable_as_val("statuses", view::statuses(subject));
            context.add_variable_as_val("resource", view::resource(subject, &self.paths));
        }
        for rule in &self.sorted {
            let previous = subject.previous.iter().find(|c| c.kind == rule.kind);
            let said = fits.clone().and_then(|()| {
                meter.reset();
                let said = caught(|| rule.say(subject, previous, &mut context, &meter));
                said.unwrap_or_else(|| Err("the interpreter gave up".to_owned()))
            });
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

thread_local! {
    static IS_EVALUATING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside a rule, whose panics are failures of the rule and no more: for a
/// program that tells of panics.
pub fn is_evaluating() -> bool {
    IS_EVALUATING.get()
}

/// Nothing if it panics.
fn caught<T>(run: impl FnOnce() -> T) -> Option<T> {
    IS_EVALUATING.set(true);
    let result = catch_unwind(AssertUnwindSafe(run));
    IS_EVALUATING.set(false);
    result.ok()
}

/// Evaluates one expression and takes what is wanted of its value.
fn run<T>(
    expression: &Expression,
    context: &mut Context<'_, '_>,
    meter: &Meter,
    take: impl FnOnce(&CowVal<'_, '_>) -> Result<T, String>,
) -> Result<T, String> {
    functions::install(context, meter, Arc::clone(&expression.patterns));
    let value = Cel::resolve_val(&expression.metered, context);
    // An expression may swallow an error: `a || true`.
    if meter.is_exceeded() {
        return Err("it costs too much on this data".to_owned());
    }
    match value {
        Ok(value) => {
            meter
                .weigh(&value)
                .map_err(|_| "it costs too much on this data".to_owned())?;
            take(&value)
        }
        Err(error) => Err(describe(&error, &expression.source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_inside_a_rule_is_told_from_any_other() {
        assert_eq!(caught(is_evaluating), Some(true));
        assert!(!is_evaluating());
        assert_eq!(caught(|| assert!(!is_evaluating(), "within")), None);
        assert!(!is_evaluating());
    }
}
