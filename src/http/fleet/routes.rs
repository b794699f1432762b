//! Which path leads where. The same table makes the OpenAPI document: nothing is mounted that is not described.

use actix_web::guard::fn_guard;
use actix_web::http::StatusCode;
use actix_web::http::header::ALLOW;
use actix_web::middleware::from_fn;
use actix_web::web::{Payload, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, Route, web};

use super::surface::{self, Access};
use super::{Fault, discovery, machines, states, units};
use crate::kit::http::{RoutePath, leave};

/// What can be done at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    /// What the API says of itself, in Google's format.
    Discovery,
    /// The same in OpenAPI's.
    Document,
    /// A page of units, or what changes of them.
    Units,
    /// One unit.
    Unit,
    /// A new unit, or a change of one.
    SetUnit,
    /// The end of one.
    DestroyUnit,
    /// Why it is where it is.
    Explain,
    /// A page of states, or what changes of them.
    States,
    /// One state.
    State,
    /// A page of machines.
    Machines,
    /// A change of their metadata.
    PatchMachines,
}

impl Operation {
    /// How it is asked for.
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::SetUnit => "PUT",
            Self::DestroyUnit => "DELETE",
            Self::PatchMachines => "PATCH",
            _ => "GET",
        }
    }

    /// What a caller wants to do by it; none if anybody may.
    pub(super) fn wish(self) -> Option<Access> {
        match self {
            Self::Discovery | Self::Document => None,
            Self::Units
            | Self::Unit
            | Self::Explain
            | Self::States
            | Self::State
            | Self::Machines => Some(Access::See),
            Self::SetUnit | Self::DestroyUnit | Self::PatchMachines => Some(Access::Change),
        }
    }

    fn handler(self) -> Route {
        match self {
            Self::Discovery => web::to(discovery::discovery),
            Self::Document => web::to(discovery::described),
            Self::Units => web::to(units::list),
            Self::Unit => web::to(units::get),
            Self::SetUnit => web::to(units::set),
            Self::DestroyUnit => web::to(units::destroy),
            Self::Explain => web::to(units::explain),
            Self::States => web::to(states::list),
            Self::State => web::to(states::get),
            Self::Machines => web::to(machines::list),
            Self::PatchMachines => web::to(machines::patch),
        }
    }

    fn route(self) -> Route {
        let route = match self.wish() {
            None => self.handler(),
            Some(wish) => self
                .handler()
                .wrap(from_fn(move |r, next| surface::admit(wish, r, next))),
        };
        let method = self.method();
        // `HEAD` is another method, as in the older server.
        route.guard(fn_guard(move |context| context.head().method == method))
    }
}

/// One path.
#[derive(Debug)]
pub(super) struct Endpoint {
    /// Below the prefix.
    pub(super) path: &'static str,
    /// What can be done there.
    pub(super) operations: &'static [Operation],
    /// What every other method is told.
    pub(super) otherwise: (StatusCode, &'static str),
}

impl Endpoint {
    /// What is said to methods that it does not have: the older server's text, and which there are.
    fn other_method(&self) -> Fault {
        let (status, text) = self.otherwise;
        let methods: Vec<_> = self.operations.iter().map(|o| o.method()).collect();
        Fault::new(status, text).with_header(ALLOW, &methods.join(", "))
    }
}

const GET_ONLY: (StatusCode, &str) = (
    StatusCode::METHOD_NOT_ALLOWED,
    "only GET supported against this resource",
);

/// Every path, with what the older server says to other methods.
#[rustfmt::skip]
pub(super) const ENDPOINTS: [Endpoint; 9] = {
    use Operation as O;
    const OTHER: StatusCode = StatusCode::METHOD_NOT_ALLOWED;
    [
        Endpoint { path: "", operations: &[], otherwise: (OTHER, "") },
        Endpoint { path: "/units", operations: &[O::Units], otherwise: GET_ONLY },
        Endpoint { path: "/units/{unitName}", operations: &[O::Unit, O::SetUnit, O::DestroyUnit],
                   otherwise: (OTHER, "only GET, PUT and DELETE supported against this resource") },
        Endpoint { path: "/units/{unitName}/explain", operations: &[O::Explain], otherwise: GET_ONLY },
        Endpoint { path: "/state", operations: &[O::States], otherwise: GET_ONLY },
        Endpoint { path: "/state/{unitName}", operations: &[O::State], otherwise: GET_ONLY },
        Endpoint { path: "/machines", operations: &[O::Machines, O::PatchMachines],
                   otherwise: (OTHER, "only GET and PATCH supported against this resource") },
        Endpoint { path: "/discovery", operations: &[O::Discovery],
                   otherwise: (StatusCode::BAD_REQUEST, "only HTTP GET supported against this resource") },
        Endpoint { path: "/openapi", operations: &[O::Document], otherwise: GET_ONLY },
    ]
};

/// Mounts every path below a prefix, which the scope has.
pub(super) fn configure(config: &mut ServiceConfig, prefix: &str) {
    for endpoint in &ENDPOINTS {
        // A listener has no path without a slash.
        let path = match (prefix, endpoint.path) {
            ("", "") => "/",
            (_, path) => path,
        };
        let template = RoutePath::new(&format!("{prefix}{path}"));
        let mut resource = web::resource(path).app_data(template);
        for operation in endpoint.operations {
            resource = resource.route(operation.route());
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

/// A path that leads nowhere.
pub(super) async fn unknown_path(
    request: HttpRequest,
    payload: Payload,
) -> Result<HttpResponse, Fault> {
    leave(&request, payload.into_inner());
    Err(Fault::unknown_path())
}
