//! A checked search.

use super::expression::Comparison;
use super::field::{Field, Type, Value};

/// The resources that match. `not` applies to single tests only.
///
/// A field that a resource does not have (a label, a value in the spec, a condition, the time of a deletion that did
/// not happen) matches nothing but [`Predicate::IsNull`]: neither a test nor its negation.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Filter {
    /// All of these; of none, everything.
    All(Vec<Filter>),
    /// Any of these; of none, nothing.
    Any(Vec<Filter>),
    Test(Test),
}

/// A test of one field.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Test {
    pub field: Field,
    pub predicate: Predicate,
    /// Whether the field must exist and *not* pass.
    pub negated: bool,
}

/// A predicate of a field. The values of one predicate are all of one type, which decides how the field is read: that
/// of a spec as text or as a number.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Predicate {
    /// The field is missing.
    IsNull,
    /// Compares the field with a value.
    Compares(Comparison, Value),
    /// Compares the field with another existing field.
    ComparesWith(Comparison, Field),
    /// The field is one of these.
    In(Vec<Value>),
    /// The field is between these, both included.
    Between(Value, Value),
    /// The field matches a pattern of SQL's: `%` for any characters, `_` for one, `\` before a literal one.
    Like { pattern: String, ignores_case: bool },
}

impl Test {
    /// Its fields: one, or two that are compared.
    pub(super) fn fields(&self) -> impl Iterator<Item = &Field> {
        let other = match &self.predicate {
            Predicate::ComparesWith(_, other) => Some(other),
            _ => None,
        };
        std::iter::once(&self.field).chain(other)
    }

    /// The type as which its fields are read.
    pub fn value_type(&self) -> Type {
        let value = match &self.predicate {
            Predicate::Compares(_, value) | Predicate::Between(value, _) => Some(value),
            Predicate::In(values) => values.first(),
            Predicate::IsNull | Predicate::ComparesWith(..) | Predicate::Like { .. } => None,
        };
        value.map_or(self.field.value_type(), Value::value_type)
    }
}

impl Filter {
    /// Every test in it.
    pub(super) fn tests(&self) -> Vec<&Test> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::tests).collect(),
            Self::Test(test) => vec![test],
        }
    }

    /// Whether it names a property that only deleted resources have.
    pub fn mentions_deletion(&self) -> bool {
        let mut fields = self.tests().into_iter().flat_map(Test::fields);
        fields.any(|asked| matches!(asked, Field::Property(property) if property.is_of_deleted()))
    }

    /// Whether it names a time of a condition, which reports move without a recorded change
    /// ([`crate::change::is_recorded`]).
    pub fn mentions_report_times(&self) -> bool {
        let mut fields = self.tests().into_iter().flat_map(Test::fields);
        fields.any(|asked| matches!(asked, Field::Condition(_, part) if part.is_time()))
    }
}
