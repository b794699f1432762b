//! What a request must pass before its handler sees it. Mounted on routes, so that what leads nowhere
//! is told so without being asked who it is (hyperfleet-http.md rule 1.7).

use actix_web::Error;
use actix_web::body::MessageBody;
use actix_web::dev::{ServiceRequest, ServiceResponse};
use actix_web::middleware::Next;

use super::authentication::authenticate;

/// Lets a request in: who is calling, on whose behalf, and whether there is room for it.
pub(super) async fn admit(
    request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<impl MessageBody>, Error> {
    authenticate(&request).await?;
    next.call(request).await
}
