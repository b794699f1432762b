//! `…/{id}/explain`: what a resource waits for.

use actix_web::HttpResponse;

use super::request::Call;
use crate::wire::Views;
use hyperfleet_server_kit::http::{PendingResponse, Problem};

/// `GET`: the explanation, as of now.
pub(super) async fn get(call: Call) -> Result<HttpResponse, Problem> {
    let path = call.resource_path()?;
    let explanation = call.timed_service().explain(path, call.now()).await?;
    let response = PendingResponse::of(&call.request)?;
    let views = Views(call.service.registry());
    response.item(HttpResponse::Ok(), &views.explanation(&explanation))
}
