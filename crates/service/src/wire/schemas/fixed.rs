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
use crate::wire::requests::REASON_CHARACTERS_MAX;
use hyperfleet_domain::Report;
use hyperfleet_domain::audit::Action;
use hyperfleet_domain::explain::{AdapterState, RuleState};
use hyperfleet_domain::history::TimelineEventKind;
use hyperfleet_domain::lease::{LeaseDuration, LeaseHolder};
use hyperfleet_domain::patch::JsonPatch;
use hyperfleet_server_kit::openapi::reference;

/// The operations of RFC 6902.
const OPERATIONS: [&str; 6] = ["add", "remove", "replace", "move", "copy", "test"];

/// A text without control characters, and without blanks at its ends.
const HOLDER_PATTERN: &str =
    r"^[^\x00-\x20\x7f-\xa0]([^\x00-\x1f\x7f-\x9f]*[^\x00-\x20\x7f-\xa0])?$";

/// The schemas that belong to no kind, by their names.
pub(super) fn fixed() -> Map<String, Value> {
    let all = [choices(), conditions(), reports(), requests(), patches()];
    let all = all.into_iter().filter_map(|schemas| match schemas {
        Value::Object(schemas) => Some(schemas),
        _ => None,
    });
    all.flatten().collect()
}

/// Names of values.
fn choices() -> Value {
    json!({
        "AdapterConditionStatus": choice("Whether a condition holds; `Unknown` if the adapter does not know yet.", &["True", "False", "Unknown"]),
        "AuditAction": choice("What was done to a resource. `hard_delete` is its removal after all adapters are done.", Action::VARIANTS),
        // Otherwise oapi-codegen 2.5 to 2.7 gives `ResourceConditionStatus` other constants than existing code knows, because
        // `unknown` is also one of `AdapterConditionStatus`.
        "ExplanationAdapterState": own_names("ExplanationAdapterState", AdapterState::VARIANTS, choice("How far an adapter is: `done`; \
            `never_reported`: it has no accepted report; `old_generation`, `future_generation`: its latest accepted report is about another \
            generation; `unknown`, `not_available`: it reports `Available=Unknown`, `Available=False`; `failing`: it reports \
            `Available=False` and `Health=False`; `not_finalized`: it has not cleaned up after the deletion; `not_required`: the resource \
            does not wait for it.", AdapterState::VARIANTS)),
        "ExplanationRuleState": choice("Where a condition comes from: `derived`: the rule derives it; `not_applicable`: `when` of the rule is \
            false; `failed`: the rule fails and the condition stays; `outdated`: the configuration has changed, and the next change or report \
            updates it.", RuleState::VARIANTS),
        "EventType": choice("What happened. `condition` is a change of a condition's status.", TimelineEventKind::VARIANTS),
        "ResourceConditionStatus": choice("Whether a condition of a resource holds.", &["True", "False"]),
    })
}

/// Members of answers, and events of watches.
fn conditions() -> Value {
    json!({
        "AdapterCondition": object("One condition of a report, as it is stored.", &["last_transition_time", "status", "type"], json!({
            "last_transition_time": time("When the adapter first reported this status."),
            "message": text("For people."),
            "reason": text("For programs."),
            "status": named("AdapterConditionStatus"),
            "type": text_with_example("`Available`, `Applied`, `Health`, `Finalized`, or another.", "Available"),
        })),
        "ResourceCondition": object("One fact about a resource, aggregated from reports.", &[
            "created_time", "last_transition_time", "last_updated_time", "observed_generation", "status", "type",
        ], json!({
            "created_time": time("When this type of condition first appeared."),
            "last_transition_time": time("When `status` last changed."),
            "last_updated_time": time("Time of the oldest report that the condition is based on."),
            "message": text("For people."),
            "observed_generation": {"type": "integer", "format": "int32", "description": "The generation that the status is about."},
            "reason": text_with_example("For programs.", "ReconciledAll"),
            "status": named("ResourceConditionStatus"),
            "type": text_with_example("What it is about, unique within the resource.", "Reconciled"),
        })),
        "WatchEvent": object("One event of a watch: a line of `application/x-ndjson`, or the `data` of a server-sent event.", &["type"], json!({
            "etag": text("The tag of the resource, as in `ETag`."),
            "object": free("The resource, or the problem of an `ERROR`. Absent from a `BOOKMARK`."),
            "position": text("Resume position after the event. Absent from the initial resources of a watch with `initial`."),
            "type": choice("How the list changed.", &["ADDED", "BOOKMARK", "DELETED", "ERROR", "MODIFIED"]),
        })),
    })
}

