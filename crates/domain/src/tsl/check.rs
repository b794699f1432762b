//! Converts an expression to a filter: checks its fields, and the tests of each.

use chrono::{DateTime, NaiveDate, Utc};

use super::expression::{Comparison, Expression, UNSUPPORTED};
use super::field::{ConditionPart, Field, Property, Type, Value};
use super::filter::{Filter, Predicate, Test};
use super::lexer::date_length;
use super::number::Number;
use super::{PATTERN_BYTES_MAX, SPEC_VALUES_MAX, SearchError, TESTS_MAX};
use crate::{ConditionStatus, excerpt, moment};

/// The filter of an expression, or of its negation.
pub(super) fn filter(expression: &Expression, negated: bool) -> Result<Filter, SearchError> {
    let parts = |parts: &[Expression]| -> Result<Vec<_>, SearchError> {
        parts.iter().map(|part| filter(part, negated)).collect()
    };
    match expression {
        Expression::Not(inner) => filter(inner, !negated),
        // The negation of «all» is «any not».
        Expression::And(all) if negated => Ok(Filter::Any(parts(all)?)),
        Expression::And(all) => Ok(Filter::All(parts(all)?)),
        Expression::Or(any) if negated => Ok(Filter::All(parts(any)?)),
        Expression::Or(any) => Ok(Filter::Any(parts(any)?)),
        _ => {
            let (field, predicate) = test(expression)?;
            Ok(Filter::Test(Test {
                field,
                predicate,
                negated,
            }))
        }
    }
}

/// Limits the work of a filter.
pub(super) fn limits(filter: &Filter) -> Result<(), SearchError> {
    let tests = filter.tests();
    let fields = tests.iter().flat_map(|test| test.fields());
    if tests.len() > TESTS_MAX {
        return Err(SearchError::meaning(format!(
            "search has more than {TESTS_MAX} tests"
        )));
    }
    if fields.filter(|f| matches!(f, Field::Spec(_))).count() > SPEC_VALUES_MAX {
        let message = format!("search looks at more than {SPEC_VALUES_MAX} values of specs");
        return Err(SearchError::meaning(message));
    }
    Ok(())
}

fn test(expression: &Expression) -> Result<(Field, Predicate), SearchError> {
    match expression {
        Expression::Compare(left, comparison, right) => compare(left, *comparison, right),
        Expression::In(subject, list) => {
            let field = field(subject)?;
            let Expression::List(items) = &**list else {
                return Err(SearchError::meaning("expected array on right side of IN"));
            };
            let literals: Vec<_> = items.iter().map(literal).collect::<Result<_, _>>()?;
            let values = values(&field, &literals)?;
            Ok((field, Predicate::In(values)))
        }
        Expression::Between(subject, low, high) => between(field(subject)?, low, high),
        Expression::Like {
            subject,
            pattern,
            ignores_case,
        } => {
            let field = field(subject)?;
            let pattern = pattern_for(&field, literal(pattern)?)?;
            let ignores_case = *ignores_case;
            Ok((
                field,
                Predicate::Like {
                    pattern,
                    ignores_case,
                },
            ))
        }
        Expression::IsNull(subject) => Ok((field(subject)?, Predicate::IsNull)),
        other => Err(no_comparison(other)),
    }
}

fn compare(
    left: &Expression,
    comparison: Comparison,
    right: &Expression,
) -> Result<(Field, Predicate), SearchError> {
    match (left, right) {
        (Expression::Name(left), Expression::Name(right)) => fields(
            Field::parse(left)?,
            left,
            comparison,
            Field::parse(right)?,
            right,
        ),
        (Expression::Name(name), value) => with_literal(name, comparison, literal(value)?),
        (value, Expression::Name(name)) => {
            with_literal(name, comparison.mirrored(), literal(value)?)
        }
        (left, right) => {
            literal(left)?;
            literal(right)?;
            Err(SearchError::meaning(
                "a comparison needs a field on one side",
            ))
        }
    }
}

fn with_literal(
    name: &str,
    comparison: Comparison,
    literal: Literal<'_>,
) -> Result<(Field, Predicate), SearchError> {
    let field = Field::parse(name)?;
    check_order(&field, comparison)?;
    let value = value(&field, &literal)?;
    Ok((field, Predicate::Compares(comparison, value)))
}

/// Two fields of one type.
fn fields(
    left: Field,
    left_name: &str,
    comparison: Comparison,
    right: Field,
    right_name: &str,
) -> Result<(Field, Predicate), SearchError> {
    check_order(&left, comparison)?;
    check_order(&right, comparison)?;
    if left.value_type() != right.value_type() {
        for field in [&left, &right] {
            if let Field::Property(property) = field
                && let Some(error) = unfit(*property)
            {
                return Err(error);
            }
        }
        let message = format!("fields '{left_name}' and '{right_name}' cannot be compared");
        return Err(SearchError::meaning(message));
    }
    Ok((left, Predicate::ComparesWith(comparison, right)))
}

