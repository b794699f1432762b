//! Query parameters, as `wire::query` reads them.
//!
//! `openapi.html` fills in every example and default, and generated clients send the defaults. Examples that together
//! would find nothing, or that exclude each other, are therefore in the descriptions instead.

use serde_json::{Value, json};

use super::fixed::named;
use crate::wire::fields::Fields;
use hyperfleet_domain::lease::LeaseHolder;
use hyperfleet_domain::page::PageRequest;
use hyperfleet_server_kit::openapi::parameter;

/// A parameter: name, description, schema, example or `null`.
type Row<'a> = (&'a str, &'a str, Value, Value);

const NONE: Value = Value::Null;

/// The parameters of a page: every list has them.
#[rustfmt::skip]
pub fn page() -> Vec<Value> {
    query([
        ("page", "Page number, starting at 1: `page=2`. Default: 1. Cannot be combined with `continue`.",
            json!({"type": "integer", "format": "int64", "minimum": 1, "maximum": PageRequest::NUMBER_MAX}), NONE),
        ("size", "Maximum number of items on the page.",
            json!({"type": "integer", "format": "int64", "minimum": 1, "maximum": PageRequest::SIZE_MAX, "default": PageRequest::SIZE_DEFAULT}), json!(20)),
        // Without a maximum: a larger value is cut.
        ("pageSize", "Earlier name of `size`: `pageSize=50`. Takes precedence over `size`. Values above 100 count as 100.",
            json!({"type": "integer", "format": "int64", "minimum": 1}), NONE),
    ])
}

/// The parameters of all lists of resources; single resources have some of them, and changes `dryRun`.
#[rustfmt::skip]
pub fn shared() -> Vec<Value> {
    let lists = query([
        ("continue", "Token of the next page, such as `WzEsInZ4ci1`: the member `continue` of the previous page. The path and all other \
            parameters must be the same, except `size` and `fields`. Cannot be combined with `page`.", text(), NONE),
        ("search", "A condition that resources must meet, such as `labels.shard = '3' and name like 'prod-%'` (docs/guides/search.md).",
            text(), json!("generation >= 1")),
        ("order", "Comma-separated list of `field`, `field asc` or `field desc`. Only `asc` or `desc` sets the \
            direction of `orderBy`, or of `created_time`. Default: newest first.", text(), json!("created_time desc")),
        ("orderBy", "Earlier way to name the fields, with `asc` or `desc` in `order`: `orderBy=name&order=desc`.", text(), NONE),
        ("includeDeleted", "Whether the list includes resources that are being deleted. Default: only if \
            `search` contains `deleted_time` or `deleted_by`, or if the service is configured to include them.", boolean(), json!(false)),
        ("ref_type", "With `ref_target_id`: only resources with a link of this type, such as `channel`, to that resource.", text(), NONE),
        ("ref_target_id", "With `ref_type`: the target of the link, such as `019b7868-8e00-7000-8000-000000000001`.", text(), NONE),
        ("at", "The state at this time, such as `2026-01-02T12:00:00Z`, if changes since then are still stored. Cannot be combined with \
            `search`, `watch` or `generation`.", formatted("date-time"), NONE),
        ("fields", "Only these members and `id`, such as `name,status.conditions.type`. Each resource in the response \
            is then a `SparseResource`.",
            json!({"type": "array", "items": {"type": "string", "enum": Fields::names().collect::<Vec<_>>()}}), NONE),
        ("watch", "`watch=true`: stream the changes of the list instead of returning a page (docs/guides/watch.md).", boolean(), json!(false)),
        ("position", "With `watch`: begin after this position of an earlier response or event, such as `0-7`.", text(), NONE),
        ("initial", "`initial=true` with `watch`: begin with the current state. Cannot be combined with `position`.", boolean(), NONE),
        ("dryRun", "`dryRun=true`: change nothing. The response is the real one, without `ETag`, and its member `dry_run` describes what the \
            request would change (docs/guides/plan-changes.md). Any other value is invalid, including an empty one.",
            json!({"type": "boolean", "enum": [true]}), NONE),
    ]);
    let mut all = [page(), lists].concat();
    for fields in all.iter_mut().filter(|parameter| parameter["name"] == "fields") {
        fields["style"] = json!("form");
        fields["explode"] = json!(false);
    }
    all
}

/// The kind, in lists of resources of any kind.
pub fn kind(kinds: &[&str]) -> Vec<Value> {
    let first = kinds.first().unwrap_or(&"Cluster");
    let description = format!("Only resources of this kind, such as `{first}`.");
    let mut schema = text();
    if !kinds.is_empty() {
        schema["enum"] = json!(kinds);
    }
    query([("kind", description.as_str(), schema, NONE)])
}

/// The parameters of one resource that no list has.
#[rustfmt::skip]
pub fn one() -> Vec<Value> {
    query([
        ("generation", "The last state with this generation, such as `3`, if it is still stored. Cannot be combined with `at`.",
            json!({"type": "integer", "format": "int32", "minimum": 1}), NONE),
        ("includeDeleted", "For a removed resource, return 410 with its last state instead of 404, if \
            that state is still stored.", boolean(), json!(false)),
    ])
}

/// The parameters of the audit trail.
#[rustfmt::skip]
pub fn audit() -> Vec<Value> {
    let filters = query([
        ("resource_id", "Only changes of this resource, such as `019b7868-8e00-7000-8000-000000000001`.", formatted("uuid"), NONE),
        ("kind", "Only changes of resources of this kind, such as `Cluster`.", text(), NONE),
        ("actor", "Only changes by this caller, such as `system@hyperfleet.local`.", text(), NONE),
        ("action", "Only changes with this action, such as `force_delete`.", named("AuditAction"), NONE),
        ("since", "Only changes at this time or later.", formatted("date-time"), json!("2026-01-01T00:00:00Z")),
        ("until", "Only changes before this time, such as `2026-02-01T00:00:00Z`.", formatted("date-time"), NONE),
        ("after", "Only changes after this `position` of an earlier response, such as `0-7432-1`, or all from the `start`, oldest \
            first. A reader that continues from the `position` of each response misses none. Cannot be combined with `page`.", text(), NONE),
    ]);
    [page(), filters].concat()
}

/// Who releases a lease.
pub fn holder() -> Value {
    let schema =
        json!({"type": "string", "minLength": 1, "maxLength": LeaseHolder::CHARACTERS_MAX});
    let text = "The holder that releases the lease.";
    let mut holder = parameter("query", "holder", text, schema, json!("dns-adapter-7c9f-1"));
    holder["required"] = json!(true);
    holder
}

fn text() -> Value {
    json!({"type": "string"})
}

fn formatted(format: &str) -> Value {
    json!({"type": "string", "format": format})
}

fn boolean() -> Value {
    json!({"type": "boolean"})
}

fn query<'a>(rows: impl IntoIterator<Item = Row<'a>>) -> Vec<Value> {
    let rows = rows.into_iter();
    rows.map(|(name, text, schema, example)| parameter("query", name, text, schema, example))
        .collect()
}
