//! Whether a resource matches a filter, decided in memory.
//!
//! The result is the same as in the statement of a list (`storage::search`): a watch must not send
//! what the same list would not show. Property tests compare the two (`tests/it/search/in_memory.rs`).

use std::borrow::Cow;
use std::cmp::Ordering;

use bigdecimal::BigDecimal;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value as Json};

use super::expression::Comparison;
use super::field::{ConditionPart, Field, Property, Type, Value};
use super::filter::{Filter, Predicate, Test};
use super::pattern::Pattern;
use super::{number, stored_text};
use crate::{Condition, Entity, EntityRegistry, PATHS_BASE, Resource};

impl Filter {
    /// Whether a resource matches. `kinds` define the URLs of resources, and the kinds of their owners.
    ///
    /// A list with this filter shows the resource exactly if this is true and the resource is in the scope of the list:
    /// its kind, owner and tenant, and whether it includes finalizing resources, are not part of a filter.
    pub fn matches(&self, resource: &Resource, kinds: &EntityRegistry) -> bool {
        Viewed { resource, kinds }.matches(self)
    }
}

/// A resource as filters see it.
#[derive(Clone, Copy)]
struct Viewed<'a> {
    resource: &'a Resource,
    kinds: &'a EntityRegistry,
}

/// The value of a field.
enum Found<'a> {
    Text(Cow<'a, str>),
    Integer(i64),
    Number(Cow<'a, BigDecimal>),
    Time(DateTime<Utc>),
}

impl<'a> Viewed<'a> {
    fn matches(self, filter: &Filter) -> bool {
        match filter {
            Filter::All(parts) => parts.iter().all(|part| self.matches(part)),
            Filter::Any(parts) => parts.iter().any(|part| self.matches(part)),
            Filter::Test(test) => self.passes(test),
        }
    }

    fn passes(self, test: &Test) -> bool {
        let found = self.find(&test.field, test.value_type());
        if test.predicate == Predicate::IsNull {
            return found.is_none() != test.negated;
        }
        // A missing field passes neither a test nor its negation.
        let holds = found.and_then(|found| self.holds(&found, test));
        holds.is_some_and(|holds| holds != test.negated)
    }

    /// `None` if the field is compared with another one that is missing.
    fn holds(self, found: &Found<'_>, test: &Test) -> Option<bool> {
        match &test.predicate {
            Predicate::IsNull => Some(false),
            Predicate::Compares(comparison, value) => {
                Some(comparison.holds(found.order(&Found::of(value))?))
            }
            Predicate::ComparesWith(comparison, other) => {
                let other = self.find(other, test.value_type())?;
                Some(comparison.holds(found.order(&other)?))
            }
            Predicate::In(values) => {
                let is_equal = |value| found.order(&Found::of(value)) == Some(Ordering::Equal);
                Some(values.iter().any(is_equal))
            }
            Predicate::Between(low, high) => {
                let (low, high) = (
                    found.order(&Found::of(low))?,
                    found.order(&Found::of(high))?,
                );
                Some(low.is_ge() && high.is_le())
            }
            Predicate::Like {
                pattern,
                ignores_case,
            } => match found {
                Found::Text(found) => Some(Pattern::new(pattern, *ignores_case).matches(found)),
                Found::Integer(_) | Found::Number(_) | Found::Time(_) => None,
            },
        }
    }

    fn find(self, field: &'a Field, read_as: Type) -> Option<Found<'a>> {
        match field {
            Field::Property(property) => self.property(*property),
            Field::Label(key) => Some(text(self.resource.labels.get(key)?)),
            Field::Spec(path) => {
                let found = stored_text::of(value_at(&self.resource.spec, path)?)?;
                match read_as {
                    Type::Number => number::of_text(&found).map(|n| Found::Number(Cow::Owned(n))),
                    Type::Text | Type::Integer | Type::Time => Some(Found::Text(found)),
                }
            }
            Field::Condition(kind, part) => {
                let mut conditions = self.resource.state.conditions.iter();
                let condition = conditions.find(|condition| condition.kind == *kind)?;
                Some(part_of(condition, *part))
            }
        }
    }

    fn property(self, property: Property) -> Option<Found<'a>> {
        let (resource, state) = (self.resource, &self.resource.state);
        Some(match property {
            Property::Id => owned(state.id.to_string()),
            Property::Kind => text(&state.kind),
            Property::Name => text(state.name.as_str()),
            Property::Generation => Found::Integer(state.generation.into()),
            Property::CreatedTime => Found::Time(resource.created_at),
            Property::UpdatedTime => Found::Time(state.updated_at),
            Property::DeletedTime => Found::Time(state.deletion.as_ref()?.at),
            Property::CreatedBy => text(&resource.created_by),
            Property::UpdatedBy => text(&resource.updated_by),
            Property::DeletedBy => text(&state.deletion.as_ref()?.by),
            Property::OwnerId => owned(state.owner?.to_string()),
            Property::Href => owned(self.href()?),
            Property::OwnerKind => text(&self.owner_entity()?.kind),
            Property::OwnerHref => owned(self.owner_href()?),
        })
    }

    /// The kind of the resource, if it is configured.
    fn entity(self) -> Option<&'a Entity> {
        self.kinds.get(&self.resource.state.kind)
    }

    /// The kind of its owner.
    fn owner_entity(self) -> Option<&'a Entity> {
        self.kinds.get(self.entity()?.parent.as_deref()?)
    }

    /// `None` for a kind that is not configured: the statement knows no path of it.
    fn href(self) -> Option<String> {
        let (entity, id) = (self.entity()?, self.resource.state.id);
        let base = match self.owner_entity() {
            Some(_) => self.owner_href()?,
            None => PATHS_BASE.to_owned(),
        };
        Some(format!("{base}/{}/{id}", entity.plural))
    }

    fn owner_href(self) -> Option<String> {
        let (owner, id) = (self.owner_entity()?, self.resource.state.owner?);
        Some(format!("{PATHS_BASE}/{}/{id}", owner.plural))
    }
}

