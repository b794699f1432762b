//! Who is calling: what the request's header proves.

use actix_web::HttpMessage as _;
use actix_web::dev::ServiceRequest;
use actix_web::http::header::HeaderValue;
use actix_web::web::Data;

use super::caching::CallerHeaders;
use super::problem::Problem;
use super::request::{Identity, Wish};
use super::telemetry::RequestLog;
use crate::auth::{Authentication, HeaderField, Need};
use crate::domain::tenancy::Rules;

/// Leaves with the request who is calling. Only who changes something has to be known.
pub(super) async fn authenticate(request: &ServiceRequest, wish: Wish) -> Result<(), Problem> {
    let identity = match request
        .app_data::<Data<Authentication>>()
        .map(Data::get_ref)
    {
        None => return Err(Problem::internal("an application without authentication")),
        Some(Authentication::Off) => Identity::Anonymous,
        Some(Authentication::On(authenticator)) => {
            let headers = request.headers();
            let field =
                |name: &str| HeaderField::of(headers.get_all(name).map(HeaderValue::as_bytes));
            let caller = authenticator.authenticate(field, need(wish));
            let caller = caller.await.inspect_err(|refusal| {
                RequestLog::of(request).reason(refusal.reason());
            });
            caller?.map_or(Identity::Unknown, Identity::Proven)
        }
    };
    let is_fleets = matches!(wish, Wish::SeeFleet | Wish::ChangeFleet);
    // Fleet keeps nobody's name: where nobody was asked for it, there is none to tell.
    let is_nobody = is_fleets && matches!(identity, Identity::Anonymous);
    if let Some(name) = identity.name().filter(|_| !is_nobody) {
        RequestLog::of(request).caller(name);
    }
    request.extensions_mut().insert(identity);
    Ok(())
}

/// The headers that say who is calling, and for whom.
pub(super) fn caller_headers(authentication: &Authentication, tenancy: &Rules) -> CallerHeaders {
    let of_callers = match authentication {
        Authentication::Off => None,
        Authentication::On(authenticator) => Some(authenticator.headers()),
    };
    CallerHeaders::new(of_callers.into_iter().flatten().chain(tenancy.headers()))
}

fn need(wish: Wish) -> Need {
    match wish {
        Wish::Read | Wish::SeeFleet => Need::Proof,
        Wish::Report | Wish::Author | Wish::ChangeFleet => Need::Identity,
    }
}
