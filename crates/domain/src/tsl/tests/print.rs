//! Prints expressions with the fewest parentheses: a printed one is nested no deeper than the parsed one, so that it
//! can be parsed again.

use std::fmt;

use super::check::quoted;
use super::expression::Expression;

/// How tightly something binds. A part that binds looser than its place requires is in parentheses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Binding {
    Or,
    And,
    /// A comparison, or `not` before one.
    Test,
    Sum,
    Product,
    Unary,
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::And(parts) => joined(f, parts, " and ", Binding::Test),
            Self::Or(parts) => joined(f, parts, " or ", Binding::And),
            Self::Not(inner) if has_negated_form(inner) => comparison(f, inner, "not "),
            Self::Not(inner) => {
                f.write_str("not ")?;
                part(f, inner, Binding::Test)
            }
            Self::List(items) => {
                f.write_str("[")?;
                joined(f, items, ", ", Binding::Sum)?;
                f.write_str("]")
            }
            Self::Name(name) => f.write_str(name),
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::Number(number) => f.write_str(number.as_str()),
            Self::Boolean(value) => write!(f, "{value}"),
            Self::Unsupported(operator, operands) => unsupported(f, operator, operands),
            _ => comparison(f, self, ""),
        }
    }
}

/// A comparison; `not` is a word before its operator, or nothing.
fn comparison(f: &mut fmt::Formatter<'_>, expression: &Expression, not: &str) -> fmt::Result {
    let operand = |f: &mut fmt::Formatter<'_>, inner| part(f, inner, Binding::Sum);
    match expression {
        Expression::Compare(left, comparison, right) => {
            operand(f, left)?;
            write!(f, " {} ", comparison.into_str())?;
            operand(f, right)
        }
        Expression::In(subject, list) => {
            operand(f, subject)?;
            write!(f, " {not}in ")?;
            operand(f, list)
        }
        Expression::Between(subject, low, high) => {
            operand(f, subject)?;
            write!(f, " {not}between ")?;
            operand(f, low)?;
            f.write_str(" and ")?;
            operand(f, high)
        }
        Expression::Like {
            subject,
            pattern,
            ignores_case,
        } => {
            operand(f, subject)?;
            let word = if *ignores_case { "ilike" } else { "like" };
            write!(f, " {not}{word} ")?;
            operand(f, pattern)
        }
        Expression::IsNull(subject) => {
            operand(f, subject)?;
            write!(f, " is {not}null")
        }
        other => write!(f, "{other}"),
    }
}

/// Whether it has a form with `not` inside, which is nested less than `not` before it.
fn has_negated_form(expression: &Expression) -> bool {
    matches!(
        expression,
        Expression::In(..)
            | Expression::Between(..)
            | Expression::Like { .. }
            | Expression::IsNull(_)
    )
}

fn unsupported(f: &mut fmt::Formatter<'_>, operator: &str, operands: &[Expression]) -> fmt::Result {
    let place = match binding_of(operator, operands) {
        Binding::Sum => Binding::Product,
        Binding::Product | Binding::Unary => Binding::Unary,
        _ => Binding::Sum,
    };
    if let [operand] = operands {
        write!(f, "{operator} ")?;
        return part(f, operand, place);
    }
    joined(f, operands, &format!(" {operator} "), place)
}

fn binding(expression: &Expression) -> Binding {
    match expression {
        Expression::Or(_) => Binding::Or,
        Expression::And(_) => Binding::And,
        Expression::Unsupported(operator, operands) => binding_of(operator, operands),
        // What is never in need of parentheses binds as tightly as anything does.
        Expression::List(_)
        | Expression::Name(_)
        | Expression::Text(_)
        | Expression::Number(_)
        | Expression::Boolean(_) => Binding::Unary,
        Expression::Not(_)
        | Expression::Compare(..)
        | Expression::In(..)
        | Expression::Between(..)
        | Expression::Like { .. }
        | Expression::IsNull(_) => Binding::Test,
    }
}

fn binding_of(operator: &str, operands: &[Expression]) -> Binding {
    match operator {
        "~=" | "~!" => Binding::Test,
        _ if operands.len() == 1 => Binding::Unary,
        "+" | "-" => Binding::Sum,
        _ => Binding::Product,
    }
}

fn joined(
    f: &mut fmt::Formatter<'_>,
    parts: &[Expression],
    separator: &str,
    place: Binding,
) -> fmt::Result {
    for (number, inner) in parts.iter().enumerate() {
        f.write_str(if number == 0 { "" } else { separator })?;
        part(f, inner, place)?;
    }
    Ok(())
}

/// What stands where something is expected that binds at least so tightly.
fn part(f: &mut fmt::Formatter<'_>, inner: &Expression, place: Binding) -> fmt::Result {
    if binding(inner) < place {
        write!(f, "({inner})")
    } else {
        write!(f, "{inner}")
    }
}
