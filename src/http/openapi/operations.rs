//! What the document says about each operation: one row for each, which `routes` names beside its handler.

use serde_json::{Map, Value, json};
use utoipa::PartialSchema as _;

use super::problems::{REFUSALS, X_REQUEST_ID};
use crate::domain::lease::LeaseName;
use crate::domain::{Entity, EntityRegistry};
use crate::http::meta::Metadata;
use crate::http::request::Route;
use crate::http::routes::Operation;
use crate::wire::schemas::examples::Examples;
use crate::wire::schemas::{KindNames, Names, parameters};
use crate::wire::{EventForm, PatchFormat};
use hyperfleet_server_kit::openapi::{
    Described, RefusedStatus, Vocabulary, json_content as json_of, parameter, reference,
};

/// Tag of the service's own paths.
pub(in crate::http) const SERVICE: &str = "Service";
/// Tag of the leases.
pub(in crate::http) const LEASES: &str = "Leases";
/// Tag of the audit trail.
pub(in crate::http) const AUDIT: &str = "Audit";
/// Prefix of the names of shared parameters in the query.
pub(in crate::http) const QUERY_PARAMS: &str = "QueryParams.";
/// Prefix of the names of shared headers of requests.
pub(in crate::http) const HEADER_PARAMS: &str = "HeaderParams.";
/// The status of the answer to a dry run whose real answer has no body. A range, because generators take the lowest
/// success for the type of the operation, and that is to be the real one.
pub(in crate::http) const DRY_RUN_RANGE: &str = "2XX";

/// Statuses of every operation that needs a caller.
const COMMON: [u16; 6] = [401, 403, 405, 429, 500, 503];
/// Statuses of every other operation.
const OPEN: [u16; 2] = [405, 500];
/// Statuses of operations with a body.
const WITH_BODY: [u16; 4] = [400, 408, 413, 415];

/// Headers of every answer with a body.
const BODY: &[&str] = &["X-Request-Id", "Vary"];
/// Headers of an answer without one.
const BARE: &[&str] = &["X-Request-Id"];
const STATE: &[&str] = &["X-Request-Id", "Vary", "ETag", "Hyperfleet-Position"];
const CHANGED: &[&str] = &["X-Request-Id", "Vary", "ETag", "Idempotency-Replayed"];

/// The tag, for operations of kinds.
const MANY: &str = "{Many}";

#[rustfmt::skip]
pub(in crate::http) static LIST: Described = Described {
    id: "get{ManyByParent}", tag: MANY, summary: "List each {noun}{below}", text: "Newest first.",
    parameters: &[
        "(kind)", "page", "size", "pageSize", "continue", "search", "order", "orderBy", "includeDeleted", "ref_type",
        "ref_target_id", "at", "fields", "watch", "position", "initial", "Last-Event-ID",
    ],
    body: &[],
    answers: &[("200", "A page of resources; with `watch` their changes.", &[
        json_of("{one}List", "listed"), (EventForm::LINES_TYPE, "WatchEvent", ""), (EventForm::STREAM_TYPE, "WatchEvent", ""),
    ], &["X-Request-Id", "Vary", "Hyperfleet-Position"])],
    problems: &[400, 410, 504],
};

#[rustfmt::skip]
pub(in crate::http) static CREATE: Described = Described {
    id: "{create}{One}", tag: MANY, summary: "Create a {noun}{below}",
    text: "Its required adapters then work on it: `status.conditions` says how far they are.",
    parameters: &["dryRun", "Idempotency-Key"],
    body: &[json_of("{one}CreateRequest", "create")],
    answers: &[("201", "The new resource.", &[json_of("{one}", "created")], CHANGED)],
    problems: &[409, 422],
};

/// Child kinds are created below their parent only.
#[rustfmt::skip]
static CREATE_REFUSED: Described = Described {
    id: CREATE.id, tag: MANY, summary: "Refused: create a {noun} below its parent", text: "Answers 422 once the body is right.",
    parameters: &[], body: CREATE.body, answers: &[], problems: &[422],
};

#[rustfmt::skip]
pub(in crate::http) static GET: Described = Described {
    id: "get{One}ById", tag: MANY, summary: "Get a {noun} by its id",
    text: "What is declared, and in `status` what adapters have achieved.",
    parameters: &["(one)", "at", "fields", "If-Match", "If-None-Match"],
    body: &[],
    answers: &[
        ("200", "The resource.", &[json_of("{one}", "created")], STATE),
        ("304", "You have the resource in this state.", &[], STATE),
    ],
    problems: &[400, 410, 412],
};

