//! Translates rows of the older service to rows of this one. The import accepts what POST and PUT would accept, and
//! keeps the rest of a row: id, times, generation, authors, conditions.

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::document::{document, json, raw};
use super::finding::{ImportReason, Refusal};
use super::reports::reports;
use super::row::{ReferenceRow, ResourceRow};
use hyperfleet_domain::aggregation::{LAST_KNOWN_RECONCILED, RECONCILED, adapter_condition_type};
use hyperfleet_domain::tenancy::{DIMENSIONS_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use hyperfleet_domain::{
    Condition, Entity, EntityRegistry, Labels, ResourceId, ResourceName, Tenancy, Violations,
    moment,
};

/// The author of a deletion without one in the source: the older service's own default.
pub(super) const DELETED_BY_DEFAULT: &str = "system@hyperfleet.local";

/// A resource that passed the rules.
#[derive(Debug)]
pub(super) struct ImportedResource {
    pub(super) id: ResourceId,
    /// Without the refused reports.
    pub(super) row: ResourceRow,
    /// Adapters of refused reports, each with the broken rule.
    pub(super) refused_reports: Vec<(String, String)>,
    /// Set if the path differs here.
    pub(super) href: Option<Refusal>,
}

/// Translates one resource. `kind_of` returns the kind of an imported resource.
///
/// # Errors
///
/// The first rule that the row breaks.
pub(super) fn translate<'k>(
    registry: &EntityRegistry,
    mut row: ResourceRow,
    kind_of: impl Fn(ResourceId) -> Option<&'k str>,
) -> Result<ImportedResource, Refusal> {
    let id = ResourceId::parse(&row.id).ok_or(ImportReason::Id)?;
    let entity = registry.get(&row.kind).ok_or(ImportReason::UnknownKind)?;
    if let Some(here) = kind_of(id).filter(|here| *here != row.kind) {
        return Err(ImportReason::KindChanged.because(here));
    }
    let (bytes_min, bytes_max) = (entity.name_bytes_min, entity.name_bytes_max);
    let name = ResourceName::parse(row.name.clone(), bytes_min, bytes_max);
    name.map_err(|violation| ImportReason::Name.because(violation.message))?;
    let owner = owner(entity, row.owner_id.as_deref(), kind_of)?;
    check_spec(entity, &row.spec)?;
    check_labels(&row.labels)?;
    check_tenancy(&row.tenancy)?;
    if !(1..=i64::from(i32::MAX)).contains(&row.generation) {
        return Err(ImportReason::Column.because(format!("generation is {}", row.generation)));
    }
    for time in [
        Some(&row.created_time),
        Some(&row.updated_time),
        row.deleted_time.as_ref(),
    ] {
        if let Some(time) = time.filter(|time| moment::parse(time).is_none()) {
            return Err(ImportReason::Column.because(format!("a time is {time}")));
        }
    }
    let mut conditions: Vec<Condition> = member(ImportReason::Conditions, &row.conditions)?;
    conditions.sort_by_cached_key(|condition| order(entity, &condition.kind));
    row.conditions = raw(&conditions);
    let deleted_by = row
        .deleted_by
        .or_else(|| Some(DELETED_BY_DEFAULT.to_owned()));
    row.deleted_by = deleted_by.filter(|_| row.deleted_time.is_some());
    let (sound, refused_reports) = reports(row.reports);
    row.reports = sound;
    let here = registry.href(&row.kind, id, owner);
    let there = row.href.as_ref().filter(|there| **there != here);
    let href = there.map(|there| format!("its path is {here} here, and was {there}"));
    Ok(ImportedResource {
        id,
        row,
        refused_reports,
        href: href.map(|href| ImportReason::Href.because(href)),
    })
}

/// Checks a reference of a resource of a kind.
///
/// # Errors
///
/// The kind declares no such reference, or its target is not here.
pub(super) fn check_reference<'k>(
    registry: &EntityRegistry,
    kind: &str,
    row: &ReferenceRow,
    kind_of: impl Fn(ResourceId) -> Option<&'k str>,
) -> Result<(), ImportReason> {
    let mut rules = registry
        .get(kind)
        .into_iter()
        .flat_map(|entity| &entity.references);
    if !rules.any(|r| r.ref_type == row.ref_type && r.target_kind == row.target_kind) {
        return Err(ImportReason::ReferenceType);
    }
    let target = ResourceId::parse(&row.target_id).and_then(kind_of);
    match target {
        Some(kind) if *kind == row.target_kind => Ok(()),
        _ => Err(ImportReason::ReferenceTarget),
    }
}

fn owner<'k>(
    entity: &Entity,
    owner: Option<&str>,
    kind_of: impl Fn(ResourceId) -> Option<&'k str>,
) -> Result<Option<ResourceId>, Refusal> {
    let refusal = |what: String| Err(ImportReason::Parent.because(what));
    let (parent, owner) = match (entity.parent.as_deref(), owner) {
        (None, None) => return Ok(None),
        (Some(parent), Some(owner)) => (parent, owner),
        (None, Some(owner)) => {
            return refusal(format!("it has the parent {owner}, and its kind has none"));
        }
        (Some(parent), None) => {
            return refusal(format!("it has no parent, and its kind is below {parent}"));
        }
    };
    let owner = ResourceId::parse(owner).ok_or(ImportReason::NoParent)?;
    match kind_of(owner).ok_or(ImportReason::NoParent)? {
        kind if kind == parent => Ok(Some(owner)),
        kind => refusal(format!(
            "its parent is of the kind {kind}, and its kind is below {parent}"
        )),
    }
}

fn check_spec(entity: &Entity, spec: &RawValue) -> Result<(), Refusal> {
    let spec = document(spec).map_err(|why| ImportReason::Spec.because(why))?;
    let mut violations = Violations::default();
    entity.check_spec(&spec, &mut violations);
    match violations.into_vec().first() {
        None => Ok(()),
        Some(violation) => {
            Err(ImportReason::Spec.because(format!("{}: {}", violation.field, violation.message)))
        }
    }
}

fn check_labels(text: &RawValue) -> Result<(), Refusal> {
    let labels = Labels::parse(member(ImportReason::Labels, text)?);
    labels.map(drop).map_err(|violations| {
        let messages: Vec<_> = violations
            .iter()
            .map(|violation| violation.message.as_str())
            .collect();
        ImportReason::Labels.because(messages.join("; "))
    })
}

/// Checks that some configuration could have set the tenancy.
fn check_tenancy(text: &RawValue) -> Result<(), Refusal> {
    let tenancy: Tenancy = member(ImportReason::Tenancy, text)?;
    let is_part = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
    for (key, value) in &tenancy {
        let is_sound = (1..=KEY_BYTES_MAX).contains(&key.len())
            && (1..=VALUE_BYTES_MAX).contains(&value.len())
            && value.bytes().all(is_part);
        if !is_sound {
            let why = format!("{key:?}: {value:?} is not a tenant dimension");
            return Err(ImportReason::Tenancy.because(why));
        }
    }
    if tenancy.len() > DIMENSIONS_MAX {
        let why = format!(
            "it has {} dimensions, more than {DIMENSIONS_MAX}",
            tenancy.len()
        );
        return Err(ImportReason::Tenancy.because(why));
    }
    Ok(())
}

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

fn member<T: DeserializeOwned>(reason: ImportReason, text: &RawValue) -> Result<T, Refusal> {
    json(text).map_err(|why| reason.because(why))
}
