//! Schemas and parameters for the OpenAPI document. Schemas of answers are derived from their structs; the others
//! describe what is read by hand, and tests compare the two.

mod answers;
pub mod examples;
mod fixed;
mod names;
pub mod parameters;
mod requests;
mod specs;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};
use utoipa::{PartialSchema, ToSchema};

use crate::wire::history::{GenerationView, TimelineEventView, TombstoneView};
use crate::wire::leases::LeaseView;
use crate::wire::views::dry_run::PlanBody;
use crate::wire::views::explanation::ResourceExplanationView;
use crate::wire::views::{EntryView, LinkView, StatusView};
use hyperfleet_domain::{Entity, EntityRegistry};

pub(crate) use crate::wire::members::Tombstone;
pub use names::{KindNames, Names};

/// `node-pool` is `NodePool`.
fn pascal(text: &str) -> String {
    let mut name = String::new();
    for word in text.split(['-', '_']) {
        let first = name.len();
        name.push_str(word);
        if let Some(first) = name.get_mut(first..=first) {
            first.make_ascii_uppercase();
        }
    }
    name
}

/// All schemas but those of problems, by their names in the document: of every kind, of resources of any kind, and of
/// everything else. A kind without a schema takes any object as spec.
pub fn all(registry: &EntityRegistry, names: &Names) -> Map<String, Value> {
    let mut all = of_no_kind();
    let entities = registry.entities();
    let roots: Vec<_> = entities.iter().filter(|e| e.parent.is_none()).collect();
    all.extend(of_kind(None, &roots, names.of(None)));
    for entity in entities {
        let names = names.of(Some(&entity.kind));
        all.extend(of_kind(Some(entity), &[entity], names));
        let name = names.schema("Spec");
        match &entity.spec_schema {
            Some(schema) => all.extend(specs::components(&name, schema)),
            None => all.extend([(name, answers::any_spec(&entity.kind))]),
        }
    }
    all
}

/// The schemas of a kind except the one of its spec, or of resources of any of `kinds`.
fn of_kind(entity: Option<&Entity>, kinds: &[&Entity], names: &KindNames) -> [(String, Value); 5] {
    let kind = entity.map_or("Resource", |entity| &entity.kind);
    let mut list = answers::list(&format!("{kind}List"), &names.one, &["continue"]);
    if entity.is_none() {
        // As in the older document.
        list["properties"]["total"]["format"] = json!("int64");
    }
    [
        ("", answers::resource(entity, names)),
        ("List", list),
        ("Status", schema::<StatusView<'_>>()),
        ("CreateRequest", requests::create(entity, kinds, names)),
        ("PatchRequest", requests::patch(entity, names)),
    ]
    .map(|(suffix, schema)| (names.schema(suffix), schema))
}

/// The schemas that belong to no kind.
fn of_no_kind() -> Map<String, Value> {
    let mut all = Map::new();
    derived::<PlanBody<'_>>(&mut all);
    derived::<EntryView<'_>>(&mut all);
    derived::<ResourceExplanationView<'_>>(&mut all);
    derived::<GenerationView<'_>>(&mut all);
    derived::<TimelineEventView<'_>>(&mut all);
    derived::<TombstoneView<'_, LinkView<'_>>>(&mut all);
    derived::<LeaseView<'_>>(&mut all);
    // That of any kind is with those of the kinds.
    all.remove("Resource");
    all.extend(fixed::fixed());
    let reports = "AdapterStatusList";
    let others = [
        ("AdapterStatus", answers::report()),
        (reports, answers::list(reports, "AdapterStatus", &[])),
        ("AuditList", answers::trail()),
        ("EventList", answers::history("EventList", "Event")),
        (
            "GenerationList",
            answers::history("GenerationList", "Generation"),
        ),
        ("SparseResource", answers::sparse_resource()),
    ];
    all.extend(others.map(|(name, schema)| (name.to_owned(), schema)));
    all
}

/// Adds the schema of a type, and those that it refers to.
pub fn derived<T: ToSchema>(all: &mut Map<String, Value>) {
    let mut others = Vec::new();
    T::schemas(&mut others);
    let others = others.into_iter();
    all.extend(others.map(|(name, schema)| (name, never_null(json!(schema)))));
    all.insert(T::name().into_owned(), schema::<T>());
}

fn schema<T: PartialSchema>() -> Value {
    never_null(json!(T::schema()))
}

/// Optional members are absent when empty, never `null` (`docs/decisions/0006-empty-members.md`).
fn never_null(mut schema: Value) -> Value {
    let members = schema["properties"].as_object_mut().into_iter();
    for member in members.flat_map(|members| members.values_mut()) {
        if let Some(Value::Array(types)) = member.get_mut("type") {
            types.retain(|one| one != "null");
            member["type"] = types[0].take();
        } else if let Some(Value::Array(either)) = member.get_mut("oneOf") {
            either.retain(|one| one["type"] != "null");
            *member = either[0].take();
        }
    }
    schema
}
