//! `/audit`: who changed what.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};

use super::request::{Caller, params};
use crate::app::Service;
use crate::wire::Views;
use hyperfleet_server_kit::http::{PendingResponse, Problem};

/// `GET` of the trail, newest first.
pub(super) async fn list(
    request: HttpRequest,
    caller: Caller,
    service: Data<Service>,
) -> Result<HttpResponse, Problem> {
    let params = params(&request);
    let (filter, page) = (params.audit_filter()?, params.page()?);
    let response = PendingResponse::of_page(&request, page.size)?;
    let listing = service.audit(caller.view(), &filter, page).await?;
    response.page(&Views::audit(&listing))
}
