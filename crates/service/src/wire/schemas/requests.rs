//! Schemas of the requests that create and change a resource of one kind.

use serde_json::{Value, json};

use super::fixed::named;
use super::names::KindNames;
use hyperfleet_domain::{Entity, Labels, ResourceName};

/// Members of creates that the service ignores, and the older document names.
pub(super) const IGNORED: [&str; 2] = ["href", "id"];
/// The syntax of a resource's name, as a regular expression.
const NAME_PATTERN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const LABEL_PATTERN: &str = "^([a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?)?$";

/// The body of a create: of one kind, or of any of `kinds`.
pub(super) fn create(entity: Option<&Entity>, kinds: &[&Entity], names: &KindNames) -> Value {
    // A name that at least one of the kinds allows.
    let min = kinds.iter().map(|e| e.name_bytes_min).min().unwrap_or(0);
    let max = kinds.iter().map(|e| e.name_bytes_max).max();
    let max = max.unwrap_or(ResourceName::BYTES_MAX);
    let mut schema = json!({
        "type": "object", "description": "A resource to be created. Other members are ignored.",
        "required": ["kind", "name", "spec"],
        "properties": {
            "kind": kind(kinds),
            "labels": labels("For grouping and search: keys and values in the syntax of Kubernetes' labels."),
            "name": {
                "type": "string", "minLength": min.max(1), "maxLength": max, "pattern": NAME_PATTERN,
                "description": "Unique among the active resources of the kind, for child kinds within one parent.",
            },
            "references": references(entity, "Links to resources that it does not own, by type of link."),
            "spec": spec(entity, names),
        },
    });
    if entity.is_some() {
        // Existing clients may set them.
        for ignored in IGNORED {
            schema["properties"][ignored] =
                json!({"type": "string", "description": "Ignored: the service chooses it."});
        }
    }
    if entity.is_some_and(|e| e.references.iter().any(|rule| rule.min > 0)) {
        schema["required"] = json!(["kind", "name", "spec", "references"]);
    }
    schema
}

/// The body of a patch: of one kind, or of any kind.
pub(super) fn patch(entity: Option<&Entity>, names: &KindNames) -> Value {
    json!({
        "type": "object", "minProperties": 1, "additionalProperties": false,
        "description": "The changes, at least one member. Each member is replaced entirely. Members that are absent or `null` stay unchanged.",
        "properties": {
            "labels": labels("All labels."),
            "references": references(entity, "All links."),
            "spec": spec(entity, names),
        },
    })
}

/// The kind in a create: a pattern rather than an `enum`, because existing clients set it to a plain string, and
/// generators make another type of an `enum`.
fn kind(kinds: &[&Entity]) -> Value {
    let mut schema = json!({"type": "string", "description": "Kind of the new resource."});
    if let [first, ..] = kinds {
        let names: Vec<_> = kinds.iter().map(|e| e.kind.as_str()).collect();
        schema["example"] = json!(first.kind);
        schema["pattern"] = json!(match names.as_slice() {
            [only] => format!("^{only}$"),
            several => format!("^({})$", several.join("|")),
        });
    }
    schema
}

fn labels(description: &str) -> Value {
    json!({"type": "object", "description": description, "maxProperties": Labels::COUNT_MAX,
        "additionalProperties": {"type": "string", "maxLength": Labels::VALUE_BYTES_MAX, "pattern": LABEL_PATTERN}})
}

fn spec(entity: Option<&Entity>, names: &KindNames) -> Value {
    match entity {
        Some(_) => named(&names.schema("Spec")),
        None => {
            json!({"type": "object", "additionalProperties": true, "description": "The desired state."})
        }
    }
}

fn references(entity: Option<&Entity>, description: &str) -> Value {
    let mut schema = json!({"type": "object", "description": description,
        "additionalProperties": {"type": "array", "items": named("ObjectReference")}});
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
