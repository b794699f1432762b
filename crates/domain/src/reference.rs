//! References: links to resources that a resource needs but does not own.

use std::collections::{BTreeMap, BTreeSet};

use super::{Constraint, Entity, Reference, References, ResourceId, Violation, excerpt};

/// An unchecked reference, as a client sends it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestedReference {
    /// The target's id as text.
    pub id: String,
    pub kind: String,
}

/// All requested references: type to targets.
pub type RequestedReferences = BTreeMap<String, Vec<RequestedReference>>;

/// Checks requested references against the references that `entity` declares. [`check_targets`] checks the targets once
/// they are locked.
///
/// # Errors
///
/// The first broken rule: required types first, then type by type in alphabetical order.
pub fn check(entity: &Entity, requested: &RequestedReferences) -> Result<References, Violation> {
    let kind = &entity.kind;
    let violation = |constraint, message| Violation::new("references", constraint, message);
    for rule in &entity.references {
        let count = requested.get(&rule.ref_type).map_or(0, Vec::len);
        if count < rule.min {
            let (ref_type, min) = (&rule.ref_type, rule.min);
            let message =
                format!("required reference type \"{ref_type}\" missing for {kind} (min {min})");
            return Err(violation(Constraint::Required, message));
        }
    }
    let mut checked = References::new();
    for (ref_type, targets) in requested {
        let Some(rule) = entity.references.iter().find(|r| r.ref_type == *ref_type) else {
            let message = format!(
                "unknown reference type \"{}\" for {kind}",
                excerpt(ref_type)
            );
            return Err(violation(Constraint::Enum, message));
        };
        if rule.max > 0 && targets.len() > rule.max {
            let (max, got) = (rule.max, targets.len());
            let message = format!(
                "reference type \"{ref_type}\" for {kind} exceeds max count {max} (got {got})"
            );
            return Err(violation(Constraint::Max, message));
        }
        let found = targets_of(ref_type, &rule.target_kind, targets)
            .map_err(|(constraint, message)| violation(constraint, message))?;
        if !found.is_empty() {
            checked.insert(ref_type.clone(), found);
        }
    }
    Ok(checked)
}

fn targets_of(
    ref_type: &str,
    target_kind: &str,
    targets: &[RequestedReference],
) -> Result<Vec<Reference>, (Constraint, String)> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::with_capacity(targets.len());
    for target in targets {
        let (id, kind) = (excerpt(&target.id), excerpt(&target.kind));
        if target.id.is_empty() {
            let message = format!("reference type \"{ref_type}\": id is required");
            return Err((Constraint::Required, message));
        }
        if !seen.insert(&target.id) {
            let message = format!("reference type \"{ref_type}\": duplicate target id \"{id}\"");
            return Err((Constraint::Unique, message));
        }
        if target.kind != target_kind {
            let message = format!(
                "reference type \"{ref_type}\": kind \"{kind}\" does not match expected target kind \"{target_kind}\""
            );
            return Err((Constraint::Enum, message));
        }
        let Some(target_id) = ResourceId::parse(&target.id) else {
            return Err((Constraint::Enum, absent(ref_type, target_kind, &id)));
        };
        found.push(Reference {
            kind: target_kind.to_owned(),
            id: target_id,
        });
    }
    found.sort();
    Ok(found)
}

/// A reference target, read once its row is locked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReferenceTarget {
    pub id: ResourceId,
    pub kind: String,
    pub is_deleting: bool,
}

/// Checks that every target exists and is active. `targets` are locked, so that none can be deleted before the
/// references to it are committed.
///
/// # Errors
///
/// The first reference with an unsuitable target.
pub fn check_targets(
    references: &References,
    targets: &[ReferenceTarget],
) -> Result<(), Violation> {
    for (ref_type, links) in references {
        for Reference { kind, id } in links {
            let target = targets.iter().find(|t| t.id == *id && t.kind == *kind);
            let message = match target {
                None => absent(ref_type, kind, &id.to_string()),
                Some(t) if t.is_deleting => format!(
                    "reference type \"{ref_type}\": target {kind} \"{id}\" is marked for deletion"
                ),
                Some(_) => continue,
            };
            return Err(Violation::new("references", Constraint::Enum, message));
        }
    }
    Ok(())
}

/// Whether no target of `after` can be deleted before the references to it are committed: its row is locked, or the
/// resource references it already, which DELETE refuses.
pub fn are_protected(before: &References, after: &References, locked: &[ReferenceTarget]) -> bool {
    let mut targets = after.values().flatten();
    targets.all(|target| {
        locked.iter().any(|row| row.id == target.id)
            || before.values().flatten().any(|stored| stored == target)
    })
}

fn absent(ref_type: &str, kind: &str, id: &str) -> String {
    format!("reference type \"{ref_type}\": target {kind} \"{id}\" not found")
}
