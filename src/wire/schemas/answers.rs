//! Schemas of answers: those of `views`, specialised for each kind.

use serde_json::json;
use strum::IntoEnumIterator as _;
use utoipa::PartialSchema as _;
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, Object, Schema, SchemaFormat, SchemaType,
};
use utoipa::openapi::{Ref, RefOr};

use super::fixed;
use super::names::KindNames;
use super::object::{any_spec, object};
use crate::domain::Entity;
use crate::wire::fields::Member;
use crate::wire::history::{HistoryView, TombstoneView};
use crate::wire::views::{LinkView, ListView, ReportView, ResourceView};

/// A resource of one kind, or of any kind.
pub(super) fn resource(entity: Option<&Entity>, names: &KindNames) -> Object {
    let mut schema = object(ResourceView::schema());
    let reference = |suffix| RefOr::from(Ref::from_schema_name(names.schema(suffix)));
    let properties = &mut schema.properties;
    properties.insert("status".to_owned(), reference("Status"));
    properties.insert("dry_run".to_owned(), plan());
    match entity {
        Some(entity) => {
            let spec = match &entity.spec_schema {
                None => reference("Spec"),
                // A spec stored under an earlier schema need not fit the current one.
                Some(_) => Schema::Object(any_spec(&entity.kind)).into(),
            };
            properties.insert("spec".to_owned(), spec);
            schema.description = Some(described(entity));
            if entity.parent.is_some() {
                schema.required.push("owner_references".to_owned());
            } else {
                schema.properties.remove("owner_references");
            }
        }
        // As in the older document, which requires the id of this one alone.
        None => schema.required.push("id".to_owned()),
    }
    schema
}

/// The latest report of one adapter.
pub(super) fn report() -> Object {
    let mut schema = object(ReportView::schema());
    schema.properties.insert("dry_run".to_owned(), plan());
    if let Ok(metadata) = serde_json::from_value::<Schema>(fixed::metadata()) {
        let metadata = RefOr::from(metadata);
        schema.properties.insert("metadata".to_owned(), metadata);
    }
    schema
}

fn plan() -> RefOr<Schema> {
    Ref::from_schema_name("DryRun").into()
}

/// A resource with its selected members.
pub(super) fn sparse_resource() -> Object {
    let mut schema = Object::new();
    schema.description = Some(
        "A resource with what `fields` asked for and its id. What it could have and has not is \
         `null`; times are whole seconds."
            .to_owned(),
    );
    for member in Member::iter() {
        let name = member.name().to_owned();
        schema.properties.insert(name, anything());
    }
    schema.required.push("id".to_owned());
    schema
}

/// A page with items of the schema `item`, which can be continued; its `kind` is `name`.
pub(super) fn list(name: &str, item: &str) -> Object {
    let mut schema = any_list(name, item);
    schema.properties.remove("position");
    schema.properties.remove("sealed");
    schema
}

/// The same for resources of any kind, whose number has 64 bits in the older document.
pub(super) fn list_of_any(name: &str, item: &str) -> Object {
    let mut schema = list(name, item);
    if let Some(RefOr::T(Schema::Object(total))) = schema.properties.get_mut("total") {
        total.format = Some(SchemaFormat::KnownFormat(KnownFormat::Int64));
    }
    schema
}

/// The same for lists that have pages by number alone.
pub(super) fn numbered_list(name: &str, item: &str) -> Object {
    let mut schema = list(name, item);
    schema.properties.remove("continue");
    schema
}

/// The same for the audit trail, which has positions.
pub(super) fn trail(name: &str, item: &str) -> Object {
    let mut schema = any_list(name, item);
    schema.properties.remove("continue");
    schema
        .required
        .extend(["position", "sealed"].map(str::to_owned));
    schema
}

/// The same for what is known of one resource.
pub(super) fn history(name: &str, item: &str) -> Object {
    list_of(name, item, object(HistoryView::<LinkView<'_>>::schema()))
}

/// A removed resource.
pub(super) fn tombstone() -> Object {
    object(TombstoneView::<LinkView<'_>>::schema())
}

fn any_list(name: &str, item: &str) -> Object {
    list_of(name, item, object(ListView::<Vec<LinkView<'_>>>::schema()))
}

fn list_of(name: &str, item: &str, mut schema: Object) -> Object {
    let items = ArrayBuilder::new().items(Ref::from_schema_name(item));
    schema
        .properties
        .insert("items".to_owned(), items.build().into());
    if let Some(RefOr::T(Schema::Object(kind))) = schema.properties.get_mut("kind") {
        kind.example = Some(json!(name));
    }
    schema.description = Some(format!("A page of `{item}`."));
    schema
}

pub(super) fn anything() -> RefOr<Schema> {
    let mut schema = Object::new();
    schema.schema_type = SchemaType::AnyValue;
    Schema::Object(schema).into()
}

fn described(entity: &Entity) -> String {
    let owned = match &entity.parent {
        Some(parent) => format!(", owned by a `{parent}`"),
        None => String::new(),
    };
    let adapters = match entity.required_adapters.as_slice() {
        [] => "No adapter has to work on it: it is deleted at once.".to_owned(),
        adapters => format!("Its adapters: `{}`.", adapters.join("`, `")),
    };
    format!("A resource of kind `{}`{owned}. {adapters}", entity.kind)
}
