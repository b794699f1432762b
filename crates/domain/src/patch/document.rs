//! The document that computed patches change: the patchable members of a resource, as clients see them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use strum::IntoEnumIterator as _;

use super::{PatchError, PatchMember, RequestedParts, no_object, spec_required};
use crate::json_limits::{bytes_of, check_document};
use crate::reference::{RequestedReference, RequestedReferences};
use crate::{
    Constraint, EntityRegistry, Labels, References, Resource, Violation, Violations, excerpt,
};

/// The document with the wanted members. `references` is present even if it is empty, so that an operation can add to
/// it.
pub(super) fn of(
    resource: &Resource,
    registry: &EntityRegistry,
    is_wanted: impl Fn(PatchMember) -> bool,
) -> Value {
    let wanted = PatchMember::iter().filter(|member| is_wanted(*member));
    let members = wanted.map(|member| {
        let value = match member {
            PatchMember::Labels => json!(resource.labels),
            PatchMember::References => references_of(&resource.references, registry),
            PatchMember::Spec => Value::Object(resource.spec.clone()),
        };
        (member.name().to_owned(), value)
    });
    Value::Object(members.collect())
}

fn references_of(references: &References, registry: &EntityRegistry) -> Value {
    let types = references.iter().map(|(ref_type, targets)| {
        let targets = targets.iter().map(|target| {
            let href = registry.flat_href(&target.kind, target.id);
            json!({"href": href, "id": target.id.to_string(), "kind": target.kind})
        });
        (ref_type.clone(), targets.collect())
    });
    Value::Object(types.collect())
}

/// The parts of a patched document that differ from the resource. A removed member is empty.
pub(super) fn parts(
    document: Value,
    resource: &Resource,
    is_named: impl Fn(PatchMember) -> bool,
) -> Result<RequestedParts, PatchError> {
    let mut members = match document {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    let mut parts = RequestedParts::default();
    let mut violations = Violations::default();
    for member in PatchMember::iter().filter(|member| is_named(*member)) {
        let value = members.remove(member.name());
        match member {
            PatchMember::Labels => {
                let labels = labels(value).map_err(|found| violations.extend(found)).ok();
                parts.labels = labels.filter(|labels| *labels != resource.labels);
            }
            PatchMember::References => {
                let references = references(value)
                    .map_err(|violation| violations.push(violation))
                    .ok();
                parts.references =
                    references.filter(|references| differ(references, &resource.references));
            }
            PatchMember::Spec => {
                let spec = spec(value, resource).map_err(|violation| violations.push(violation));
                parts.spec = spec.ok().flatten();
            }
        }
    }
    if violations.is_empty() {
        Ok(parts)
    } else {
        Err(PatchError::Invalid(violations))
    }
}

/// The spec, unless it is the stored one, which may be larger than a new one may be.
fn spec(
    value: Option<Value>,
    resource: &Resource,
) -> Result<Option<Map<String, Value>>, Violation> {
    let value = value.ok_or_else(spec_required)?;
    if value.as_object() == Some(&resource.spec) {
        return Ok(None);
    }
    check_size("spec", &value)?;
    match value {
        Value::Object(spec) => Ok(Some(spec)),
        _ => Err(no_object(PatchMember::Spec)),
    }
}

fn labels(value: Option<Value>) -> Result<Labels, Vec<Violation>> {
    let members = members_of(value, PatchMember::Labels).map_err(|violation| vec![violation])?;
    let mut violations = Vec::new();
    let mut pairs = BTreeMap::new();
    for (key, value) in members {
        match value {
            Value::String(value) => {
                pairs.insert(key, value);
            }
            Value::Null => violations.push(Labels::null(&key)),
            _ => violations.push(wrong_type("labels", "a string")),
        }
    }
    match Labels::parse(pairs) {
        Ok(labels) if violations.is_empty() => Ok(labels),
        Ok(_) => Err(violations),
        Err(found) => {
            violations.extend(found);
            Err(violations)
        }
    }
}

fn references(value: Option<Value>) -> Result<RequestedReferences, Violation> {
    if let Some(value) = &value {
        check_size("references", value)?;
    }
    let types = members_of(value, PatchMember::References)?.into_iter();
    types
        .map(|(ref_type, value)| {
            let targets = match value {
                Value::Null => Vec::new(),
                Value::Array(elements) => elements,
                _ => return Err(wrong_type("references", "an array")),
            };
            let targets = targets.into_iter().enumerate().map(|(index, target)| {
                let path = format!("references.{}[{index}]", excerpt(&ref_type));
                reference(&target, &path)
            });
            let targets = targets.collect::<Result<Vec<_>, _>>()?;
            Ok((ref_type, targets))
        })
        .collect()
}

fn reference(target: &Value, path: &str) -> Result<RequestedReference, Violation> {
    let Value::Object(members) = target else {
        return Err(wrong_type(path, "an object"));
    };
    let text = |name: &str| match members.get(name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(wrong_type(&format!("{path}.{name}"), "a string")),
    };
    Ok(RequestedReference {
        id: text("id")?,
        kind: text("kind")?,
    })
}

/// Whether the requested references are others than the stored ones. Their order does not count.
fn differ(requested: &RequestedReferences, stored: &References) -> bool {
    let requested = requested.iter().map(|(ref_type, targets)| {
        let targets = targets.iter().map(|t| (t.kind.clone(), t.id.clone()));
        (ref_type, sorted(targets))
    });
    let stored = stored.iter().map(|(ref_type, targets)| {
        let targets = targets.iter().map(|t| (t.kind.clone(), t.id.to_string()));
        (ref_type, sorted(targets))
    });
    let requested: BTreeMap<_, _> = requested.filter(|(_, all)| !all.is_empty()).collect();
    requested != stored.collect()
}

fn sorted(targets: impl Iterator<Item = (String, String)>) -> Vec<(String, String)> {
    let mut targets: Vec<_> = targets.collect();
    targets.sort_unstable();
    targets
}

/// The members of a part; none if the patch has removed it.
fn members_of(value: Option<Value>, member: PatchMember) -> Result<Map<String, Value>, Violation> {
    match value {
        None => Ok(Map::new()),
        Some(Value::Object(members)) => Ok(members),
        Some(_) => Err(no_object(member)),
    }
}

fn wrong_type(path: &str, expected: &str) -> Violation {
    let message = format!("field '{path}' must be {expected}");
    Violation::new(path, Constraint::Format, message)
}

/// A result may be as large as what a body can contain: many patches must not make more of it.
fn check_size(name: &str, value: &Value) -> Result<(), Violation> {
    check_document(value, bytes_of(value)).map_err(|why| {
        let message = format!("{name} is too large after the patch: {why}");
        Violation::new(name, Constraint::Max, message)
    })
}
