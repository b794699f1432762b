//! A simple model of searches, which checks one resource after the other, as responses contain them.

use std::cmp::Ordering;

use chrono::{DateTime, Utc};
use hyperfleet_domain::tsl::{
    Comparison, ConditionPart, Field, Filter, Predicate, Property, Test, Type, Value,
};
use serde_json::Value as Json;

/// What a resource has where a field looks for it.
enum Found {
    Text(String),
    Number(f64),
    Time(DateTime<Utc>),
}

/// Whether a resource matches.
pub(super) fn matches(resource: &Json, filter: &Filter) -> bool {
    match filter {
        Filter::All(parts) => parts.iter().all(|part| matches(resource, part)),
        Filter::Any(parts) => parts.iter().any(|part| matches(resource, part)),
        Filter::Test(test) => passes(resource, test),
    }
}

fn passes(resource: &Json, test: &Test) -> bool {
    let sort = test.value_type();
    let Some(found) = find(resource, &test.field, sort) else {
        return matches!(test.predicate, Predicate::IsNull) && !test.negated;
    };
    let holds = match &test.predicate {
        Predicate::IsNull => Some(false),
        Predicate::Compares(comparison, value) => Some(compares(&found, *comparison, value)),
        Predicate::ComparesWith(comparison, other) => {
            let other = find(resource, other, sort);
            other.map(|other| holds(*comparison, order(&found, &other)))
        }
        Predicate::In(values) => Some(
            values
                .iter()
                .any(|value| compares(&found, Comparison::Equal, value)),
        ),
        Predicate::Between(low, high) => Some(
            compares(&found, Comparison::GreaterOrEqual, low)
                && compares(&found, Comparison::LessOrEqual, high),
        ),
        Predicate::Like {
            pattern,
            ignores_case,
        } => match found {
            Found::Text(found) if *ignores_case => {
                Some(is_like(&found.to_lowercase(), &pattern.to_lowercase()))
            }
            Found::Text(found) => Some(is_like(&found, pattern)),
            Found::Number(_) | Found::Time(_) => panic!("only texts have patterns"),
        },
    };
    holds.is_some_and(|holds| holds != test.negated)
}

fn find(resource: &Json, field: &Field, sort: Type) -> Option<Found> {
    let value = match field {
        Field::Property(property) => property_of(resource, *property),
        Field::Label(key) => resource["labels"].get(key),
        Field::Spec(path) => member(&resource["spec"], path),
        Field::Condition(kind, part) => {
            let conditions = resource["status"]["conditions"].as_array()?;
            let condition = conditions.iter().find(|c| c["type"] == **kind)?;
            condition.get(match part {
                ConditionPart::Status => "status",
                ConditionPart::LastUpdatedTime => "last_updated_time",
                ConditionPart::LastTransitionTime => "last_transition_time",
                ConditionPart::ObservedGeneration => "observed_generation",
            })
        }
    };
    let text = match value? {
        Json::Null => return None,
        Json::String(text) => text.clone(),
        other => other.to_string(),
    };
    match sort {
        Type::Text => Some(Found::Text(text)),
        Type::Integer | Type::Number => text.parse().ok().map(Found::Number),
        Type::Time => Some(Found::Time(text.parse().unwrap())),
    }
}

fn property_of(resource: &Json, property: Property) -> Option<&Json> {
    match property {
        Property::OwnerId => resource.get("owner_references")?.get("id"),
        Property::OwnerKind => resource.get("owner_references")?.get("kind"),
        Property::OwnerHref => resource.get("owner_references")?.get("href"),
        other => resource.get(other.into_str()),
    }
}

fn member<'a>(value: &'a Json, path: &[String]) -> Option<&'a Json> {
    path.iter().try_fold(value, |value, name| match value {
        Json::Array(elements) => elements.get(name.parse::<usize>().ok()?),
        other => other.get(name),
    })
}

fn compares(found: &Found, comparison: Comparison, value: &Value) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let value = match value {
        Value::Text(text) => Found::Text(text.clone()),
        Value::Integer(integer) => Found::Number(*integer as f64),
        Value::Number(number) => Found::Number(number.as_f64()),
        Value::Time(at) => Found::Time(*at),
    };
    holds(comparison, order(found, &value))
}

fn order(one: &Found, other: &Found) -> Ordering {
    match (one, other) {
        (Found::Text(one), Found::Text(other)) => one.cmp(other),
        (Found::Number(one), Found::Number(other)) => one.total_cmp(other),
        (Found::Time(one), Found::Time(other)) => one.cmp(other),
        _ => panic!("values of one type are compared"),
    }
}

fn holds(comparison: Comparison, order: Ordering) -> bool {
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
    }
}

/// SQL's `LIKE`.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => text.is_empty(),
        Some('%') => {
            let rest = rest.as_str();
            let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            ends.into_iter().any(|at| is_like(&text[at..], rest))
        }
        Some(c) => {
            let literal = if c == '\\' { rest.next() } else { Some(c) };
            let is_any = c == '_';
            let mut text = text.chars();
            match text.next() {
                Some(first) if is_any || Some(first) == literal => {
                    is_like(text.as_str(), rest.as_str())
                }
                _ => false,
            }
        }
    }
}
