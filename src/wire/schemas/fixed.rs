//! Schemas without a struct: request bodies, which `wire::requests` and `wire::patch` read by hand, and members of answers that the
//! domain serializes. `tests` compares those of requests with the code that reads them.
//!
//! In requests, `null` counts as an absent member. The schemas do not say so, because generators turn a nullable
//! member into another type, and existing clients know the plain one.
//!
//! Lengths are characters here and bytes in the code, because a schema cannot count bytes. So a text with non-ASCII
//! characters may fit the schema and still be refused.

use serde_json::{Map, Value, json};
use strum::VariantNames as _;

use super::pascal;
use crate::domain::Report;
use crate::domain::audit::Action;
use crate::domain::explain::{AdapterState, RuleState};
use crate::domain::history::TimelineEventKind;
use crate::domain::lease::{LeaseDuration, LeaseHolder};
use crate::domain::patch::JsonPatch;
use crate::wire::requests::REASON_CHARACTERS_MAX;

/// The operations of RFC 6902.
const OPERATIONS: [&str; 6] = ["add", "remove", "replace", "move", "copy", "test"];

/// A text without control characters, and without blanks at its ends.
const HOLDER_PATTERN: &str =
    r"^[^\x00-\x20\x7f-\xa0]([^\x00-\x1f\x7f-\x9f]*[^\x00-\x20\x7f-\xa0])?$";

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
        "AdapterStatusCreateRequest": {
            "type": "object", "description": "What an adapter says of a resource. Other members are ignored.",
            "required": ["adapter", "conditions", "observed_generation", "observed_time"],
            "properties": {
                "adapter": {"type": "string", "description": "Who reports.", "example": "validation", "minLength": 1, "maxLength": Report::ADAPTER_BYTES_MAX},
                "conditions": {
                    "type": "array", "description": "What it saw: `Available`, `Applied` and `Health` must be there, each type once.",
                    "items": reference("ConditionRequest"), "maxItems": Report::CONDITIONS_MAX,
                },
                "data": {"type": "object", "additionalProperties": true, "description": "Anything that other adapters are to see."},
                "metadata": metadata_request(),
                "observed_generation": {"type": "integer", "format": "int32", "description": "The generation that it speaks of.", "minimum": 1},
                "observed_time": time("When the adapter looked, by its own clock: at most 5 minutes ahead of the service's and 30\n\
                    minutes old. To be sent; without it the time of arrival is taken."),
            },
        },
        "AuditAction": {
            "type": "string", "description": "What is done to a resource; `hard_delete` is its removal once all work is done.",
            "enum": Action::VARIANTS,
        },
        "ConditionRequest": {
            "type": "object", "description": "One condition of a report.", "required": ["status", "type"],
            "properties": {
                "message": {"type": "string", "description": "For people.", "maxLength": Report::MESSAGE_BYTES_MAX},
                "reason": {"type": "string", "description": "For programs.", "maxLength": Report::REASON_BYTES_MAX},
                "status": reference("AdapterConditionStatus"),
                "type": {"type": "string", "description": "What it is about.", "example": "Available", "minLength": 1, "maxLength": Report::TYPE_BYTES_MAX},
            },
        },
        "ExplanationAdapterState": {
            "type": "string",
            "description": "How far an adapter is: `done`; `never_reported`: it has no accepted report; `old_generation`, `future_generation`: \
                its latest accepted report is about another generation; `unknown`, `not_available`: it reports `Available=Unknown`, `Available=False`; `failing`: it reports \
                `Available=False` and `Health=False`; `not_finalized`: it has not \
                cleaned up after the deletion; `not_required`: the resource does not wait for it.",
            "enum": AdapterState::VARIANTS,
            // Otherwise oapi-codegen 2.5 to 2.7 gives `ResourceConditionStatus` other constants than existing code knows, because
            // `unknown` is also one of `AdapterConditionStatus`.
            "x-enumNames": AdapterState::VARIANTS.iter().map(|name| format!("ExplanationAdapterState{}", pascal(name))).collect::<Vec<_>>(),
        },
        "ExplanationRuleState": {
            "type": "string",
            "description": "Where a condition comes from: `derived`: the rule derives it; `not_applicable`: `when` of the rule is false; `failed`: \
                the rule fails and the condition stays; `outdated`: the configuration has changed, and the next change or report updates it.",
            "enum": RuleState::VARIANTS,
        },
        "EventType": {
            "type": "string", "description": "What happened: `condition` is another status of a condition.",
            "enum": TimelineEventKind::VARIANTS,
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
        "WatchEvent": {
            "type": "object", "description": "One event of a watch: a line of `application/x-ndjson`, or the `data` of a server-sent event.", "required": ["type"],
            "properties": {
                "etag": {"type": "string", "description": "The tag of the resource, as in `ETag`."},
                "object": {"type": "object", "additionalProperties": true, "description": "The resource; of an `ERROR` what is wrong; absent from a `BOOKMARK`."},
                "position": {"type": "string", "description": "Where to continue after the event. Absent from the resources that a watch with `initial` begins with."},
                "type": {"type": "string", "description": "What happened to the list.", "enum": ["ADDED", "BOOKMARK", "DELETED", "ERROR", "MODIFIED"]},
            },
        },
    });
    let schemas = [
        members_of(schemas),
        members_of(patches()),
        members_of(other_requests()),
    ];
    schemas.into_iter().flatten().collect()
}

