//! Patches of resources: the parts that a client sends, or computes from the stored ones.
//!
//! ```text
//! application/json             ───────────────────────────────────────▶ parts, each replaced entirely
//! application/merge-patch+json ─┐
//! application/json-patch+json  ─┴▶ document ─▶ patched document ─▶ parts that differ
//!                                  {labels, references, spec} of the stored resource
//! ```
//!
//! A computed patch is computed again for each attempt to write, from the row that the attempt replaces
//! (`docs/decisions/0083-patch-formats.md`).

mod document;
mod operations;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::{Map, Value};
use strum::{EnumIter, EnumString, IntoEnumIterator as _, IntoStaticStr};

use super::reference::RequestedReferences;
use super::{Constraint, EntityRegistry, Labels, Resource, Violation, Violations};

pub use operations::{ConflictReason, JsonPatch, PatchConflict, RequestedOperation};

/// A member of a resource that a patch may change.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, EnumIter, EnumString, IntoStaticStr,
)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum PatchMember {
    Labels,
    References,
    Spec,
}

/// A change of a resource.
#[derive(Debug, Clone)]
pub enum RequestedPatch {
    /// The parts are the request's.
    Parts(RequestedParts),
    Merge(MergePatch),
    Operations(JsonPatch),
}

/// New parts of a resource; unset parts stay as they are.
#[derive(Debug, Clone, Default)]
pub struct RequestedParts {
    pub spec: Option<Map<String, Value>>,
    pub labels: Option<Labels>,
    pub references: Option<RequestedReferences>,
}

/// A JSON Merge Patch (RFC 7396) of the patchable members.
#[derive(Debug, Clone)]
pub struct MergePatch(Value);

/// Why a patch cannot be applied to a resource.
#[derive(Debug, Clone, PartialEq)]
pub enum PatchError {
    /// The resource is not in the state that the patch expects.
    Conflict(PatchConflict),
    /// The result breaks a rule.
    Invalid(Violations),
}

impl RequestedPatch {
    /// Whether the parts depend on the stored resource.
    pub fn is_computed(&self) -> bool {
        match self {
            Self::Parts(_) => false,
            Self::Merge(_) | Self::Operations(_) => true,
        }
    }

    /// Whether it may change references.
    pub fn touches_references(&self) -> bool {
        match self {
            Self::Parts(parts) => parts.references.is_some(),
            Self::Merge(patch) => patch.names(PatchMember::References),
            Self::Operations(patch) => patch.touches(PatchMember::References),
        }
    }

    /// The new parts of a resource. Those of a computed patch differ from the stored ones.
    ///
    /// # Errors
    ///
    /// A computed patch does not fit the resource, or its result is not a resource or is too large.
    pub fn parts(
        &self,
        resource: &Resource,
        registry: &EntityRegistry,
    ) -> Result<Cow<'_, RequestedParts>, PatchError> {
        let parts = match self {
            Self::Parts(parts) => return Ok(Cow::Borrowed(parts)),
            Self::Merge(patch) => {
                let is_named = |member| patch.names(member);
                let mut document = document::of(resource, registry, is_named);
                json_patch::merge(&mut document, &patch.0);
                document::parts(document, resource, is_named)
            }
            Self::Operations(patch) => {
                let is_named = |member| patch.names(member);
                let document = document::of(resource, registry, is_named);
                document::parts(patch.apply(document)?, resource, is_named)
            }
        };
        parts.map(Cow::Owned)
    }
}

impl PatchMember {
    /// Its name in bodies.
    pub const fn name(self) -> &'static str {
        self.into_str()
    }
}

impl MergePatch {
    /// Checks a merge patch whose members are those of [`PatchMember`].
    ///
    /// # Errors
    ///
    /// A member is no object, which no result could have, or `spec` is removed.
    pub fn parse(patch: Map<String, Value>) -> Result<Self, Violations> {
        let mut violations = Violations::default();
        for member in PatchMember::iter() {
            match (member, patch.get(member.name())) {
                (_, None | Some(Value::Object(_)))
                | (PatchMember::Labels | PatchMember::References, Some(Value::Null)) => {}
                (PatchMember::Spec, Some(Value::Null)) => violations.push(spec_required()),
                (member, Some(_)) => violations.push(no_object(member)),
            }
        }
        if violations.is_empty() {
            Ok(Self(Value::Object(patch)))
        } else {
            Err(violations)
        }
    }

    fn names(&self, member: PatchMember) -> bool {
        self.0.get(member.name()).is_some()
    }
}

impl From<Violation> for PatchError {
    fn from(violation: Violation) -> Self {
        Self::Invalid(violation.into())
    }
}

/// A resource always has a spec.
fn spec_required() -> Violation {
    Violation::new("spec", Constraint::Required, "spec is required")
}

fn no_object(member: PatchMember) -> Violation {
    let name = member.name();
    let message = match member {
        PatchMember::Spec => "spec field must be an object".to_owned(),
        PatchMember::Labels | PatchMember::References => {
            format!("field '{name}' must be an object")
        }
    };
    Violation::new(name, Constraint::Format, message)
}
