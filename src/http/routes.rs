//! Which path leads to which handler. Every kind has the same routes, made from the registry. The
//! same table makes the OpenAPI document: nothing is mounted that is not described.

use actix_web::middleware::from_fn;
use actix_web::{Route as ActixRoute, web};
use utoipa::openapi::path::OperationBuilder;

use super::identification::identify;
use super::openapi::operations::{self as describe, Subject};
use super::request::{Permission, Route};
use super::{audit, meta, openapi, reports, resources};
use crate::domain::EntityRegistry;
use crate::wire::BASE;
use hyperfleet_server_kit::http::{self, RoutePath, admit, resource};

/// One operation.
pub(super) type Operation = http::Operation<Permission, fn(&Subject<'_>) -> OperationBuilder>;

/// Paths below one that they have in common.
type Paths = &'static [(&'static str, &'static [Operation])];

const READ: Option<Permission> = Some(Permission::Read);
const REPORT: Option<Permission> = Some(Permission::Report);
const AUTHOR: Option<Permission> = Some(Permission::Author);

/// What the service is. As in the older service, its requests are not counted: load balancers ask it.
const METADATA: &str = "/api/hyperfleet";

/// The paths of the service itself.
#[rustfmt::skip]
static SERVICE: Paths = &[
    (METADATA, &[
        Operation { method: "GET", permission: None, handler: || web::to(meta::metadata), describe: describe::metadata },
    ]),
    ("/api/hyperfleet/v1/openapi", &[
        Operation { method: "GET", permission: None, handler: || web::to(openapi::document), describe: describe::document },
    ]),
    ("/api/hyperfleet/v1/openapi.html", &[
        Operation { method: "GET", permission: None, handler: || web::to(openapi::page), describe: describe::page },
    ]),
    ("/api/hyperfleet/v1/audit", &[
        Operation { method: "GET", permission: READ, handler: || web::to(audit::list), describe: describe::audit },
    ]),
];

/// The paths of a list, below its own.
#[rustfmt::skip]
static LIST: Paths = &[
    ("/{id}/force-delete", &[
        Operation { method: "POST", permission: AUTHOR, handler: || web::to(resources::force_delete), describe: describe::force_delete },
    ]),
    ("/{id}/statuses", &[
        Operation { method: "GET", permission: READ, handler: || web::to(reports::list), describe: describe::reports },
        Operation { method: "PUT", permission: REPORT, handler: || web::to(reports::put), describe: describe::report },
    ]),
    ("/{id}", &[
        Operation { method: "DELETE", permission: AUTHOR, handler: || web::to(resources::delete), describe: describe::delete },
        Operation { method: "GET", permission: READ, handler: || web::to(resources::get), describe: describe::get },
        Operation { method: "PATCH", permission: AUTHOR, handler: || web::to(resources::patch), describe: describe::patch },
    ]),
    ("", &[
        Operation { method: "GET", permission: READ, handler: || web::to(resources::list), describe: describe::list },
        Operation { method: "POST", permission: AUTHOR, handler: || web::to(resources::create), describe: describe::create },
    ]),
];

/// One path.
#[derive(Debug)]
pub(super) struct Endpoint {
    /// With `{parent_id}` and `{id}` for segments that vary.
    pub(super) path: String,
    /// The list that it is about.
    pub(super) about: Option<Route>,
    /// What can be done there, by method in alphabetical order.
    pub(super) operations: &'static [Operation],
}

/// Every path of the API.
pub(super) fn endpoints(registry: &EntityRegistry) -> Vec<Endpoint> {
    let mut endpoints: Vec<_> = below("", SERVICE, None).collect();
    let all = format!("{BASE}/resources");
    endpoints.extend(below(&all, LIST, Some(Route::All)));
    for entity in registry.entities() {
        if let Some(parent) = entity.parent.as_deref().and_then(|p| registry.get(p)) {
            let path = format!("{BASE}/{}/{{parent_id}}/{}", parent.plural, entity.plural);
            let route = Route::Owned {
                kind: entity.kind.clone(),
                parent: parent.kind.clone(),
            };
            endpoints.extend(below(&path, LIST, Some(route)));
        }
        let path = format!("{BASE}/{}", entity.plural);
        let route = Route::Kind(entity.kind.clone());
        endpoints.extend(below(&path, LIST, Some(route)));
    }
    endpoints
}

fn below(path: &str, paths: Paths, about: Option<Route>) -> impl Iterator<Item = Endpoint> {
    paths.iter().map(move |(suffix, operations)| Endpoint {
        path: format!("{path}{suffix}"),
        about: about.clone(),
        operations,
    })
}

/// The handler behind admission.
fn admitted(route: ActixRoute, permission: Permission) -> ActixRoute {
    route.wrap(from_fn(move |request, next| {
        let identify = async move |request: &_| identify(request, permission).await;
        admit(identify, request, next)
    }))
}

/// Mounts every route, and the files of the OpenAPI page, which are no part of the API.
pub(super) fn configure(config: &mut web::ServiceConfig, registry: &EntityRegistry) {
    let mut endpoints = endpoints(registry);
    // Paths are tried one after the other, each by a pattern of its own: first those that most requests have.
    endpoints.sort_by_key(|endpoint| matches!(endpoint.about, None | Some(Route::All)));
    for endpoint in endpoints {
        let operations = endpoint.operations.iter();
        let routes = operations.map(|o| (o.method, o.route(admitted)));
        let mut resource = resource(&endpoint.path, routes.collect());
        if endpoint.path == METADATA {
            resource = resource.app_data(RoutePath::uncounted(METADATA));
        }
        if let Some(about) = endpoint.about {
            resource = resource.app_data(about);
        }
        config.service(resource);
    }
    let files = vec![("GET", web::to(openapi::file))];
    config.service(resource(&format!("{BASE}/openapi/{{file}}"), files));
}