/// The bodies of requests that are neither resources nor patches nor reports.
fn other_requests() -> Value {
    json!({
        "ForceDeleteRequest": {
            "type": "object", "description": "Why a resource is removed although its adapters are not done.", "required": ["reason"],
            "properties": {"reason": {
                "type": "string", "description": "The reason, for the audit trail.", "example": "The adapter is gone and cannot finalize.",
                "minLength": 1, "maxLength": REASON_CHARACTERS_MAX,
            }},
        },
        "LeaseRequest": {
            "type": "object", "description": "Who is to hold a lease, and for how long. Other members are ignored.",
            "required": ["duration_seconds", "holder"],
            "properties": {
                "duration_seconds": {
                    "type": "integer", "format": "int32", "description": "How long the lease lasts after this request.", "example": 15,
                    "minimum": 1, "maximum": LeaseDuration::SECONDS_MAX,
                },
                "holder": {
                    "type": "string", "description": "The copy of the program, by a name that no other copy has.", "example": "dns-adapter-7c9f-1",
                    "minLength": 1, "maxLength": LeaseHolder::CHARACTERS_MAX, "pattern": HOLDER_PATTERN,
                },
            },
        },
    })
}

fn members_of(schemas: Value) -> Map<String, Value> {
    match schemas {
        Value::Object(schemas) => schemas,
        _ => Map::new(),
    }
}

/// The bodies of patches that are not plain JSON, which are the same for every kind.
fn patches() -> Value {
    json!({
        "JsonPatch": {
            "type": "array", "description": "Operations on `labels`, `references` and `spec` of the resource, in their order (RFC 6902).",
            "items": reference("JsonPatchOperation"), "maxItems": JsonPatch::OPERATIONS_MAX,
        },
        "JsonPatchOperation": {
            "type": "object", "description": "One operation of a patch. Other members are ignored.", "required": ["op", "path"],
            "properties": {
                "from": pointer("Where `move` and `copy` take the value from."),
                "op": {
                    "type": "string", "description": "What to do; a failed `test` refuses the patch.",
                    "enum": OPERATIONS,
                    // Otherwise constants in Go have the names `Add` and `Copy`, which a kind may have.
                    "x-enumNames": OPERATIONS.map(|name| format!("JsonPatchOperation{}", pascal(name))),
                },
                "path": pointer("Which value the operation is about."),
                "value": {"description": "The value of `add`, `replace` and `test`: any JSON."},
            },
        },
        "MergePatch": {
            "type": "object", "description": "What is to be changed (RFC 7396). Objects are merged member by member, `null` removes a member, everything \
                else is replaced as a whole.",
            "additionalProperties": false,
            "properties": {
                // No `nullable`, as in the other schemas: any JSON includes `null`.
                "labels": {"type": "object", "description": "Labels to set, or with `null` to remove.", "additionalProperties": true},
                "references": {"type": "object", "description": "Types of links to replace, or with `null` to remove.", "additionalProperties": true},
                "spec": {"type": "object", "description": "Members to set, or with `null` to remove.", "additionalProperties": true},
            },
        },
    })
}

fn time(description: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": description})
}

/// A JSON Pointer into a patchable member.
fn pointer(description: &str) -> Value {
    json!({"type": "string", "description": description, "pattern": "^/(labels|references|spec)(/|$)", "example": "/spec/region"})
}

/// The metadata of a report. Inline in both schemas that contain it: that is the type which existing clients know.
pub(super) fn metadata() -> Value {
    json!({"type": "object", "description": "About the job that an adapter ran.", "properties": {
        "attempt": {"type": "integer", "format": "int32", "description": "Which attempt it was."},
        "completed_time": time("When it ended."),
        "duration": {"type": "string", "description": "How long it took, in the adapter's own notation."},
        "job_name": {"type": "string", "description": "Its name."},
        "job_namespace": {"type": "string", "description": "Where it ran."},
        "started_time": time("When it started."),
    }})
}

/// The metadata that adapters send: its texts have a limit.
fn metadata_request() -> Value {
    let mut schema = metadata();
    schema["description"] = json!("About the job that an adapter ran. Other members are dropped.");
    for member in schema["properties"]
        .as_object_mut()
        .into_iter()
        .flat_map(Map::values_mut)
    {
        if member["type"] == "string" && member.get("format").is_none() {
            member["maxLength"] = json!(Report::METADATA_BYTES_MAX);
        }
    }
    schema
}

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}
