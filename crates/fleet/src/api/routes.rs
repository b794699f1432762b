//! Mounts the paths of the table in `endpoints`.

use actix_web::guard::fn_guard;
use actix_web::middleware::from_fn;
use actix_web::web::{Payload, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, web};

use super::endpoints::ENDPOINTS;
use super::{Fault, surface};
use hyperfleet_server_kit::http::{RoutePath, leave};

/// Mounts every path below the scope's prefix.
pub(super) fn configure(config: &mut ServiceConfig, prefix: &str) {
    for endpoint in &ENDPOINTS {
        // A listener has no empty path.
        let path = match (prefix, endpoint.path) {
            ("", "") => "/",
            (_, path) => path,
        };
        let template = RoutePath::new(&format!("{prefix}{path}"));
        let mut resource = web::resource(path).app_data(template);
        for operation in endpoint.operations {
            // `HEAD` is a method of its own, as in the older server.
            let route = operation.route(|route, access| {
                route.wrap(from_fn(move |request, next| {
                    surface::admit(access, request, next)
                }))
            });
            let is_method = fn_guard(move |context| context.head().method == operation.method);
            resource = resource.route(route.guard(is_method));
        }
        let fault = endpoint.other_method();
        let otherwise = move |request: HttpRequest, payload: Payload| {
            leave(&request, payload.into_inner());
            let fault = fault.clone();
            async move { Err::<HttpResponse, _>(fault) }
        };
        config.service(resource.default_service(web::to(otherwise)));
    }
}

/// The handler of paths without a route.
pub(super) async fn unknown_path(
    request: HttpRequest,
    payload: Payload,
) -> Result<HttpResponse, Fault> {
    leave(&request, payload.into_inner());
    Err(Fault::unknown_path())
}