#[rustfmt::skip]
pub(in crate::http) static PATCH: Described = Described {
    id: "patch{One}ById", tag: MANY, summary: "Change a {noun}",
    text: "The generation rises by one if something really differs, or if `references` is sent in plain JSON. The media type \
        says how the body changes the resource.",
    parameters: &["dryRun", "If-Match", "If-None-Match", "Idempotency-Key"],
    // Plain JSON is the first one, which generated clients take.
    body: &[
        (PatchFormat::Parts.media_type(), "{one}PatchRequest", "patch"),
        (PatchFormat::Merge.media_type(), "MergePatch", "merge"),
        (PatchFormat::Operations.media_type(), "JsonPatch", "operations"),
    ],
    answers: &[("200", "The resource as it is now.", &[json_of("{one}", "created")], CHANGED)],
    problems: &[409, 412, 422],
};

#[rustfmt::skip]
pub(in crate::http) static DELETE: Described = Described {
    id: "delete{One}ById", tag: MANY, summary: "Delete a {noun}",
    text: "It keeps answering until every required adapter has reported `Finalized=True` and \
        nothing below it is left. Repeating it changes nothing.",
    parameters: &["dryRun", "If-Match", "If-None-Match", "Idempotency-Key"],
    body: &[],
    answers: &[("202", "The resource, being deleted, or just removed: without `ETag` then.", &[json_of("{one}", "deleted")], CHANGED)],
    problems: &[400, 409, 412, 422],
};

#[rustfmt::skip]
pub(in crate::http) static FORCE_DELETE: Described = Described {
    id: "forceDelete{One}", tag: MANY, summary: "Remove a {noun} although its adapters are not done",
    text: "With everything below it. It must be being deleted already.",
    parameters: &["dryRun", "If-Match", "If-None-Match", "Idempotency-Key"],
    body: &[json_of("ForceDeleteRequest", "force")],
    answers: &[
        ("204", "It is removed.", &[], &["X-Request-Id", "Idempotency-Replayed"]),
        (DRY_RUN_RANGE, "Always 200: what the request would do, if it is a dry run and its real answer has no body.", &[json_of("DryRunAnswer", "")], BODY),
    ],
    problems: &[409, 412, 422],
};

#[rustfmt::skip]
pub(in crate::http) static HISTORY: Described = Described {
    id: "get{One}History", tag: MANY, summary: "List the generations of a {noun}",
    text: "Newest first, with what each declares and what differs from the one before. Of a removed resource, too.",
    parameters: &["page", "size", "pageSize"],
    body: &[], answers: &[("200", "A page of generations.", &[json_of("GenerationList", "generations")], BODY)], problems: &[400, 504],
};

#[rustfmt::skip]
pub(in crate::http) static EVENTS: Described = Described {
    id: "get{One}Events", tag: MANY, summary: "List what happened to a {noun}",
    text: "Newest first: declared changes, deletion, removal, and every condition that took another status. Of a \
        removed resource, too.",
    parameters: &["page", "size", "pageSize"],
    body: &[], answers: &[("200", "A page of events.", &[json_of("EventList", "events")], BODY)], problems: &[400, 504],
};

#[rustfmt::skip]
pub(in crate::http) static EXPLAIN: Described = Described {
    id: "explain{One}", tag: MANY, summary: "Explain what a {noun} waits for",
    text: "The required adapters that are not done, the descendants and references that block its deletion, and the \
        rules of its derived conditions: as data, and in sentences for people, whose words may change.",
    parameters: &[],
    body: &[], answers: &[("200", "What it waits for.", &[json_of("Explanation", "explained")], BODY)], problems: &[],
};

#[rustfmt::skip]
pub(in crate::http) static REPORTS: Described = Described {
    id: "get{OneOrMany}Statuses", tag: MANY, summary: "List the reports on a {noun}", text: "First reporter first.",
    parameters: &["page", "size", "pageSize"],
    body: &[], answers: &[("200", "A page of reports.", &[json_of("AdapterStatusList", "reports")], BODY)], problems: &[400],
};

