//! Compiles configured rules, and checks them at the start.

use std::collections::BTreeSet;

use hyperfleet_expressions::Expression;

use super::config::{ExpressionConfig, RuleConfig, TYPE_BYTES_MAX};
use super::rules::Rule;
use super::view::VARIABLES;
use crate::aggregation::{LAST_KNOWN_RECONCILED, RECONCILED};
use crate::excerpt;

/// Compiles the rules of a kind. Every error goes to `error`, as the part of a sentence after the name of the kind.
/// `reserved` are the condition types of required adapters.
pub(crate) fn compile(
    configs: &[RuleConfig],
    reserved: &BTreeSet<String>,
    mut error: impl FnMut(String),
) -> Vec<Rule> {
    let mut seen = BTreeSet::new();
    let mut rules = Vec::new();
    for config in configs {
        let kind = &config.kind;
        if let Some(problem) = type_error(kind, reserved) {
            error(problem);
        } else if !seen.insert(kind) {
            error(format!(
                "has the condition \"{kind}\" twice: rename or remove one of the two"
            ));
        }
        rules.extend(compile_one(config, &mut error));
    }
    rules
}

fn type_error(kind: &str, reserved: &BTreeSet<String>) -> Option<String> {
    let is_name = kind.starts_with(|c: char| c.is_ascii_alphabetic())
        && kind
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if kind.is_empty() {
        Some("has a condition without a type: set `type`, for instance to \"Ready\"".to_owned())
    } else if kind.len() > TYPE_BYTES_MAX || !is_name {
        Some(format!(
            "has a condition \"{}\", a type that is not usable: give a letter followed by letters, digits, - or _, {TYPE_BYTES_MAX} at most",
            excerpt(kind)
        ))
    } else if kind == RECONCILED || kind == LAST_KNOWN_RECONCILED {
        Some(format!(
            "has the condition \"{kind}\", which the service itself computes: choose another type"
        ))
    } else if reserved.contains(kind) {
        Some(format!(
            "has the condition \"{kind}\", which stands for a required adapter: choose another type"
        ))
    } else {
        None
    }
}

fn compile_one(config: &RuleConfig, error: &mut impl FnMut(String)) -> Option<Rule> {
    let RuleConfig { kind, when, output } = config;
    let label = excerpt(kind);
    let mut compile = |part: &str, config: &ExpressionConfig| {
        let compiled = Expression::compile(&config.expression, VARIABLES);
        let compiled = compiled.map_err(|problem| {
            error(format!(
                "has the condition \"{label}\", whose {part} {problem}"
            ));
        });
        compiled.ok()
    };
    // All four, so that all their errors are reported.
    let when = compile("when.expression", when);
    let status = compile("output.status.expression", &output.status);
    let reason = compile("output.reason.expression", &output.reason);
    let message = compile("output.message.expression", &output.message);
    Some(Rule {
        kind: kind.clone(),
        when: when?,
        status: status?,
        reason: reason?,
        message: message?,
    })
}
