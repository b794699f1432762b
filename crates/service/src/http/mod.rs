//! The REST surface: take the request apart, call one use case, present. No rules here.
//!
//! ```text
//! span ▸ observe (line, metrics) ▸ frame (panics, problems) ▸ gzip ▸ routes ▸ admission ▸ handler ▸ app
//! ```

mod audit;
mod changes;
mod conditional;
mod explanations;
mod history;
mod identification;
mod leases;
mod meta;
mod openapi;
mod openapi_document;
mod problem;
mod reports;
mod request;
mod resources;
#[rustfmt::skip]
mod endpoints;
mod routes;
mod watching;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::{Compress, from_fn};
use actix_web::{App, Error, web};
use tracing_actix_web::TracingLogger;

use crate::app::Service;
use crate::wire::BASE;
use hyperfleet_auth::Authentication;
use hyperfleet_domain::tenancy;
use hyperfleet_fleet::{EtcdFleet, api as fleet};
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::http::{
    Admission, BODY_BYTES_MAX, QuietClient, Redaction, RequestSpan, Wording, frame, gzip_below,
    gzip_in_place, observe, unknown_path,
};
use hyperfleet_server_kit::program::Build;

pub use openapi::Document;
pub use openapi_document::{openapi, plain as plain_openapi};

/// The parts that the API is served from.
#[derive(Clone)]
pub struct ApiState {
    pub service: Service,
    pub clock: Clock,
    /// The name and version of the program.
    pub build: Build,
    pub authentication: Authentication,
    pub admission: Admission,
    /// Values that its log does not show.
    pub redaction: Redaction,
    /// How requests name their tenant.
    pub tenancy: tenancy::TenancyRules,
    /// A client whose requests are not in the log at level `info`.
    pub quiet_client: Option<QuietClient>,
    /// Fleet, if this service also serves its API.
    pub fleet: Option<EtcdFleet>,
}

/// The API as one application: every worker builds its own. The document is built once, for all.
pub fn app(
    api: ApiState,
    document: Document,
) -> App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = Error,
        InitError = (),
    >,
> {
    let registry = api.service.registry().clone();
    let caller_headers = identification::caller_headers(&api.authentication, &api.tenancy);
    App::new()
        .app_data(web::Data::new(api.service))
        .app_data(web::Data::new(api.clock))
        .app_data(web::Data::new(api.build))
        .app_data(web::Data::new(api.authentication))
        .app_data(web::Data::new(api.admission.budget().clone()))
        .app_data(web::Data::new(api.admission))
        .app_data(web::Data::new(api.redaction))
        .app_data(web::Data::new(api.tenancy))
        .app_data(web::Data::new(caller_headers))
        .app_data(web::Data::new(document))
        .app_data(web::PayloadConfig::new(BODY_BYTES_MAX))
        .configure(|config| routes::configure(config, &registry))
        .configure(move |config| {
            if let Some(client) = api.quiet_client {
                config.app_data(client);
            }
        })
        .configure(move |config| {
            if let Some(fleet) = api.fleet {
                let identify = identification::identify_for_fleet;
                fleet::beside(config, fleet, api.build.version, identify);
            }
        })
        .default_service(web::to(unknown_path))
        .wrap(from_fn(gzip_in_place))
        .wrap(Compress::default())
        .wrap(from_fn(|request, next| gzip_below(BASE, request, next)))
        .wrap(from_fn(|request, next| frame(wording, request, next)))
        .wrap(from_fn(observe))
        .wrap(TracingLogger::<RequestSpan>::new())
}

/// How the errors of a path are written: fleet has its own form.
pub fn wording(request: &ServiceRequest) -> Wording {
    if fleet::is_fleets(request) {
        fleet::WORDING
    } else {
        problem::WORDING
    }
}
