//! Limits the run-time cost of expressions.
//!
//! The interpreter has no budget. So every compiled expression is rewritten: values that are looped over,
//! copied, joined or compared pass through functions that first add their size to the cost. An expression whose cost
//! exceeds [`UNITS_MAX`] fails. This bounds the time of any expression, for any text and data.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators};
use cel::common::types::{CelDouble, CelInt, CelList, CelMap, CelMapKey};
use cel::common::value::CowVal;
use cel::{Context, ExecutionError, FunctionContext};

use crate::value::{self, Boxed};

/// Most units for all expressions that share a [`Meter`]. A unit is a value that is read or copied, 32 bytes of
/// a text, or a step of a loop.
pub const UNITS_MAX: usize = 100_000;

/// Names that no expression can contain.
const EACH: &str = "@each";
const WEIGHED: &str = "@weighed";
const INDEX: &str = "@index";
const ADDEND: &str = "@addend";
/// `x.matches("…")` with a pattern compiled at the start: the interpreter would compile it each time.
pub(crate) const MATCHES: &str = "@matches";

/// A function that expressions call.
pub(crate) type Function = Box<
    dyn for<'c, 'v> Fn(&mut FunctionContext<'c, 'v>) -> Result<CowVal<'c, 'v>, ExecutionError>
        + Send
        + Sync,
>;

/// Counts used units.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<AtomicUsize>);

impl Meter {
    /// Whether more was used than allowed. The expression may swallow the error of that.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.0.load(Ordering::Relaxed) > UNITS_MAX
    }

    pub(crate) fn charge(&self, units: usize) -> Result<(), ExecutionError> {
        let before = self.0.load(Ordering::Relaxed);
        self.0
            .store(before.saturating_add(units), Ordering::Relaxed);
        if self.is_exceeded() {
            Err(ExecutionError::function_error("meter", "costs too much"))
        } else {
            Ok(())
        }
    }

    /// Charges for a value and everything in it. Stops at the limit, because loops may continue after an error.
    pub(crate) fn weigh(&self, value: &CowVal<'_, '_>) -> Result<(), ExecutionError> {
        let used = self.0.load(Ordering::Relaxed);
        match UNITS_MAX.checked_sub(used) {
            Some(left) => self.charge(value::weight(&**value, left)),
            None => self.charge(0),
        }
    }

    /// Registers the functions that [`metered`] expressions call.
    pub(crate) fn install(&self, context: &mut Context<'_, '_>) {
        let meter = self.clone();
        let weighed: Function = Box::new(move |call| {
            let value = argument(call)?;
            meter.weigh(&value)?;
            Ok(value)
        });
        let meter = self.clone();
        let each: Function = Box::new(move |call| {
            let step = call.args.get(1).and_then(|units| {
                let units = units.downcast_ref::<CelInt>()?;
                usize::try_from(*units.inner()).ok()
            });
            let range = argument(call)?;
            meter.weigh(&range)?;
            let steps = if let Some(list) = range.downcast_ref::<CelList>() {
                list.inner().len()
            } else if let Some(map) = range.downcast_ref::<CelMap>() {
                map.inner().len()
            } else {
                0
            };
            meter.charge(steps.saturating_mul(step.unwrap_or(UNITS_MAX)))?;
            Ok(in_order(range))
        });
        // The interpreter's error for such an index contains a copy of the list.
        let index: Function = Box::new(|call| {
            let index = argument(call)?;
            let number = index.downcast_ref::<CelDouble>().map(|d| *d.inner());
            if number.is_some_and(|number| number.fract() != 0.0) {
                return Err(ExecutionError::function_error("[]", "not a whole number"));
            }
            Ok(index)
        });
        // The interpreter adds the keys of a map to a list, in a random order. CEL has no such sum.
        let addend: Function = Box::new(|call| {
            let addend = argument(call)?;
            if addend.downcast_ref::<CelMap>().is_some() {
                return Err(ExecutionError::function_error("+", "a map cannot be added"));
            }
            Ok(addend)
        });
        let functions = [
            (WEIGHED, weighed),
            (EACH, each),
            (INDEX, index),
            (ADDEND, addend),
        ];
        for (name, function) in functions {
            // The standard library has no such names.
            let _ = context.add_function(name, function);
        }
    }
}

fn argument<'c, 'v>(call: &mut FunctionContext<'c, 'v>) -> Result<CowVal<'c, 'v>, ExecutionError> {
    if call.args.is_empty() {
        return Err(ExecutionError::missing_argument_or_target());
    }
    Ok(call.args.swap_remove(0))
}

/// Maps are looped over by their keys, here always in order: the same input must give the same condition each
/// time.
fn in_order<'c, 'v>(range: CowVal<'c, 'v>) -> CowVal<'c, 'v> {
    let Some(map) = range.downcast_ref::<CelMap>() else {
        return range;
    };
    let mut keys: Vec<_> = map.inner().keys().cloned().collect();
    keys.sort_unstable();
    let keys = keys.into_iter().map(|key| -> Boxed<'v> {
        match key {
            CelMapKey::Bool(key) => Box::new(key),
            CelMapKey::Int(key) => Box::new(key),
            CelMapKey::UInt(key) => Box::new(key),
            CelMapKey::String(key) => Box::new(key),
        }
    });
    CowVal::owned(CelList::from(keys.collect::<Vec<_>>()))
}

