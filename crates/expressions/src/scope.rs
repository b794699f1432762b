//! Checks the tree of an expression: its depth, names and functions. The interpreter would detect errors only at run
//! time.

use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, IdedExpr, LiteralValue, operators};

use crate::excerpt::excerpt;
use crate::functions;
use crate::meter::parts;

/// Deepest expression, with loops expanded.
pub const DEPTH_MAX: usize = 48;

/// Checks a parsed expression that may name these variables. Returns its patterns, or the first error with what
/// to change.
pub(crate) fn check<'e>(
    expression: &'e IdedExpr,
    variables: &[&'e str],
) -> Result<Vec<&'e str>, String> {
    if depth(expression) > DEPTH_MAX {
        return Err(format!(
            "is nested deeper than {DEPTH_MAX} levels: simplify it"
        ));
    }
    let mut walk = Walk {
        variables,
        names: variables.to_vec(),
        patterns: Vec::new(),
    };
    walk.expression(expression)?;
    Ok(walk.patterns)
}

/// How deep an expression is.
pub(crate) fn depth(expression: &IdedExpr) -> usize {
    1 + parts(expression).into_iter().map(depth).max().unwrap_or(0)
}

struct Walk<'a, 'e> {
    variables: &'a [&'e str],
    /// The variables, including the variables of enclosing loops.
    names: Vec<&'e str>,
    patterns: Vec<&'e str>,
}

impl<'e> Walk<'_, 'e> {
    fn expression(&mut self, expression: &'e IdedExpr) -> Result<(), String> {
        match &expression.expr {
            Expr::Ident(name) => self.name(name),
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(loops) => self.comprehension(loops),
            Expr::Struct(_) | Expr::Unspecified => {
                Err("makes a value of a type that is not known: use a map, {\"a\": 1}".to_owned())
            }
            _ => self.all(parts(expression)),
        }
    }

    fn all(&mut self, expressions: Vec<&'e IdedExpr>) -> Result<(), String> {
        expressions
            .into_iter()
            .try_for_each(|expression| self.expression(expression))
    }

    fn name(&self, name: &str) -> Result<(), String> {
        if self.names.contains(&name) || functions::TYPES.contains(&name) {
            return Ok(());
        }
        Err(format!(
            "names \"{}\", which is not there: rules see {}, and loops their own variable",
            excerpt(name),
            enumerated(self.variables)
        ))
    }

    fn call(&mut self, call: &'e CallExpr) -> Result<(), String> {
        let CallExpr {
            func_name: name,
            target,
            args,
        } = call;
        if is_operator(name) {
            return self.all(args.iter().collect());
        }
        let is_known = match target.as_deref() {
            None => functions::GLOBAL.contains(&name.as_str()),
            Some(target) if is_optional(target) => functions::OPTIONAL.contains(&name.as_str()),
            Some(target) => {
                self.expression(target)?;
                functions::MEMBER.contains(&name.as_str())
            }
        };
        if !is_known {
            return Err(format!(
                "calls \"{}\" in a way that is not known: see docs/guides/derived-conditions.md for the functions",
                excerpt(name)
            ));
        }
        if name == "matches" {
            let pattern = args.last().map(|pattern| &pattern.expr);
            let Some(Expr::Literal(LiteralValue::String(pattern))) = pattern else {
                return Err(
                    "calls \"matches\" with a pattern that is not a text in quotes: write it out"
                        .to_owned(),
                );
            };
            self.patterns.push(pattern.inner());
        }
        self.all(args.iter().collect())
    }

    fn comprehension(&mut self, loops: &'e ComprehensionExpr) -> Result<(), String> {
        self.expression(&loops.iter_range)?;
        self.expression(&loops.accu_init)?;
        let outer = self.names.len();
        self.names.extend([&*loops.iter_var, &*loops.accu_var]);
        let inner = self.all(vec![&loops.loop_cond, &loops.loop_step, &loops.result]);
        self.names.truncate(outer);
        inner
    }
}

/// `a`, `b` and `c`.
fn enumerated(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        None => "no variable".to_owned(),
        Some((only, [])) => only.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

fn is_optional(target: &IdedExpr) -> bool {
    matches!(&target.expr, Expr::Ident(name) if name == "optional")
}

/// Operators have signs as names. Other internal functions of the interpreter begin with `@`.
fn is_operator(name: &str) -> bool {
    let is_sign = |c: char| c.is_ascii_punctuation() && !matches!(c, '_' | '.');
    if name.starts_with('@') {
        return [operators::IN, operators::NOT_STRICTLY_FALSE].contains(&name);
    }
    name.contains(is_sign)
}
