//! Schemas of bodies and parameters, for the OpenAPI document. Those of answers are derived from their structs; the
//! others describe what is read by hand, and tests compare the two.

mod answers;
pub mod examples;
mod fixed;
mod names;
mod object;
pub mod parameters;
mod requests;
mod specs;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use utoipa::PartialSchema as _;
use utoipa::openapi::schema::{Object, Schema};
use utoipa::openapi::{Components, ComponentsBuilder};

use crate::domain::{Entity, EntityRegistry};
use crate::wire::history::{GenerationView, TimelineEventView, TransitionView};
use crate::wire::leases::LeaseView;
use crate::wire::views::dry_run::{
    ConditionChangeView, DryRunView, EffectView, FailedRuleView, PlanAlone,
};
use crate::wire::views::explanation::{
    AdapterProgressView, BlockedDeletionView, BlockingChildView, BlockingChildrenView,
    BlockingReferrerView, BlockingReferrersView, ConditionOriginView, ResourceExplanationView,
};
use crate::wire::views::{EntryView, LinkView, StatusView};

pub use names::{KindNames, Names};

const AUDIT_ACTION: &str = "AuditAction";

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

/// The schemas of answers: of each kind, of resources of any kind, of reports and of the audit trail.
pub fn answers(registry: &EntityRegistry, names: &Names) -> Components {
    let mut builder = fixed_answers();
    for entity in registry.entities() {
        builder = answers_of_kind(builder, Some(entity), names);
    }
    answers_of_kind(builder, None, names).build()
}

/// All other schemas, by their names in the document: of request bodies, of members that no struct
/// describes, and of the specs of every kind, with what these refer to. A kind without a schema takes any object.
pub fn written(registry: &EntityRegistry, names: &Names) -> Vec<(String, Value)> {
    let mut all: Vec<_> = fixed::fixed().into_iter().collect();
    all.push(("Tombstone".to_owned(), json!(answers::tombstone())));
    let roots = registry.entities().iter().filter(|e| e.parent.is_none());
    all.extend(requests(None, &roots.collect::<Vec<_>>(), names));
    for entity in registry.entities() {
        all.extend(requests(Some(entity), &[entity], names));
        let name = names.of(Some(&entity.kind)).schema("Spec");
        match &entity.spec_schema {
            Some(schema) => all.extend(specs::components(&name, schema)),
            None => all.push((name, json!(object::any_spec(&entity.kind)))),
        }
    }
    all
}

fn requests(entity: Option<&Entity>, kinds: &[&Entity], names: &Names) -> [(String, Value); 2] {
    let names = names.of(entity.map(|e| e.kind.as_str()));
    let create = requests::create(entity, kinds, names);
    let patch = requests::patch(entity, names);
    [
        (names.schema("CreateRequest"), create),
        (names.schema("PatchRequest"), patch),
    ]
}

fn answers_of_kind(
    builder: ComponentsBuilder,
    entity: Option<&Entity>,
    names: &Names,
) -> ComponentsBuilder {
    let kind = entity.map(|e| e.kind.as_str());
    let names = names.of(kind);
    let list = format!("{}List", kind.unwrap_or("Resource"));
    let of = |suffix: &str, schema: Object| (names.schema(suffix), Schema::Object(schema));
    let list = match entity {
        Some(_) => answers::list(&list, &names.one),
        None => answers::list_of_any(&list, &names.one),
    };
    builder.schemas_from_iter([
        of("", answers::resource(entity, names)),
        of("List", list),
        of("Status", object::object(StatusView::schema())),
    ])
}

/// The schemas of answers that belong to no kind.
fn fixed_answers() -> ComponentsBuilder {
    let list = |name, item| (name, Schema::Object(answers::numbered_list(name, item)));
    let history = |name, item| (name, Schema::Object(answers::history(name, item)));
    ComponentsBuilder::new()
        .schema_from::<DryRunView<'_>>()
        .schema_from::<PlanAlone<'_>>()
        .schema_from::<EffectView<'_>>()
        .schema_from::<ConditionChangeView<'_>>()
        .schema_from::<FailedRuleView<'_>>()
        .schema_from::<EntryView<'_>>()
        .schema_from::<LinkView<'_>>()
        .schema_from::<ResourceExplanationView<'_>>()
        .schema_from::<AdapterProgressView<'_>>()
        .schema_from::<BlockingChildView<'_>>()
        .schema_from::<BlockingChildrenView<'_>>()
        .schema_from::<BlockingReferrerView<'_>>()
        .schema_from::<BlockingReferrersView<'_>>()
        .schema_from::<BlockedDeletionView<'_>>()
        .schema_from::<ConditionOriginView<'_>>()
        .schema_from::<GenerationView<'_>>()
        .schema_from::<TimelineEventView<'_>>()
        .schema_from::<TransitionView<'_>>()
        .schema_from::<LeaseView<'_>>()
        .schemas_from_iter([
            ("AdapterStatus", Schema::Object(answers::report())),
            history("GenerationList", "Generation"),
            history("EventList", "Event"),
            list("AdapterStatusList", "AdapterStatus"),
            (
                "AuditList",
                Schema::Object(answers::trail("AuditList", "AuditEntry")),
            ),
            ("SparseResource", Schema::Object(answers::sparse_resource())),
        ])
}
