//! `GET …/discovery` and `GET …/openapi`: the descriptions of the API, built once.

use std::sync::LazyLock;

use actix_web::HttpResponse;
use actix_web::web::{Bytes, Data};

use super::surface::Surface;
use hyperfleet_fleet_model::wire::discovery::document;
use hyperfleet_server_kit::http::{FOR_EVERYBODY, pieces};

static DISCOVERY: LazyLock<Bytes> = LazyLock::new(|| document().to_string().into());

static OPENAPI: std::sync::OnceLock<Bytes> = std::sync::OnceLock::new();

pub(super) async fn discovery() -> HttpResponse {
    written(DISCOVERY.clone())
}

pub(super) async fn described(surface: Data<Surface>) -> HttpResponse {
    let document = OPENAPI.get_or_init(|| (surface.document)(surface.version).to_string().into());
    written(document.clone())
}

fn written(document: Bytes) -> HttpResponse {
    let mut answer = HttpResponse::Ok();
    answer.insert_header(FOR_EVERYBODY);
    answer.content_type("application/json");
    pieces(answer, document)
}