/// The same expression, with charges for every part whose cost depends on the data.
pub(crate) fn metered(expression: IdedExpr) -> IdedExpr {
    let IdedExpr { id, expr } = expression;
    let expr = match expr {
        Expr::Literal(_) | Expr::Ident(_) | Expr::Unspecified | Expr::Struct(_) => expr,
        Expr::Select(mut select) => {
            let is_test = select.test;
            *select.operand = operand(*select.operand);
            let select = IdedExpr {
                id,
                expr: Expr::Select(select),
            };
            return if is_test { select } else { weighed(select) };
        }
        Expr::List(mut list) => {
            list.elements = list.elements.into_iter().map(metered_weighed).collect();
            Expr::List(list)
        }
        Expr::Map(mut map) => {
            for entry in &mut map.entries {
                if let EntryExpr::MapEntry(entry) = &mut entry.expr {
                    entry.key = metered_weighed(std::mem::take(&mut entry.key));
                    entry.value = metered_weighed(std::mem::take(&mut entry.value));
                }
            }
            Expr::Map(map)
        }
        Expr::Call(call) => return metered_call(id, call),
        Expr::Comprehension(mut loops) => {
            let step = nodes(&loops.loop_cond) + nodes(&loops.loop_step);
            if !is_empty_list(&loops.iter_range) {
                let range = metered(loops.iter_range);
                let units = LiteralValue::Int(i64::try_from(step).unwrap_or(i64::MAX).into());
                loops.iter_range = call(EACH, vec![range, node(Expr::Literal(units))]);
            }
            if !is_empty_list(&loops.accu_init) {
                loops.accu_init = metered_weighed(loops.accu_init);
            }
            loops.loop_step = metered(loops.loop_step);
            loops.result = metered(loops.result);
            Expr::Comprehension(loops)
        }
    };
    IdedExpr { id, expr }
}

/// `a.b` of `a.b.c` is no value of its own: only the value of the complete path is metered.
fn operand(expression: IdedExpr) -> IdedExpr {
    match expression.expr {
        Expr::Select(mut select) if !select.test => {
            *select.operand = operand(*select.operand);
            IdedExpr {
                id: expression.id,
                expr: Expr::Select(select),
            }
        }
        _ => metered(expression),
    }
}

fn metered_call(id: u64, mut call: CallExpr) -> IdedExpr {
    let name = call.func_name.as_str();
    // These only read booleans, or return their operand unchanged.
    let is_free = [
        operators::CONDITIONAL,
        operators::LOGICAL_AND,
        operators::LOGICAL_OR,
        operators::LOGICAL_NOT,
        operators::NOT_STRICTLY_FALSE,
    ]
    .contains(&name);
    let is_index = name == operators::INDEX || name == operators::OPT_INDEX;
    // `@result + [x]` is done in place, and recognised by its shape.
    let appends = name == operators::ADD
        && matches!(call.args.first(), Some(IdedExpr { expr: Expr::Ident(name), .. }) if name.starts_with('@'));
    let picks = is_index || name == operators::OPT_SELECT;
    let part = if is_free || appends || picks {
        metered
    } else {
        metered_weighed
    };
    call.args = call.args.into_iter().map(part).collect();
    call.target = call.target.map(|target| Box::new(part(*target)));
    let check = match name {
        operators::ADD if !appends => Some(ADDEND),
        _ => is_index.then_some(INDEX),
    };
    if let Some(check) = check
        && let Some(last) = call.args.pop()
    {
        call.args.push(self::call(check, vec![last]));
    }
    if call.func_name == "matches" {
        call.func_name = MATCHES.to_owned();
        let text = call.target.take().map(|target| *target);
        call.args.splice(0..0, text);
    }
    let call = IdedExpr {
        id,
        expr: Expr::Call(call),
    };
    if picks { weighed(call) } else { call }
}

fn metered_weighed(expression: IdedExpr) -> IdedExpr {
    weighed(metered(expression))
}

fn weighed(expression: IdedExpr) -> IdedExpr {
    match &expression.expr {
        Expr::Literal(_) => expression,
        // The namespace of `optional.of`, not a value.
        Expr::Ident(name) if name == "optional" => expression,
        Expr::Call(call) if call.func_name == WEIGHED => expression,
        _ => call(WEIGHED, vec![expression]),
    }
}

fn call(function: &str, args: Vec<IdedExpr>) -> IdedExpr {
    node(Expr::Call(CallExpr {
        func_name: function.to_owned(),
        target: None,
        args,
    }))
}

fn node(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn is_empty_list(expression: &IdedExpr) -> bool {
    matches!(&expression.expr, Expr::List(list) if list.elements.is_empty())
}

/// How many parts an expression has.
pub(crate) fn nodes(expression: &IdedExpr) -> usize {
    1 + parts(expression).into_iter().map(nodes).sum::<usize>()
}

/// The parts of an expression, one level down.
pub(crate) fn parts(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Select(select) => vec![&select.operand],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Call(call) => call
            .target
            .as_deref()
            .into_iter()
            .chain(&call.args)
            .collect(),
        Expr::Map(map) => entries(&map.entries),
        Expr::Struct(fields) => entries(&fields.entries),
        Expr::Comprehension(loops) => vec![
            &loops.iter_range,
            &loops.accu_init,
            &loops.loop_cond,
            &loops.loop_step,
            &loops.result,
        ],
    }
}

fn entries(entries: &[cel::common::ast::IdedEntryExpr]) -> Vec<&IdedExpr> {
    let parts = entries.iter().flat_map(|entry| match &entry.expr {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    });
    parts.collect()
}
