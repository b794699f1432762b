//! Query parameters, as `wire::query` reads them. Those that lists share are defined once.
//!
//! `openapi.html` fills in every example and default, and generated clients send the defaults. Examples that together
//! would find nothing, or that exclude each other, are therefore in the descriptions instead.

use serde_json::{Value, json};
use strum::IntoEnumIterator as _;
use utoipa::openapi::Ref;
use utoipa::openapi::path::{Parameter, ParameterIn, ParameterStyle};
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, Object, ObjectBuilder, Schema, SchemaFormat, SchemaType, Type,
};

use super::AUDIT_ACTION;
use crate::domain::ListFilterKind;
use crate::domain::page::PageRequest;
use crate::wire::fields::Fields;
use hyperfleet_server_kit::openapi::parameter;

/// The parameters of a page: every list has them.
pub fn page() -> Vec<Parameter> {
    let count = |max: Option<u32>, default: Option<u32>| {
        ObjectBuilder::new()
            .schema_type(SchemaType::Type(Type::Integer))
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .minimum(Some(1))
            .maximum(max)
            .default(default.map(Value::from))
            .build()
    };
    let (page, size) = (Some(PageRequest::NUMBER_MAX), Some(PageRequest::SIZE_MAX));
    vec![
        query(
            "page",
            "Which page, from 1, which it is unless given: `page=2`. Not together with `continue`.",
            count(page, None),
            Value::Null,
        ),
        query(
            "size",
            "Most items on the page.",
            count(size, Some(PageRequest::SIZE_DEFAULT)),
            json!(20),
        ),
        // Without a maximum: a larger value is cut.
        query(
            "pageSize",
            "The older spelling of `size`, `pageSize=50`: wins over it, and counts as 100 where it is more.",
            count(None, None),
            Value::Null,
        ),
    ]
}

/// The parameters of all lists of resources.
pub fn resources() -> Vec<Parameter> {
    let mut parameters = page();
    parameters.push(plain(
        "continue",
        "What `continue` said in the answer before, such as `WzEsInZ4ci1`: the page after it. The path and the other \
         parameters stay as they were, but for `size` and `fields`; not together with `page`.",
    ));
    parameters.extend(filter(ListFilterKind::Search, &[]));
    parameters.extend([
        query(
            "order",
            "`field`, `field asc` or `field desc`, several after commas; `asc` or `desc` alone is the \
             direction of `orderBy`, or of `created_time`. Newest first unless given.",
            text(),
            json!("created_time desc"),
        ),
        plain(
            "orderBy",
            "The older way to name the fields; `order` is then `asc` or `desc`: `orderBy=name&order=desc`.",
        ),
    ]);
    let described = [ListFilterKind::Kind, ListFilterKind::Search];
    let others = ListFilterKind::iter().filter(|kind| !described.contains(kind));
    parameters.extend(others.flat_map(|kind| filter(kind, &[])));
    parameters.push(at());
    parameters.push(fields());
    parameters.extend(watching());
    parameters
}

/// The moment of an earlier state.
pub fn at() -> Parameter {
    let mut time = text();
    time.format = Some(SchemaFormat::KnownFormat(KnownFormat::DateTime));
    query(
        "at",
        "The state at this time, such as `2026-01-02T12:00:00Z`, as long as changes since then are kept. Not together with \
         `search`, `watch` or `generation`.",
        time,
        Value::Null,
    )
}

/// The parameters of one resource that no list has.
pub fn one() -> Vec<Parameter> {
    let number = ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::Integer))
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int32)))
        .minimum(Some(1))
        .build();
    vec![
        query(
            "generation",
            "The last state with this generation, such as `3`, as long as it is kept. Not together with `at`.",
            number,
            Value::Null,
        ),
        query(
            "includeDeleted",
            "Whether a removed resource is answered with 410 and what is known of it, as long as that is kept, in place of \
             404.",
            Object::with_type(Type::Boolean),
            json!(false),
        ),
    ]
}

/// The parameters of a watch.
fn watching() -> [Parameter; 3] {
    let boolean = || Object::with_type(Type::Boolean);
    [
        query(
            "watch",
            "`watch=true`: the changes of the list, as they happen, instead of a page of it (docs/guides/watch.md).",
            boolean(),
            json!(false),
        ),
        plain(
            "position",
            "With `watch`: begin after this position of another answer or event, such as `0-7`.",
        ),
        query(
            "initial",
            "`initial=true` with `watch`: begin with the present state. Not together with `position`.",
            boolean(),
            Value::Null,
        ),
    ]
}

