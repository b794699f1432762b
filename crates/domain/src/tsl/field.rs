//! The fields of searches.

use chrono::{DateTime, Utc};
use strum::{EnumDiscriminants, EnumString, IntoStaticStr};

use super::SearchError;
use super::number::Number;
use crate::excerpt;

/// A field of a resource. Closed, and checked letter by letter: no user text names a column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Field {
    /// A property that every resource has, or may have.
    Property(Property),
    /// The value of a label.
    Label(String),
    /// A value in the spec, by its path.
    Spec(Vec<String>),
    /// A part of the condition of that type.
    Condition(String, ConditionPart),
}

/// A property that every resource has, or may have, by the name that searches use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Property {
    Id,
    Kind,
    Name,
    Href,
    Generation,
    CreatedTime,
    /// Time of the last change of the desired state.
    UpdatedTime,
    /// Time of the first DELETE.
    DeletedTime,
    CreatedBy,
    /// Author of the last change of the desired state.
    UpdatedBy,
    /// Author of the first DELETE.
    DeletedBy,
    OwnerId,
    OwnerKind,
    OwnerHref,
}

/// The part of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ConditionPart {
    Status,
    /// Time of the oldest evidence for it.
    LastUpdatedTime,
    /// When the status last changed.
    LastTransitionTime,
    /// The generation that the status is about.
    ObservedGeneration,
}

/// A value that a field is compared with.
#[derive(Debug, Clone, PartialEq, Hash, EnumDiscriminants)]
#[strum_discriminants(name(Type), doc = "What values of a field are.")]
pub enum Value {
    Text(String),
    /// For fields that hold integers only.
    Integer(i64),
    /// For values of specs.
    Number(Number),
    /// In whole microseconds.
    Time(DateTime<Utc>),
}

impl Value {
    /// The type as which a field is read that is compared with it.
    pub fn value_type(&self) -> Type {
        self.into()
    }
}

impl Property {
    /// Whether only deleted resources have it.
    pub fn is_of_deleted(self) -> bool {
        matches!(self, Self::DeletedTime | Self::DeletedBy)
    }

    fn value_type(self) -> Type {
        match self {
            Self::Generation => Type::Integer,
            Self::CreatedTime | Self::UpdatedTime | Self::DeletedTime => Type::Time,
            _ => Type::Text,
        }
    }
}

impl ConditionPart {
    /// Whether it is a time.
    pub fn is_time(self) -> bool {
        matches!(self, Self::LastUpdatedTime | Self::LastTransitionTime)
    }

    fn value_type(self) -> Type {
        match self {
            Self::Status => Type::Text,
            Self::LastUpdatedTime | Self::LastTransitionTime => Type::Time,
            Self::ObservedGeneration => Type::Integer,
        }
    }
}

impl Field {
    /// Finds the field of that name.
    ///
    /// # Errors
    ///
    /// A field that cannot be searched, in the words of the older service.
    pub(super) fn parse(name: &str) -> Result<Self, SearchError> {
        if let Some(key) = name.strip_prefix("labels.") {
            return label(key);
        }
        if let Some(path) = name.strip_prefix("spec.") {
            return spec(path);
        }
        if let Some(rest) = name.strip_prefix("status.conditions.") {
            return condition(rest);
        }
        if !is_field_name(name) {
            return Err(SearchError::meaning(format!(
                "{name} is not a valid field name"
            )));
        }
        if let Some((first, _)) = name.split_once('.') {
            let message = format!("{first} is not a related resource of Resource");
            return Err(SearchError::meaning(message));
        }
        match name.parse() {
            Ok(property) => Ok(Self::Property(property)),
            Err(_) => Err(SearchError::UnknownField(excerpt(name))),
        }
    }

    /// The type of its values without a comparison. Values of a spec can also be read as numbers.
    pub fn value_type(&self) -> Type {
        match self {
            Self::Property(property) => property.value_type(),
            Self::Label(_) | Self::Spec(_) => Type::Text,
            Self::Condition(_, part) => part.value_type(),
        }
    }
}

fn label(key: &str) -> Result<Field, SearchError> {
    if key.is_empty() {
        return Err(SearchError::meaning("label key cannot be empty"));
    }
    Ok(Field::Label(key.to_owned()))
}

fn spec(path: &str) -> Result<Field, SearchError> {
    let segments: Vec<_> = path.split('.').map(ToOwned::to_owned).collect();
    for segment in &segments {
        if segment.is_empty() {
            return Err(SearchError::meaning("spec field segment cannot be empty"));
        }
        if !is_word(segment) {
            return Err(SearchError::meaning(format!(
                "spec field segment '{segment}' is invalid: must contain only lowercase letters, digits, and underscores"
            )));
        }
    }
    Ok(Field::Spec(segments))
}

fn condition(rest: &str) -> Result<Field, SearchError> {
    let (kind, part) = match rest.split_once('.') {
        Some((_, part)) if part.contains('.') => {
            return Err(SearchError::meaning(
                "invalid condition format: expected status.conditions.<Type> or status.conditions.<Type>.<subfield>",
            ));
        }
        Some((kind, part)) => (kind, Some(part)),
        None => (rest, None),
    };
    if kind.is_empty() {
        return Err(SearchError::meaning("condition type cannot be empty"));
    }
    let is_pascal_case = kind.starts_with(|c: char| c.is_ascii_uppercase())
        && kind.chars().all(|c| c.is_ascii_alphanumeric());
    if !is_pascal_case {
        return Err(SearchError::meaning(format!(
            "condition type '{kind}' is invalid: must be PascalCase (e.g., Reconciled, Available)"
        )));
    }
    let part = match part {
        None => ConditionPart::Status,
        Some("last_updated_time") => ConditionPart::LastUpdatedTime,
        Some("last_transition_time") => ConditionPart::LastTransitionTime,
        Some("observed_generation") => ConditionPart::ObservedGeneration,
        Some(other) => {
            return Err(SearchError::meaning(format!(
                "condition subfield '{other}' is not supported; use last_updated_time, last_transition_time, or observed_generation"
            )));
        }
    };
    Ok(Field::Condition(kind.to_owned(), part))
}

/// Lower-case words, joined by dots.
fn is_field_name(name: &str) -> bool {
    name.split('.').all(is_word)
}

fn is_word(word: &str) -> bool {
    let is_lower = |c: char| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit();
    !word.is_empty() && word.chars().all(is_lower)
}