/// Statuses have no order.
fn check_order(field: &Field, comparison: Comparison) -> Result<(), SearchError> {
    match field {
        Field::Condition(_, ConditionPart::Status) if comparison.orders() => {
            Err(SearchError::meaning(
                "only equality operator (=) is supported for condition status queries",
            ))
        }
        _ => Ok(()),
    }
}

fn between(
    field: Field,
    low: &Expression,
    high: &Expression,
) -> Result<(Field, Predicate), SearchError> {
    if let Field::Condition(_, ConditionPart::Status) = field {
        return Err(SearchError::meaning(
            "BETWEEN is not supported for condition queries; use comparison operators (=, !=, <, <=, >, >=)",
        ));
    }
    let bounds = values(&field, &[literal(low)?, literal(high)?])?;
    let [low, high] = <[Value; 2]>::try_from(bounds)
        .unwrap_or_else(|_| unreachable!("each literal gives one value"));
    Ok((field, Predicate::Between(low, high)))
}

fn pattern_for(field: &Field, literal: Literal<'_>) -> Result<String, SearchError> {
    match field {
        Field::Property(property) => {
            if let Some(error) = unfit(*property) {
                return Err(error);
            }
        }
        Field::Condition(_, part) if *part != ConditionPart::Status => {
            return Err(SearchError::meaning(
                "LIKE/ILIKE is not supported for condition queries; use comparison operators (=, !=, <, <=, >, >=)",
            ));
        }
        Field::Label(_) | Field::Spec(_) | Field::Condition(..) => {}
    }
    let pattern = literal.text();
    if pattern.len() > PATTERN_BYTES_MAX {
        let message = format!("a pattern must have at most {PATTERN_BYTES_MAX} bytes");
        return Err(SearchError::meaning(message));
    }
    let escapes = pattern.chars().rev().take_while(|c| *c == '\\').count();
    if escapes % 2 == 1 {
        return Err(SearchError::meaning(
            "a pattern must not end with an escape character",
        ));
    }
    Ok(pattern)
}

/// The field to the left of `in` and the like.
fn field(expression: &Expression) -> Result<Field, SearchError> {
    match expression {
        Expression::Name(name) => Field::parse(name),
        other => {
            literal(other)?;
            Err(SearchError::meaning(
                "a comparison needs a field on its left side",
            ))
        }
    }
}

/// A value as written.
#[derive(Debug, Clone, Copy)]
enum Literal<'a> {
    Text(&'a str),
    Number(&'a Number),
    Boolean(bool),
}

impl Literal<'_> {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text.to_owned(),
            Self::Number(number) => number.as_str().to_owned(),
            Self::Boolean(value) => value.to_string(),
        }
    }
}

fn literal(expression: &Expression) -> Result<Literal<'_>, SearchError> {
    match expression {
        Expression::Text(text) => Ok(Literal::Text(text)),
        Expression::Number(number) => Ok(Literal::Number(number)),
        Expression::Boolean(value) => Ok(Literal::Boolean(*value)),
        Expression::Unsupported(..) => Err(no_comparison(expression)),
        _ => Err(SearchError::meaning(
            "a field can be compared with a text, a number, true or false",
        )),
    }
}

/// The error of an expression that is not a comparison.
fn no_comparison(expression: &Expression) -> SearchError {
    match expression {
        Expression::Unsupported(operator, _) => {
            let named = UNSUPPORTED.iter().find(|(sign, _)| sign == operator);
            let code = named.map_or("", |(_, code)| code);
            SearchError::meaning(format!("unsupported comparison operator: {code}"))
        }
        other => SearchError::meaning(format!(
            "expected a comparison, such as name = 'x', found: {}",
            excerpt(&source_text(other))
        )),
    }
}

/// A name, a literal or a list as written.
fn source_text(expression: &Expression) -> String {
    match expression {
        Expression::Name(name) => name.clone(),
        Expression::Text(text) => quoted(text),
        Expression::Number(number) => number.as_str().to_owned(),
        Expression::Boolean(value) => value.to_string(),
        Expression::List(items) => {
            let items: Vec<_> = items.iter().map(source_text).collect();
            format!("[{}]", items.join(", "))
        }
        _ => "…".to_owned(),
    }
}

pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', r"\\").replace('\'', r"\'"))
}

