//! Maps paths to handlers. Every kind has the same routes, built from the registry. The same table makes the OpenAPI
//! document: every mounted route is described (`docs/decisions/0033-one-route-table.md`).

use actix_web::middleware::from_fn;
use actix_web::{Route as ActixRoute, web};

use super::identification::identify;
use super::openapi::rows;
use super::request::{Permission, Route};
use super::{audit, explanations, history, leases, meta, openapi, reports, resources};
use crate::wire::BASE;
use hyperfleet_domain::EntityRegistry;
use hyperfleet_server_kit::http::{self, RoutePath, admit, resource};

pub(super) type Operation = http::Operation<Permission>;

/// Paths below a common one.
type Paths = &'static [(&'static str, &'static [Operation])];

const READ: Option<Permission> = Some(Permission::Read);
const REPORT: Option<Permission> = Some(Permission::Report);
const AUTHOR: Option<Permission> = Some(Permission::Author);

/// The service's metadata. Its requests are not counted, as in the older service: load balancers send them.
const METADATA: &str = "/api/hyperfleet";

/// Paths of the service itself.
#[rustfmt::skip]
static SERVICE: Paths = &[
    (METADATA, &[
        Operation { method: "GET", permission: None, handler: || web::to(meta::metadata), describe: &rows::METADATA },
    ]),
    ("/api/hyperfleet/v1/openapi", &[
        Operation { method: "GET", permission: None, handler: || web::to(openapi::document), describe: &rows::DOCUMENT },
    ]),
    ("/api/hyperfleet/v1/openapi.html", &[
        Operation { method: "GET", permission: None, handler: || web::to(openapi::page), describe: &rows::PAGE },
    ]),
    ("/api/hyperfleet/v1/audit", &[
        Operation { method: "GET", permission: READ, handler: || web::to(audit::list), describe: &rows::TRAIL },
    ]),
    ("/api/hyperfleet/v1/leases/{name}", &[
        Operation { method: "DELETE", permission: REPORT, handler: || web::to(leases::delete), describe: &rows::RELEASE_LEASE },
        Operation { method: "GET", permission: READ, handler: || web::to(leases::get), describe: &rows::LEASE },
        Operation { method: "PUT", permission: REPORT, handler: || web::to(leases::put), describe: &rows::ACQUIRE_LEASE },
    ]),
];

/// Paths below a list, in the order in which they are matched: the most frequent first.
#[rustfmt::skip]
static LIST: Paths = &[
    ("/{id}", &[
        Operation { method: "DELETE", permission: AUTHOR, handler: || web::to(resources::delete), describe: &rows::DELETE },
        Operation { method: "GET", permission: READ, handler: || web::to(resources::get), describe: &rows::GET },
        Operation { method: "PATCH", permission: AUTHOR, handler: || web::to(resources::patch), describe: &rows::PATCH },
    ]),
    ("/{id}/statuses", &[
        Operation { method: "GET", permission: READ, handler: || web::to(reports::list), describe: &rows::REPORTS },
        Operation { method: "PUT", permission: REPORT, handler: || web::to(reports::put), describe: &rows::REPORT },
    ]),
    ("", &[
        Operation { method: "GET", permission: READ, handler: || web::to(resources::list), describe: &rows::LIST },
        Operation { method: "POST", permission: AUTHOR, handler: || web::to(resources::create), describe: &rows::CREATE },
    ]),
    ("/{id}/explain", &[
        Operation { method: "GET", permission: READ, handler: || web::to(explanations::get), describe: &rows::EXPLAIN },
    ]),
    ("/{id}/events", &[
        Operation { method: "GET", permission: READ, handler: || web::to(history::events), describe: &rows::EVENTS },
    ]),
    ("/{id}/force-delete", &[
        Operation { method: "POST", permission: AUTHOR, handler: || web::to(resources::force_delete), describe: &rows::FORCE_DELETE },
    ]),
    ("/{id}/history", &[
        Operation { method: "GET", permission: READ, handler: || web::to(history::generations), describe: &rows::HISTORY },
    ]),
];

#[derive(Debug)]
pub(super) struct Endpoint {
    /// Segments that vary are `{parent_id}` and `{id}`.
    pub(super) path: String,
    /// The list that it addresses.
    pub(super) about: Option<Route>,
    /// Its operations, by method in alphabetical order.
    pub(super) operations: &'static [Operation],
}

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

/// Patterns of paths are matched in this order: the most frequent first.
fn in_order(mut endpoints: Vec<Endpoint>) -> Vec<Endpoint> {
    endpoints.sort_by_key(|endpoint| matches!(endpoint.about, None | Some(Route::All)));
    endpoints
}

/// Mounts every route, and the files of the OpenAPI page, which are not part of the API.
pub(super) fn configure(config: &mut web::ServiceConfig, registry: &EntityRegistry) {
    for endpoint in in_order(endpoints(registry)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use hyperfleet_domain::entity_config;

    #[test]
    fn the_most_frequent_paths_are_matched_first() {
        let registry = entity_config::registry(&entity_config::built_in()).unwrap();
        let endpoints = in_order(endpoints(&registry));
        let place = |path: &str| endpoints.iter().position(|e| e.path == path).unwrap();
        let of_kinds = endpoints.len() - SERVICE.len() - LIST.len();
        for list in ["clusters", "clusters/{parent_id}/nodepools"] {
            let places = ["/{id}", "/{id}/statuses", "", "/{id}/history"]
                .map(|below| place(&format!("{BASE}/{list}{below}")));
            assert!(places.is_sorted(), "{list}: {places:?}");
            assert!(places[3] < of_kinds, "{list}: {places:?}");
        }
    }
}
