//! Schemas without a struct: request bodies, which `wire::requests` reads by hand, and members of answers
//! that the domain serializes. `tests` compare those of requests with the code that reads them.
//!
//! Lengths are characters here and bytes in the code, because a schema cannot say bytes: a text
//! beyond ASCII may fit the schema and be refused.

use serde_json::{Map, Value, json};

use super::names::KindNames;
use crate::domain::audit::Action;
use crate::domain::{Entity, Labels, Report, ResourceName};
use crate::wire::requests::REASON_CHARACTERS_MAX;

/// The syntax of a resource's name, as a regular expression.
const NAME_PATTERN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const LABEL_PATTERN: &str = "^([a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?)?$";

/// The schemas that belong to no kind, by their names.
pub(super) fn fixed() -> Map<String, Value> {
    let schemas = json!({
        "AdapterCondition": {
            "type": "object", "description": "One condition of a report, as it is kept.",
            "required": ["last_transition_time", "status", "type"],
            "properties": {
                "last_transition_time": time("Since when the adapter has been saying this status."),
                "message": {"type": "string", "description": "For people."},
                "reason": {"type": "string", "description": "For programs."},
                "status": reference("AdapterConditionStatus"),
                "type": {"type": "string", "description": "`Available`, `Applied`, `Health`, `Finalized`, or another.", "example": "Available"},
            },
        },
        "AdapterConditionStatus": {
            "type": "string", "description": "Whether a condition holds; `Unknown` where the adapter cannot say yet.",
            "enum": ["True", "False", "Unknown"],
        },
        "AdapterMetadata": {
            "type": "object", "description": "About the job that an adapter ran.",
            "properties": metadata(),
        },
        "AdapterMetadataRequest": {
            "type": "object", "description": "About the job that an adapter ran. Other members are dropped.",
            "properties": metadata_request(),
        },
        "AdapterStatusCreateRequest": {
            "type": "object", "description": "What an adapter says of a resource. Other members are ignored.",
            "required": ["adapter", "conditions", "observed_generation", "observed_time"],
            "properties": {
                "adapter": {"type": "string", "description": "Who reports.", "example": "validation", "minLength": 1, "maxLength": Report::ADAPTER_BYTES_MAX},
                "conditions": {
                    "type": "array", "description": "What it saw: `Available`, `Applied` and `Health` must be there, each type once.",
                    "items": reference("ConditionRequest"), "maxItems": Report::CONDITIONS_MAX,
                },
                "data": {"type": ["object", "null"], "description": "Anything that other adapters are to see."},
                "metadata": {"oneOf": [{"type": "null"}, reference("AdapterMetadataRequest")]},
                "observed_generation": {"type": "integer", "format": "int32", "description": "The generation that it speaks of.", "minimum": 1},
                "observed_time": time("When the adapter looked, by its own clock: at most 5 minutes ahead of the service's and 30\n\
                    minutes old. To be sent; without it the time of arrival is taken."),
            },
        },
        "AuditAction": {
            "type": "string", "description": "What is done to a resource; `hard_delete` is its removal once all work is done.",
            "enum": Action::ALL.map(Action::as_str),
        },
        "ConditionRequest": {
            "type": "object", "description": "One condition of a report.", "required": ["status", "type"],
            "properties": {
                "message": {"type": ["string", "null"], "description": "For people.", "maxLength": Report::MESSAGE_BYTES_MAX},
                "reason": {"type": ["string", "null"], "description": "For programs.", "maxLength": Report::REASON_BYTES_MAX},
                "status": reference("AdapterConditionStatus"),
                "type": {"type": "string", "description": "What it is about.", "example": "Available", "minLength": 1, "maxLength": Report::TYPE_BYTES_MAX},
            },
        },
        "ForceDeleteRequest": {
            "type": "object", "description": "Why a resource is removed although its adapters are not done.", "required": ["reason"],
            "properties": {"reason": {
                "type": "string", "description": "The reason, for the audit trail.", "example": "The adapter is gone and cannot finalize.",
                "minLength": 1, "maxLength": REASON_CHARACTERS_MAX,
            }},
        },
        "ObjectReferenceRequest": {
            "type": "object", "description": "A link to a resource. Other members are ignored.", "required": ["id", "kind"],
            "properties": {
                "id": {"type": "string", "description": "Identity of the target."},
                "kind": {"type": "string", "description": "Its kind."},
            },
        },
        "ResourceCondition": {
            "type": "object", "description": "One fact about a resource, aggregated from reports.",
            "required": ["created_time", "last_transition_time", "last_updated_time", "observed_generation", "status", "type"],
            "properties": {
                "created_time": time("When this type of condition first appeared."),
                "last_transition_time": time("When `status` last changed."),
                "last_updated_time": time("How old the oldest evidence for it is."),
                "message": {"type": "string", "description": "For people."},
                "observed_generation": {"type": "integer", "format": "int32", "description": "The generation that the status speaks of."},
                "reason": {"type": "string", "description": "For programs.", "example": "ReconciledAll"},
                "status": reference("ResourceConditionStatus"),
                "type": {"type": "string", "description": "What it is about, unique within the resource.", "example": "Reconciled"},
            },
        },
        "ResourceConditionStatus": {"type": "string", "description": "Whether a condition of a resource holds.", "enum": ["True", "False"]},
    });
    match schemas {
        Value::Object(schemas) => schemas,
        _ => Map::new(),
    }
}