#[rustfmt::skip]
pub(in crate::http) static REPORT: Described = Described {
    id: "put{One}Statuses", tag: MANY, summary: "Report on a {noun}",
    text: "For adapters. The latest report of each adapter is kept. Of two reports of one generation and time the first one \
        stays, and `Warning` says so if the second one differs; `Finalized=True` replaces it while the resource is being deleted.",
    parameters: &["dryRun", "If-Match", "If-None-Match"],
    body: &[json_of("AdapterStatusCreateRequest", "report")],
    answers: &[
        ("201", "The report as it is kept.", &[json_of("AdapterStatus", "reported")], &["X-Request-Id", "Vary", "Warning"]),
        // The answer to the dry run is in the text only: some generators cannot have a range beside successes with and
        // without a body.
        ("204", "The report is discarded: a later one is known, or it is of a generation to come; `Warning` says which. The answer to a dry run of \
            it is 200 with the member `dry_run` alone, a `DryRunAnswer`.", &[], &["X-Request-Id", "Warning"]),
    ],
    problems: &[412],
};

#[rustfmt::skip]
pub(in crate::http) static TRAIL: Described = Described {
    id: "getAudit", tag: AUDIT, summary: "List changes",
    text: "Every create, patch, delete, removal and force-delete, newest first; with `after` oldest first.",
    parameters: &["(audit)"],
    body: &[], answers: &[("200", "A page of the trail.", &[json_of("AuditList", "audit")], BODY)], problems: &[400, 504],
};

#[rustfmt::skip]
pub(in crate::http) static ACQUIRE_LEASE: Described = Described {
    id: "putLease", tag: LEASES, summary: "Acquire or renew a lease",
    text: "Acquires the lease if it is free, and renews it for its holder. Of several copies of a program the holder \
        works. It renews the lease well before `expires_time`, and stops working if it cannot.",
    parameters: &[],
    body: &[json_of("LeaseRequest", "claim")],
    answers: &[("200", "The lease, which the caller holds now.", &[json_of("Lease", "lease")], BODY)], problems: &[409],
};

#[rustfmt::skip]
pub(in crate::http) static LEASE: Described = Described {
    id: "getLease", tag: LEASES, summary: "Get a lease", text: "A lease that has expired or was released does not exist.",
    parameters: &[],
    body: &[], answers: &[("200", "The lease.", &[json_of("Lease", "lease")], BODY)], problems: &[400, 404],
};

#[rustfmt::skip]
pub(in crate::http) static RELEASE_LEASE: Described = Described {
    id: "deleteLease", tag: LEASES, summary: "Release a lease", text: "Another copy can acquire the lease immediately.",
    parameters: &["(holder)"],
    body: &[], answers: &[("204", "The lease is released.", &[], BARE)], problems: &[400, 404],
};

#[rustfmt::skip]
pub(in crate::http) static METADATA: Described = Described {
    id: "getService", tag: SERVICE, summary: "Which program this is", text: "Its name, version and build time. Needs no token.",
    parameters: &[],
    body: &[], answers: &[("200", "Which program this is.", &[json_of("(metadata)", "metadata")], BARE)], problems: &[],
};

#[rustfmt::skip]
pub(in crate::http) static DOCUMENT: Described = Described {
    id: "getOpenapi", tag: SERVICE, summary: "This document", text: "In OpenAPI 3.0, with the kinds of this instance. Needs no token.",
    parameters: &[],
    body: &[],
    answers: &[
        ("200", "The OpenAPI document.", &[json_of("(object)", "")], BARE),
        ("304", "You have this document already.", &[], BARE),
    ],
    problems: &[],
};

#[rustfmt::skip]
pub(in crate::http) static PAGE: Described = Described {
    id: "getOpenapiPage", tag: SERVICE, summary: "This document as a page",
    text: "Requests can be tried on it. Needs no token and no internet.",
    parameters: &[],
    body: &[], answers: &[("200", "The page.", &[("text/html", "(text)", "")], BARE)], problems: &[],
};

/// The list of an operation: what names and placeholders in rows stand for.
pub(in crate::http) struct Subject<'a> {
    registry: &'a EntityRegistry,
    /// The kind; `None` for resources of any kind.
    entity: Option<&'a Entity>,
    names: &'a KindNames,
    /// The names of the parent's kind, if the path has the parent.
    parent: Option<&'a KindNames>,
}

