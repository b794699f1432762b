//! Resources: their identity, their content, and the state of their life.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::precondition::EntityTag;
use super::{Condition, Constraint, JsonText, Labels, Violation};

/// The identity of a resource: a `UUIDv7`, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(Uuid);

impl ResourceId {
    /// Reads an id as answers have it: 36 characters, lower case, with hyphens. Any other text names no resource,
    /// because clients compare ids as text.
    pub fn parse(text: &str) -> Option<Self> {
        let id = Uuid::try_parse(text).ok()?;
        let mut buffer = Uuid::encode_buffer();
        (*id.hyphenated().encode_lower(&mut buffer) == *text).then_some(Self(id))
    }

    /// The id as the database stores it.
    pub fn as_uuid(self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for ResourceId {
    fn from(id: Uuid) -> Self {
        Self(id)
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// A name: `[a-z0-9]([-a-z0-9]*[a-z0-9])?`, as long as its kind allows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceName(String);

impl ResourceName {
    /// Longest name of a kind without a limit of its own, in bytes.
    pub const BYTES_MAX: usize = 100;

    /// Checks a name against the syntax and the limits (in bytes) of its kind.
    ///
    /// # Errors
    ///
    /// The first broken rule: presence, length, characters.
    pub fn parse(name: String, bytes_min: usize, bytes_max: usize) -> Result<Self, Violation> {
        let violation =
            |constraint, message: String| Err(Violation::new("name", constraint, message));
        if name.is_empty() {
            return violation(Constraint::Required, "name is required".to_owned());
        }
        if name.len() < bytes_min {
            let message = format!("name must be at least {bytes_min} characters");
            return violation(Constraint::MinLength, message);
        }
        if name.len() > bytes_max {
            let message = format!("name must be at most {bytes_max} characters");
            return violation(Constraint::MaxLength, message);
        }
        let outer = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = name.as_bytes();
        let ends_fit = outer(bytes[0]) && outer(bytes[bytes.len() - 1]);
        if !ends_fit || !bytes.iter().all(|&b| outer(b) || b == b'-') {
            let message = "name must start and end with lowercase letter or number, and contain only lowercase letters, numbers, and hyphens";
            return violation(Constraint::Pattern, message.to_owned());
        }
        Ok(Self(name))
    }

    /// A name that was checked before it was stored. Limits may have changed since; a stored name stays valid.
    pub fn stored(name: String) -> Self {
        Self(name)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One reference, as clients send and receive it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    pub kind: String,
    pub id: ResourceId,
}

/// All references of a resource: type to targets.
pub type References = BTreeMap<String, Vec<Reference>>;

/// The tenant that a resource belongs to: dimension to value, empty without tenancy.
pub type Tenancy = BTreeMap<String, String>;

/// The time and the author of a deletion. Once set it never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    /// In whole microseconds.
    pub at: DateTime<Utc>,
    pub by: String,
}

/// The part of a resource that rules read and change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceState {
    pub id: ResourceId,
    /// The kind of its [`super::Entity`].
    pub kind: String,
    /// Unique among the active resources of its kind and owner.
    pub name: ResourceName,
    /// The parent, for child kinds.
    pub owner: Option<ResourceId>,
    /// Number of the desired state, from 1.
    pub generation: i32,
    /// Number of changes of the row, reports included: a writer compares it before it writes.
    pub revision: i64,
    /// When the desired state last changed. The reference time of its conditions.
    pub updated_at: DateTime<Utc>,
    /// Set from the first DELETE on: the resource is *finalizing*. Unset: it is *active*.
    pub deletion: Option<Deletion>,
    /// Its conditions, in the order of [`super::aggregation`].
    pub conditions: Vec<Condition>,
}

/// A resource with everything that a client sees of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Resource {
    pub state: ResourceState,
    /// The desired state. Opaque here, an object.
    pub spec: Map<String, Value>,
    pub labels: Labels,
    pub references: References,
    pub tenancy: Tenancy,
    pub created_at: DateTime<Utc>,
    pub created_by: String,
    /// The author of the last change of the desired state. Deletion does not count.
    pub updated_by: String,
}

/// A resource as reads return it. Spec, labels and conditions stay text, because no rule reads them there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResource {
    pub id: ResourceId,
    /// The kind of its [`super::Entity`].
    pub kind: String,
    pub name: String,
    /// The parent, for child kinds.
    pub owner: Option<ResourceId>,
    /// Number of the desired state, from 1.
    pub generation: i32,
    /// Counts every change of the row, reports included.
    pub revision: i64,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    pub created_by: String,
    /// When the desired state last changed.
    pub updated_at: DateTime<Utc>,
    pub updated_by: String,
    /// Set from the first DELETE on.
    pub deletion: Option<Deletion>,
    pub references: References,
    /// The text of [`Resource::spec`].
    pub spec: JsonText,
    /// The text of [`Resource::labels`].
    pub labels: JsonText,
    pub tenancy: Tenancy,
    /// The text of [`ResourceState::conditions`].
    pub conditions: JsonText,
}

impl From<&Resource> for StoredResource {
    fn from(resource: &Resource) -> Self {
        let state = &resource.state;
        Self {
            id: state.id,
            kind: state.kind.clone(),
            name: state.name.0.clone(),
            owner: state.owner,
            generation: state.generation,
            revision: state.revision,
            created_at: resource.created_at,
            created_by: resource.created_by.clone(),
            updated_at: state.updated_at,
            updated_by: resource.updated_by.clone(),
            deletion: state.deletion.clone(),
            references: resource.references.clone(),
            spec: JsonText::of(&resource.spec),
            labels: JsonText::of(&resource.labels),
            tenancy: resource.tenancy.clone(),
            conditions: JsonText::of(&state.conditions),
        }
    }
}

impl ResourceState {
    pub fn is_finalizing(&self) -> bool {
        self.deletion.is_some()
    }

