//! `GET /api/hyperfleet`: the id, version and build time of the API.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use serde::Serialize;
use utoipa::ToSchema;

use hyperfleet_server_kit::http::FOR_EVERYBODY;
use hyperfleet_server_kit::program::Build;

#[derive(Serialize, ToSchema)]
pub(super) struct Metadata<'a> {
    id: &'static str,
    href: &'a str,
    kind: &'static str,
    version: &'a str,
    build_time: &'a str,
}

/// `GET /api/hyperfleet`.
pub(super) async fn metadata(request: HttpRequest, build: Data<Build>) -> HttpResponse {
    let metadata = Metadata {
        id: "hyperfleet",
        href: request.path(),
        kind: "API",
        version: build.version,
        build_time: build.time,
    };
    HttpResponse::Ok()
        .insert_header(FOR_EVERYBODY)
        .json(metadata)
}
