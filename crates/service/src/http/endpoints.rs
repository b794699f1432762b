//! The table of paths: each operation with its handler and what the OpenAPI document says about it. Every kind has the
//! same (`docs/decisions/0033-one-route-table.md`).

use actix_web::web;

use super::request::Permission;
use super::{audit, explanations, history, leases, meta, openapi, reports, resources};
use crate::wire::{EventForm, PatchFormat};
use hyperfleet_server_kit::http;
use hyperfleet_server_kit::openapi::{Described, json_content as json};

pub(super) type Operation = http::Operation<Permission>;

/// Paths below a common one.
pub(super) type Paths = &'static [(&'static str, &'static [Operation])];

/// Headers of every answer with a body.
const BODY: &[&str] = &["X-Request-Id", "Vary"];
/// Headers of an answer without one.
const BARE: &[&str] = &["X-Request-Id"];
const STATE: &[&str] = &["X-Request-Id", "Vary", "ETag", "Hyperfleet-Position"];
const CHANGED: &[&str] = &["X-Request-Id", "Vary", "ETag", "Idempotency-Replayed"];

const READ: Option<Permission> = Some(Permission::Read);
const REPORT: Option<Permission> = Some(Permission::Report);
const AUTHOR: Option<Permission> = Some(Permission::Author);

/// The service's metadata. Its requests are not counted, as in the older service: load balancers send them.
pub(super) const METADATA: &str = "/api/hyperfleet";

/// Paths of the service itself.
pub(super) static SERVICE: Paths = &[
    (METADATA, &[
        Operation { method: "GET", permission: None, handler: || web::to(meta::metadata), describe: Described {
            id: "getService", tag: "Service", summary: "Get name and version", text: "Name, version and build time of the program. Requires no token.",
            answers: &[("200", "The program.", &[json("(metadata)", "metadata")], BARE)], ..Described::NOTHING
        } },
    ]),
    ("/api/hyperfleet/v1/openapi", &[
        Operation { method: "GET", permission: None, handler: || web::to(openapi::document), describe: Described {
            id: "getOpenapi", tag: "Service", summary: "This document", text: "In OpenAPI 3.0, with the kinds of this instance. Requires no token.",
            answers: &[
                ("200", "The OpenAPI document.", &[json("(object)", "")], BARE),
                ("304", "The client already has this document.", &[], BARE),
            ],
            ..Described::NOTHING
        } },
    ]),
    ("/api/hyperfleet/v1/openapi.html", &[
        Operation { method: "GET", permission: None, handler: || web::to(openapi::page), describe: Described {
            id: "getOpenapiPage", tag: "Service", summary: "This document as a page",
            text: "An interactive page that can send requests. Requires no token and no internet access.",
            answers: &[("200", "The page.", &[("text/html", "(text)", "")], BARE)], ..Described::NOTHING
        } },
    ]),
    ("/api/hyperfleet/v1/audit", &[
        Operation { method: "GET", permission: READ, handler: || web::to(audit::list), describe: Described {
            id: "getAudit", tag: "Audit", summary: "List changes",
            text: "Every create, patch, delete, removal and force-delete, newest first, or with `after` oldest first.", parameters: &["(audit)"],
            answers: &[("200", "A page of the trail.", &[json("AuditList", "audit")], BODY)], problems: &[400, 504], ..Described::NOTHING
        } },
    ]),
    ("/api/hyperfleet/v1/leases/{name}", &[
        Operation { method: "DELETE", permission: REPORT, handler: || web::to(leases::delete), describe: Described {
            id: "deleteLease", tag: "Leases", summary: "Release a lease", text: "Another copy can acquire the lease immediately.",
            parameters: &["(holder)"], answers: &[("204", "The lease is released.", &[], BARE)], problems: &[400, 404], ..Described::NOTHING
        } },
        Operation { method: "GET", permission: READ, handler: || web::to(leases::get), describe: Described {
            id: "getLease", tag: "Leases", summary: "Get a lease", text: "A lease that has expired or was released does not exist.",
            answers: &[("200", "The lease.", &[json("Lease", "lease")], BODY)], problems: &[400, 404], ..Described::NOTHING
        } },
        Operation { method: "PUT", permission: REPORT, handler: || web::to(leases::put), describe: Described {
            id: "putLease", tag: "Leases", summary: "Acquire or renew a lease",
            text: "Acquires the lease if it is free, or renews it for its holder. Of several copies of a program, only the holder \
                works. It renews the lease well before `expires_time`, and stops working if the renewal fails.",
            body: &[json("LeaseRequest", "claim")],
            answers: &[("200", "The lease, now held by the caller.", &[json("Lease", "lease")], BODY)], problems: &[409], ..Described::NOTHING
        } },
    ]),
];