fn time(description: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": description})
}

fn metadata() -> Value {
    json!({
        "attempt": {"type": "integer", "format": "int32", "description": "Which attempt it was."},
        "completed_time": time("When it ended."),
        "duration": {"type": "string", "description": "How long it took, in the adapter's own notation."},
        "job_name": {"type": "string", "description": "Its name."},
        "job_namespace": {"type": "string", "description": "Where it ran."},
        "started_time": time("When it started."),
    })
}

/// The same as adapters send it: each member may be `null`, and texts have a limit.
fn metadata_request() -> Value {
    let mut members = metadata();
    for member in members
        .as_object_mut()
        .into_iter()
        .flat_map(Map::values_mut)
    {
        if member["type"] == "string" && member.get("format").is_none() {
            member["maxLength"] = json!(Report::METADATA_BYTES_MAX);
        }
        member["type"] = json!([member["type"], "null"]);
    }
    members
}

/// The body of a create: of one kind, or of any of `kinds` where none is given.
pub(super) fn create(entity: Option<&Entity>, kinds: &[&Entity], names: &KindNames) -> Value {
    // A name that one of them allows.
    let min = kinds.iter().map(|e| e.name_bytes_min).min().unwrap_or(0);
    let max = kinds.iter().map(|e| e.name_bytes_max).max();
    let max = max.unwrap_or(ResourceName::BYTES_MAX);
    let mut schema = json!({
        "type": "object", "description": "A resource to be created. Other members are ignored.",
        "required": ["kind", "name", "spec"],
        "properties": {
            "kind": {"type": "string", "description": "Which kind it is to be of."},
            "labels": labels("For grouping and search: keys and values in the syntax of Kubernetes' labels."),
            "name": {
                "type": "string", "minLength": min.max(1), "maxLength": max, "pattern": NAME_PATTERN,
                "description": "Unique among the active resources of its kind, for child kinds among those of one parent.",
            },
            "references": references(entity, "Links to resources that it does not own, by type of link."),
            "spec": spec(entity, names),
        },
    });
    if !kinds.is_empty() {
        schema["properties"]["kind"]["enum"] = kinds.iter().map(|e| json!(e.kind)).collect();
    }
    if entity.is_some_and(|e| e.references.iter().any(|rule| rule.min > 0)) {
        schema["required"] = json!(["kind", "name", "spec", "references"]);
    }
    schema
}

/// The body of a patch: of one kind, or of any where none is given.
pub(super) fn patch(entity: Option<&Entity>, names: &KindNames) -> Value {
    json!({
        "type": "object", "minProperties": 1, "additionalProperties": false,
        "description": "What is to be changed, one member at least. Each member is replaced as a whole; what is absent or `null` stays as it is.",
        "properties": {
            "labels": labels("All labels."),
            "references": references(entity, "All links."),
            "spec": spec(entity, names),
        },
    })
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn labels(description: &str) -> Value {
    json!({"type": ["object", "null"], "description": description, "maxProperties": Labels::COUNT_MAX,
        "additionalProperties": {"type": "string", "maxLength": Labels::VALUE_BYTES_MAX, "pattern": LABEL_PATTERN}})
}

fn spec(entity: Option<&Entity>, names: &KindNames) -> Value {
    match entity {
        Some(_) => reference(&names.schema("Spec")),
        None => json!({"type": "object", "description": "What is wanted."}),
    }
}

fn references(entity: Option<&Entity>, description: &str) -> Value {
    let mut schema = json!({"type": ["object", "null"], "description": description,
        "additionalProperties": {"type": "array", "items": reference("ObjectReferenceRequest")}});
    match entity {
        Some(entity) if entity.references.is_empty() => {
            schema["maxProperties"] = json!(0);
            schema["description"] = json!("Resources of this kind have no links.");
        }
        Some(entity) => schema["description"] = json!(links(entity)),
        None => {}
    }
    schema
}

fn links(entity: &Entity) -> String {
    let rules = entity.references.iter().map(|rule| {
        let max = match rule.max {
            0 => "any number of".to_owned(),
            max => format!("at most {max}"),
        };
        let (ref_type, kind, min) = (&rule.ref_type, &rule.target_kind, rule.min);
        format!("`{ref_type}`: {max} resources of kind `{kind}`, {min} at least")
    });
    let rules = rules.collect::<Vec<_>>().join("; ");
    format!("Links to resources that it does not own, by type of link. {rules}.")
}
