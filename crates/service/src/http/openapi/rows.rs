//! The rows of the document: what it says about each operation. `routes` names them beside their handlers.

use crate::wire::{EventForm, PatchFormat};
use hyperfleet_server_kit::openapi::{Described, json_content as json};

/// Headers of every answer with a body.
const BODY: &[&str] = &["X-Request-Id", "Vary"];
/// Headers of an answer without one.
const BARE: &[&str] = &["X-Request-Id"];
const STATE: &[&str] = &["X-Request-Id", "Vary", "ETag", "Hyperfleet-Position"];
const CHANGED: &[&str] = &["X-Request-Id", "Vary", "ETag", "Idempotency-Replayed"];

pub(in crate::http) static LIST: Described = Described {
    id: "get{ManyByParent}", tag: "{Many}", summary: "List each {noun}{below}", text: "Newest first.",
    parameters: &[
        "(kind)", "page", "size", "pageSize", "continue", "search", "order", "orderBy", "includeDeleted", "ref_type",
        "ref_target_id", "at", "fields", "watch", "position", "initial", "Last-Event-ID",
    ],
    body: &[],
    answers: &[("200", "A page of resources; with `watch` their changes.", &[
        json("{one}List", "listed"), (EventForm::LINES_TYPE, "WatchEvent", ""), (EventForm::STREAM_TYPE, "WatchEvent", ""),
    ], &["X-Request-Id", "Vary", "Hyperfleet-Position"])],
    problems: &[400, 410, 504],
};

pub(in crate::http) static CREATE: Described = Described {
    id: "{create}{One}", tag: "{Many}", summary: "Create a {noun}{below}",
    text: "Its required adapters then work on it: `status.conditions` says how far they are.",
    parameters: &["dryRun", "Idempotency-Key"],
    body: &[json("{one}CreateRequest", "create")],
    answers: &[("201", "The new resource.", &[json("{one}", "created")], CHANGED)],
    problems: &[409, 422],
};

/// Child kinds are created below their parent only.
pub(in crate::http) static CREATE_REFUSED: Described = Described {
    id: CREATE.id, tag: "{Many}", summary: "Refused: create a {noun} below its parent", text: "Answers 422 once the body is right.",
    parameters: &[], body: CREATE.body, answers: &[], problems: &[422],
};

pub(in crate::http) static GET: Described = Described {
    id: "get{One}ById", tag: "{Many}", summary: "Get a {noun} by its id",
    text: "What is declared, and in `status` what adapters have achieved.",
    parameters: &["(one)", "at", "fields", "If-Match", "If-None-Match"],
    body: &[],
    answers: &[
        ("200", "The resource.", &[json("{one}", "created")], STATE),
        ("304", "You have the resource in this state.", &[], STATE),
    ],
    problems: &[400, 410, 412],
};

pub(in crate::http) static PATCH: Described = Described {
    id: "patch{One}ById", tag: "{Many}", summary: "Change a {noun}",
    text: "The generation rises by one if something really differs, or if `references` is sent in plain JSON. The media type \
        says how the body changes the resource.",
    parameters: &["dryRun", "If-Match", "If-None-Match", "Idempotency-Key"],
    // Plain JSON is the first one, which generated clients take.
    body: &[
        (PatchFormat::Parts.media_type(), "{one}PatchRequest", "patch"),
        (PatchFormat::Merge.media_type(), "MergePatch", "merge"),
        (PatchFormat::Operations.media_type(), "JsonPatch", "operations"),
    ],
    answers: &[("200", "The resource as it is now.", &[json("{one}", "created")], CHANGED)],
    problems: &[409, 412, 422],
};

pub(in crate::http) static DELETE: Described = Described {
    id: "delete{One}ById", tag: "{Many}", summary: "Delete a {noun}",
    text: "It keeps answering until every required adapter has reported `Finalized=True` and \
        nothing below it is left. Repeating it changes nothing.",
    parameters: &["dryRun", "If-Match", "If-None-Match", "Idempotency-Key"],
    body: &[],
    answers: &[("202", "The resource, being deleted, or just removed: without `ETag` then.", &[json("{one}", "deleted")], CHANGED)],
    problems: &[400, 409, 412, 422],
};

pub(in crate::http) static FORCE_DELETE: Described = Described {
    id: "forceDelete{One}", tag: "{Many}", summary: "Remove a {noun} although its adapters are not done",
    text: "With everything below it. It must be being deleted already.",
    parameters: &["dryRun", "If-Match", "If-None-Match", "Idempotency-Key"],
    body: &[json("ForceDeleteRequest", "force")],
    answers: &[
        // The answer to a dry run is a range, because generators take the lowest success for the type of the operation, and
        // that is to be the real one.
        ("204", "It is removed.", &[], &["X-Request-Id", "Idempotency-Replayed"]),
        ("2XX", "Always 200: what the request would do, if it is a dry run and its real answer has no body.", &[json("DryRunAnswer", "")], BODY),
    ],
    problems: &[409, 412, 422],
};

