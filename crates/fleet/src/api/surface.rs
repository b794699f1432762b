//! Which paths of a listener are fleet's, and what every request to them passes before its route.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderName, HeaderValue, SERVER};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage as _};

use futures_util::future::LocalBoxFuture;
use serde_json::Value;

use super::{Fault, Hosts, PREFIXES, host};
use crate::EtcdFleet;
use crate::inspect::Inspector;
use hyperfleet_server_kit::http::{self, Problem, RequestLog, ResponseHeaders};

/// The access that a caller needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    See,
    Change,
}

/// Identifies the caller and refuses callers without access, on a listener that authenticates.
pub(super) type Identify =
    for<'a> fn(&'a ServiceRequest, Access) -> LocalBoxFuture<'a, Result<(), Problem>>;

/// Where fleet's API is mounted on a listener.
pub(super) struct Surface {
    pub(super) fleet: EtcdFleet,
    /// Version in the `Server` header and the documents.
    pub(super) version: &'static str,
    /// Builds the OpenAPI document of a version.
    pub(super) document: fn(&str) -> Value,
    pub(super) hosts: Hosts,
    pub(super) inspector: Inspector,
    /// Unset if every caller has full access.
    pub(super) identify: Option<Identify>,
}

impl Surface {
    /// The `Server` header of its responses.
    pub(super) fn server(&self) -> Option<(HeaderName, HeaderValue)> {
        let server = HeaderValue::try_from(format!("fleetd/{}", self.version));
        Some((SERVER, server.ok()?))
    }
}

/// Whether a path of a shared listener is fleet's. Its errors then have fleet's form.
pub fn is_fleets(request: &ServiceRequest) -> bool {
    // The path as routes see it.
    let path = request.match_info().as_str();
    let is_below = |prefix: &str| {
        let rest = path.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    request.app_data::<Data<Surface>>().is_some() && PREFIXES.into_iter().any(is_below)
}

pub(super) async fn admit(
    access: Access,
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody>>, Error> {
    let surface = request.app_data::<Data<Surface>>().cloned();
    let identify = async move |request: &_| match surface {
        None => Err(Problem::internal("routes are mounted with a surface")),
        Some(surface) => match surface.identify {
            None => Ok(()),
            Some(identify) => identify(request, access).await,
        },
    };
    http::admit(identify, request, next).await
}

/// Lets requests through to the routes while the mirror is connected.
pub(super) async fn guard(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody>>, Error> {
    match refusal_before_routes(&request) {
        None => Ok(next.call(request).await?.map_into_left_body()),
        Some(fault) => {
            let payload = request.take_payload();
            http::leave(request.request(), payload);
            Ok(request.error_response(fault).map_into_right_body())
        }
    }
}

fn refusal_before_routes(request: &ServiceRequest) -> Option<Fault> {
    let Some(surface) = request.app_data::<Data<Surface>>() else {
        return Some(Fault::internal("routes are mounted with a surface"));
    };
    if let Err(fault) = surface
        .hosts
        .check(request)
        .and_then(|()| host::refuse_other_sites(request))
    {
        return Some(fault);
    }
    if !surface.fleet.is_connected() {
        // Not logged again: clients that retry would fill the log with it.
        RequestLog::of(request).entry_mut().is_logged_elsewhere = true;
        return Some(Fault::unconnected());
    }
    ResponseHeaders::add(request, surface.server());
    None
}
