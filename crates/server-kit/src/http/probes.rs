//! Health and metrics, each on its own listener.

use std::sync::Arc;

use actix_web::http::StatusCode;
use actix_web::web::{Data, ServiceConfig};
use actix_web::{HttpResponse, web};
use serde_json::json;

use super::gate::{Gate, Readiness};
use super::routes::resource;

/// Prometheus' text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Renders the metrics as text at each scrape.
pub type Scrape = Arc<dyn Fn() -> String + Send + Sync>;

/// `/healthz` and `/readyz`.
pub fn health(gate: Gate) -> impl FnOnce(&mut ServiceConfig) + Clone {
    |config| {
        config
            .app_data(Data::new(gate))
            .service(resource("/healthz", vec![("GET", web::to(healthz))]))
            .service(resource("/readyz", vec![("GET", web::to(readyz))]));
    }
}

pub fn metrics(scrape: Scrape) -> impl FnOnce(&mut ServiceConfig) + Clone {
    |config| {
        config
            .app_data(Data::new(scrape))
            .service(resource("/metrics", vec![("GET", web::to(scraped))]));
    }
}

/// Always succeeds: the process runs.
async fn healthz() -> HttpResponse {
    plain_answer(StatusCode::OK, "ok", None)
}

async fn readyz(gate: Data<Gate>) -> HttpResponse {
    let away = StatusCode::SERVICE_UNAVAILABLE;
    match gate.readiness() {
        Readiness::Ready => plain_answer(StatusCode::OK, "ok", gate.warning()),
        Readiness::NotReady(reason) => plain_answer(away, "not_ready", Some(&reason)),
        Readiness::ShuttingDown(reason) => plain_answer(away, "shutting_down", Some(reason)),
    }
}

pub async fn scraped(scrape: Data<Scrape>) -> HttpResponse {
    let mut answer = HttpResponse::Ok();
    answer.insert_header(("content-type", METRICS_TYPE));
    answer.body(scrape())
}

/// A response in the older service's form, with a trailing newline.
fn plain_answer(code: StatusCode, status: &'static str, reason: Option<&str>) -> HttpResponse {
    let mut body = json!({ "status": status });
    if let Some(reason) = reason {
        body["reason"] = json!(reason);
    }
    let mut answer = HttpResponse::build(code);
    answer.content_type("application/json");
    answer.body(format!("{body}\n"))
}