/// The values of one predicate, all of one type.
fn values(field: &Field, literals: &[Literal<'_>]) -> Result<Vec<Value>, SearchError> {
    let are_numbers = literals.iter().all(|l| matches!(l, Literal::Number(_)));
    let value = |literal: &Literal<'_>| match field {
        Field::Spec(_) if !are_numbers => Ok(Value::Text(literal.text())),
        _ => value(field, literal),
    };
    literals.iter().map(value).collect()
}

/// A value that a field can be compared with.
fn value(field: &Field, literal: &Literal<'_>) -> Result<Value, SearchError> {
    match field {
        Field::Property(property) => of_property(*property, *literal),
        Field::Label(_) => Ok(Value::Text(literal.text())),
        Field::Spec(_) => Ok(match literal {
            Literal::Number(number) => Value::Number((*number).clone()),
            other => Value::Text(other.text()),
        }),
        Field::Condition(_, part) => of_condition(*part, *literal),
    }
}

fn of_property(property: Property, literal: Literal<'_>) -> Result<Value, SearchError> {
    let Some(unfit) = unfit(property) else {
        return Ok(Value::Text(literal.text()));
    };
    let fit = match (Field::Property(property).value_type(), literal) {
        (Type::Integer, Literal::Number(number)) if number.is_integer() => {
            return unsigned(property, number);
        }
        (Type::Time, Literal::Text(text)) => moment::parse(text)
            .or_else(|| midnight(text))
            .map(Value::Time),
        _ => None,
    };
    fit.ok_or(unfit)
}

fn unsigned(property: Property, number: &Number) -> Result<Value, SearchError> {
    let name = property.into_str();
    // As in the older service, a sign is not part of a literal.
    if number.as_str().starts_with('-') {
        let message = format!("field '{name}' expects an integer without a sign");
        return Err(SearchError::meaning(message));
    }
    let out_of_range = || {
        let number = number.as_str();
        let message = format!("value {number} is out of 64-bit integer range for field '{name}'");
        SearchError::meaning(message)
    };
    number.as_i64().map(Value::Integer).ok_or_else(out_of_range)
}

fn of_condition(part: ConditionPart, literal: Literal<'_>) -> Result<Value, SearchError> {
    match part {
        ConditionPart::Status => {
            let text = literal.text();
            if text.parse::<ConditionStatus>().is_ok() {
                return Ok(Value::Text(text));
            }
            Err(SearchError::meaning(format!(
                "condition status '{}' is invalid: must be True, False, or Unknown",
                excerpt(&text)
            )))
        }
        ConditionPart::LastUpdatedTime | ConditionPart::LastTransitionTime => match literal {
            Literal::Text(text) => moment::parse(text).map(Value::Time),
            _ => None,
        }
        .ok_or_else(|| {
            SearchError::meaning(
                "invalid timestamp for condition subfield: expected RFC3339 format (e.g., 2026-01-01T00:00:00Z)",
            )
        }),
        ConditionPart::ObservedGeneration => observed_generation(literal),
    }
}

fn observed_generation(literal: Literal<'_>) -> Result<Value, SearchError> {
    const FIELD: &str = "condition subfield 'observed_generation'";
    let got = match literal {
        Literal::Number(number) if number.is_integer() => {
            let integer = number.as_i64().and_then(|n| i32::try_from(n).ok());
            return match integer {
                Some(integer) => Ok(Value::Integer(integer.into())),
                None => Err(SearchError::meaning(format!(
                    "value {number} is out of 32-bit integer range for {FIELD}"
                ))),
            };
        }
        Literal::Number(number) => number.to_string(),
        other => excerpt(&other.text()),
    };
    let message = format!("expected integer value for {FIELD}, got {got}");
    Err(SearchError::meaning(message))
}

/// The error of a property that lacks the requested part.
fn unfit(property: Property) -> Option<SearchError> {
    let name = property.into_str();
    match Field::Property(property).value_type() {
        Type::Text => None,
        Type::Integer | Type::Number => Some(SearchError::meaning(format!(
            "field '{name}' expects an integer"
        ))),
        Type::Time => Some(SearchError::meaning(format!(
            "field '{name}' expects an RFC3339 timestamp (e.g. 2026-01-01T00:00:00Z)"
        ))),
    }
}

/// Of `2026-01-01`.
const DATE_LENGTH: usize = 10;

/// The start of a day, in UTC.
fn midnight(text: &str) -> Option<DateTime<Utc>> {
    // `parse_from_str` also accepts blanks, signs and fewer digits.
    if text.len() != DATE_LENGTH || date_length(text) != Some(DATE_LENGTH) {
        return None;
    }
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
    Some(day.and_hms_opt(0, 0, 0)?.and_utc())
}
