//! Schemas of responses: the schemas of `views`, specialised for each kind.

use serde_json::{Value, json};
use strum::IntoEnumIterator as _;

use super::fixed::{self, named};
use super::names::KindNames;
use super::schema;
use crate::wire::fields::Member;
use crate::wire::views::{LinkView, ListView, ReportView, ResourceView};
use hyperfleet_domain::Entity;

/// A resource of one kind, or of any kind.
pub(super) fn resource(entity: Option<&Entity>, names: &KindNames) -> Value {
    let mut schema = schema::<ResourceView<'_>>();
    let properties = &mut schema["properties"];
    properties["status"] = named(&names.schema("Status"));
    properties["dry_run"] = named("DryRun");
    let Some(entity) = entity else {
        // As in the document of the Go HyperFleet API, which requires only the id of this one.
        require(&mut schema, &["id"]);
        return schema;
    };
    properties["spec"] = match &entity.spec_schema {
        None => named(&names.schema("Spec")),
        // A spec stored under an earlier schema need not fit the current one.
        Some(_) => any_spec(&entity.kind),
    };
    schema["description"] = json!(described(entity));
    if entity.parent.is_some() {
        require(&mut schema, &["owner_references"]);
    } else {
        remove(&mut schema, "owner_references");
    }
    schema
}

/// The spec of a kind that accepts any object.
pub(super) fn any_spec(kind: &str) -> Value {
    json!({
        "type": "object", "description": format!("Desired state of a `{kind}`: any object."), "additionalProperties": true,
        // oapi-codegen would otherwise make a type of its own, which existing Go code does not know.
        "x-go-type": "map[string]interface{}",
    })
}

/// The latest report of one adapter.
pub(super) fn report() -> Value {
    let mut schema = schema::<ReportView<'_>>();
    schema["properties"]["dry_run"] = named("DryRun");
    schema["properties"]["metadata"] = fixed::metadata();
    schema
}

/// A resource with its selected members.
pub(super) fn sparse_resource() -> Value {
    let members = Member::iter().map(|member| (member.name().to_owned(), json!({})));
    json!({
        "type": "object", "required": ["id"], "properties": members.collect::<Value>(),
        "description": "A resource with its id and the members that `fields` selects. Members without a value are \
            `null`. Times have no fraction of a second.",
    })
}

/// A page with items of the schema `item`, with these of the members that only some lists have.
pub(super) fn list(name: &str, item: &str, own: &[&str]) -> Value {
    let mut schema = schema::<ListView<Vec<LinkView<'_>>>>();
    for member in ["complete", "continue", "position", "sealed"] {
        if !own.contains(&member) {
            remove(&mut schema, member);
        }
    }
    schema["properties"]["items"] = json!({"type": "array", "items": named(item)});
    schema["properties"]["kind"]["example"] = json!(name);
    schema["description"] = json!(format!("A page of `{item}`."));
    schema
}

/// The same for the audit trail, whose answers all have positions.
pub(super) fn trail() -> Value {
    let mut schema = list("AuditList", "AuditEntry", &["position", "sealed"]);
    require(&mut schema, &["position", "sealed"]);
    schema
}

/// The same for what is known of one resource.
pub(super) fn history(name: &str, item: &str) -> Value {
    let mut schema = list(name, item, &["complete"]);
    schema["required"] = json!(["complete", "items", "kind", "page", "size", "total"]);
    schema["properties"]["total"]["description"] = json!(
        "Number of items on all pages. For events, at most 1,000 from the first event of the page."
    );
    schema
}

fn require(schema: &mut Value, members: &[&str]) {
    if let Some(required) = schema["required"].as_array_mut() {
        required.extend(members.iter().map(|member| json!(member)));
    }
}

/// Removes a member, which must not be required.
fn remove(schema: &mut Value, member: &str) {
    let properties = schema["properties"].as_object_mut();
    properties.and_then(|properties| properties.remove(member));
}

fn described(entity: &Entity) -> String {
    let owned = match &entity.parent {
        Some(parent) => format!(", owned by a `{parent}`"),
        None => String::new(),
    };
    let adapters = match entity.required_adapters.as_slice() {
        [] => "It has no required adapters, so it is deleted immediately.".to_owned(),
        adapters => format!("Its adapters: `{}`.", adapters.join("`, `")),
    };
    format!("A resource of kind `{}`{owned}. {adapters}", entity.kind)
}
