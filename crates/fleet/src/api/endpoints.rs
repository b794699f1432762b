//! The table of paths: each operation with its handler and what the OpenAPI document says about it.

use actix_web::http::StatusCode;
use actix_web::http::header::ALLOW;
use actix_web::web;

use super::surface::Access;
use super::{Fault, discovery, inspect, machines, states, units};
use hyperfleet_fleet_model::wire::EVENT_STREAM;
use hyperfleet_server_kit::http;
use hyperfleet_server_kit::openapi::{Described, json_content as json};

pub(super) type Operation = http::Operation<Access>;

#[derive(Debug)]
pub(super) struct Endpoint {
    /// Without the prefix.
    pub(super) path: &'static str,
    pub(super) operations: &'static [Operation],
    /// The response to every other method.
    pub(super) otherwise: (StatusCode, &'static str),
}

impl Endpoint {
    /// The response to a method that the endpoint does not have: the older server's text, and the allowed
    /// methods.
    pub(super) fn other_method(&self) -> Fault {
        let (status, text) = self.otherwise;
        let methods: Vec<_> = self.operations.iter().map(|o| o.method).collect();
        Fault::new(status, text).with_header(ALLOW, &methods.join(", "))
    }
}

const SEE: Option<Access> = Some(Access::See);
const CHANGE: Option<Access> = Some(Access::Change);
const GET_ONLY: (StatusCode, &str) = (
    StatusCode::METHOD_NOT_ALLOWED,
    "only GET supported against this resource",
);

const WATCH: &str = "With `watch=true`: server-sent events instead. `put` has an item that is there or has changed, \
    `delete` the name of a deleted one, `listed` follows the complete initial list. Ids of events are revisions.";

const OTHER: StatusCode = StatusCode::METHOD_NOT_ALLOWED;

/// Every path, with the older server's response to other methods.
pub(super) static ENDPOINTS: [Endpoint; 17] = [
    Endpoint { path: "", operations: &[], otherwise: (OTHER, "") },
    Endpoint { path: "/units", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(units::list), describe: Described {
            id: "listUnits", tag: "Units", summary: "List units, or watch them", text: WATCH, parameters: &["page", "watch", "revision"],
            answers: &[("200", "A page of units, by name.", &[json("UnitPage", ""), (EVENT_STREAM, "(text)", "")], &[])], problems: &[400],
            ..Described::NOTHING
        } },
    ], otherwise: GET_ONLY },
    Endpoint { path: "/units/{unitName}", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(units::get), describe: Described {
            id: "getUnit", tag: "Units", summary: "Get a unit", parameters: &["unitName"],
            answers: &[("200", "The unit.", &[json("Unit", "")], &[])], problems: &[404, 409], ..Described::NOTHING
        } },
        Operation { method: "PUT", permission: CHANGE, handler: || web::to(units::set), describe: Described {
            id: "setUnit", tag: "Units", summary: "Create, replace or change a unit",
            text: "Creates the unit if it does not exist, replaces its file if it differs, and otherwise sets its desired state.",
            parameters: &["unitName"], body: &[json("UnitRequest", "")],
            // 404: a slash in the name.
            answers: &[("201", "Created, or its file replaced.", &[], &[]), ("204", "Desired state set.", &[], &[])], problems: &[400, 404, 408, 409, 413, 415],
            ..Described::NOTHING
        } },
        Operation { method: "DELETE", permission: CHANGE, handler: || web::to(units::destroy), describe: Described {
            id: "destroyUnit", tag: "Units", summary: "Destroy a unit", parameters: &["unitName"],
            answers: &[("204", "Destroyed.", &[], &[])], problems: &[404, 409], ..Described::NOTHING
        } },
    ], otherwise: (OTHER, "only GET, PUT and DELETE supported against this resource") },
    Endpoint { path: "/units/{unitName}/explain", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(units::explain), describe: Described {
            id: "explainUnit", tag: "Units", summary: "Explain why a unit is where it is, or on no machine", parameters: &["unitName"],
            answers: &[("200", "Why.", &[json("Explanation", "")], &[])], problems: &[404, 409], ..Described::NOTHING
        } },
    ], otherwise: GET_ONLY },
    Endpoint { path: "/units/{unitName}/status", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(inspect::status), describe: Described {
            id: "getStatus", tag: "Units", summary: "Show the output of `systemctl status` for a unit",
            text: "The unit's machine answers, directly or through its fleetd. `Fleet-Exit-Status` has the exit status of `systemctl`.",
            parameters: &["unitName", "askedMachine"],
            answers: &[("200", "The machine's output.", &[("text/plain", "(text)", "")], &[])], problems: &[400, 404, 409, 501, 502],
            ..Described::NOTHING
        } },
    ], otherwise: GET_ONLY },
    Endpoint { path: "/units/{unitName}/journal", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(inspect::journal), describe: Described {
            id: "getJournal", tag: "Units", summary: "Show the journal of a unit",
            text: "The unit's machine answers, directly or through its fleetd, with events `entry`, whose data is the entry as in `journalctl --output=json` \
                and whose id is the position after it. With `watch=true` new entries follow, and the answer ends after half an hour.",
            parameters: &["unitName", "askedMachine", "(journal)"],
            answers: &[("200", "The entries.", &[(EVENT_STREAM, "(text)", "")], &[])], problems: &[400, 404, 409, 501, 502], ..Described::NOTHING
        } },
    ], otherwise: GET_ONLY },
    Endpoint { path: "/units/{unitName}/restart", operations: &[
        Operation { method: "POST", permission: CHANGE, handler: || web::to(units::restart), describe: Described {
            id: "restartUnit", tag: "Units", summary: "Restart a unit",
            text: "Every machine that runs the unit restarts it; an unreachable machine does so when it is back. 409: the desired state is not launched.",
            parameters: &["unitName"], answers: &[("202", "Restart ordered.", &[], &[])], problems: &[404, 409], ..Described::NOTHING
        } },
    ], otherwise: (OTHER, "only POST supported against this resource") },
    Endpoint { path: "/units/{unitName}/stop", operations: &[
        Operation { method: "POST", permission: CHANGE, handler: || web::to(units::stop), describe: Described {
            id: "stopUnit", tag: "Units", summary: "Stop a loaded unit",
            text: "Every machine that has loaded the unit stops it, whatever started it: systemd starts a loaded unit for another one that wants it. An unreachable machine does so when it is back. 409: the desired state is not loaded; set it instead.",
            parameters: &["unitName"], answers: &[("202", "Stop ordered.", &[], &[])], problems: &[404, 409], ..Described::NOTHING
        } },
    ], otherwise: (OTHER, "only POST supported against this resource") },
    Endpoint { path: "/state", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(states::list), describe: Described {
            id: "listStates", tag: "States", summary: "List states of units as machines report them, or watch them", text: WATCH,
            parameters: &["ofUnit", "ofMachine", "page", "watch", "revision"],
            answers: &[("200", "A page of states, by unit and machine.", &[json("UnitStatePage", ""), (EVENT_STREAM, "(text)", "")], &[])], problems: &[400],
            ..Described::NOTHING
        } },
    ], otherwise: GET_ONLY },
    Endpoint { path: "/state/{unitName}", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(states::get), describe: Described {
            id: "getState", tag: "States", summary: "Get what a machine reports of a unit",
            text: "Of several machines, the one with the lowest id.", parameters: &["unitName"],
            answers: &[("200", "The state.", &[json("UnitState", "")], &[])], problems: &[404, 409], ..Described::NOTHING
        } },
    ], otherwise: GET_ONLY },
    Endpoint { path: "/machines", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(machines::list), describe: Described {
            id: "listMachines", tag: "Machines", summary: "List machines", parameters: &["page"],
            answers: &[("200", "A page of machines, by id.", &[json("MachinePage", "")], &[])], problems: &[400], ..Described::NOTHING
        } },
        Operation { method: "PATCH", permission: CHANGE, handler: || web::to(machines::patch), describe: Described {
            id: "patchMachines", tag: "Machines", summary: "Change the metadata of machines",
            text: "All changes are checked before the first is made. The changes of one machine are made together. The machine need not exist.",
            body: &[json("(changes)", "")], answers: &[("204", "Changed.", &[], &[])], problems: &[400, 408, 409, 413, 415], ..Described::NOTHING
        } },
    ], otherwise: (OTHER, "only GET and PATCH supported against this resource") },
    Endpoint { path: "/machines/{machineID}/cordon", operations: &[
        Operation { method: "PUT", permission: CHANGE, handler: || web::to(machines::cordon), describe: Described {
            id: "cordonMachine", tag: "Machines", summary: "Cordon a machine: place no further units on it",
            text: "Units that are placed there stay, and units that run on all machines also run there.", parameters: &["machineID"],
            answers: &[("204", "Cordoned.", &[], &[])], problems: &[404, 409], ..Described::NOTHING
        } },
        Operation { method: "DELETE", permission: CHANGE, handler: || web::to(machines::uncordon), describe: Described {
            id: "uncordonMachine", tag: "Machines", summary: "Remove the cordon of a machine",
            text: "Also ends its drain. The machine need not exist.", parameters: &["machineID"],
            answers: &[("204", "Uncordoned.", &[], &[])], problems: &[400, 409], ..Described::NOTHING
        } },
    ], otherwise: (OTHER, "only PUT and DELETE supported against this resource") },
    Endpoint { path: "/machines/{machineID}/drain", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(machines::drain_progress), describe: Described {
            id: "getDrain", tag: "Machines", summary: "Show the progress of a machine's drain", parameters: &["machineID"],
            answers: &[("200", "The remaining units.", &[json("Drain", "")], &[])], problems: &[404, 409], ..Described::NOTHING
        } },
        Operation { method: "PUT", permission: CHANGE, handler: || web::to(machines::drain), describe: Described {
            id: "drainMachine", tag: "Machines", summary: "Move the units of a machine elsewhere",
            text: "Cordons the machine. Each unit leaves as soon as another machine can run it, together with those that `MachineOf` ties it to. \
                Units that no other machine can run stay. Asked again, it has the new deadline.",
            parameters: &["machineID"], body: &[json("DrainRequest", "")], is_body_optional: true,
            answers: &[("204", "Drain started.", &[], &[])], problems: &[400, 404, 408, 409, 413, 415],
        } },
        Operation { method: "DELETE", permission: CHANGE, handler: || web::to(machines::end_drain), describe: Described {
            id: "endDrain", tag: "Machines", summary: "End the drain of a machine; remaining units stay",
            text: "The machine remains cordoned. It need not exist.", parameters: &["machineID"],
            answers: &[("204", "Drain ended.", &[], &[])], problems: &[400, 409], ..Described::NOTHING
        } },
    ], otherwise: (OTHER, "only GET, PUT and DELETE supported against this resource") },
    Endpoint { path: "/rebalance", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(machines::plan_rebalance), describe: Described {
            id: "planRebalance", tag: "Machines", summary: "Plan moves from loaded machines to others",
            text: "Nothing is moved. Each move makes a difference of two or more smaller and breaks no requirement. \
                Units that `MachineOf` ties to others, and those with `Singleton=true`, stay.", parameters: &["max"],
            answers: &[("200", "The plan.", &[json("Rebalance", "")], &[])], problems: &[400], ..Described::NOTHING
        } },
        Operation { method: "POST", permission: CHANGE, handler: || web::to(machines::rebalance), describe: Described {
            id: "rebalance", tag: "Machines", summary: "Move units as planned",
            text: "The engine moves them once it has nothing else to do. It skips moves that are no longer valid.",
            body: &[json("MovesRequest", "")], answers: &[("202", "Moves ordered.", &[], &[])], problems: &[400, 408, 409, 413, 415],
            ..Described::NOTHING
        } },
    ], otherwise: (OTHER, "only GET and POST supported against this resource") },
    Endpoint { path: "/resume", operations: &[
        Operation { method: "POST", permission: CHANGE, handler: || web::to(machines::resume), describe: Described {
            id: "resume", tag: "Machines", summary: "Resume agents after a restore of etcd",
            text: "Agents halt when the registry is older than what they have read before, or is another one: they start and stop nothing. This confirms that the current registry is right.",
            answers: &[("204", "Agents resume.", &[], &[])], ..Described::NOTHING
        } },
    ], otherwise: (OTHER, "only POST supported against this resource") },
    Endpoint { path: "/discovery", operations: &[
        Operation { method: "GET", permission: None, handler: || web::to(discovery::discovery), describe: Described {
            id: "getDiscovery", tag: "Service", summary: "The API in Google's discovery format",
            answers: &[("200", "The discovery document.", &[json("(object)", "")], &[])], ..Described::NOTHING
        } },
    ], otherwise: (StatusCode::BAD_REQUEST, "only HTTP GET supported against this resource") },
    Endpoint { path: "/openapi", operations: &[
        Operation { method: "GET", permission: None, handler: || web::to(discovery::described), describe: Described {
            id: "getOpenapi", tag: "Service", summary: "This document", answers: &[("200", "The OpenAPI document.", &[json("(object)", "")], &[])],
            ..Described::NOTHING
        } },
    ], otherwise: GET_ONLY },
];
