//! Which path leads to which handler. Every kind has the same routes, made from the registry.

use actix_web::guard::GuardContext;
use actix_web::http::Method;
use actix_web::{HttpRequest, HttpResponse, Resource, Route as ActixRoute, web};

use super::problem::Problem;
use super::request::Route;
use super::{audit, meta, reports, resources};
use crate::domain::EntityRegistry;
use crate::wire::BASE;

/// Mounts every route.
pub(super) fn configure(config: &mut web::ServiceConfig, registry: &EntityRegistry) {
    config.service(endpoint(
        "/api/hyperfleet",
        &[("GET", || web::to(meta::metadata))],
    ));
    config.service(endpoint(
        &format!("{BASE}/audit"),
        &[("GET", || web::to(audit::list))],
    ));
    mount(config, &format!("{BASE}/resources"), &Route::All);
    for entity in registry.entities() {
        if let Some(parent) = entity.parent.as_deref().and_then(|p| registry.get(p)) {
            let path = format!("{BASE}/{}/{{parent_id}}/{}", parent.plural, entity.plural);
            let route = Route::Owned {
                kind: entity.kind.clone(),
                parent: parent.kind.clone(),
            };
            mount(config, &path, &route);
        }
        mount(
            config,
            &format!("{BASE}/{}", entity.plural),
            &Route::Kind(entity.kind.clone()),
        );
    }
}

/// The routes of one list.
fn mount(config: &mut web::ServiceConfig, path: &str, route: &Route) {
    let endpoints: [(&str, Methods); 4] = [
        (
            "/{id}/force-delete",
            &[("POST", || web::to(resources::force_delete))],
        ),
        (
            "/{id}/statuses",
            &[
                ("GET", || web::to(reports::list)),
                ("PUT", || web::to(reports::put)),
            ],
        ),
        (
            "/{id}",
            &[
                ("DELETE", || web::to(resources::delete)),
                ("GET", || web::to(resources::get)),
                ("PATCH", || web::to(resources::patch)),
            ],
        ),
        (
            "",
            &[
                ("GET", || web::to(resources::list)),
                ("POST", || web::to(resources::create)),
            ],
        ),
    ];
    for (suffix, methods) in endpoints {
        config.service(endpoint(&format!("{path}{suffix}"), methods).app_data(route.clone()));
    }
}

/// Methods, in alphabetical order, with what makes their routes.
type Methods = &'static [(&'static str, fn() -> ActixRoute)];

/// One path. `HEAD` goes wherever `GET` does; every other method is told what there is.
fn endpoint(path: &str, methods: Methods) -> Resource {
    let mut allow = Vec::new();
    let mut resource = web::resource(path);
    for (method, route) in methods {
        allow.push(*method);
        if *method == "GET" {
            allow.push("HEAD");
        }
        let is_method = move |context: &GuardContext<'_>| {
            let asked = &context.head().method;
            asked.as_str() == *method || (*method == "GET" && asked == Method::HEAD)
        };
        resource = resource.route(route().guard(actix_web::guard::fn_guard(is_method)));
    }
    let allow = allow.join(", ");
    resource.default_service(web::to(move || {
        let problem = Problem::method_not_allowed(&allow);
        async move { Err::<HttpResponse, _>(problem) }
    }))
}

/// A path that leads nowhere.
pub(super) async fn unknown_path(request: HttpRequest) -> Result<HttpResponse, Problem> {
    Err(Problem::unknown_path(request.path()))
}