impl<'a> Found<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::Text(value) => text(value),
            Value::Integer(integer) => Self::Integer(*integer),
            Value::Number(number) => Self::Number(Cow::Borrowed(number.value())),
            Value::Time(at) => Self::Time(*at),
        }
    }

    /// Texts by their bytes, whatever the locale. `None` for values of two types, which no checked filter compares.
    fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => Some(one.cmp(other)),
            (Self::Integer(one), Self::Integer(other)) => Some(one.cmp(other)),
            (Self::Number(one), Self::Number(other)) => Some(one.cmp(other)),
            (Self::Time(one), Self::Time(other)) => Some(one.cmp(other)),
            _ => None,
        }
    }
}

impl Comparison {
    /// Whether it holds for two values of that order.
    fn holds(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::NotEqual => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
        }
    }
}

fn text(text: &str) -> Found<'_> {
    Found::Text(Cow::Borrowed(text))
}

fn owned(text: String) -> Found<'static> {
    Found::Text(Cow::Owned(text))
}

fn part_of(condition: &Condition, part: ConditionPart) -> Found<'_> {
    match part {
        ConditionPart::Status => text(condition.status.into_str()),
        ConditionPart::LastUpdatedTime => Found::Time(condition.last_updated_at),
        ConditionPart::LastTransitionTime => Found::Time(condition.last_transition_at),
        ConditionPart::ObservedGeneration => Found::Integer(condition.observed_generation.into()),
    }
}

/// The value at a path: names of members, and numbers of elements from 0.
fn value_at<'a>(spec: &'a Map<String, Json>, path: &[String]) -> Option<&'a Json> {
    let (first, rest) = path.split_first()?;
    rest.iter()
        .try_fold(spec.get(first)?, |value, segment| match value {
            Json::Object(members) => members.get(segment),
            Json::Array(elements) => elements.get(segment.parse::<usize>().ok()?),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => None,
        })
}
