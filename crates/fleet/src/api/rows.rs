//! The rows of the document: what it says about each operation. `routes` names them beside their handlers.

use hyperfleet_fleet_model::wire::EVENT_STREAM;
use hyperfleet_server_kit::openapi::{Described, json_content as json};

const WATCH: &str = "With `watch=true`: server-sent events instead. `put` has an item that is there or has changed, \
    `delete` the name of a deleted one, `listed` follows the complete initial list. Ids of events are revisions.";

pub(super) static DISCOVERY: Described = Described {
    id: "getDiscovery", tag: "Service", summary: "The API in Google's discovery format",
    text: "",
    parameters: &[], body: &[],
    answers: &[("200", "The discovery document.", &[json("(object)", "")], &[])], problems: &[],
};

pub(super) static DOCUMENT: Described = Described {
    id: "getOpenapi", tag: "Service", summary: "This document",
    text: "",
    parameters: &[], body: &[],
    answers: &[("200", "The OpenAPI document.", &[json("(object)", "")], &[])], problems: &[],
};

pub(super) static UNITS: Described = Described {
    id: "listUnits", tag: "Units", summary: "List units, or watch them",
    text: WATCH,
    parameters: &["page", "watch", "revision"], body: &[],
    answers: &[("200", "A page of units, by name.", &[json("UnitPage", ""), (EVENT_STREAM, "(text)", "")], &[])], problems: &[400],
};

pub(super) static UNIT: Described = Described {
    id: "getUnit", tag: "Units", summary: "Get a unit",
    text: "",
    parameters: &["unitName"], body: &[],
    answers: &[("200", "The unit.", &[json("Unit", "")], &[])], problems: &[404, 409],
};

pub(super) static SET_UNIT: Described = Described {
    id: "setUnit", tag: "Units", summary: "Create, replace or change a unit",
    text: "Creates the unit if it does not exist, replaces its file if it differs, and otherwise sets its desired state.",
    parameters: &["unitName"], body: &[json("UnitRequest", "")],
    // 404: a slash in the name.
    answers: &[("201", "Created, or its file replaced.", &[], &[]), ("204", "Desired state set.", &[], &[])], problems: &[400, 404, 408, 409, 413, 415],
};

pub(super) static DESTROY_UNIT: Described = Described {
    id: "destroyUnit", tag: "Units", summary: "Destroy a unit",
    text: "",
    parameters: &["unitName"], body: &[],
    answers: &[("204", "Destroyed.", &[], &[])], problems: &[404, 409],
};

pub(super) static EXPLAIN: Described = Described {
    id: "explainUnit", tag: "Units", summary: "Explain why a unit is where it is, or on no machine",
    text: "",
    parameters: &["unitName"], body: &[],
    answers: &[("200", "Why.", &[json("Explanation", "")], &[])], problems: &[404, 409],
};

pub(super) static RESTART: Described = Described {
    id: "restartUnit", tag: "Units", summary: "Restart a unit",
    text: "Every machine that runs the unit restarts it; an unreachable machine does so when it is back. 409: the desired state is not launched.",
    parameters: &["unitName"], body: &[],
    answers: &[("202", "Restart ordered.", &[], &[])], problems: &[404, 409],
};

pub(super) static STOP: Described = Described {
    id: "stopUnit", tag: "Units", summary: "Stop a loaded unit",
    text: "Every machine that has loaded the unit stops it, whatever started it: systemd starts a loaded unit for another one that wants it. An unreachable machine does so when it is back. 409: the desired state is not loaded; set it instead.",
    parameters: &["unitName"], body: &[],
    answers: &[("202", "Stop ordered.", &[], &[])], problems: &[404, 409],
};

pub(super) static STATUS: Described = Described {
    id: "getStatus", tag: "Units", summary: "Show the output of `systemctl status` for a unit",
    text: "The unit's machine answers, directly or through its fleetd. `Fleet-Exit-Status` has the exit status of `systemctl`.",
    parameters: &["unitName", "askedMachine"], body: &[],
    answers: &[("200", "The machine's output.", &[("text/plain", "(text)", "")], &[])], problems: &[400, 404, 409, 501, 502],
};

pub(super) static JOURNAL: Described = Described {
    id: "getJournal", tag: "Units", summary: "Show the journal of a unit",
    text: "The unit's machine answers, directly or through its fleetd, with events `entry`, whose data is the entry as in `journalctl --output=json` \
        and whose id is the position after it. With `watch=true` new entries follow, and the answer ends after half an hour.",
    parameters: &["unitName", "askedMachine", "(journal)"], body: &[],
    answers: &[("200", "The entries.", &[(EVENT_STREAM, "(text)", "")], &[])], problems: &[400, 404, 409, 501, 502],
};

