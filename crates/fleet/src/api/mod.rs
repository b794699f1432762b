//! Fleet's API, version 1: the paths and responses of the older system, with additions (`docs/reference/fleet-api.md`).
//!
//! ```text
//! frame (panics, errors in fleet's words) ▸ surface (is etcd there, is the path clean) ▸ routes ▸ admission ▸ handler ▸ fleet
//! ```
//!
//! fleetd serves it on its own listeners ([`fleet_app`]), where paths work without the prefix, too.
//! `hyperfleet-api` serves it beside its own API, with the prefix.

mod body;
mod discovery;
#[rustfmt::skip]
mod endpoints;
mod fault;
mod follow;
mod host;
mod inspect;
mod machines;
mod openapi;
mod operations;
mod routes;
mod states;
mod surface;
mod units;

use actix_web::body::MessageBody;
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::middleware::{DefaultHeaders, from_fn};
use actix_web::web::{Data, PayloadConfig, ServiceConfig};
use actix_web::{App, Error, web};
use tracing_actix_web::TracingLogger;

use crate::EtcdFleet;
use crate::inspect::Inspector;
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::http::{
    Admission, BODY_BYTES_MAX, CallerHeaders, Redaction, RequestSpan, RoutePath, Scrape, frame,
    observe, scraped,
};

use fault::Fault;
pub use fault::WORDING;
pub use host::Hosts;
pub use openapi::openapi;
pub use surface::{Access, is_fleets};
use surface::{Identify, Surface};

/// Equivalent prefixes of the API.
pub(super) const PREFIXES: [&str; 2] = ["/fleet/v1", "/v1-alpha"];

/// A page's memory is reserved for this many items before the page is built.
const PAGE_ITEMS: u32 = 100;

#[derive(Clone)]
pub struct FleetApi {
    pub fleet: EtcdFleet,
    pub clock: Clock,
    pub version: &'static str,
    pub admission: Admission,
    /// Values that its log hides.
    pub redaction: Redaction,
    pub scrape: Scrape,
    /// Accepted host names.
    pub hosts: Hosts,
    pub inspector: Inspector,
}

/// Fleet's API as one application with `/metrics`. Every worker builds its own.
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
    App::new()
        .app_data(Data::new(api.clock))
        .app_data(Data::new(api.admission.budget().clone()))
        .app_data(Data::new(api.admission))
        .app_data(Data::new(api.redaction))
        .app_data(Data::new(CallerHeaders::new([])))
        .app_data(Data::new(api.scrape))
        .app_data(PayloadConfig::new(BODY_BYTES_MAX))
        .configure(|config| {
            let surface = Surface {
                fleet: api.fleet,
                version: api.version,
                document: openapi,
                hosts: api.hosts,
                inspector: api.inspector,
                identify: None,
            };
            let headers = surface.server().into_iter();
            let headers = headers.fold(DefaultHeaders::new(), DefaultHeaders::add);
            // Any method, as in the older server.
            let path = web::resource("/metrics").app_data(RoutePath::new("/metrics"));
            config.service(path.to(scraped).wrap(headers));
            // `*` has no prefix.
            config.default_service(web::to(routes::unknown_path));
            mount(config, surface, PREFIXES.into_iter().chain([""]));
        })
        .wrap(from_fn(|request, next| frame(|_| WORDING, request, next)))
        .wrap(from_fn(observe))
        .wrap(TracingLogger::<RequestSpan>::new())
}

/// Mounts fleet's API beside another one, which has all other paths.
pub fn beside(
    config: &mut ServiceConfig,
    fleet: EtcdFleet,
    version: &'static str,
    identify: Identify,
) {
    let surface = Surface {
        fleet,
        version,
        document: openapi,
        hosts: Hosts::Any,
        inspector: Inspector::nowhere(),
        identify: Some(identify),
    };
    mount(config, surface, PREFIXES);
}

fn mount(
    config: &mut ServiceConfig,
    surface: Surface,
    prefixes: impl IntoIterator<Item = &'static str>,
) {
    config.app_data(Data::new(surface.fleet.clone()));
    config.app_data(Data::new(surface.inspector.clone()));
    config.app_data(Data::new(surface));
    for prefix in prefixes {
        let scope = web::scope(prefix)
            .configure(|config| routes::configure(config, prefix))
            .default_service(web::to(routes::unknown_path))
            .wrap(from_fn(surface::guard));
        config.service(scope);
    }
}
