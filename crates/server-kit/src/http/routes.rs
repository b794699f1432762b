//! Mounts paths with their methods, and answers unknown paths.

use actix_web::guard::GuardContext;
use actix_web::http::Method;
use actix_web::web::Payload;
use actix_web::{HttpRequest, HttpResponse, Resource, Route, web};

use super::body;
use super::problem::Problem;
use super::telemetry::RoutePath;

/// A path with its methods in alphabetical order. `HEAD` is allowed where `GET` is. Other methods get 405 with
/// the allowed ones.
pub fn resource(path: &str, routes: Vec<(&'static str, Route)>) -> Resource {
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
        resource = resource.route(route.guard(actix_web::guard::fn_guard(is_method)));
    }
    let allow = allow.join(", ");
    resource.default_service(web::to(move |request: HttpRequest, payload: Payload| {
        body::leave(&request, payload.into_inner());
        let problem = Problem::method_not_allowed(&allow);
        async move { Err::<HttpResponse, _>(problem) }
    }))
}

/// The handler of unknown paths.
pub async fn unknown_path(request: HttpRequest, payload: Payload) -> Result<HttpResponse, Problem> {
    body::leave(&request, payload.into_inner());
    Err(Problem::unknown_path(request.path()))
}
