//! Bodies of requests as schemas. `wire::requests` reads bodies by hand, so these structs are never
//! filled: they describe what it takes, and `tests` here hold the two together.
//!
//! Lengths are counted in characters here and in bytes there: a schema cannot say bytes. A text
//! beyond ASCII may thus fit the schema and be refused.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::json;
use utoipa::openapi::schema::{AdditionalProperties, Object, Schema};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{PartialSchema as _, ToSchema};

use super::names::KindNames;
use super::object::object;
use crate::domain::{Entity, Labels, Report, ResourceName};
use crate::wire::members::AdapterConditionStatus;
use crate::wire::requests::REASON_CHARACTERS_MAX;

/// The syntax of a resource's name, as a regular expression.
const NAME_PATTERN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

#[derive(ToSchema)]
#[schema(description = "A resource to be created. Other members are ignored.")]
#[expect(dead_code, reason = "describes what wire::requests::resource reads")]
struct CreateRequest {
    /// Which kind it is to be of.
    kind: String,
    /// For grouping and search: keys and values in the syntax of Kubernetes' labels.
    labels: Option<BTreeMap<String, String>>,
    /// Unique among the active resources of its kind, for child kinds among those of one parent.
    name: String,
    /// Links to resources that it does not own, by type of link.
    references: Option<BTreeMap<String, Vec<ObjectReferenceRequest>>>,
    /// What is wanted.
    #[schema(value_type = Object)]
    spec: (),
}

#[derive(ToSchema)]
#[schema(
    description = "What is to be changed, one member at least. Each member is replaced as a whole; what is absent or `null` stays as it is."
)]
#[expect(dead_code, reason = "describes what wire::requests::patch reads")]
struct PatchRequest {
    /// All labels.
    labels: Option<BTreeMap<String, String>>,
    /// All links.
    references: Option<BTreeMap<String, Vec<ObjectReferenceRequest>>>,
    /// What is wanted.
    #[schema(value_type = Object, required = false)]
    spec: (),
}

/// A link to a resource. Other members are ignored.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what wire::requests::target reads")]
pub(super) struct ObjectReferenceRequest {
    /// Identity of the target.
    id: String,
    /// Its kind.
    kind: String,
}

/// Why a resource is removed although its adapters are not done.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "describes what wire::requests::force_delete reads"
)]
pub(super) struct ForceDeleteRequest {
    /// The reason, for the audit trail.
    #[schema(example = "The adapter is gone and cannot finalize.")]
    reason: String,
}

/// What an adapter says of a resource. Other members are ignored.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what wire::requests::report reads")]
pub(super) struct AdapterStatusCreateRequest {
    /// Who reports.
    #[schema(example = "validation")]
    adapter: String,
    /// What it saw: `Available`, `Applied` and `Health` must be there, each type once.
    conditions: Vec<ConditionRequest>,
    /// Anything that other adapters are to see.
    #[schema(value_type = Option<Object>)]
    data: (),
    metadata: Option<AdapterMetadataRequest>,
    /// The generation that it speaks of.
    #[schema(minimum = 1)]
    observed_generation: i32,
    /// When the adapter looked, by its own clock: at most 5 minutes ahead of the service's and 30
    /// minutes old. To be sent; without it the time of arrival is taken.
    observed_time: DateTime<Utc>,
}

/// One condition of a report.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what wire::requests::condition reads")]
pub(super) struct ConditionRequest {
    /// For people.
    message: Option<String>,
    /// For programs.
    reason: Option<String>,
    status: AdapterConditionStatus,
    /// What it is about.
    #[schema(example = "Available")]
    r#type: String,
}

/// About the job that an adapter ran. Other members are dropped.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes what wire::requests::metadata reads")]
pub(super) struct AdapterMetadataRequest {
    /// Which attempt it was.
    attempt: Option<i32>,
    /// When it ended.
    completed_time: Option<DateTime<Utc>>,
    /// How long it took, in the adapter's own notation.
    duration: Option<String>,
    /// Its name.
    job_name: Option<String>,
    /// Where it ran.
    job_namespace: Option<String>,
    /// When it started.
    started_time: Option<DateTime<Utc>>,
}