pub(in crate::http) static HISTORY: Described = Described {
    id: "get{One}History", tag: "{Many}", summary: "List the generations of a {noun}",
    text: "Newest first, with what each declares and what differs from the one before. Of a removed resource, too.",
    parameters: &["page", "size", "pageSize"],
    body: &[], answers: &[("200", "A page of generations.", &[json("GenerationList", "generations")], BODY)], problems: &[400, 504],
};

pub(in crate::http) static EVENTS: Described = Described {
    id: "get{One}Events", tag: "{Many}", summary: "List what happened to a {noun}",
    text: "Newest first: declared changes, deletion, removal, and every condition that took another status. Of a \
        removed resource, too.",
    parameters: &["page", "size", "pageSize"],
    body: &[], answers: &[("200", "A page of events.", &[json("EventList", "events")], BODY)], problems: &[400, 504],
};

pub(in crate::http) static EXPLAIN: Described = Described {
    id: "explain{One}", tag: "{Many}", summary: "Explain what a {noun} waits for",
    text: "The required adapters that are not done, the descendants and references that block its deletion, and the \
        rules of its derived conditions: as data, and in sentences for people, whose words may change.",
    parameters: &[],
    body: &[], answers: &[("200", "What it waits for.", &[json("Explanation", "explained")], BODY)], problems: &[],
};

pub(in crate::http) static REPORTS: Described = Described {
    id: "get{OneOrMany}Statuses", tag: "{Many}", summary: "List the reports on a {noun}", text: "First reporter first.",
    parameters: &["page", "size", "pageSize"],
    body: &[], answers: &[("200", "A page of reports.", &[json("AdapterStatusList", "reports")], BODY)], problems: &[400],
};

pub(in crate::http) static REPORT: Described = Described {
    id: "put{One}Statuses", tag: "{Many}", summary: "Report on a {noun}",
    text: "For adapters. The latest report of each adapter is kept. Of two reports of one generation and time the first one \
        stays, and `Warning` says so if the second one differs; `Finalized=True` replaces it while the resource is being deleted.",
    parameters: &["dryRun", "If-Match", "If-None-Match"],
    body: &[json("AdapterStatusCreateRequest", "report")],
    answers: &[
        ("201", "The report as it is kept.", &[json("AdapterStatus", "reported")], &["X-Request-Id", "Vary", "Warning"]),
        // The answer to the dry run is in the text only: some generators cannot have a range beside successes with and
        // without a body.
        ("204", "The report is discarded: a later one is known, or it is of a generation to come; `Warning` says which. The answer to a dry run of \
            it is 200 with the member `dry_run` alone, a `DryRunAnswer`.", &[], &["X-Request-Id", "Warning"]),
    ],
    problems: &[412],
};

pub(in crate::http) static TRAIL: Described = Described {
    id: "getAudit", tag: "Audit", summary: "List changes",
    text: "Every create, patch, delete, removal and force-delete, newest first; with `after` oldest first.",
    parameters: &["(audit)"],
    body: &[], answers: &[("200", "A page of the trail.", &[json("AuditList", "audit")], BODY)], problems: &[400, 504],
};

pub(in crate::http) static ACQUIRE_LEASE: Described = Described {
    id: "putLease", tag: "Leases", summary: "Acquire or renew a lease",
    text: "Acquires the lease if it is free, and renews it for its holder. Of several copies of a program the holder \
        works. It renews the lease well before `expires_time`, and stops working if it cannot.",
    parameters: &[],
    body: &[json("LeaseRequest", "claim")],
    answers: &[("200", "The lease, which the caller holds now.", &[json("Lease", "lease")], BODY)], problems: &[409],
};

pub(in crate::http) static LEASE: Described = Described {
    id: "getLease", tag: "Leases", summary: "Get a lease", text: "A lease that has expired or was released does not exist.",
    parameters: &[],
    body: &[], answers: &[("200", "The lease.", &[json("Lease", "lease")], BODY)], problems: &[400, 404],
};

pub(in crate::http) static RELEASE_LEASE: Described = Described {
    id: "deleteLease", tag: "Leases", summary: "Release a lease", text: "Another copy can acquire the lease immediately.",
    parameters: &["(holder)"],
    body: &[], answers: &[("204", "The lease is released.", &[], BARE)], problems: &[400, 404],
};

pub(in crate::http) static METADATA: Described = Described {
    id: "getService", tag: "Service", summary: "Which program this is", text: "Its name, version and build time. Needs no token.",
    parameters: &[],
    body: &[], answers: &[("200", "Which program this is.", &[json("(metadata)", "metadata")], BARE)], problems: &[],
};

pub(in crate::http) static DOCUMENT: Described = Described {
    id: "getOpenapi", tag: "Service", summary: "This document", text: "In OpenAPI 3.0, with the kinds of this instance. Needs no token.",
    parameters: &[],
    body: &[],
    answers: &[
        ("200", "The OpenAPI document.", &[json("(object)", "")], BARE),
        ("304", "You have this document already.", &[], BARE),
    ],
    problems: &[],
};

pub(in crate::http) static PAGE: Described = Described {
    id: "getOpenapiPage", tag: "Service", summary: "This document as a page",
    text: "Requests can be tried on it. Needs no token and no internet.",
    parameters: &[],
    body: &[], answers: &[("200", "The page.", &[("text/html", "(text)", "")], BARE)], problems: &[],
};
