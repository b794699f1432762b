//! Maps paths to handlers: the table of `endpoints` for every kind of the registry. The same paths make the OpenAPI
//! document: every mounted route is described.

use actix_web::middleware::from_fn;
use actix_web::{Route as ActixRoute, web};

use super::endpoints::{LIST, METADATA, Operation, Paths, SERVICE};
use super::identification::identify;
use super::openapi;
use super::request::{Permission, Route};
use crate::wire::BASE;
use hyperfleet_domain::EntityRegistry;
use hyperfleet_server_kit::http::{RoutePath, admit, resource};

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
