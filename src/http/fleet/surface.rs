//! Which paths of a listener are fleet's, and what comes before any of its routes.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::http::header::{HeaderValue, SERVER};
use actix_web::middleware::Next;
use actix_web::web::Data;
use actix_web::{Error, HttpMessage as _, HttpResponse};

use super::{Fault, Hosts, PREFIXES, path};
use crate::fleet::EtcdFleet;
use crate::http::body;
use crate::http::telemetry::RequestLog;

/// Where fleet's API is on a listener.
pub(super) struct Surface {
    fleet: EtcdFleet,
    /// As answers name it.
    server: HeaderValue,
    /// Whether all paths are fleet's.
    is_everything: bool,
    hosts: Hosts,
}

/// An answer of a request that was led to a route, or to none.
struct Routed(HeaderValue);

impl Surface {
    /// All paths are fleet's.
    pub(super) fn everything(fleet: EtcdFleet, version: &str, hosts: Hosts) -> Self {
        let server = HeaderValue::try_from(format!("fleetd/{version}"));
        Self {
            fleet,
            server: server.unwrap_or_else(|_| HeaderValue::from_static("fleetd")),
            is_everything: true,
            hosts,
        }
    }

    /// Those with its prefixes are.
    pub(super) fn prefixes(fleet: EtcdFleet, version: &str) -> Self {
        Self {
            is_everything: false,
            ..Self::everything(fleet, version, Hosts::Any)
        }
    }
}

/// Whether a path is fleet's: no other rule applies to it, and its errors are in fleet's words.
pub(in crate::http) fn is_fleets(request: &ServiceRequest) -> bool {
    let Some(surface) = request.app_data::<Data<Surface>>() else {
        return false;
    };
    // As routes see it.
    let path = request.match_info().as_str();
    let is_below = |prefix: &str| {
        let rest = path.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    surface.is_everything || PREFIXES.into_iter().any(is_below)
}

/// Lets requests through to what is no part of the API, as one of this program's.
pub(super) async fn named<B: MessageBody>(
    request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, Error> {
    if let Some(surface) = request.app_data::<Data<Surface>>() {
        let server = surface.server.clone();
        request.extensions_mut().insert(Routed(server));
    }
    next.call(request).await
}

/// Lets requests through to the routes while it is known what there is, if their paths are clean.
pub(super) async fn guard(
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<EitherBody<impl MessageBody>>, Error> {
    match answer_before_routes(&request) {
        None => Ok(next.call(request).await?.map_into_left_body()),
        Some(answer) => {
            let payload = request.take_payload();
            body::leave(request.request(), payload);
            let response = match answer {
                Ok(answer) => request.into_response(answer),
                Err(fault) => request.error_response(fault),
            };
            Ok(response.map_into_right_body())
        }
    }
}

fn answer_before_routes(request: &ServiceRequest) -> Option<Result<HttpResponse, Fault>> {
    let Some(surface) = request.app_data::<Data<Surface>>() else {
        return Some(Err(Fault::internal("routes without a surface")));
    };
    if let Err(fault) = surface.hosts.check(request) {
        return Some(Err(fault));
    }
    if !surface.fleet.is_connected() {
        // Whoever asks again and again fills the log with it.
        RequestLog::of(request).told_elsewhere();
        return Some(Err(Fault::unconnected()));
    }
    let server = surface.server.clone();
    request.extensions_mut().insert(Routed(server));
    let path = request.match_info().as_str();
    if let Some(clean) = path::cleaned(path) {
        return Some(Ok(path::redirect(request.request(), &clean)));
    }
    path::has_hidden_slash(path).then(|| Err(Fault::unknown_path()))
}

/// What every answer of a route of fleet's says: which program it is of.
pub(in crate::http) fn tell<B>(response: &mut ServiceResponse<B>) {
    let routed = response.request().extensions_mut().remove::<Routed>();
    if let Some(Routed(server)) = routed {
        response.headers_mut().insert(SERVER, server);
    }
}
