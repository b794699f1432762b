//! What the document says about each operation: one row for each, which `routes` names beside its handler.

use serde_json::{Map, Value, json};

use crate::inspect::{LINES_MAX, OUTPUTS};
use hyperfleet_fleet_model::wire::{CHANGES_MAX, EVENT_STREAM, MOVES_MAX, schemas};
use hyperfleet_server_kit::openapi::{
    Described, RefusedStatus, Vocabulary, json_content, parameter, reference,
};

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

const WATCH: &str = "With `watch=true`: server-sent events instead. `put` has an item that is there or has changed, \
    `delete` the name of a deleted one, `listed` follows the complete initial list. Ids of events are revisions.";

#[rustfmt::skip]
pub(super) static DISCOVERY: Described = Described {
    id: "getDiscovery", tag: "Service", summary: "The API in Google's discovery format",
    text: "",
    parameters: &[], body: &[],
    answers: &[("200", "The discovery document.", &[json_content("(object)", "")], &[])], problems: &[],
};

#[rustfmt::skip]
pub(super) static DOCUMENT: Described = Described {
    id: "getOpenapi", tag: "Service", summary: "This document",
    text: "",
    parameters: &[], body: &[],
    answers: &[("200", "The OpenAPI document.", &[json_content("(object)", "")], &[])], problems: &[],
};

#[rustfmt::skip]
pub(super) static UNITS: Described = Described {
    id: "listUnits", tag: "Units", summary: "List units, or watch them",
    text: WATCH,
    parameters: &["page", "watch", "revision"], body: &[],
    answers: &[("200", "A page of units, by name.", &[json_content("UnitPage", ""), (EVENT_STREAM, "(text)", "")], &[])], problems: &[400],
};

#[rustfmt::skip]
pub(super) static UNIT: Described = Described {
    id: "getUnit", tag: "Units", summary: "Get a unit",
    text: "",
    parameters: &["unitName"], body: &[],
    answers: &[("200", "The unit.", &[json_content("Unit", "")], &[])], problems: &[404, 409],
};

#[rustfmt::skip]
pub(super) static SET_UNIT: Described = Described {
    id: "setUnit", tag: "Units", summary: "Create, replace or change a unit",
    text: "Creates the unit if it does not exist, replaces its file if it differs, and otherwise sets its desired state.",
    parameters: &["unitName"], body: &[json_content("UnitRequest", "")],
    // 404: a slash in the name.
    answers: &[("201", "Created, or its file replaced.", &[], &[]), ("204", "Desired state set.", &[], &[])], problems: &[400, 404, 408, 409, 413, 415],
};

#[rustfmt::skip]
pub(super) static DESTROY_UNIT: Described = Described {
    id: "destroyUnit", tag: "Units", summary: "Destroy a unit",
    text: "",
    parameters: &["unitName"], body: &[],
    answers: &[("204", "Destroyed.", &[], &[])], problems: &[404, 409],
};

#[rustfmt::skip]
pub(super) static EXPLAIN: Described = Described {
    id: "explainUnit", tag: "Units", summary: "Explain why a unit is where it is, or on no machine",
    text: "",
    parameters: &["unitName"], body: &[],
    answers: &[("200", "Why.", &[json_content("Explanation", "")], &[])], problems: &[404, 409],
};

#[rustfmt::skip]
pub(super) static RESTART: Described = Described {
    id: "restartUnit", tag: "Units", summary: "Restart a unit",
    text: "Every machine that runs the unit restarts it; an unreachable machine does so when it is back. 409: the desired state is not launched.",
    parameters: &["unitName"], body: &[],
    answers: &[("202", "Restart ordered.", &[], &[])], problems: &[404, 409],
};

#[rustfmt::skip]
pub(super) static STOP: Described = Described {
    id: "stopUnit", tag: "Units", summary: "Stop a loaded unit",
    text: "Every machine that has loaded the unit stops it, whatever started it: systemd starts a loaded unit for another one that wants it. An unreachable machine does so when it is back. 409: the desired state is not loaded; set it instead.",
    parameters: &["unitName"], body: &[],
    answers: &[("202", "Stop ordered.", &[], &[])], problems: &[404, 409],
};

#[rustfmt::skip]
pub(super) static STATUS: Described = Described {
    id: "getStatus", tag: "Units", summary: "Show the output of `systemctl status` for a unit",
    text: "The unit's machine answers, directly or through its fleetd. `Fleet-Exit-Status` has the exit status of `systemctl`.",
    parameters: &["unitName", "askedMachine"], body: &[],
    answers: &[("200", "The machine's output.", &[("text/plain", "(text)", "")], &[])], problems: &[400, 404, 409, 501, 502],
};

#[rustfmt::skip]
pub(super) static JOURNAL: Described = Described {
    id: "getJournal", tag: "Units", summary: "Show the journal of a unit",
    text: "The unit's machine answers, directly or through its fleetd. With `follow=true` or `watch=true` the answer ends after half an hour. \
        With `watch=true` it comes as events `lines`, whose data is a JSON string (an array of bytes if it is not UTF-8) and whose id is the position after it.",
    parameters: &["unitName", "askedMachine", "(journal)"], body: &[],
    answers: &[("200", "The machine's output.", &[("text/plain", "(text)", ""), (EVENT_STREAM, "(text)", "")], &[])], problems: &[400, 404, 409, 501, 502],
};

