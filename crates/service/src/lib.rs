//! The HyperFleet API: `app` has the use cases, `wire` bodies, parameters and their schemas, `http` routes, handlers,
//! problems and the OpenAPI document.

pub mod app;
pub mod http;
pub mod wire;
