//! The text of each operation in the OpenAPI document.

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::{OperationBuilder, Parameter, ParameterIn};
use utoipa::openapi::schema::{ArrayBuilder, Object, Schema, SchemaType, Type};
use utoipa::openapi::{
    Components, ContentBuilder, Ref, RefOr, Required, Response, ResponseBuilder,
};

use crate::inspect::{LINES_MAX, OUTPUTS};
use hyperfleet_fleet_model::wire::{CHANGES_MAX, EVENT_STREAM, MOVES_MAX, schemas};
use hyperfleet_server_kit::openapi::{
    RefusedStatus, any, empty_answer, json_answer, json_body, operation, parameter, refuse,
    with_parameters,
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

const WATCH: &str = "With `watch=true`: server-sent events instead. `put` has an item that is there or has changed, \
    `delete` the name of a deleted one, `listed` follows the complete initial list. Ids of events are revisions.";

/// Schemas of bodies, and the error responses.
pub(super) fn components() -> Components {
    let mut components = schemas::components();
    for (status, name, text) in REFUSALS {
        let mut answer = json_answer(text, Ref::from_schema_name("Error"), None);
        if matches!(status, 429 | 503) {
            let seconds = HeaderBuilder::new()
                .schema(Some(Object::with_type(Type::Integer)))
                .description(Some("Seconds to wait before a retry."));
            answer = answer.header("Retry-After", seconds.build());
        }
        let answer: RefOr<Response> = answer.build().into();
        components.responses.insert(name.to_owned(), answer);
    }
    components
}

pub(super) fn discovery() -> OperationBuilder {
    let summary = "The API in Google's discovery format";
    let described = operation("getDiscovery", "Service", summary, "");
    open(described, "The discovery document.")
}

pub(super) fn document() -> OperationBuilder {
    let described = operation("getOpenapi", "Service", "This document", "");
    open(described, "The OpenAPI document.")
}

pub(super) fn units() -> OperationBuilder {
    let described = operation("listUnits", "Units", "List units, or watch them", WATCH);
    let described = with_parameters(described, [page()].into_iter().chain(watch()));
    let answer = events(json("A page of units, by name.", "UnitPage"));
    admitted(described, "200", answer, &[400])
}

pub(super) fn unit() -> OperationBuilder {
    let described = operation("getUnit", "Units", "Get a unit", "");
    of_unit(described, "200", json("The unit.", "Unit"))
}

pub(super) fn set_unit() -> OperationBuilder {
    let text = "Creates the unit if it does not exist, replaces its file if it differs, and otherwise sets its desired state.";
    let described = operation("setUnit", "Units", "Create, replace or change a unit", text)
        .parameter(unit_name())
        .request_body(json_body(Ref::from_schema_name("UnitRequest"), None))
        .response("201", empty_answer("Created, or its file replaced."));
    let answer = empty_answer("Desired state set.");
    // 404: a slash in the name.
    admitted(described, "204", answer, &[400, 404, 408, 409, 413, 415])
}

pub(super) fn destroy_unit() -> OperationBuilder {
    let described = operation("destroyUnit", "Units", "Destroy a unit", "");
    of_unit(described, "204", empty_answer("Destroyed."))
}

pub(super) fn explain() -> OperationBuilder {
    let summary = "Explain why a unit is where it is, or on no machine";
    let described = operation("explainUnit", "Units", summary, "");
    of_unit(described, "200", json("Why.", "Explanation"))
}

pub(super) fn restart() -> OperationBuilder {
    let summary = "Restart a unit";
    let text = "Every machine that runs the unit restarts it; an unreachable machine does so when it is back. 409: the desired state is not launched.";
    let described = operation("restartUnit", "Units", summary, text);
    of_unit(described, "202", empty_answer("Restart ordered."))
}

pub(super) fn stop() -> OperationBuilder {
    let summary = "Stop a loaded unit";
    let text = "Every machine that has loaded the unit stops it, whatever started it: systemd starts a loaded unit for another one that wants it. An unreachable machine does so when it is back. 409: the desired state is not loaded; set it instead.";
    let described = operation("stopUnit", "Units", summary, text);
    of_unit(described, "202", empty_answer("Stop ordered."))
}

pub(super) fn status() -> OperationBuilder {
    let summary = "Show the output of `systemctl status` for a unit";
    let text = "The unit's machine answers, directly or through its fleetd. `Fleet-Exit-Status` has the exit status of `systemctl`.";
    let described = operation("getStatus", "Units", summary, text);
    let described = described
        .parameter(unit_name())
        .parameter(machine_parameter());
    inspection(described, |answer| answer)
}

pub(super) fn journal() -> OperationBuilder {
    let summary = "Show the journal of a unit";
    let text = "The unit's machine answers, directly or through its fleetd. With `follow=true` or `watch=true` the answer ends after half an hour. \
        With `watch=true` it comes as events `lines`, whose data is a JSON string (an array of bytes if it is not UTF-8) and whose id is the position after it.";
    let lines = format!("Number of newest lines, at most {LINES_MAX}. Default: 10.");
    let output = format!("Output form of `journalctl`: {}.", OUTPUTS.join(", "));
    let after = "With `watch`: only lines after this position, the id of an event; `lines` is ignored then. `Last-Event-ID` takes precedence.";
    let parameters = [
        unit_name(),
        machine_parameter(),
        query("lines", &lines, Type::Integer),
        query("output", &output, Type::String),
        query("follow", "Follow new lines, as text.", Type::Boolean),
        query("watch", "Follow new lines, as events.", Type::Boolean),
        query("after", after, Type::String),
    ];
    let described = operation("getJournal", "Units", summary, text);
    inspection(with_parameters(described, parameters), events)
}

fn machine_parameter() -> Parameter {
    let text = "The machine to ask, for a unit that runs on several.";
    query("machineID", text, Type::String)
}

fn inspection(
    described: OperationBuilder,
    complete: fn(ResponseBuilder) -> ResponseBuilder,
) -> OperationBuilder {
    let text = ContentBuilder::new().schema(Some(any(Type::String)));
    let answer = ResponseBuilder::new()
        .description("The machine's output.")
        .content("text/plain", text.build());
    let statuses = [400, 404, 409, 501, 502];
    admitted(described, "200", complete(answer), &statuses)
}

pub(super) fn states() -> OperationBuilder {
    let summary = "List states of units as machines report them, or watch them";
    let machine = "Only states of this machine, by its full id.";
    let filters = [
        query("unitName", "Only states of this unit.", Type::String),
        query("machineID", machine, Type::String),
        page(),
    ];
    let described = operation("listStates", "States", summary, WATCH);
    let described = with_parameters(described, filters.into_iter().chain(watch()));
    let answer = events(json(
        "A page of states, by unit and machine.",
        "UnitStatePage",
    ));
    admitted(described, "200", answer, &[400])
}

pub(super) fn state() -> OperationBuilder {
    let summary = "Get what a machine reports of a unit";
    let text = "Of several machines, the one with the lowest id.";
    let described = operation("getState", "States", summary, text);
    of_unit(described, "200", json("The state.", "UnitState"))
}

pub(super) fn machines() -> OperationBuilder {
    let described = operation("listMachines", "Machines", "List machines", "").parameter(page());
    let answer = json("A page of machines, by id.", "MachinePage");
    admitted(described, "200", answer, &[400])
}

pub(super) fn patch_machines() -> OperationBuilder {
    let summary = "Change the metadata of machines";
    let text = "All changes are checked before the first is made. The changes of one machine are made together. The machine need not exist.";
    let changes = ArrayBuilder::new()
        .items(Ref::from_schema_name("MetadataChange"))
        .max_items(Some(CHANGES_MAX))
        .schema_type(SchemaType::from_iter([Type::Array, Type::Null]));
    let body = json_body(Schema::Array(changes.build()), None);
    let described = operation("patchMachines", "Machines", summary, text).request_body(body);
    let answer = empty_answer("Changed.");
    admitted(described, "204", answer, &[400, 408, 409, 413, 415])
}

pub(super) fn cordon() -> OperationBuilder {
    let summary = "Cordon a machine: place no further units on it";
    let text =
        "Units that are placed there stay, and units that run on all machines also run there.";
    let described = operation("cordonMachine", "Machines", summary, text);
    of_machine(described, "204", empty_answer("Cordoned."), &[404])
}

pub(super) fn uncordon() -> OperationBuilder {
    let summary = "Remove the cordon of a machine";
    let text = "Also ends its drain. The machine need not exist.";
    let described = operation("uncordonMachine", "Machines", summary, text);
    of_machine(described, "204", empty_answer("Uncordoned."), &[400])
}

pub(super) fn drain() -> OperationBuilder {
    let summary = "Move the units of a machine elsewhere";
    let text = "Cordons the machine. Each unit leaves as soon as another machine can run it, together with those that `MachineOf` ties it to. \
        Units that no other machine can run stay. Asked again, it has the new deadline.";
    let described = operation("drainMachine", "Machines", summary, text);
    let mut body = json_body(Ref::from_schema_name("DrainRequest"), None);
    if let Some(body) = &mut body {
        body.required = Some(Required::False);
    }
    let answer = empty_answer("Drain started.");
    let statuses = [400, 404, 408, 413, 415];
    of_machine(described.request_body(body), "204", answer, &statuses)
}

pub(super) fn drain_progress() -> OperationBuilder {
    let summary = "Show the progress of a machine's drain";
    let described = operation("getDrain", "Machines", summary, "");
    let answer = json("The remaining units.", "Drain");
    of_machine(described, "200", answer, &[404])
}

pub(super) fn end_drain() -> OperationBuilder {
    let summary = "End the drain of a machine; remaining units stay";
    let text = "The machine remains cordoned. It need not exist.";
    let described = operation("endDrain", "Machines", summary, text);
    let answer = empty_answer("Drain ended.");
    of_machine(described, "204", answer, &[400])
}

pub(super) fn plan_rebalance() -> OperationBuilder {
    let summary = "Plan moves from loaded machines to others";
    let text = "Nothing is moved. Each move makes a difference of two or more smaller and breaks no requirement. \
        Units that `MachineOf` ties to others, and those with `Singleton=true`, stay.";
    let max = format!("Most moves, at most {MOVES_MAX}. Default: 10.");
    let described = operation("planRebalance", "Machines", summary, text).parameter(query(
        "max",
        &max,
        Type::Integer,
    ));
    admitted(described, "200", json("The plan.", "Rebalance"), &[400])
}

pub(super) fn rebalance() -> OperationBuilder {
    let summary = "Move units as planned";
    let text = "The engine moves them once it has nothing else to do. It skips moves that are no longer valid.";
    let body = json_body(Ref::from_schema_name("MovesRequest"), None);
    let described = operation("rebalance", "Machines", summary, text).request_body(body);
    let answer = empty_answer("Moves ordered.");
    admitted(described, "202", answer, &[400, 408, 409, 413, 415])
}

pub(super) fn resume() -> OperationBuilder {
    let summary = "Resume agents after a restore of etcd";
    let text = "Agents halt when the registry is older than what they have read before, or is another one: they start and stop nothing. This confirms that the current registry is right.";
    let described = operation("resume", "Machines", summary, text);
    admitted(described, "204", empty_answer("Agents resume."), &[])
}

/// An operation without admission, which returns a document.
fn open(described: OperationBuilder, text: &str) -> OperationBuilder {
    let answer = json_answer(text, any(Type::Object), None);
    refuse(described.response("200", answer), &REFUSALS, &[500, 503])
}

/// An operation on one unit, without a body.
fn of_unit(described: OperationBuilder, status: &str, answer: ResponseBuilder) -> OperationBuilder {
    admitted(
        described.parameter(unit_name()),
        status,
        answer,
        &[404, 409],
    )
}

/// An operation on one machine, with its own statuses.
fn of_machine(
    described: OperationBuilder,
    status: &str,
    answer: ResponseBuilder,
    statuses: &[u16],
) -> OperationBuilder {
    let text = "The id of a machine.";
    let id = parameter(ParameterIn::Path, "machineID", text, any(Type::String));
    let statuses = [statuses, &[409]].concat();
    admitted(described.parameter(id), status, answer, &statuses)
}

/// Any other operation, with its own statuses.
fn admitted(
    described: OperationBuilder,
    status: &str,
    answer: ResponseBuilder,
    statuses: &[u16],
) -> OperationBuilder {
    let described = refuse(described.response(status, answer), &REFUSALS, statuses);
    refuse(described, &REFUSALS, &[401, 403, 429, 500, 503])
}

fn query(name: &str, text: &str, kind: Type) -> Parameter {
    parameter(ParameterIn::Query, name, text, any(kind)).build()
}

fn page() -> Parameter {
    query(
        "nextPageToken",
        "Token from the previous page.",
        Type::String,
    )
}

fn watch() -> [Parameter; 2] {
    let revision = "With `watch`: only changes after it. `Last-Event-ID` takes precedence.";
    [
        query("watch", "Watch for changes.", Type::Boolean),
        query("revision", revision, Type::Integer),
    ]
}

fn unit_name() -> Parameter {
    let text = "The name of a unit, such as `web@1.service`.";
    parameter(ParameterIn::Path, "unitName", text, any(Type::String)).build()
}

fn json(text: &str, schema: &str) -> ResponseBuilder {
    json_answer(text, Ref::from_schema_name(schema), None)
}

fn events(answer: ResponseBuilder) -> ResponseBuilder {
    let text = ContentBuilder::new().schema(Some(any(Type::String)));
    answer.content(EVENT_STREAM, text.build())
}
