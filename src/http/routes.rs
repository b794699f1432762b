//! Which path leads to which handler. Every kind has the same routes, made from the registry. The
//! same table makes the OpenAPI document: nothing is mounted that is not described.

use actix_web::guard::{GuardContext, fn_guard};
use actix_web::http::Method;
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse, Resource, Route as ActixRoute, web};
use utoipa::openapi::path::OperationBuilder;

use super::openapi::operations::{self as describe, Subject};
use super::operation::Operation as Row;
use super::problem::Problem;
use super::request::{Route, Wish};
use super::telemetry::RoutePath;
use super::{audit, body, meta, openapi, reports, resources};
use crate::domain::EntityRegistry;
use crate::wire::BASE;

/// One operation.
pub(super) type Operation = Row<fn(&Subject<'_>) -> OperationBuilder>;

const READ: Option<Wish> = Some(Wish::Read);
const REPORT: Option<Wish> = Some(Wish::Report);
const AUTHOR: Option<Wish> = Some(Wish::Author);

/// The paths of the service itself.
#[rustfmt::skip]
static SERVICE: [(&str, [Operation; 1]); 4] = [
    ("/api/hyperfleet", [
        Operation { method: "GET", wish: None, handler: || web::to(meta::metadata), describe: describe::metadata },
    ]),
    ("/api/hyperfleet/v1/openapi", [
        Operation { method: "GET", wish: None, handler: || web::to(openapi::document), describe: describe::document },
    ]),
    ("/api/hyperfleet/v1/openapi.html", [
        Operation { method: "GET", wish: None, handler: || web::to(openapi::page), describe: describe::page },
    ]),
    ("/api/hyperfleet/v1/audit", [
        Operation { method: "GET", wish: READ, handler: || web::to(audit::list), describe: describe::audit },
    ]),
];

/// The paths of a list, below its own.
#[rustfmt::skip]
static LIST: [(&str, &[Operation]); 4] = [
    ("/{id}/force-delete", &[
        Operation { method: "POST", wish: AUTHOR, handler: || web::to(resources::force_delete), describe: describe::force_delete },
    ]),
    ("/{id}/statuses", &[
        Operation { method: "GET", wish: READ, handler: || web::to(reports::list), describe: describe::reports },
        Operation { method: "PUT", wish: REPORT, handler: || web::to(reports::put), describe: describe::report },
    ]),
    ("/{id}", &[
        Operation { method: "DELETE", wish: AUTHOR, handler: || web::to(resources::delete), describe: describe::delete },
        Operation { method: "GET", wish: READ, handler: || web::to(resources::get), describe: describe::get },
        Operation { method: "PATCH", wish: AUTHOR, handler: || web::to(resources::patch), describe: describe::patch },
    ]),
    ("", &[
        Operation { method: "GET", wish: READ, handler: || web::to(resources::list), describe: describe::list },
        Operation { method: "POST", wish: AUTHOR, handler: || web::to(resources::create), describe: describe::create },
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
    let of_service = |(path, operations): &'static (&str, [Operation; 1])| Endpoint {
        path: (*path).to_owned(),
        about: None,
        operations,
    };
    let mut endpoints: Vec<_> = SERVICE.iter().map(of_service).collect();
    endpoints.extend(of_list(&format!("{BASE}/resources"), &Route::All));
    for entity in registry.entities() {
        if let Some(parent) = entity.parent.as_deref().and_then(|p| registry.get(p)) {
            let path = format!("{BASE}/{}/{{parent_id}}/{}", parent.plural, entity.plural);
            let route = Route::Owned {
                kind: entity.kind.clone(),
                parent: parent.kind.clone(),
            };
            endpoints.extend(of_list(&path, &route));
        }
        let path = format!("{BASE}/{}", entity.plural);
        endpoints.extend(of_list(&path, &Route::Kind(entity.kind.clone())));
    }
    endpoints
}

/// The paths of one list.
fn of_list(path: &str, route: &Route) -> impl Iterator<Item = Endpoint> {
    LIST.iter().map(move |(suffix, operations)| Endpoint {
        path: format!("{path}{suffix}"),
        about: Some(route.clone()),
        operations,
    })
}

/// Mounts every route, and the files of the OpenAPI page, which are no part of the API.
pub(super) fn configure(config: &mut web::ServiceConfig, registry: &EntityRegistry) {
    for endpoint in endpoints(registry) {
        let operations = endpoint.operations.iter();
        let routes = operations.map(|o| (o.method, o.route()));
        let mut resource = resource(&endpoint.path, routes.collect());
        if let Some(about) = endpoint.about {
            resource = resource.app_data(about);
        }
        config.service(resource);
    }
    let files = vec![("GET", web::to(openapi::file))];
    config.service(resource(&format!("{BASE}/openapi/{{file}}"), files));
}

/// One path with its methods, in alphabetical order. `HEAD` goes wherever `GET` does; every other
/// method is told what there is.
pub(super) fn resource(path: &str, routes: Vec<(&'static str, ActixRoute)>) -> Resource {
    let mut allow = Vec::new();
    let mut resource = web::resource(path).app_data(RoutePath::new(path));
    for (method, route) in routes {
        allow.push(method);
        if method == "GET" {
            allow.push("HEAD");
        }
        let is_method = move |context: &GuardContext<'_>| {
            let asked = &context.head().method;
            asked.as_str() == method || (method == "GET" && asked == Method::HEAD)
        };
        resource = resource.route(route.guard(fn_guard(is_method)));
    }
    let allow = allow.join(", ");
    resource.default_service(web::to(move |request: HttpRequest, payload: Payload| {
        body::leave(&request, payload.into_inner());
        let problem = Problem::method_not_allowed(&allow);
        async move { Err::<HttpResponse, _>(problem) }
    }))
}

/// A path that leads nowhere.
pub(super) async fn unknown_path(
    request: HttpRequest,
    payload: Payload,
) -> Result<HttpResponse, Problem> {
    body::leave(&request, payload.into_inner());
    Err(Problem::unknown_path(request.path()))
}
