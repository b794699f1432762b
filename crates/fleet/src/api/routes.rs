//! The route table. It also makes the OpenAPI document, so every mounted route is described.

use actix_web::guard::fn_guard;
use actix_web::http::StatusCode;
use actix_web::http::header::ALLOW;
use actix_web::middleware::from_fn;
use actix_web::web::{Payload, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, web};

use super::rows;
use super::surface::{self, Access};
use super::{Fault, discovery, inspect, machines, states, units};
use hyperfleet_server_kit::http::{self, RoutePath, leave};

pub(super) type Operation = http::Operation<Access>;

#[derive(Debug)]
pub(super) struct Endpoint {
    /// Without the prefix.
    pub(super) path: &'static str,
    pub(super) operations: &'static [Operation],
    /// The response to every other method.
    pub(super) otherwise: (StatusCode, &'static str),
}

impl Endpoint {
    /// The response to a method that the endpoint does not have: the older server's text, and the allowed
    /// methods.
    fn other_method(&self) -> Fault {
        let (status, text) = self.otherwise;
        let methods: Vec<_> = self.operations.iter().map(|o| o.method).collect();
        Fault::new(status, text).with_header(ALLOW, &methods.join(", "))
    }
}

const SEE: Option<Access> = Some(Access::See);
const CHANGE: Option<Access> = Some(Access::Change);
const GET_ONLY: (StatusCode, &str) = (
    StatusCode::METHOD_NOT_ALLOWED,
    "only GET supported against this resource",
);

const OTHER: StatusCode = StatusCode::METHOD_NOT_ALLOWED;

/// Every path, with the older server's response to other methods.
#[rustfmt::skip]
pub(super) static ENDPOINTS: [Endpoint; 17] = [
    Endpoint { path: "", operations: &[], otherwise: (OTHER, "") },
    Endpoint { path: "/units", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(units::list), describe: &rows::UNITS },
    ], otherwise: GET_ONLY },
    Endpoint { path: "/units/{unitName}", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(units::get), describe: &rows::UNIT },
        Operation { method: "PUT", permission: CHANGE, handler: || web::to(units::set), describe: &rows::SET_UNIT },
        Operation { method: "DELETE", permission: CHANGE, handler: || web::to(units::destroy), describe: &rows::DESTROY_UNIT },
    ], otherwise: (OTHER, "only GET, PUT and DELETE supported against this resource") },
    Endpoint { path: "/units/{unitName}/explain", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(units::explain), describe: &rows::EXPLAIN },
    ], otherwise: GET_ONLY },
    Endpoint { path: "/units/{unitName}/status", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(inspect::status), describe: &rows::STATUS },
    ], otherwise: GET_ONLY },
    Endpoint { path: "/units/{unitName}/journal", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(inspect::journal), describe: &rows::JOURNAL },
    ], otherwise: GET_ONLY },
    Endpoint { path: "/units/{unitName}/restart", operations: &[
        Operation { method: "POST", permission: CHANGE, handler: || web::to(units::restart), describe: &rows::RESTART },
    ], otherwise: (OTHER, "only POST supported against this resource") },
    Endpoint { path: "/units/{unitName}/stop", operations: &[
        Operation { method: "POST", permission: CHANGE, handler: || web::to(units::stop), describe: &rows::STOP },
    ], otherwise: (OTHER, "only POST supported against this resource") },
    Endpoint { path: "/state", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(states::list), describe: &rows::STATES },
    ], otherwise: GET_ONLY },
    Endpoint { path: "/state/{unitName}", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(states::get), describe: &rows::STATE },
    ], otherwise: GET_ONLY },
    Endpoint { path: "/machines", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(machines::list), describe: &rows::MACHINES },
        Operation { method: "PATCH", permission: CHANGE, handler: || web::to(machines::patch), describe: &rows::PATCH_MACHINES },
    ], otherwise: (OTHER, "only GET and PATCH supported against this resource") },
    Endpoint { path: "/machines/{machineID}/cordon", operations: &[
        Operation { method: "PUT", permission: CHANGE, handler: || web::to(machines::cordon), describe: &rows::CORDON },
        Operation { method: "DELETE", permission: CHANGE, handler: || web::to(machines::uncordon), describe: &rows::UNCORDON },
    ], otherwise: (OTHER, "only PUT and DELETE supported against this resource") },
    Endpoint { path: "/machines/{machineID}/drain", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(machines::drain_progress), describe: &rows::DRAIN_PROGRESS },
        Operation { method: "PUT", permission: CHANGE, handler: || web::to(machines::drain), describe: &rows::DRAIN },
        Operation { method: "DELETE", permission: CHANGE, handler: || web::to(machines::end_drain), describe: &rows::END_DRAIN },
    ], otherwise: (OTHER, "only GET, PUT and DELETE supported against this resource") },
    Endpoint { path: "/rebalance", operations: &[
        Operation { method: "GET", permission: SEE, handler: || web::to(machines::plan_rebalance), describe: &rows::PLAN_REBALANCE },
        Operation { method: "POST", permission: CHANGE, handler: || web::to(machines::rebalance), describe: &rows::REBALANCE },
    ], otherwise: (OTHER, "only GET and POST supported against this resource") },
    Endpoint { path: "/resume", operations: &[
        Operation { method: "POST", permission: CHANGE, handler: || web::to(machines::resume), describe: &rows::RESUME },
    ], otherwise: (OTHER, "only POST supported against this resource") },
    Endpoint { path: "/discovery", operations: &[
        Operation { method: "GET", permission: None, handler: || web::to(discovery::discovery), describe: &rows::DISCOVERY },
    ], otherwise: (StatusCode::BAD_REQUEST, "only HTTP GET supported against this resource") },
    Endpoint { path: "/openapi", operations: &[
        Operation { method: "GET", permission: None, handler: || web::to(discovery::described), describe: &rows::DOCUMENT },
    ], otherwise: GET_ONLY },
];

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