/// The parameters of one filter, in a service with these kinds.
pub fn filter(filter: ListFilterKind, kinds: &[&str]) -> Vec<Parameter> {
    match filter {
        ListFilterKind::Kind => {
            let mut kind = text();
            let names = kinds.iter().map(|kind| json!(kind));
            kind.enum_values = Some(names.collect()).filter(|names: &Vec<_>| !names.is_empty());
            let first = kinds.first().unwrap_or(&"Cluster");
            let description = format!("Only resources of this kind, such as `{first}`.");
            vec![query("kind", &description, kind, Value::Null)]
        }
        ListFilterKind::Search => vec![query(
            "search",
            "A condition that resources must meet, such as `labels.shard = '3' and name like 'prod-%'` (docs/guides/search.md).",
            text(),
            json!("generation >= 1"),
        )],
        ListFilterKind::IncludeDeleted => vec![query(
            "includeDeleted",
            "Whether resources that are being deleted are listed, too. Unless given, they are where \
             `search` names `deleted_time` or `deleted_by`, or where the service is set so.",
            Object::with_type(Type::Boolean),
            json!(false),
        )],
        ListFilterKind::Reference => vec![
            plain(
                "ref_type",
                "With `ref_target_id`: only resources with a link of this type, such as `channel`, to that resource.",
            ),
            plain(
                "ref_target_id",
                "With `ref_type`: the target of the link, such as `019b7868-8e00-7000-8000-000000000001`.",
            ),
        ],
    }
}

/// The selected members.
pub fn fields() -> Parameter {
    let mut name = text();
    name.enum_values = Some(Fields::names().map(Value::from).collect());
    let names = ArrayBuilder::new().items(name).build();
    let description = "Only these members and `id`, such as `name,status.conditions.type`: each resource of the answer \
         is then a `SparseResource`.";
    parameter(ParameterIn::Query, "fields", description, names)
        .style(Some(ParameterStyle::Form))
        .explode(Some(false))
        .build()
}

/// Asks what a change would do.
pub fn dry_run() -> Parameter {
    let mut only_true = Object::with_type(Type::Boolean);
    only_true.enum_values = Some(vec![json!(true)]);
    query(
        "dryRun",
        "`dryRun=true`: nothing is changed. The answer is the real one, without `ETag`, and its member `dry_run` says what the \
         request would do (docs/guides/plan-changes.md). Any other value is refused, also a blank one.",
        only_true,
        Value::Null,
    )
}

/// The parameters of the audit trail.
pub fn audit() -> Vec<Parameter> {
    let mut parameters = page();
    let formatted = |format: KnownFormat| {
        let mut text = text();
        text.format = Some(SchemaFormat::KnownFormat(format));
        text
    };
    let action = parameter(
        ParameterIn::Query,
        "action",
        "Only changes of this sort, such as `force_delete`.",
        Ref::from_schema_name(AUDIT_ACTION),
    );
    parameters.extend([
        query(
            "resource_id",
            "Only changes of this resource, such as `019b7868-8e00-7000-8000-000000000001`.",
            formatted(KnownFormat::Uuid),
            Value::Null,
        ),
        plain(
            "kind",
            "Only changes of resources of this kind, such as `Cluster`.",
        ),
        plain(
            "actor",
            "Only changes by this caller, such as `system@hyperfleet.local`.",
        ),
        action.build(),
        query(
            "since",
            "Only changes at this time or later.",
            formatted(KnownFormat::DateTime),
            json!("2026-01-01T00:00:00Z"),
        ),
        query(
            "until",
            "Only changes before this time, such as `2026-02-01T00:00:00Z`.",
            formatted(KnownFormat::DateTime),
            Value::Null,
        ),
        plain(
            "after",
            "Only changes behind this `position` of another answer, such as `0-7432-1`, or all from the `start`: oldest \
             first, and none is missed by a reader who goes on with the `position` of each answer. Not together with `page`.",
        ),
    ]);
    parameters
}

fn text() -> Object {
    Object::with_type(Type::String)
}

/// A text without an example.
fn plain(name: &str, description: &str) -> Parameter {
    query(name, description, text(), Value::Null)
}

fn query(name: &str, description: &str, schema: Object, example: Value) -> Parameter {
    parameter(
        ParameterIn::Query,
        name,
        description,
        Schema::Object(schema),
    )
    .example(Some(example).filter(|example| !example.is_null()))
    .build()
}
