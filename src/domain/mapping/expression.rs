//! One expression of a rule: from text to something that can be run without harm.

use std::sync::Arc;

use super::functions::{LANGUAGE, Pattern};
use super::{meter, scan, scope};
use crate::domain::shown;
use cel::common::ast::IdedExpr;

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
        let expression = program.expression();
        let patterns = scope::check(expression)?.into_iter();
        let patterns = patterns.map(Pattern::compile).collect::<Result<_, _>>()?;
        Ok(Self {
            source: source.to_owned(),
            metered: meter::metered(expression.clone()),
            patterns: Arc::new(patterns),
        })
    }
}
