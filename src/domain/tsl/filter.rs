//! A search that makes sense.

use super::expression::Comparison;
use super::field::{Field, Type, Value};

/// Which resources match. `not` stands at single tests only.
///
/// A field that a resource does not have (a label, a value in the spec, a condition, the time of a
/// deletion that never was) matches nothing but [`Predicate::IsNull`]: neither a test nor its
/// negation.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Filter {
    /// All of these; of none, everything.
    All(Vec<Filter>),
    /// Any of these; of none, nothing.
    Any(Vec<Filter>),
    /// What this is true of.
    Test(Test),
}

/// What is asked about one field.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Test {
    /// About what.
    pub field: Field,
    /// What of it.
    pub predicate: Predicate,
    /// Whether it must be there and *not* be so.
    pub negated: bool,
}

/// What may be true of a field. The values of one predicate are all of one sort, which says how
/// the field is read: that of a spec as text or as a number.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum Predicate {
    /// It is not there.
    IsNull,
    /// It compares so with a value.
    Compares(Comparison, Value),
    /// It compares so with another field, which is there, too.
    ComparesWith(Comparison, Field),
    /// It is one of these.
    In(Vec<Value>),
    /// It is between these, both included.
    Between(Value, Value),
    /// It fits a pattern of SQL's: `%` for any characters, `_` for one, `\` before a literal one.
    Like {
        /// The pattern.
        pattern: String,
        /// Whether upper and lower case are the same.
        ignores_case: bool,
    },
}

impl Test {
    /// What it is about: one field, or two that are compared.
    pub(super) fn fields(&self) -> impl Iterator<Item = &Field> {
        let other = match &self.predicate {
            Predicate::ComparesWith(_, other) => Some(other),
            _ => None,
        };
        std::iter::once(&self.field).chain(other)
    }

    /// As what its fields are read.
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

    /// Whether it asks anywhere about a property that only deleted resources have.
    pub fn mentions_deletion(&self) -> bool {
        let mut fields = self.tests().into_iter().flat_map(Test::fields);
        fields.any(|asked| matches!(asked, Field::Property(property) if property.is_of_deleted()))
    }
}
