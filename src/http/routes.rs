//! Which path leads to which handler. Every kind has the same routes, made from the registry. The
//! same table makes the OpenAPI document: nothing is mounted that is not described.

use actix_web::middleware::from_fn;
use actix_web::{Route as ActixRoute, web};

use super::identification::identify;
use super::request::{Route, Wish};
use super::{audit, meta, openapi, reports, resources};
use crate::domain::EntityRegistry;
use crate::kit::http::{admit, resource};
use crate::wire::BASE;

/// What can be done at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// What the service says of itself.
    Metadata,
    /// The OpenAPI document.
    Document,
    /// Its page for people.
    Page,
    /// The audit trail.
    Audit,
    /// A page of resources.
    List,
    /// A new resource.
    Create,
    /// One resource.
    Get,
    /// A change of one.
    Patch,
    /// The deletion of one.
    Delete,
    /// The removal of one that is being deleted.
    ForceDelete,
    /// A page of reports.
    Reports,
    /// A report.
    Report,
}

impl Operation {
    /// How it is asked for. `HEAD` goes wherever `GET` does.
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Metadata
            | Self::Document
            | Self::Page
            | Self::Audit
            | Self::List
            | Self::Get
            | Self::Reports => "GET",
            Self::Create | Self::ForceDelete => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Report => "PUT",
        }
    }

    /// What a caller wants to do by it; `None` if anybody may.
    fn wish(self) -> Option<Wish> {
        match self {
            Self::Metadata | Self::Document | Self::Page => None,
            Self::Audit | Self::List | Self::Get | Self::Reports => Some(Wish::Read),
            Self::Report => Some(Wish::Report),
            Self::Create | Self::Patch | Self::Delete | Self::ForceDelete => Some(Wish::Author),
        }
    }

    /// What answers it.
    fn route(self) -> ActixRoute {
        let route = self.handler();
        match self.wish() {
            None => route,
            Some(wish) => route.wrap(from_fn(move |request, next| {
                let identify = async move |request: &_| identify(request, wish).await;
                admit(identify, request, next)
            })),
        }
    }

    fn handler(self) -> ActixRoute {
        match self {
            Self::Metadata => web::to(meta::metadata),
            Self::Document => web::to(openapi::document),
            Self::Page => web::to(openapi::page),
            Self::Audit => web::to(audit::list),
            Self::List => web::to(resources::list),
            Self::Create => web::to(resources::create),
            Self::Get => web::to(resources::get),
            Self::Patch => web::to(resources::patch),
            Self::Delete => web::to(resources::delete),
            Self::ForceDelete => web::to(resources::force_delete),
            Self::Reports => web::to(reports::list),
            Self::Report => web::to(reports::put),
        }
    }
}

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

impl Endpoint {
    fn of_service(path: String, operations: &'static [Operation]) -> Self {
        Self {
            path,
            about: None,
            operations,
        }
    }
}

/// Every path of the API.
pub(super) fn endpoints(registry: &EntityRegistry) -> Vec<Endpoint> {
    use Operation as O;
    let mut endpoints = vec![
        Endpoint::of_service("/api/hyperfleet".to_owned(), &[O::Metadata]),
        Endpoint::of_service(format!("{BASE}/openapi"), &[O::Document]),
        Endpoint::of_service(format!("{BASE}/openapi.html"), &[O::Page]),
        Endpoint::of_service(format!("{BASE}/audit"), &[O::Audit]),
    ];
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
fn of_list(path: &str, route: &Route) -> [Endpoint; 4] {
    use Operation as O;
    let endpoints: [(&str, &'static [Operation]); 4] = [
        ("/{id}/force-delete", &[O::ForceDelete]),
        ("/{id}/statuses", &[O::Reports, O::Report]),
        ("/{id}", &[O::Delete, O::Get, O::Patch]),
        ("", &[O::List, O::Create]),
    ];
    endpoints.map(|(suffix, operations)| Endpoint {
        path: format!("{path}{suffix}"),
        about: Some(route.clone()),
        operations,
    })
}

/// Mounts every route, and the files of the OpenAPI page, which are no part of the API.
pub(super) fn configure(config: &mut web::ServiceConfig, registry: &EntityRegistry) {
    for endpoint in endpoints(registry) {
        let operations = endpoint.operations.iter();
        let routes = operations.map(|o| (o.method(), o.route()));
        let mut resource = resource(&endpoint.path, routes.collect());
        if let Some(about) = endpoint.about {
            resource = resource.app_data(about);
        }
        config.service(resource);
    }
    let files = vec![("GET", web::to(openapi::file))];
    config.service(resource(&format!("{BASE}/openapi/{{file}}"), files));
}
