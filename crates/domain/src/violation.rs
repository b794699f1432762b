//! Violations of an input, one entry each, so that a user can fix all of them together.

use serde_json::Value;
use strum::{IntoStaticStr, VariantNames};

/// The beginning of a client's text, for an error message.
pub fn excerpt(text: &str) -> String {
    const CHARACTERS_MAX: usize = 100;
    text.chars().take(CHARACTERS_MAX).collect()
}

/// The kind of the rule that an input breaks; the closed list of names that clients may match on (RFC 9457 extension
/// `errors[].constraint`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr, VariantNames)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Constraint {
    /// It is missing.
    Required,
    /// It is too small.
    Min,
    /// It is too large.
    Max,
    /// It is too short.
    MinLength,
    /// It is too long.
    MaxLength,
    /// Its characters do not fit.
    Pattern,
    /// It is not one of the allowed values.
    Enum,
    /// It has another type or notation.
    Format,
    /// It is repeated.
    Unique,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// Dotted path of the invalid member, `[n]` for list positions.
    pub field: String,
    /// What is wrong, as a sentence for a person.
    pub message: String,
    pub constraint: Constraint,
    /// The invalid value, if it helps and is short.
    pub value: Option<Value>,
}

impl Violation {
    /// A violation without its value.
    pub fn new(
        field: impl Into<String>,
        constraint: Constraint,
        message: impl Into<String>,
    ) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
            constraint,
            value: None,
        }
    }

    /// Adds the value that caused the violation.
    pub fn with_value(mut self, value: impl Into<Value>) -> Self {
        self.value = Some(value.into());
        self
    }
}

/// The violations of one input, collected while it is read. At most [`Violations::COUNT_MAX`] are stored, because the
/// size of a response is limited.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// Most violations in one response.
    pub const COUNT_MAX: usize = 50;

    pub fn push(&mut self, violation: Violation) {
        if self.0.len() < Self::COUNT_MAX {
            self.0.push(violation);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The violations in the order in which they were found.
    pub fn into_vec(self) -> Vec<Violation> {
        self.0
    }

    /// The violations in the order in which they were found.
    pub fn as_slice(&self) -> &[Violation] {
        &self.0
    }
}

impl Extend<Violation> for Violations {
    fn extend<T: IntoIterator<Item = Violation>>(&mut self, violations: T) {
        for violation in violations {
            self.push(violation);
        }
    }
}

impl From<Violation> for Violations {
    fn from(violation: Violation) -> Self {
        Self(vec![violation])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_know_these_constraints() {
        for (constraint, name) in [
            (Constraint::Required, "required"),
            (Constraint::Min, "min"),
            (Constraint::Max, "max"),
            (Constraint::MinLength, "min_length"),
            (Constraint::MaxLength, "max_length"),
            (Constraint::Pattern, "pattern"),
            (Constraint::Enum, "enum"),
            (Constraint::Format, "format"),
            (Constraint::Unique, "unique"),
        ] {
            assert_eq!(constraint.into_str(), name);
        }
    }

    #[test]
    fn violations_stay_in_order_up_to_a_limit() {
        let violation = |n: usize| Violation::new(n.to_string(), Constraint::Min, "too small");
        let first = Violations::from(violation(0));
        assert_eq!(first.as_slice(), [violation(0)]);
        let mut violations = first;
        violations.extend((1..100).map(violation));
        let expected: Vec<_> = (0..Violations::COUNT_MAX).map(violation).collect();
        assert_eq!(violations.as_slice(), expected);
        assert_eq!(violations.into_vec(), expected);
    }
}