/// Paths below a list, in the order in which they are matched: the most frequent first.
pub(super) static LIST: Paths = &[
    ("/{id}", &[
        Operation { method: "DELETE", permission: AUTHOR, handler: || web::to(resources::delete), describe: Described {
            id: "delete{One}ById", tag: "{Many}", summary: "Delete a {noun}",
            text: "The resource stays readable until every required adapter has reported `Finalized=True` and \
                all resources below it are removed. Repeated requests change nothing.",
            parameters: &["dryRun", "If-Match", "If-None-Match", "Idempotency-Key"],
            answers: &[("202", "The resource, which is being deleted, or which was removed immediately (without `ETag`).", &[json("{one}", "deleted")], CHANGED)],
            problems: &[400, 409, 412, 422], ..Described::NOTHING
        } },
        Operation { method: "GET", permission: READ, handler: || web::to(resources::get), describe: Described {
            id: "get{One}ById", tag: "{Many}", summary: "Get a {noun} by its id",
            text: "Returns the declared state and, in `status`, what adapters have reported.",
            parameters: &["(one)", "at", "fields", "If-Match", "If-None-Match"],
            answers: &[
                ("200", "The resource.", &[json("{one}", "created")], STATE),
                ("304", "The client already has this state of the resource.", &[], STATE),
            ],
            problems: &[400, 410, 412], ..Described::NOTHING
        } },
        Operation { method: "PATCH", permission: AUTHOR, handler: || web::to(resources::patch), describe: Described {
            id: "patch{One}ById", tag: "{Many}", summary: "Change a {noun}",
            text: "The generation increases by one if the declared state changes, or if `references` is sent in plain JSON. The media \
                type selects how the body changes the resource.", parameters: &["dryRun", "If-Match", "If-None-Match", "Idempotency-Key"],
            // Plain JSON is the first one, which generated clients take.
            body: &[
                (PatchFormat::Parts.media_type(), "{one}PatchRequest", "patch"),
                (PatchFormat::Merge.media_type(), "MergePatch", "merge"),
                (PatchFormat::Operations.media_type(), "JsonPatch", "operations"),
            ],
            answers: &[("200", "The changed resource.", &[json("{one}", "created")], CHANGED)], problems: &[409, 412, 422], ..Described::NOTHING
        } },
    ]),
    ("/{id}/statuses", &[
        Operation { method: "GET", permission: READ, handler: || web::to(reports::list), describe: Described {
            id: "get{OneOrMany}Statuses", tag: "{Many}", summary: "List the reports on a {noun}", text: "In the order of the first report of each adapter.",
            parameters: &["page", "size", "pageSize"],
            answers: &[("200", "A page of reports.", &[json("AdapterStatusList", "reports")], BODY)], problems: &[400], ..Described::NOTHING
        } },
        Operation { method: "PUT", permission: REPORT, handler: || web::to(reports::put), describe: Described {
            id: "put{One}Statuses", tag: "{Many}", summary: "Report on a {noun}",
            text: "For adapters. The service stores the latest report of each adapter. Of two reports with the same generation and time, the \
                first one stays, and `Warning` says so if the second one differs. `Finalized=True` replaces it while the resource is being deleted.",
            parameters: &["dryRun", "If-Match", "If-None-Match"], body: &[json("AdapterStatusCreateRequest", "report")],
            answers: &[
                ("201", "The stored report.", &[json("AdapterStatus", "reported")], &["X-Request-Id", "Vary", "Warning"]),
                // The answer to the dry run is in the text only: some generators cannot have a range beside successes with and
                // without a body.
                ("204", "The report was discarded because a later one is stored, or because its generation does not exist yet. `Warning` says why. A dry \
                    run returns 200 with a `DryRunAnswer` instead.", &[], &["X-Request-Id", "Warning"]),
            ],
            problems: &[412], ..Described::NOTHING
        } },
    ]),
    ("", &[
        Operation { method: "GET", permission: READ, handler: || web::to(resources::list), describe: Described {
            id: "get{ManyByParent}", tag: "{Many}", summary: "List each {noun}{below}", text: "Newest first.",
            parameters: &[
                "(kind)", "page", "size", "pageSize", "continue", "search", "order", "orderBy", "includeDeleted", "ref_type",
                "ref_target_id", "at", "fields", "watch", "position", "initial", "Last-Event-ID",
            ],
            answers: &[("200", "A page of resources, or their changes with `watch`.", &[
                json("{one}List", "listed"), (EventForm::LINES_TYPE, "WatchEvent", ""), (EventForm::STREAM_TYPE, "WatchEvent", ""),
            ], &["X-Request-Id", "Vary", "Hyperfleet-Position"])],
            problems: &[400, 410, 504], ..Described::NOTHING
        } },
        Operation { method: "POST", permission: AUTHOR, handler: || web::to(resources::create), describe: Described {
            id: "{create}{One}", tag: "{Many}", summary: "Create a {noun}{below}",
            text: "The required adapters then work on the resource. `status.conditions` reports their progress.",
            parameters: &["dryRun", "Idempotency-Key"], body: &[json("{one}CreateRequest", "create")],
            answers: &[("201", "The new resource.", &[json("{one}", "created")], CHANGED)], problems: &[409, 422], ..Described::NOTHING
        } },
    ]),
    ("/{id}/explain", &[
        Operation { method: "GET", permission: READ, handler: || web::to(explanations::get), describe: Described {
            id: "explain{One}", tag: "{Many}", summary: "Explain what a {noun} waits for",
            text: "Lists the required adapters that are not done, the descendants and references that block its deletion, and the \
                rules of its derived conditions, as data and as sentences for people. The wording of the sentences may change.",
            answers: &[("200", "What the resource waits for.", &[json("Explanation", "explained")], BODY)], ..Described::NOTHING
        } },
    ]),
    ("/{id}/events", &[
        Operation { method: "GET", permission: READ, handler: || web::to(history::events), describe: Described {
            id: "get{One}Events", tag: "{Many}", summary: "List what happened to a {noun}",
            text: "Newest first: declared changes, deletion, removal, and every change of a condition's status. Also available for \
                removed resources.", parameters: &["page", "size", "pageSize"],
            answers: &[("200", "A page of events.", &[json("EventList", "events")], BODY)], problems: &[400, 504], ..Described::NOTHING
        } },
    ]),
    ("/{id}/force-delete", &[
        Operation { method: "POST", permission: AUTHOR, handler: || web::to(resources::force_delete), describe: Described {
            id: "forceDelete{One}", tag: "{Many}", summary: "Remove a {noun} although its adapters are not done",
            text: "Permanently removes the resource and all resources below it. It must already be marked for deletion.",
            parameters: &["dryRun", "If-Match", "If-None-Match", "Idempotency-Key"], body: &[json("ForceDeleteRequest", "force")],
            answers: &[
                // The answer to a dry run is a range, because generators take the lowest success for the type of the operation, and
                // that is to be the real one.
                ("204", "The resource was removed.", &[], &["X-Request-Id", "Idempotency-Replayed"]),
                ("2XX", "Always 200, for a dry run of a request whose real response has no body: what the request would change.", &[json("DryRunAnswer", "")], BODY),
            ],
            problems: &[409, 412, 422], ..Described::NOTHING
        } },
    ]),
    ("/{id}/history", &[
        Operation { method: "GET", permission: READ, handler: || web::to(history::generations), describe: Described {
            id: "get{One}History", tag: "{Many}", summary: "List the generations of a {noun}",
            text: "Newest first, each with its declared state and its differences from the previous generation. Also available for removed resources.",
            parameters: &["page", "size", "pageSize"],
            answers: &[("200", "A page of generations.", &[json("GenerationList", "generations")], BODY)], problems: &[400, 504],
            ..Described::NOTHING
        } },
    ]),
];
