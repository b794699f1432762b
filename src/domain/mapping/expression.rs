//! One expression of a rule: from text to something that can be run without harm.

use std::sync::Arc;

use super::functions::{LANGUAGE, MATCHES, Pattern};
use super::{meter, scan, scope};
use crate::domain::shown;
use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};

/// Enough for any text that [`scan`] lets through, several times over, in a debug build too.
const PARSER_STACK_BYTES: usize = 64 << 20;

/// An expression that was checked.
#[derive(Debug)]
pub(super) struct Expression {
    /// As it was configured.
    pub(super) source: String,
    /// Charging for what it does ([`meter::metered`]).
    pub(super) metered: IdedExpr,
    /// The patterns that it matches texts with.
    pub(super) patterns: Arc<Vec<Pattern>>,
}

impl Expression {
    /// Checks an expression from the configuration.
    ///
    /// # Errors
    ///
    /// The first fault, with what to change.
    pub(super) fn compile(source: &str) -> Result<Self, String> {
        scan::scan(source)?;
        let source = source.to_owned();
        // The parser is recursive: it gets a stack that it cannot use up.
        let compiling = std::thread::Builder::new()
            .stack_size(PARSER_STACK_BYTES)
            .spawn(move || Self::compile_here(&source));
        match compiling.map(std::thread::JoinHandle::join) {
            Ok(Ok(compiled)) => compiled,
            Ok(Err(_)) | Err(_) => Err("cannot be read: simplify it".to_owned()),
        }
    }

    fn compile_here(source: &str) -> Result<Self, String> {
        let program = LANGUAGE.compile(source).map_err(|errors| {
            let said = errors.to_string();
            let first = said.lines().next().unwrap_or_default();
            let first = first.trim_start_matches("ERROR: <input>:");
            format!("is no CEL expression (line:column: what) {}", shown(first))
        })?;
        let mut expression = program.expression().clone();
        scope::check(&expression)?;
        let mut patterns = Vec::new();
        keep_patterns(&mut expression, &mut patterns)?;
        Ok(Self {
            source: source.to_owned(),
            metered: meter::metered(expression),
            patterns: Arc::new(patterns),
        })
    }
}

/// Compiles the patterns of an expression and lets it name them by their place.
fn keep_patterns(expression: &mut IdedExpr, patterns: &mut Vec<Pattern>) -> Result<(), String> {
    match &mut expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) | Expr::Struct(_) => Ok(()),
        Expr::Select(select) => keep_patterns(&mut select.operand, patterns),
        Expr::List(list) => keep_all(&mut list.elements, patterns),
        Expr::Map(map) => map.entries.iter_mut().try_for_each(|entry| {
            let EntryExpr::MapEntry(entry) = &mut entry.expr else {
                return Ok(());
            };
            keep_patterns(&mut entry.key, patterns)?;
            keep_patterns(&mut entry.value, patterns)
        }),
        Expr::Comprehension(loops) => {
            keep_patterns(&mut loops.iter_range, patterns)?;
            keep_patterns(&mut loops.accu_init, patterns)?;
            keep_patterns(&mut loops.loop_step, patterns)?;
            keep_patterns(&mut loops.result, patterns)
        }
        Expr::Call(call) => {
            if let Some(target) = &mut call.target {
                keep_patterns(target, patterns)?;
            }
            keep_all(&mut call.args, patterns)?;
            if call.func_name != "matches" {
                return Ok(());
            }
            call.func_name = MATCHES.to_owned();
            if let Some(target) = call.target.take() {
                call.args.insert(0, *target);
            }
            if let Some(IdedExpr {
                expr: Expr::Literal(literal),
                ..
            }) = call.args.last_mut()
                && let LiteralValue::String(text) = literal
            {
                let pattern = Pattern::compile(text.inner())?;
                let place = i64::try_from(patterns.len()).unwrap_or(i64::MAX);
                patterns.push(pattern);
                *literal = LiteralValue::Int(place.into());
            }
            Ok(())
        }
    }
}

fn keep_all(expressions: &mut [IdedExpr], patterns: &mut Vec<Pattern>) -> Result<(), String> {
    expressions
        .iter_mut()
        .try_for_each(|expression| keep_patterns(expression, patterns))
}
