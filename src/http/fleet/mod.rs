//! Fleet's API, version 1: the older system's, at the same paths with the same answers, and what came since
//! (`docs/fleet-api.md`).
//!
//! ```text
//! frame (panics, errors in fleet's words) ▸ surface (is etcd there, is the path clean) ▸ routes ▸ admission ▸ handler ▸ fleet
//! ```
//!
//! It is served by fleetd on listeners of its own ([`fleet_app`]), where the prefix of a path may be left out, and,
//! with the prefix, beside the API of clusters.

mod body;
mod discovery;
mod fault;
mod follow;
mod host;
mod machines;
mod openapi;
mod path;
mod routes;
mod states;
mod surface;
mod units;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::web::{Data, PayloadConfig, ServiceConfig};
use actix_web::{App, Error, web};
use tracing_actix_web::TracingLogger;

use super::caching::CallerHeaders;
use super::{Admission, Build, Masks, Scrape, frame, probes, telemetry};
use crate::auth::Authentication;
use crate::clock::Clock;
use crate::domain::tenancy;
use crate::fleet::EtcdFleet;
use crate::wire::BODY_BYTES_MAX;

pub(super) use fault::Fault;
pub use host::Hosts;
pub use openapi::openapi;
use surface::Surface;
pub(super) use surface::{is_fleets, tell};

/// Where the API is found: both are the same.
pub(super) const PREFIXES: [&str; 2] = ["/fleet/v1", "/v1-alpha"];

/// How many items memory is reserved for before a page is made.
const PAGE_ITEMS: u32 = 100;

/// What fleet's API serves from.
#[derive(Clone)]
pub struct FleetApi {
    /// The use cases.
    pub fleet: EtcdFleet,
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
    /// How requests say for whom they are made. Units belong to no tenant: where requests must say so, system
    /// identities alone are let in.
    pub tenancy: tenancy::Rules,
    /// What gives the metrics.
    pub scrape: Scrape,
    /// By which names clients may call it.
    pub hosts: Hosts,
}

/// Fleet's API as one application, with `/metrics`: every worker makes its own.
pub fn fleet_app(
    api: FleetApi,
) -> App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<impl MessageBody>,
        Error = Error,
        InitError = (),
    >,
> {
    let FleetApi {
        fleet,
        clock,
        build,
        authentication,
        admission,
        masks,
        tenancy,
        scrape,
        hosts,
    } = api;
    let caller_headers = CallerHeaders::of(&authentication, &tenancy);
    App::new()
        .app_data(Data::new(clock))
        .app_data(Data::new(build))
        .app_data(Data::new(authentication))
        .app_data(Data::new(admission.budget().clone()))
        .app_data(Data::new(admission))
        .app_data(Data::new(masks))
        .app_data(Data::new(tenancy))
        .app_data(Data::new(caller_headers))
        .app_data(Data::new(scrape))
        .app_data(PayloadConfig::new(BODY_BYTES_MAX))
        .configure(|config| {
            let surface = Surface::everything(fleet.clone(), build.version, hosts);
            share(config, fleet, surface);
            // Whatever the method, as the older server does.
            let path = web::resource("/metrics").app_data(telemetry::RoutePath::new("/metrics"));
            config.service(path.to(probes::scraped).wrap(from_fn(surface::named)));
            // `*` is below no prefix.
            config.default_service(web::to(routes::unknown_path));
            for prefix in PREFIXES.into_iter().chain([""]) {
                mount(config, prefix);
            }
        })
        .wrap(from_fn(frame::frame))
        .wrap(from_fn(telemetry::watch))
        .wrap(TracingLogger::<telemetry::RequestSpan>::new())
}

/// Mounts fleet's API beside another one, which has all other paths.
pub(super) fn beside(config: &mut ServiceConfig, fleet: EtcdFleet, build: Build) {
    let surface = Surface::prefixes(fleet.clone(), build.version);
    share(config, fleet, surface);
    for prefix in PREFIXES {
        mount(config, prefix);
    }
}

/// What every route of it works with.
fn share(config: &mut ServiceConfig, fleet: EtcdFleet, surface: Surface) {
    config.app_data(Data::new(fleet));
    config.app_data(Data::new(surface));
}

fn mount(config: &mut ServiceConfig, prefix: &str) {
    let scope = web::scope(prefix)
        .configure(|config| routes::configure(config, prefix))
        .default_service(web::to(routes::unknown_path))
        .wrap(from_fn(surface::guard));
    config.service(scope);
}
