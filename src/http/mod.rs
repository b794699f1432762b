//! The REST surface: take the request apart, call one use case, present. No rules here.
//!
//! ```text
//! span ▸ watch (line, metrics) ▸ frame (panics, problems) ▸ gzip ▸ routes ▸ admission ▸ handler ▸ app
//! ```

mod admission;
mod answer;
mod audit;
mod authentication;
mod body;
mod caching;
mod capacity;
mod connection;
mod encoding;
mod fleet;
mod frame;
mod gate;
mod memory;
mod meta;
mod openapi;
mod probes;
mod problem;
mod rate;
mod reports;
mod request;
mod resources;
mod routes;
mod telemetry;
mod tenant;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::{Compress, from_fn};
use actix_web::{App, Error, web};
use tracing_actix_web::TracingLogger;

use crate::app::Service;
use crate::auth::Authentication;
use crate::clock::Clock;
use crate::domain::tenancy;
use crate::fleet::EtcdFleet;
use crate::wire::BODY_BYTES_MAX;
use caching::CallerHeaders;

pub use admission::{Admission, Limits};
pub use connection::Connection;
pub use fleet::{FleetApi, Hosts, fleet_app, openapi as fleet_openapi};
pub use gate::{Gate, Phase, Readiness};
pub use memory::ResponseBudget;
pub use meta::Build;
pub use openapi::{Document, openapi, yaml};
pub use probes::{Scrape, health, metrics, side};
pub use telemetry::Masks;

/// What the API serves from.
#[derive(Clone)]
pub struct Api {
    /// The use cases.
    pub service: Service,
    /// The time.
    pub clock: Clock,
    /// Which program this is.
    pub build: Build,
    /// Who may call.
    pub authentication: Authentication,
    /// What lets requests in.
    pub admission: Admission,
    /// What its log does not show.
    pub masks: Masks,
    /// How requests say for whom they are made.
    pub tenancy: tenancy::Rules,
    /// Fleet, if its API is served here, too.
    pub fleet: Option<EtcdFleet>,
}

/// The API as one application: every worker makes its own. The document is made once, for all.
pub fn app(
    api: Api,
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
    let Api {
        service,
        clock,
        build,
        authentication,
        admission,
        masks,
        tenancy,
        fleet,
    } = api;
    let registry = service.registry().clone();
    let caller_headers = CallerHeaders::of(&authentication, &tenancy);
    App::new()
        .app_data(web::Data::new(service))
        .app_data(web::Data::new(clock))
        .app_data(web::Data::new(build))
        .app_data(web::Data::new(authentication))
        .app_data(web::Data::new(admission.budget().clone()))
        .app_data(web::Data::new(admission))
        .app_data(web::Data::new(masks))
        .app_data(web::Data::new(tenancy))
        .app_data(web::Data::new(caller_headers))
        .app_data(web::Data::new(document))
        .app_data(web::PayloadConfig::new(BODY_BYTES_MAX))
        .configure(|config| routes::configure(config, &registry))
        .configure(move |config| {
            if let Some(fleet) = fleet {
                fleet::beside(config, fleet, build);
            }
        })
        .default_service(web::to(routes::unknown_path))
        .wrap(Compress::default())
        .wrap(from_fn(encoding::gzip_or_nothing))
        .wrap(from_fn(frame::frame))
        .wrap(from_fn(telemetry::watch))
        .wrap(TracingLogger::<telemetry::RequestSpan>::new())
}
