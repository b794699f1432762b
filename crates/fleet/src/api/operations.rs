//! Operations of the document: what the names in `endpoints` stand for.

use serde_json::{Map, Value, json};

use crate::inspect::LINES_MAX;
use hyperfleet_fleet_model::wire::{CHANGES_MAX, MOVES_MAX, schemas};
use hyperfleet_server_kit::openapi::{Described, RefusedStatus, Vocabulary, parameter, reference};

#[rustfmt::skip]
const REFUSALS: [RefusedStatus; 13] = [
    (400, "BadRequest", "The body, a parameter or the unit is invalid."),
    (401, "Unauthorized", "Missing or invalid token. Only where tokens are checked."),
    (403, "Forbidden", "Fleet belongs to no tenant. Only where requests are made for tenants."),
    (404, "NotFound", "There is no such unit, state or machine."),
    (408, "RequestTimeout", "The body arrives too slowly."),
    (409, "Conflict", "The current state does not allow the request, or a newer program has written it."),
    (413, "PayloadTooLarge", "The body is larger than 1 MiB."),
    (415, "UnsupportedMediaType", "There is not exactly one `Content-Type` of JSON, or the encoding is unsupported."),
    (429, "TooManyRequests", "The caller exceeds its rate limit."),
    (500, "InternalServerError", "Internal error. The service's log has the cause."),
    (501, "NotImplemented", "This server or that machine cannot answer. The message names the missing setting."),
    (502, "BadGateway", "The unit's machine did not answer."),
    (503, "ServiceUnavailable", "etcd is unreachable, too many requests are in progress, too many clients are watching, or the service is stopping."),
];

/// Statuses of every operation that needs a caller.
const COMMON: [u16; 5] = [401, 403, 429, 500, 503];
/// Statuses of every other operation.
const OPEN: [u16; 2] = [500, 503];

/// Schemas of bodies, and the error responses.
pub(super) fn components() -> Value {
    let schemas = schemas::schemas().into_iter();
    let schemas: Map<_, _> = schemas
        .map(|(name, schema)| (name, json!(schema)))
        .collect();
    let responses = REFUSALS.map(|(status, name, text)| {
        let content = json!({"application/json": {"schema": reference("schemas", "Error")}});
        let mut answer = json!({"description": text, "content": content});
        if matches!(status, 429 | 503) {
            let text = "Seconds to wait before a retry.";
            answer["headers"] =
                json!({"Retry-After": {"description": text, "schema": {"type": "integer"}}});
        }
        (name.to_owned(), answer)
    });
    json!({"schemas": schemas, "responses": Map::from_iter(responses)})
}

/// What the document says about an operation.
pub(super) fn described(row: &Described, needs_token: bool) -> Value {
    let problems: &[u16] = if needs_token { &COMMON } else { &OPEN };
    Words.operation(row, problems, needs_token)
}

/// What names in rows stand for.
struct Words;

impl Vocabulary for Words {
    #[rustfmt::skip]
    fn parameters(&self, name: &str) -> Vec<Value> {
        let one = |place, name, text: &str, kind| parameter(place, name, text, json!({"type": kind}), Value::Null);
        let query = |name, text, kind| one("query", name, text, kind);
        vec![match name {
            "unitName" => one("path", name, "The name of a unit, such as `web@1.service`.", "string"),
            "machineID" => one("path", name, "The id of a machine.", "string"),
            "askedMachine" => query("machineID", "The machine to ask, for a unit that runs on several.", "string"),
            "ofUnit" => query("unitName", "Only states of this unit.", "string"),
            "ofMachine" => query("machineID", "Only states of this machine, by its full id.", "string"),
            "page" => query("nextPageToken", "Token from the previous page.", "string"),
            "watch" => query(name, "Watch for changes.", "boolean"),
            "revision" => query(name, "With `watch`: only changes after it. `Last-Event-ID` takes precedence.", "integer"),
            "max" => query(name, &format!("Most moves, at most {MOVES_MAX}. Default: 10."), "integer"),
            _ => return vec![
                query("lines", &format!("Number of newest entries, at most {LINES_MAX}. Default: 10."), "integer"),
                query("watch", "Continue with new entries.", "boolean"),
                query("after", "With `watch`: only entries after this position, the id of an event; `lines` is ignored then. `Last-Event-ID` takes precedence.", "string"),
            ],
        }]
    }

    fn content(&self, schema: &str, _: &str) -> Value {
        let schema = match schema {
            "(object)" => json!({"type": "object"}),
            "(text)" => json!({"type": "string"}),
            "(changes)" => json!({
                "type": "array", "nullable": true, "maxItems": CHANGES_MAX, "items": reference("schemas", "MetadataChange"),
            }),
            name => reference("schemas", name),
        };
        json!({"schema": schema})
    }

    fn refusals(&self) -> &[RefusedStatus] {
        &REFUSALS
    }
}