pub(super) static STATES: Described = Described {
    id: "listStates", tag: "States", summary: "List states of units as machines report them, or watch them",
    text: WATCH,
    parameters: &["ofUnit", "ofMachine", "page", "watch", "revision"], body: &[],
    answers: &[("200", "A page of states, by unit and machine.", &[json("UnitStatePage", ""), (EVENT_STREAM, "(text)", "")], &[])], problems: &[400],
};

pub(super) static STATE: Described = Described {
    id: "getState", tag: "States", summary: "Get what a machine reports of a unit",
    text: "Of several machines, the one with the lowest id.",
    parameters: &["unitName"], body: &[],
    answers: &[("200", "The state.", &[json("UnitState", "")], &[])], problems: &[404, 409],
};

pub(super) static MACHINES: Described = Described {
    id: "listMachines", tag: "Machines", summary: "List machines",
    text: "",
    parameters: &["page"], body: &[],
    answers: &[("200", "A page of machines, by id.", &[json("MachinePage", "")], &[])], problems: &[400],
};

pub(super) static PATCH_MACHINES: Described = Described {
    id: "patchMachines", tag: "Machines", summary: "Change the metadata of machines",
    text: "All changes are checked before the first is made. The changes of one machine are made together. The machine need not exist.",
    parameters: &[], body: &[json("(changes)", "")],
    answers: &[("204", "Changed.", &[], &[])], problems: &[400, 408, 409, 413, 415],
};

pub(super) static CORDON: Described = Described {
    id: "cordonMachine", tag: "Machines", summary: "Cordon a machine: place no further units on it",
    text: "Units that are placed there stay, and units that run on all machines also run there.",
    parameters: &["machineID"], body: &[],
    answers: &[("204", "Cordoned.", &[], &[])], problems: &[404, 409],
};

pub(super) static UNCORDON: Described = Described {
    id: "uncordonMachine", tag: "Machines", summary: "Remove the cordon of a machine",
    text: "Also ends its drain. The machine need not exist.",
    parameters: &["machineID"], body: &[],
    answers: &[("204", "Uncordoned.", &[], &[])], problems: &[400, 409],
};

pub(super) static DRAIN: Described = Described {
    id: "drainMachine", tag: "Machines", summary: "Move the units of a machine elsewhere",
    text: "Cordons the machine. Each unit leaves as soon as another machine can run it, together with those that `MachineOf` ties it to. \
        Units that no other machine can run stay. Asked again, it has the new deadline.",
    parameters: &["machineID"], body: &[json("DrainRequest", "")],
    answers: &[("204", "Drain started.", &[], &[])], problems: &[400, 404, 408, 409, 413, 415],
};

pub(super) static DRAIN_PROGRESS: Described = Described {
    id: "getDrain", tag: "Machines", summary: "Show the progress of a machine's drain",
    text: "",
    parameters: &["machineID"], body: &[],
    answers: &[("200", "The remaining units.", &[json("Drain", "")], &[])], problems: &[404, 409],
};

pub(super) static END_DRAIN: Described = Described {
    id: "endDrain", tag: "Machines", summary: "End the drain of a machine; remaining units stay",
    text: "The machine remains cordoned. It need not exist.",
    parameters: &["machineID"], body: &[],
    answers: &[("204", "Drain ended.", &[], &[])], problems: &[400, 409],
};

pub(super) static PLAN_REBALANCE: Described = Described {
    id: "planRebalance", tag: "Machines", summary: "Plan moves from loaded machines to others",
    text: "Nothing is moved. Each move makes a difference of two or more smaller and breaks no requirement. \
        Units that `MachineOf` ties to others, and those with `Singleton=true`, stay.",
    parameters: &["max"], body: &[],
    answers: &[("200", "The plan.", &[json("Rebalance", "")], &[])], problems: &[400],
};

pub(super) static REBALANCE: Described = Described {
    id: "rebalance", tag: "Machines", summary: "Move units as planned",
    text: "The engine moves them once it has nothing else to do. It skips moves that are no longer valid.",
    parameters: &[], body: &[json("MovesRequest", "")],
    answers: &[("202", "Moves ordered.", &[], &[])], problems: &[400, 408, 409, 413, 415],
};

pub(super) static RESUME: Described = Described {
    id: "resume", tag: "Machines", summary: "Resume agents after a restore of etcd",
    text: "Agents halt when the registry is older than what they have read before, or is another one: they start and stop nothing. This confirms that the current registry is right.",
    parameters: &[], body: &[],
    answers: &[("204", "Agents resume.", &[], &[])], problems: &[],
};
