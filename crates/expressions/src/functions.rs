//! The functions that expressions may call, including our own.

use std::sync::{Arc, LazyLock};

use cel::common::types::{CelBool, CelList, CelMap, CelMapKey, CelNull, CelString};
use cel::common::value::{CowVal, Val};
use cel::{Context, Env, ExecutionError, FunctionContext};
use regex::{Regex, RegexBuilder};

use crate::meter::{Function, MATCHES, Meter};
use crate::value;

/// Smallest and largest automaton of a pattern, in bytes.
const PATTERN_SIZE_MIN: usize = 1 << 10;
const PATTERN_SIZE_MAX: usize = 1 << 20;
/// Automaton bytes per unit when matching one byte of text.
const PATTERN_BYTES_PER_UNIT: usize = 2048;
/// Longest result of `toJson`, in bytes.
const JSON_BYTES_MAX: usize = 1 << 20;

/// The language: the standard one with optional values.
pub(crate) static LANGUAGE: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// Functions that are called as `f(x)`.
#[rustfmt::skip]
pub(crate) const GLOBAL: &[&str] = &[
    "bool", "bytes", "double", "dyn", "duration", "int", "string", "timestamp", "type", "uint", "size", "matches",
    "toJson", "dig",
];

/// Functions that are called as `x.f()`.
#[rustfmt::skip]
pub(crate) const MEMBER: &[&str] = &[
    "size", "contains", "endsWith", "startsWith", "matches", "getDate", "getDayOfMonth", "getDayOfWeek",
    "getDayOfYear", "getFullYear", "getHours", "getMilliseconds", "getMinutes", "getMonth", "getSeconds", "hasValue",
    "or", "orValue", "value",
];

/// Functions of `optional.`.
pub(crate) const OPTIONAL: [&str; 3] = ["of", "none", "ofNonZeroValue"];

/// Names of types, for comparisons with `type(x)`.
pub(crate) const TYPES: [&str; 9] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "uint",
];

/// A compiled pattern of `matches`.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// Cost of matching a kibibyte of text, in units.
    units: usize,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// What to change.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
        // Matching is linear in the text, but takes up to one step per byte and state of the
        // automaton: `^[a-z]+$` takes 2 ns a byte, `(a|b)*a(a|b){200}c` 9 µs. Only the size limit
        // tells how large an automaton is. `tests/it/rule_costs.rs` shows what the price prevents.
        let mut size = PATTERN_SIZE_MIN;
        loop {
            let built = RegexBuilder::new(text)
                .size_limit(size)
                .dfa_size_limit(PATTERN_SIZE_MAX)
                .build();
            match built {
                Ok(regex) => {
                    let units = size * 1024 / PATTERN_BYTES_PER_UNIT;
                    return Ok(Self { regex, units });
                }
                Err(regex::Error::CompiledTooBig(_)) if size < PATTERN_SIZE_MAX => size *= 2,
                Err(regex::Error::CompiledTooBig(_)) => {
                    return Err("has a pattern that grows too large: repeat less in it".to_owned());
                }
                Err(_) => {
                    return Err(
                        "has a pattern that is no regular expression (RE2 syntax)".to_owned()
                    );
                }
            }
        }
    }
}

/// Registers our functions. `patterns` are those in the expression.
pub(crate) fn install(context: &mut Context<'_, '_>, meter: &Meter, patterns: Arc<Vec<Pattern>>) {
    meter.install(context);
    let json_meter = meter.clone();
    let to_json: Function = Box::new(move |call| to_json(call, &json_meter));
    let dig: Function = Box::new(dig);
    let match_meter = meter.clone();
    let matches: Function = Box::new(move |call| matches(call, &patterns, &match_meter));
    for (name, function) in [("toJson", to_json), ("dig", dig), (MATCHES, matches)] {
        // The standard library has no such names.
        let _ = context.add_function(name, function);
    }
}

fn to_json<'c, 'v>(
    call: &mut FunctionContext<'c, 'v>,
    meter: &Meter,
) -> Result<CowVal<'c, 'v>, ExecutionError> {
    let text = call.args.first().and_then(|value| value::json(&**value));
    let Some(text) = text else {
        return Err(call.error("there is no JSON for this value"));
    };
    if text.len() > JSON_BYTES_MAX {
        return Err(call.error("the result is longer than 1 MiB"));
    }
    let text = CowVal::owned(CelString::from(text));
    meter.weigh(&text)?;
    Ok(text)
}

fn matches<'c, 'v>(
    call: &mut FunctionContext<'c, 'v>,
    patterns: &[Pattern],
    meter: &Meter,
) -> Result<CowVal<'c, 'v>, ExecutionError> {
    let [text, pattern] = call.args.as_slice() else {
        return Err(ExecutionError::missing_argument_or_target());
    };
    let pattern = pattern.downcast_ref::<CelString>().and_then(|text| {
        let mut compiled = patterns.iter();
        compiled.find(|pattern| pattern.regex.as_str() == text.inner())
    });
    let (Some(text), Some(pattern)) = (text.downcast_ref::<CelString>(), pattern) else {
        return Err(call.error("only texts can match"));
    };
    let text = text.inner();
    meter.charge(1 + text.len().saturating_mul(pattern.units) / 1024)?;
    Ok(CowVal::owned(CelBool::from(pattern.regex.is_match(text))))
}

/// `dig(target, "a.0.b")`: the value at the path, or `null`.
fn dig<'c, 'v>(call: &mut FunctionContext<'c, 'v>) -> Result<CowVal<'c, 'v>, ExecutionError> {
    let path = call
        .args
        .get(1)
        .and_then(|path| path.downcast_ref::<CelString>());
    let Some(path) = path.map(|path| path.inner().to_owned()) else {
        return Err(call.error("the path must be a text"));
    };
    let target = call.args.swap_remove(0);
    let steps = || {
        path.split('.')
            .map(str::trim)
            .filter(|step| !step.is_empty())
    };
    Ok(match target {
        CowVal::Borrowed(target) => match steps().try_fold(target, |at, step| child(at, step)) {
            Some(found) => CowVal::Borrowed(found),
            None => CowVal::owned(CelNull),
        },
        CowVal::Owned(target) => {
            match steps().try_fold(target.as_ref(), |at, step| child(at, step)) {
                Some(found) => CowVal::Owned(found.clone_as_boxed()),
                None => CowVal::owned(CelNull),
            }
        }
    })
}

fn child<'c, 'v>(at: &'c (dyn Val + 'v), step: &str) -> Option<&'c (dyn Val + 'v)> {
    if let Some(map) = at.downcast_ref::<CelMap>() {
        let key = CelMapKey::from(step.to_owned());
        return map.inner().get(&key).map(AsRef::as_ref);
    }
    let list = at.downcast_ref::<CelList>()?;
    let is_index = step.bytes().all(|b| b.is_ascii_digit());
    let place = step.parse::<usize>().ok().filter(|_| is_index)?;
    list.inner().get(place).map(AsRef::as_ref)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_costs_what_it_makes_of_a_text() {
        let units = |text: &str| Pattern::compile(text).unwrap().units;
        assert_eq!(units("^[a-z]+$"), 512);
        assert!(units("(a|b)*a(a|b){200}c") > 10 * units("(a|b)*a(a|b){2}c"));
        assert!(units(r"\w+") <= 100 * 1024);
    }
}
