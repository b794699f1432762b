//! `/audit`: the record of every change.

use actix_web::HttpResponse;

use super::request::Call;
use crate::wire::Views;
use hyperfleet_server_kit::http::{PendingResponse, Problem};

/// `GET`: the trail, newest first or after a position.
pub(super) async fn list(call: Call) -> Result<HttpResponse, Problem> {
    let params = call.params()?;
    let (filter, page) = (params.audit_filter()?, params.page()?);
    let response = PendingResponse::of_page(&call.request, page.size)?;
    let service = call.timed_service();
    let trail = service.audit(call.tenants(), &filter, page).await?;
    response.page(&Views::audit(&trail))
}
