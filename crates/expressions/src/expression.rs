//! A compiled expression.

use std::sync::Arc;

use cel::common::ast::IdedExpr;

use crate::excerpt::excerpt;
use crate::functions::{LANGUAGE, Pattern};
use crate::{meter, scope};

/// Longest expression, in bytes. A longer one could exhaust the stack of the recursive parser, which ends the process.
pub const SOURCE_BYTES_MAX: usize = 2048;
/// Enough for any text of that length, also in a debug build.
const PARSER_STACK_BYTES: usize = 64 << 20;
/// How deep an expression may be to run on the caller's stack; ordinary ones are half as deep. The interpreter
/// is recursive and uses up to 40 KiB per level in a debug build.
const DEPTH_HERE_MAX: usize = 16;

#[derive(Debug)]
pub struct Expression {
    /// As it was configured.
    pub(crate) source: String,
    /// The tree with charges for its work ([`meter::metered`]).
    pub(crate) metered: IdedExpr,
    /// Its compiled patterns.
    pub(crate) patterns: Arc<Vec<Pattern>>,
    is_deep: bool,
}

impl Expression {
    /// Compiles an expression that may name these variables.
    ///
    /// # Errors
    /// The first error, with what to change, as the rest of a sentence after the expression's name.
    pub fn compile(source: &str, variables: &'static [&'static str]) -> Result<Self, String> {
        if source.trim().is_empty() {
            return Err("is empty: write an expression, for instance: true".to_owned());
        }
        if source.len() > SOURCE_BYTES_MAX {
            let length = source.len();
            return Err(format!("has {length} bytes: {SOURCE_BYTES_MAX} at most"));
        }
        let source = source.to_owned();
        // The parser is recursive: it gets a stack that it cannot exhaust.
        let compiling = std::thread::Builder::new()
            .stack_size(PARSER_STACK_BYTES)
            .spawn(move || Self::compile_here(&source, variables));
        match compiling.map(std::thread::JoinHandle::join) {
            Ok(Ok(compiled)) => compiled,
            Ok(Err(_)) | Err(_) => Err("cannot be read: simplify it".to_owned()),
        }
    }

    fn compile_here(source: &str, variables: &[&str]) -> Result<Self, String> {
        let program = LANGUAGE.compile(source).map_err(|errors| {
            let said = errors.to_string();
            let first = said.lines().next().unwrap_or_default();
            let first = first.trim_start_matches("ERROR: <input>:");
            format!(
                "is no CEL expression (line:column: what) {}",
                excerpt(first)
            )
        })?;
        let expression = program.expression();
        let patterns = scope::check(expression, variables)?.into_iter();
        let patterns = patterns.map(Pattern::compile).collect::<Result<_, _>>()?;
        let metered = meter::metered(expression.clone());
        Ok(Self {
            source: source.to_owned(),
            is_deep: scope::depth(&metered) > DEPTH_HERE_MAX,
            metered,
            patterns: Arc::new(patterns),
        })
    }

    /// Whether it runs on a stack of its own ([`on_deep_stack`](crate::on_deep_stack)).
    pub fn is_deep(&self) -> bool {
        self.is_deep
    }
}