impl<'a> Subject<'a> {
    pub(in crate::http) fn new(
        registry: &'a EntityRegistry,
        names: &'a Names,
        about: Option<&'a Route>,
    ) -> Self {
        let (kind, parent) = match about {
            None | Some(Route::All) => (None, None),
            Some(Route::Kind(kind)) => (Some(kind.as_str()), None),
            Some(Route::Owned { kind, parent }) => (Some(kind.as_str()), Some(parent.as_str())),
        };
        Self {
            registry,
            entity: kind.and_then(|kind| registry.get(kind)),
            names: names.of(kind),
            parent: parent.map(|parent| names.of(Some(parent))),
        }
    }

    /// A path as the document spells it, with its operations.
    pub(in crate::http) fn item(&self, path: &str, operations: &[Operation]) -> (String, Value) {
        let ids: Vec<_> = ["{parent_id}", "{id}", "{name}"]
            .into_iter()
            .filter(|id| path.contains(id))
            .flat_map(|id| self.parameters(id))
            .collect();
        let operations = operations.iter().map(|operation| {
            let described = self.described(path, operation, &ids);
            (operation.method.to_lowercase(), described)
        });
        let path = path
            .replace("{parent_id}", &format!("{{{}}}", self.parent_id()))
            .replace("{id}", &format!("{{{}}}", self.names.id));
        (path, operations.collect::<Map<_, _>>().into())
    }

    fn described(&self, path: &str, operation: &Operation, ids: &[Value]) -> Value {
        let row = match operation.describe {
            row if row.id == CREATE.id && self.is_flat_child() => &CREATE_REFUSED,
            row => row,
        };
        let needs_token = operation.permission.is_some();
        let mut problems = if needs_token {
            COMMON.to_vec()
        } else {
            OPEN.to_vec()
        };
        if path.contains("id}") {
            problems.push(404);
        }
        if !row.body.is_empty() {
            problems.extend(WITH_BODY);
        }
        let mut described = self.operation(row, &problems, needs_token);
        let others = described["parameters"].take();
        let others = others.as_array().into_iter().flatten().cloned();
        let ids = ids.iter().cloned().chain(self.parameters(X_REQUEST_ID));
        described["parameters"] = ids.chain(others).collect();
        described
    }

    /// Never the parameter of the resource itself, which kinds with similar names might share.
    fn parent_id(&self) -> &str {
        match self.parent {
            Some(parent) if parent.id != self.names.id => &parent.id,
            _ => "parent_id",
        }
    }

    /// Whether a child kind is addressed without its parent in the path.
    fn is_flat_child(&self) -> bool {
        self.parent.is_none() && self.entity.is_some_and(|e| e.parent.is_some())
    }

    /// Examples of the kind; of the first root kind for resources of any kind, and of the first kind for the trail.
    fn examples(&self, example: &str) -> Option<Examples<'a>> {
        let mut roots = self.registry.entities().iter();
        let entity = self.entity;
        let entity = entity.or_else(|| roots.find(|e| e.parent.is_none() || example == "audit"))?;
        Examples::new(self.registry, entity)
    }
}