/// The bodies of reports.
fn reports() -> Value {
    let mut metadata = metadata();
    metadata["description"] =
        json!("About the job that an adapter ran. Other members are dropped.");
    for member in ["duration", "job_name", "job_namespace"] {
        metadata["properties"][member]["maxLength"] = json!(Report::METADATA_BYTES_MAX);
    }
    json!({
        "AdapterStatusCreateRequest": object("An adapter's report on a resource. Other members are ignored.", &[
            "adapter", "conditions", "observed_generation", "observed_time",
        ], json!({
            "adapter": {"type": "string", "description": "Name of the adapter.", "example": "validation", "minLength": 1, "maxLength": Report::ADAPTER_BYTES_MAX},
            "conditions": {
                "type": "array", "description": "Observed conditions. `Available`, `Applied` and `Health` are required. Types must be unique.",
                "items": named("ConditionRequest"), "maxItems": Report::CONDITIONS_MAX,
            },
            "data": free("Data for other adapters."),
            "metadata": metadata,
            "observed_generation": {"type": "integer", "format": "int32", "description": "The generation that the adapter observed.", "minimum": 1},
            "observed_time": time("When the adapter observed the resource, by its own clock: at most 5 minutes ahead of the service's clock\n\
                and at most 30 minutes old. Should be sent. Default: the time of arrival."),
        })),
        "ConditionRequest": object("One condition of a report.", &["status", "type"], json!({
            "message": {"type": "string", "description": "For people.", "maxLength": Report::MESSAGE_BYTES_MAX},
            "reason": {"type": "string", "description": "For programs.", "maxLength": Report::REASON_BYTES_MAX},
            "status": named("AdapterConditionStatus"),
            "type": {"type": "string", "description": "What it is about.", "example": "Available", "minLength": 1, "maxLength": Report::TYPE_BYTES_MAX},
        })),
    })
}

/// The bodies of requests that are neither resources nor patches nor reports.
fn requests() -> Value {
    json!({
        "ForceDeleteRequest": object("Why a resource is removed although its adapters are not done.", &["reason"], json!({"reason": {
            "type": "string", "description": "The reason, for the audit trail.", "example": "The adapter is gone and cannot finalize.",
            "minLength": 1, "maxLength": REASON_CHARACTERS_MAX,
        }})),
        "LeaseRequest": object("A claim of a lease. Other members are ignored.", &["duration_seconds", "holder"], json!({
            "duration_seconds": {
                "type": "integer", "format": "int32", "description": "Duration of the lease after this request.", "example": 15,
                "minimum": 1, "maximum": LeaseDuration::SECONDS_MAX,
            },
            "holder": {
                "type": "string", "description": "Unique name of the program's copy.", "example": "dns-adapter-7c9f-1",
                "minLength": 1, "maxLength": LeaseHolder::CHARACTERS_MAX, "pattern": HOLDER_PATTERN,
            },
        })),
    })
}

/// The bodies of patches that are not plain JSON, which are the same for every kind.
fn patches() -> Value {
    let mut merge = object(
        "The changes (RFC 7396). Objects are merged member by member, `null` removes a member, and every \
        other value is replaced entirely.",
        &[],
        json!({
            // No `nullable`, as in the other schemas: any JSON includes `null`.
            "labels": free("Labels to set, or to remove with `null`."),
            "references": free("Types of references to replace, or to remove with `null`."),
            "spec": free("Members to set, or to remove with `null`."),
        }),
    );
    merge["additionalProperties"] = json!(false);
    json!({
        "JsonPatch": {
            "type": "array", "description": "Operations on `labels`, `references` and `spec` of the resource, in their order (RFC 6902).",
            "items": named("JsonPatchOperation"), "maxItems": JsonPatch::OPERATIONS_MAX,
        },
        "JsonPatchOperation": object("One operation of a patch. Other members are ignored.", &["op", "path"], json!({
            "from": pointer("Where `move` and `copy` take the value from."),
            // Otherwise constants in Go have the names `Add` and `Copy`, which a kind may have.
            "op": own_names("JsonPatchOperation", &OPERATIONS, choice("What to do; a failed `test` refuses the patch.", &OPERATIONS)),
            "path": pointer("The value that the operation changes or tests."),
            "value": {"description": "The value of `add`, `replace` and `test`: any JSON."},
        })),
        "MergePatch": merge,
    })
}

/// The metadata of a report. Inline in both schemas that contain it: that is the type which existing clients know.
pub(super) fn metadata() -> Value {
    json!({"type": "object", "description": "About the job that an adapter ran.", "properties": {
        "attempt": {"type": "integer", "format": "int32", "description": "Number of the attempt."},
        "completed_time": time("When it ended."),
        "duration": text("How long it took, in the adapter's own notation."),
        "job_name": text("Its name."),
        "job_namespace": text("Where it ran."),
        "started_time": time("When it started."),
    }})
}

fn object(description: &str, required: &[&str], properties: Value) -> Value {
    let mut object = json!({"type": "object", "description": description});
    object["properties"] = properties;
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

/// Any object.
fn free(description: &str) -> Value {
    json!({"type": "object", "description": description, "additionalProperties": true})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn text_with_example(description: &str, example: &str) -> Value {
    json!({"type": "string", "description": description, "example": example})
}

fn time(description: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": description})
}

/// A JSON Pointer into a patchable member.
fn pointer(description: &str) -> Value {
    json!({"type": "string", "description": description, "pattern": "^/(labels|references|spec)(/|$)", "example": "/spec/region"})
}

fn choice(description: &str, values: &[&str]) -> Value {
    json!({"type": "string", "description": description, "enum": values})
}

/// Gives the values names of their own in generated code.
fn own_names(prefix: &str, values: &[&str], mut choice: Value) -> Value {
    let names = values
        .iter()
        .map(|value| format!("{prefix}{}", pascal(value)));
    choice["x-enumNames"] = names.collect();
    choice
}

/// Refers to a schema.
pub(super) fn named(name: &str) -> Value {
    reference("schemas", name)
}
