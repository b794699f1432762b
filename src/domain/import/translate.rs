//! Translates rows of the older service to a resource of this one. The import accepts what POST and PUT would accept,
//! and keeps the rest of a row: id, times, generation, authors, conditions.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::document::{document, json};
use super::finding::href_differs;
use super::reports::{ImportedReport, reports};
use super::row::SourceResource;
use super::{ImportReason, ImportedParts, order};
use crate::domain::tenancy::{DIMENSIONS_MAX, KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::domain::{
    Condition, Deletion, Entity, EntityRegistry, Labels, References, Resource, ResourceId,
    ResourceName, ResourceState, Tenancy, Violations, moment,
};

/// The author of a deletion without one in the source: the older service's own default.
pub const DELETED_BY_DEFAULT: &str = "system@hyperfleet.local";

/// A resource that passed the rules, ready to be stored.
#[derive(Debug)]
pub struct ImportedResource {
    /// The resource. Its references follow, once their targets are here.
    pub resource: Resource,
    /// The spec exactly as in the source.
    pub spec: Box<RawValue>,
    pub reports: Vec<ImportedReport>,
    /// Adapters of refused reports, each with the reason.
    pub refused_reports: Vec<(String, ImportReason)>,
    /// Whether the source has references of the resource.
    pub has_references: bool,
    /// Set if the path differs here.
    pub href: Option<ImportReason>,
}

impl ImportedResource {
    /// How much of it is here once the resource and its reports are written.
    pub fn parts(&self) -> ImportedParts {
        if self.has_references {
            ImportedParts::Older
        } else if self.refused_reports.is_empty() {
            ImportedParts::All
        } else {
            ImportedParts::Accepted
        }
    }
}

/// Translates one resource. `kind_of` returns the kind of an imported resource.
///
/// # Errors
///
/// The first rule that the row breaks.
pub fn translate<'k>(
    registry: &EntityRegistry,
    row: SourceResource,
    kind_of: impl FnOnce(ResourceId) -> Option<&'k str>,
) -> Result<ImportedResource, ImportReason> {
    let id = ResourceId::parse(&row.id).ok_or(ImportReason::Id)?;
    let entity = registry.get(&row.kind).ok_or(ImportReason::UnknownKind)?;
    let name = ResourceName::parse(row.name, entity.name_bytes_min, entity.name_bytes_max);
    let name = name.map_err(|violation| ImportReason::Name(violation.message))?;
    let owner = owner(entity, row.owner_id.as_deref(), kind_of)?;
    let (spec, text) = document(row.spec).map_err(ImportReason::Spec)?;
    check_spec(entity, &spec)?;
    let mut conditions: Vec<Condition> = json(&row.conditions).map_err(ImportReason::Conditions)?;
    conditions.sort_by_cached_key(|condition| order(entity, &condition.kind));
    let deletion = match row.deleted_time {
        None => None,
        Some(at) => Some(Deletion {
            at: time("deleted_time", &at)?,
            by: row
                .deleted_by
                .unwrap_or_else(|| DELETED_BY_DEFAULT.to_owned()),
        }),
    };
    let (reports, refused_reports) = reports(&row.reports)?;
    let state = ResourceState {
        id,
        kind: row.kind,
        name,
        owner,
        generation: generation(row.generation)?,
        revision: 1,
        updated_at: time("updated_time", &row.updated_time)?,
        deletion,
        conditions,
    };
    Ok(ImportedResource {
        href: href_differs(registry.href(&state.kind, id, owner), row.href.as_deref()),
        resource: Resource {
            state,
            spec,
            labels: labels(&row.labels)?,
            references: References::new(),
            tenancy: tenancy(&row.tenancy)?,
            created_at: time("created_time", &row.created_time)?,
            created_by: row.created_by,
            updated_by: row.updated_by,
        },
        spec: text,
        reports,
        refused_reports,
        has_references: row.has_references,
    })
}

fn owner<'k>(
    entity: &Entity,
    owner: Option<&str>,
    kind_of: impl FnOnce(ResourceId) -> Option<&'k str>,
) -> Result<Option<ResourceId>, ImportReason> {
    let (parent, owner) = match (entity.parent.as_deref(), owner) {
        (None, None) => return Ok(None),
        (Some(parent), Some(owner)) => (parent, owner),
        (None, Some(owner)) => {
            return Err(ImportReason::Parent(format!(
                "it has the parent {owner}, and its kind has none"
            )));
        }
        (Some(parent), None) => {
            return Err(ImportReason::Parent(format!(
                "it has no parent, and its kind is below {parent}"
            )));
        }
    };
    let owner = ResourceId::parse(owner).ok_or(ImportReason::NoParent)?;
    match kind_of(owner) {
        None => Err(ImportReason::NoParent),
        Some(kind) if kind == parent => Ok(Some(owner)),
        Some(kind) => Err(ImportReason::Parent(format!(
            "its parent is of the kind {kind}, and its kind is below {parent}"
        ))),
    }
}

fn check_spec(entity: &Entity, spec: &Map<String, Value>) -> Result<(), ImportReason> {
    let mut faults = Violations::default();
    entity.check_spec(spec, &mut faults);
    match faults.into_vec().into_iter().next() {
        None => Ok(()),
        Some(fault) => Err(ImportReason::Spec(format!(
            "{}: {}",
            fault.field, fault.message
        ))),
    }
}

fn labels(text: &str) -> Result<Labels, ImportReason> {
    let labels = json(text).map_err(ImportReason::Labels)?;
    Labels::parse(labels).map_err(|faults| {
        let messages: Vec<_> = faults.iter().map(|fault| fault.message.as_str()).collect();
        ImportReason::Labels(messages.join("; "))
    })
}

/// A tenancy that some configuration could have set.
fn tenancy(text: &str) -> Result<Tenancy, ImportReason> {
    let tenancy: Tenancy = json(text).map_err(ImportReason::Tenancy)?;
    let is_sound = |key: &str, value: &str| {
        let is_part = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        (1..=KEY_BYTES_MAX).contains(&key.len())
            && (1..=VALUE_BYTES_MAX).contains(&value.len())
            && value.bytes().all(is_part)
    };
    if let Some((key, value)) = tenancy.iter().find(|(key, value)| !is_sound(key, value)) {
        return Err(ImportReason::Tenancy(format!(
            "{key:?}: {value:?} is not a tenant dimension"
        )));
    }
    if tenancy.len() > DIMENSIONS_MAX {
        let count = tenancy.len();
        return Err(ImportReason::Tenancy(format!(
            "it has {count} dimensions, more than {DIMENSIONS_MAX}"
        )));
    }
    Ok(tenancy)
}

fn generation(generation: i64) -> Result<i32, ImportReason> {
    let sound = i32::try_from(generation).ok().filter(|g| *g >= 1);
    sound.ok_or_else(|| ImportReason::Column {
        column: "generation",
        value: generation.to_string(),
    })
}

fn time(column: &'static str, text: &str) -> Result<chrono::DateTime<chrono::Utc>, ImportReason> {
    moment::parse(text).ok_or_else(|| ImportReason::Column {
        column,
        value: text.to_owned(),
    })
}