impl Vocabulary for Subject<'_> {
    /// Names of operations of the older document stay as they are; flat routes of child kinds, most of which it lacks,
    /// get `Flat`.
    fn fill(&self, text: &str) -> String {
        let KindNames { one, many, .. } = self.names;
        let flat = if self.is_flat_child() { "Flat" } else { "" };
        let flat = format!("{flat}{one}");
        let noun = self
            .entity
            .map_or("resource".to_owned(), |e| format!("`{}`", e.kind));
        let (by_parent, below) = match self.parent {
            Some(parent) => (
                format!("{many}By{}Id", parent.one),
                format!(" below a `{}`", parent.one),
            ),
            None => (many.clone(), String::new()),
        };
        let (create, one_or_many) = match self.parent {
            Some(_) => ("create", many),
            None => ("post", &flat),
        };
        [
            ("{one}", one),
            ("{One}", &flat),
            ("{Many}", many),
            ("{OneOrMany}", one_or_many),
            ("{ManyByParent}", &by_parent),
            ("{create}", &create.to_owned()),
            ("{noun}", &noun),
            ("{below}", &below),
        ]
        .into_iter()
        .fold(text.to_owned(), |text, (name, value)| {
            text.replace(name, value)
        })
    }

    fn parameters(&self, name: &str) -> Vec<Value> {
        let id = |name, text| {
            let id = json!("019b7868-8e00-7000-8000-000000000001");
            vec![parameter("path", name, text, json!({"type": "string"}), id)]
        };
        match name {
            "{id}" => id(&self.names.id, "Id of the resource."),
            "{parent_id}" => id(self.parent_id(), "Id of the parent."),
            "{name}" => vec![lease_name()],
            "(kind)" if self.entity.is_some() => Vec::new(),
            "(kind)" => {
                let kinds = self.registry.entities().iter();
                parameters::kind(&kinds.map(|e| e.kind.as_str()).collect::<Vec<_>>())
            }
            "(one)" => parameters::one(),
            "(audit)" => parameters::audit(),
            "(holder)" => parameters::holder(),
            name => vec![reference("parameters", &component(name))],
        }
    }

    fn content(&self, schema: &str, example: &str) -> Value {
        let schema = match schema {
            "(metadata)" => json!(Metadata::schema()),
            "(object)" => json!({"type": "object", "additionalProperties": true}),
            "(text)" => json!({"type": "string"}),
            name => reference("schemas", &self.fill(name)),
        };
        let kind = self.entity.map(|entity| entity.kind.as_str());
        match Examples::named(self.examples(example), example, kind) {
            Some(example) => json!({"schema": schema, "example": example}),
            None => json!({"schema": schema}),
        }
    }

    fn refusals(&self) -> &[RefusedStatus] {
        &REFUSALS
    }
}

fn lease_name() -> Value {
    let schema = json!({
        "type": "string", "minLength": 1, "maxLength": LeaseName::BYTES_MAX, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
    });
    let text = "Name of the lease, one for each adapter.";
    parameter("path", "name", text, schema, json!("dns-adapter"))
}

/// The name of a shared parameter in the document: `QueryParams.search`, as in the older document. Generators make a
/// type of it, and without the prefix `dryRun` and the schema `DryRun` would be one.
fn component(name: &str) -> String {
    let is_header = headers().iter().any(|header| header["name"] == name);
    let prefix = if is_header {
        HEADER_PARAMS
    } else {
        QUERY_PARAMS
    };
    format!("{prefix}{name}")
}

/// Headers of requests.
#[rustfmt::skip]
fn headers() -> Vec<Value> {
    const TAGS: &str = r#"^(\*|(W/)?"[!#-~]{0,40}"( *, *(W/)?"[!#-~]{0,40}"){0,9})$"#;
    [
        ("If-Match", TAGS, "Only if the resource is in one of these states, else 412: its `ETag`, or a generation such as `\"g7\"`, \
            which names what is declared, whatever adapters have reported since. `*` is any state."),
        ("If-None-Match", TAGS, "Only if the resource is in none of these states, such as `\"g7.r12\"`: a GET is answered 304 else, any \
            other request 412."),
        // A key without quotes. In quotes it may have any printable character.
        ("Idempotency-Key", r"^[A-Za-z0-9._~:/+=@-]{1,255}$", "A key of your choice, such as `8e03978e-40d5-43dd-bc93-6894a57f9324`: however \
            often the request is sent with it, it has one effect and one answer. Remembered for 24 hours, unless the service is set otherwise."),
        ("Last-Event-ID", "^[0-9]{1,19}-[0-9]{1,19}$", "With `watch`: begin after this position, such as `0-7`. Clients of server-sent events \
            send the `id` of their last event when they connect again. Counts more than `position` and `initial`."),
        (X_REQUEST_ID, "", "The id of the request, if it is to have a certain one, such as `deploy-42`: 1 to 128 of \
            `A-Za-z0-9._-`. Any other is replaced."),
    ]
    .map(|(name, pattern, text)| {
        let mut schema = json!({"type": "string"});
        if !pattern.is_empty() {
            schema["pattern"] = json!(pattern);
        }
        parameter("header", name, text, schema, Value::Null)
    })
    .into()
}

/// The parameters that several operations share, by their names in the document.
pub(in crate::http) fn shared_parameters() -> Map<String, Value> {
    let all = parameters::shared().into_iter().chain(headers());
    all.map(|one| (component(one["name"].as_str().unwrap_or_default()), one))
        .collect()
}
