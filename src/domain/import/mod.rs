//! Imports the database of the older service: the work of a run, the translation of each row, and the refused rows,
//! with what to do about them.
//!
//! ```text
//! keys of the source ─┐
//!                     ├─ ImportPlanner ─▶ ImportPlan: bring, remove
//! keys here ──────────┘                       │
//!                                             ▼
//! rows of the source ─ translate ─▶ ImportedResource, or an ImportReason
//! references ───────── check_reference, once every target is here
//! ```

mod document;
mod finding;
mod ledger;
mod position;
mod reports;
mod row;
#[cfg(test)]
mod tests;
mod translate;

pub use finding::{FindingPart, Findings, ImportFinding, ImportReason, about};
pub use ledger::{ImportPlan, ImportPlanner, ImportedKey, ImportedParts, Ledger, SourceKey};
pub use position::{Continuity, ImportedPosition, LatestState, Regression, SourcePosition};
pub use reports::ImportedReport;
pub use row::{SourceOrphan, SourceReference, SourceResource};
pub use translate::{DELETED_BY_DEFAULT, ImportedResource, translate};

use super::aggregation::{LAST_KNOWN_RECONCILED, RECONCILED, adapter_condition_type};
use super::{Entity, Reference, ResourceId};

/// The position of a condition in the order of aggregation and rules. The older service has no order.
fn order(entity: &Entity, condition: &str) -> (usize, String) {
    let of_adapter = || {
        let mut adapters = entity.required_adapters.iter();
        adapters.position(|adapter| adapter_condition_type(adapter) == condition)
    };
    let place = match condition {
        RECONCILED => 0,
        LAST_KNOWN_RECONCILED => 1,
        _ => of_adapter().map_or(usize::MAX, |place| place + 2),
    };
    (place, condition.to_owned())
}

/// Checks a reference of a resource of `entity`. `kind_of` returns the kind of an imported resource.
///
/// # Errors
///
/// The kind declares no such reference, or its target is not here.
pub fn check_reference<'k>(
    entity: &Entity,
    row: &SourceReference,
    kind_of: impl FnOnce(ResourceId) -> Option<&'k str>,
) -> Result<Reference, ImportReason> {
    let mut rules = entity.references.iter();
    if !rules.any(|r| r.ref_type == row.ref_type && r.target_kind == row.target_kind) {
        return Err(ImportReason::ReferenceType);
    }
    let id = ResourceId::parse(&row.target_id).ok_or(ImportReason::ReferenceTarget)?;
    if kind_of(id) != Some(&row.target_kind) {
        return Err(ImportReason::ReferenceTarget);
    }
    Ok(Reference {
        kind: row.target_kind.clone(),
        id,
    })
}
