//! Operations of the document: what the names and placeholders in `endpoints` stand for, for each kind.

use serde_json::{Map, Value, json};
use utoipa::PartialSchema as _;

use super::problems::{REFUSALS, X_REQUEST_ID};
use crate::http::meta::Metadata;
use crate::http::request::{Permission, Route};
use crate::wire::schemas::examples::Examples;
use crate::wire::schemas::{KindNames, Names, parameters};
use hyperfleet_domain::lease::LeaseName;
use hyperfleet_domain::{Entity, EntityRegistry};
use hyperfleet_server_kit::http::Operation;
use hyperfleet_server_kit::openapi::{Described, RefusedStatus, Vocabulary, parameter, reference};

/// Prefix of the names of shared parameters in the query.
pub(in crate::http) const QUERY_PARAMS: &str = "QueryParams.";
/// Prefix of the names of shared headers of requests.
pub(in crate::http) const HEADER_PARAMS: &str = "HeaderParams.";
/// Statuses of every operation that needs a caller.
const COMMON: [u16; 6] = [401, 403, 405, 429, 500, 503];
/// Statuses of every other operation.
const OPEN: [u16; 2] = [405, 500];
/// Statuses of operations with a body.
const WITH_BODY: [u16; 4] = [400, 408, 413, 415];

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
    pub(in crate::http) fn item(
        &self,
        path: &str,
        operations: &[Operation<Permission>],
    ) -> (String, Value) {
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

    #[rustfmt::skip]
    fn described(&self, path: &str, operation: &Operation<Permission>, ids: &[Value]) -> Value {
        let is_create = operation.method == "POST" && !path.contains("{id}");
        let row = &match operation.describe {
            created if is_create && self.is_flat_child() => refused(created),
            described => described,
        };
        let needs_token = operation.permission.is_some();
        let mut problems = if needs_token { &COMMON[..] } else { &OPEN }.to_vec();
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
        let (noun, flat) = match self.entity {
            Some(entity) => (format!("`{}`", entity.kind), format!("{flat}{one}")),
            None => ("resource".to_owned(), one.clone()),
        };
        let (create, below, one_or_many, by_parent) = match self.parent {
            Some(KindNames { one, .. }) => {
                let below = format!(" below a `{one}`");
                ("create", below, many, format!("{many}By{one}Id"))
            }
            None => ("post", String::new(), &flat, many.clone()),
        };
        text.replace("{one}", one)
            .replace("{One}", &flat)
            .replace("{Many}", many)
            .replace("{OneOrMany}", one_or_many)
            .replace("{ManyByParent}", &by_parent)
            .replace("{create}", create)
            .replace("{noun}", &noun)
            .replace("{below}", &below)
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
            "(holder)" => vec![parameters::holder()],
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

/// Child kinds are created below their parent only.
fn refused(create: Described) -> Described {
    Described {
        summary: "Refused: create a {noun} below its parent",
        text: "Returns 422 for a valid body.",
        parameters: &[],
        answers: &[],
        problems: &[422],
        ..create
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
    // Names of headers have a hyphen, and names of query parameters have none.
    let prefix = [QUERY_PARAMS, HEADER_PARAMS][usize::from(name.contains('-'))];
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
