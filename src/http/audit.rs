//! `/audit`: who changed what.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};

use super::meta::json;
use super::problem::Problem;
use super::request::{Caller, params};
use crate::app::Service;
use crate::wire::Views;

/// `GET` of the trail, newest first.
pub(super) async fn list(
    request: HttpRequest,
    caller: Caller,
    service: Data<Service>,
) -> Result<HttpResponse, Problem> {
    let params = params(&request);
    let filter = params.audit_filter()?;
    let listing = service
        .audit(caller.view(), &filter, params.page()?)
        .await?;
    Ok(json(HttpResponse::Ok(), &Views::audit(&listing)))
}