/// The body of a create: of one kind, or of any of `kinds` where none is given.
pub(super) fn create(entity: Option<&Entity>, kinds: &[&Entity], names: &KindNames) -> Object {
    let mut schema = object(CreateRequest::schema());
    if let Some(kind) = member(&mut schema, "kind").filter(|_| !kinds.is_empty()) {
        kind.enum_values = Some(kinds.iter().map(|e| json!(e.kind)).collect());
    }
    // A name that one of them allows.
    let min = kinds.iter().map(|e| e.name_bytes_min).min().unwrap_or(0);
    let max = kinds.iter().map(|e| e.name_bytes_max).max();
    let max = max.unwrap_or(ResourceName::BYTES_MAX);
    limit(&mut schema, "name", min.max(1), max);
    if let Some(name) = member(&mut schema, "name") {
        name.pattern = Some(NAME_PATTERN.to_owned());
    }
    fit(&mut schema, entity, names);
    if entity.is_some_and(|e| e.references.iter().any(|rule| rule.min > 0)) {
        schema.required.push("references".to_owned());
    }
    schema
}

/// The body of a patch: of one kind, or of any where none is given.
pub(super) fn patch(entity: Option<&Entity>, names: &KindNames) -> Object {
    let mut schema = object(PatchRequest::schema());
    schema.min_properties = Some(1);
    schema.additional_properties = Some(Box::new(AdditionalProperties::FreeForm(false)));
    fit(&mut schema, entity, names);
    schema
}

/// The body of a force-delete.
pub(super) fn force_delete() -> Object {
    let mut schema = object(ForceDeleteRequest::schema());
    limit(&mut schema, "reason", 1, REASON_CHARACTERS_MAX);
    schema
}

/// The body of a report.
pub(super) fn report() -> Object {
    let mut schema = object(AdapterStatusCreateRequest::schema());
    limit(&mut schema, "adapter", 1, Report::ADAPTER_BYTES_MAX);
    if let Some(RefOr::T(Schema::Array(conditions))) = schema.properties.get_mut("conditions") {
        conditions.max_items = Some(Report::CONDITIONS_MAX);
    }
    schema
}

/// One condition of a report.
pub(super) fn condition() -> Object {
    let mut schema = object(ConditionRequest::schema());
    limit(&mut schema, "type", 1, Report::TYPE_BYTES_MAX);
    limit(&mut schema, "reason", 0, Report::REASON_BYTES_MAX);
    limit(&mut schema, "message", 0, Report::MESSAGE_BYTES_MAX);
    schema
}

/// The metadata of a report.
pub(super) fn metadata() -> Object {
    let mut schema = object(AdapterMetadataRequest::schema());
    for text in ["duration", "job_name", "job_namespace"] {
        limit(&mut schema, text, 0, Report::METADATA_BYTES_MAX);
    }
    schema
}

/// Sets how long a text may be.
fn limit(schema: &mut Object, name: &str, min: usize, max: usize) {
    if let Some(text) = member(schema, name) {
        text.min_length = Some(min).filter(|min| *min > 0);
        text.max_length = Some(max);
    }
}

/// The members of both that depend on the kind.
fn fit(schema: &mut Object, entity: Option<&Entity>, names: &KindNames) {
    if let Some(labels) = member(schema, "labels") {
        labels.max_properties = Some(Labels::COUNT_MAX);
        if let Some(AdditionalProperties::RefOr(RefOr::T(Schema::Object(value)))) =
            labels.additional_properties.as_deref_mut()
        {
            value.max_length = Some(Labels::VALUE_BYTES_MAX);
            value.pattern = Some("^([a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?)?$".to_owned());
        }
    }
    let Some(entity) = entity else { return };
    let spec = Ref::from_schema_name(names.schema("Spec"));
    schema.properties.insert("spec".to_owned(), spec.into());
    if entity.references.is_empty() {
        if let Some(references) = member(schema, "references") {
            references.max_properties = Some(0);
            references.description = Some("Resources of this kind have no links.".to_owned());
        }
    } else if let Some(references) = member(schema, "references") {
        references.description = Some(links(entity));
    }
}

fn links(entity: &Entity) -> String {
    let rules = entity.references.iter().map(|rule| {
        let max = if rule.max == 0 {
            "any number of".to_owned()
        } else {
            format!("at most {}", rule.max)
        };
        format!(
            "`{}`: {max} resources of kind `{}`, {} at least",
            rule.ref_type, rule.target_kind, rule.min
        )
    });
    let rules: Vec<_> = rules.collect();
    format!(
        "Links to resources that it does not own, by type of link. {}.",
        rules.join("; ")
    )
}

fn member<'a>(schema: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    match schema.properties.get_mut(name) {
        Some(RefOr::T(Schema::Object(member))) => Some(member),
        _ => None,
    }
}
