//! For whom a request is made, as its headers say.

use actix_web::HttpMessage as _;
use actix_web::dev::ServiceRequest;
use actix_web::http::header::HeaderValue;
use actix_web::web::Data;

use super::problem::Problem;
use super::request::Wish;
use super::telemetry::RequestLog;
use crate::domain::tenancy::Rules;

/// Finds out for whom a request is made and leaves that for [`super::request::Caller`].
///
/// Asked before the body is read and before anything is looked for: who may not do a thing at all
/// learns nothing of what it would have done.
///
/// # Errors
///
/// The headers do not say it, a system identity wants more than to read and to report, or a tenant
/// wants something of fleet.
pub(super) fn admit(request: &ServiceRequest, wish: Wish) -> Result<(), Problem> {
    let rules = request
        .app_data::<Data<Rules>>()
        .ok_or_else(|| Problem::internal("a service without rules of tenancy"))?;
    let headers = request.headers();
    let tenant = rules.resolve(|name| headers.get_all(name).map(HeaderValue::as_bytes))?;
    match wish {
        Wish::Read | Wish::Report => {}
        Wish::Author => tenant.require_author()?,
        Wish::SeeFleet | Wish::ChangeFleet => rules.require_system(&tenant)?,
    }
    if let Some(label) = tenant.label() {
        RequestLog::of(request).tenant(&label);
    }
    request.extensions_mut().insert(tenant);
    Ok(())
}