    /// The same state with other conditions.
    #[must_use]
    pub fn with_conditions(&self, conditions: Vec<Condition>) -> Self {
        Self {
            id: self.id,
            kind: self.kind.clone(),
            name: self.name.clone(),
            owner: self.owner,
            generation: self.generation,
            revision: self.revision,
            updated_at: self.updated_at,
            deletion: self.deletion.clone(),
            conditions,
        }
    }

    /// The tag of the resource in this state.
    pub fn tag(&self) -> EntityTag {
        EntityTag {
            generation: self.generation,
            revision: self.revision,
        }
    }
}

impl StoredResource {
    /// The resource with parsed values. `None` for a text that the service cannot have stored.
    pub fn parse(&self) -> Option<Resource> {
        Some(Resource {
            state: ResourceState {
                id: self.id,
                kind: self.kind.clone(),
                name: ResourceName::stored(self.name.clone()),
                owner: self.owner,
                generation: self.generation,
                revision: self.revision,
                updated_at: self.updated_at,
                deletion: self.deletion.clone(),
                conditions: serde_json::from_str(self.conditions.as_str()).ok()?,
            },
            spec: serde_json::from_str(self.spec.as_str()).ok()?,
            labels: serde_json::from_str(self.labels.as_str()).ok()?,
            references: self.references.clone(),
            tenancy: self.tenancy.clone(),
            created_at: self.created_at,
            created_by: self.created_by.clone(),
            updated_by: self.updated_by.clone(),
        })
    }

    /// The tag of the resource in this state.
    pub fn tag(&self) -> EntityTag {
        EntityTag {
            generation: self.generation,
            revision: self.revision,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_compared_as_text() {
        let text = "0190a6f0-1c2b-7def-8123-456789abcdef";
        assert_eq!(
            ResourceId::parse(text).map(|id| id.to_string()).as_deref(),
            Some(text)
        );
        let number = ResourceId::parse(text).map(ResourceId::as_uuid);
        assert_eq!(number, text.parse().ok());
        for other in [
            "",
            "x",
            &text.to_uppercase(),
            &text.replace('-', ""),
            &format!("{{{text}}}"),
            &format!("urn:uuid:{text}"),
            &format!("{text} "),
        ] {
            assert_eq!(ResourceId::parse(other), None, "{other:?}");
        }
    }

    #[test]
    fn names_say_which_rule_they_break() {
        let name = |text: &str| ResourceName::parse(text.to_owned(), 3, 15);
        for good in ["abc", "a-b", "0-9", "a--b", "abcdefghijklmno"] {
            assert_eq!(name(good).unwrap().as_str(), good);
        }
        for (bad, constraint) in [
            ("", Constraint::Required),
            ("ab", Constraint::MinLength),
            ("abcdefghijklmnop", Constraint::MaxLength),
            ("-ab", Constraint::Pattern),
            ("ab-", Constraint::Pattern),
            ("aBc", Constraint::Pattern),
            ("a_c", Constraint::Pattern),
            ("a.c", Constraint::Pattern),
            ("a c", Constraint::Pattern),
            ("aéc", Constraint::Pattern),
        ] {
            assert_eq!(name(bad).unwrap_err().constraint, constraint, "{bad:?}");
        }
    }
}