#[rustfmt::skip]
pub(super) static STATES: Described = Described {
    id: "listStates", tag: "States", summary: "List states of units as machines report them, or watch them",
    text: WATCH,
    parameters: &["ofUnit", "ofMachine", "page", "watch", "revision"], body: &[],
    answers: &[("200", "A page of states, by unit and machine.", &[json_content("UnitStatePage", ""), (EVENT_STREAM, "(text)", "")], &[])], problems: &[400],
};

#[rustfmt::skip]
pub(super) static STATE: Described = Described {
    id: "getState", tag: "States", summary: "Get what a machine reports of a unit",
    text: "Of several machines, the one with the lowest id.",
    parameters: &["unitName"], body: &[],
    answers: &[("200", "The state.", &[json_content("UnitState", "")], &[])], problems: &[404, 409],
};

#[rustfmt::skip]
pub(super) static MACHINES: Described = Described {
    id: "listMachines", tag: "Machines", summary: "List machines",
    text: "",
    parameters: &["page"], body: &[],
    answers: &[("200", "A page of machines, by id.", &[json_content("MachinePage", "")], &[])], problems: &[400],
};

#[rustfmt::skip]
pub(super) static PATCH_MACHINES: Described = Described {
    id: "patchMachines", tag: "Machines", summary: "Change the metadata of machines",
    text: "All changes are checked before the first is made. The changes of one machine are made together. The machine need not exist.",
    parameters: &[], body: &[json_content("(changes)", "")],
    answers: &[("204", "Changed.", &[], &[])], problems: &[400, 408, 409, 413, 415],
};

#[rustfmt::skip]
pub(super) static CORDON: Described = Described {
    id: "cordonMachine", tag: "Machines", summary: "Cordon a machine: place no further units on it",
    text: "Units that are placed there stay, and units that run on all machines also run there.",
    parameters: &["machineID"], body: &[],
    answers: &[("204", "Cordoned.", &[], &[])], problems: &[404, 409],
};

#[rustfmt::skip]
pub(super) static UNCORDON: Described = Described {
    id: "uncordonMachine", tag: "Machines", summary: "Remove the cordon of a machine",
    text: "Also ends its drain. The machine need not exist.",
    parameters: &["machineID"], body: &[],
    answers: &[("204", "Uncordoned.", &[], &[])], problems: &[400, 409],
};

#[rustfmt::skip]
pub(super) static DRAIN: Described = Described {
    id: "drainMachine", tag: "Machines", summary: "Move the units of a machine elsewhere",
    text: "Cordons the machine. Each unit leaves as soon as another machine can run it, together with those that `MachineOf` ties it to. \
        Units that no other machine can run stay. Asked again, it has the new deadline.",
    parameters: &["machineID"], body: &[json_content("DrainRequest", "")],
    answers: &[("204", "Drain started.", &[], &[])], problems: &[400, 404, 408, 409, 413, 415],
};

#[rustfmt::skip]
pub(super) static DRAIN_PROGRESS: Described = Described {
    id: "getDrain", tag: "Machines", summary: "Show the progress of a machine's drain",
    text: "",
    parameters: &["machineID"], body: &[],
    answers: &[("200", "The remaining units.", &[json_content("Drain", "")], &[])], problems: &[404, 409],
};

#[rustfmt::skip]
pub(super) static END_DRAIN: Described = Described {
    id: "endDrain", tag: "Machines", summary: "End the drain of a machine; remaining units stay",
    text: "The machine remains cordoned. It need not exist.",
    parameters: &["machineID"], body: &[],
    answers: &[("204", "Drain ended.", &[], &[])], problems: &[400, 409],
};

#[rustfmt::skip]
pub(super) static PLAN_REBALANCE: Described = Described {
    id: "planRebalance", tag: "Machines", summary: "Plan moves from loaded machines to others",
    text: "Nothing is moved. Each move makes a difference of two or more smaller and breaks no requirement. \
        Units that `MachineOf` ties to others, and those with `Singleton=true`, stay.",
    parameters: &["max"], body: &[],
    answers: &[("200", "The plan.", &[json_content("Rebalance", "")], &[])], problems: &[400],
};

#[rustfmt::skip]
pub(super) static REBALANCE: Described = Described {
    id: "rebalance", tag: "Machines", summary: "Move units as planned",
    text: "The engine moves them once it has nothing else to do. It skips moves that are no longer valid.",
    parameters: &[], body: &[json_content("MovesRequest", "")],
    answers: &[("202", "Moves ordered.", &[], &[])], problems: &[400, 408, 409, 413, 415],
};

#[rustfmt::skip]
pub(super) static RESUME: Described = Described {
    id: "resume", tag: "Machines", summary: "Resume agents after a restore of etcd",
    text: "Agents halt when the registry is older than what they have read before, or is another one: they start and stop nothing. This confirms that the current registry is right.",
    parameters: &[], body: &[],
    answers: &[("204", "Agents resume.", &[], &[])], problems: &[],
};

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

/// The operation of a row.
pub(super) fn described(row: &Described, needs_token: bool) -> Value {
    let problems: &[u16] = if needs_token { &COMMON } else { &OPEN };
    let mut operation = Words.operation(row, problems, needs_token);
    if row.id == DRAIN.id {
        operation["requestBody"]["required"] = json!(false);
    }
    operation
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
                query("lines", &format!("Number of newest lines, at most {LINES_MAX}. Default: 10."), "integer"),
                query("output", &format!("Output form of `journalctl`: {}.", OUTPUTS.join(", ")), "string"),
                query("follow", "Follow new lines, as text.", "boolean"),
                query("watch", "Follow new lines, as events.", "boolean"),
                query("after", "With `watch`: only lines after this position, the id of an event; `lines` is ignored then. `Last-Event-ID` takes precedence.", "string"),
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
