//! Bodies and parameters as schemas, for the OpenAPI document. What can be derived from the structs
//! of answers is; the rest describes what is read by hand, next to tests that hold them together.

mod answers;
pub mod examples;
mod names;
mod object;
pub mod parameters;
mod requests;
mod specs;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use utoipa::openapi::schema::{Object, Schema};
use utoipa::openapi::{Components, ComponentsBuilder};
use utoipa::{PartialSchema, ToSchema};

use crate::domain::{Entity, EntityRegistry};
use crate::wire::members::{
    AdapterCondition, AdapterConditionStatus, AdapterMetadata, AuditAction, ResourceCondition,
    ResourceConditionStatus,
};
use crate::wire::views::{EntryView, LinkView, ReportView};

pub use names::{KindNames, Names};

const AUDIT_ACTION: &str = "AuditAction";

/// Every schema of bodies: those of each kind, of resources of any kind, of reports and of the
/// audit trail. Specs are left to [`specs()`].
pub fn components(registry: &EntityRegistry, names: &Names) -> Components {
    let mut builder = fixed();
    for entity in registry.entities() {
        builder = of_kind(builder, Some(entity), &[entity], names);
    }
    let roots = registry.entities().iter().filter(|e| e.parent.is_none());
    of_kind(builder, None, &roots.collect::<Vec<_>>(), names).build()
}

/// The schemas of the specs of every kind, with what they refer to, by their names in the document. A
/// kind without one takes any object.
pub fn specs(registry: &EntityRegistry, names: &Names) -> Vec<(String, Value)> {
    let entities = registry.entities().iter();
    let specs = entities.flat_map(|entity| {
        let name = names.of(Some(&entity.kind)).schema("Spec");
        match &entity.spec_schema {
            Some(schema) => specs::components(&name, schema),
            None => vec![(name, json!(object::any_spec(&entity.kind)))],
        }
    });
    specs.collect()
}

fn of_kind(
    builder: ComponentsBuilder,
    entity: Option<&Entity>,
    kinds: &[&Entity],
    names: &Names,
) -> ComponentsBuilder {
    let kind = entity.map(|e| e.kind.as_str());
    let names = names.of(kind);
    let list = format!("{}List", kind.unwrap_or("Resource"));
    let of = |suffix: &str, schema: Object| (names.schema(suffix), Schema::Object(schema));
    builder.schemas_from_iter([
        of("", answers::resource(entity, names)),
        of("List", answers::list(&list, &names.one)),
        of("Status", answers::status()),
        of("CreateRequest", requests::create(entity, kinds, names)),
        of("PatchRequest", requests::patch(entity, names)),
    ])
}

/// The schemas that belong to no kind.
fn fixed() -> ComponentsBuilder {
    let derived = [
        named::<AdapterCondition>("AdapterCondition"),
        named::<AdapterConditionStatus>("AdapterConditionStatus"),
        named::<AdapterMetadata>("AdapterMetadata"),
        named::<ReportView<'_>>("AdapterStatus"),
        named::<AuditAction>(AUDIT_ACTION),
        named::<EntryView<'_>>("AuditEntry"),
        named::<LinkView<'_>>("ObjectReference"),
        named::<requests::ObjectReferenceRequest>("ObjectReferenceRequest"),
        named::<ResourceCondition>("ResourceCondition"),
        named::<ResourceConditionStatus>("ResourceConditionStatus"),
    ];
    let made = [
        ("AdapterMetadataRequest", requests::metadata()),
        ("AdapterStatusCreateRequest", requests::report()),
        (
            "AdapterStatusList",
            answers::numbered_list("AdapterStatusList", "AdapterStatus"),
        ),
        (
            "AuditList",
            answers::numbered_list("AuditList", "AuditEntry"),
        ),
        ("ConditionRequest", requests::condition()),
        ("ForceDeleteRequest", requests::force_delete()),
        ("SparseResource", answers::sparse_resource()),
    ];
    let made = made.map(|(name, schema)| (name, Schema::Object(schema)));
    ComponentsBuilder::new()
        .schemas_from_iter(derived)
        .schemas_from_iter(made)
}

/// A derived schema, under the name that others know it by.
fn named<T: ToSchema>(name: &'static str) -> (&'static str, utoipa::openapi::RefOr<Schema>) {
    debug_assert!(T::name() == name, "{} is not {name}", T::name());
    (name, <T as PartialSchema>::schema())
}
