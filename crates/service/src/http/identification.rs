//! Finds the caller and the tenant of a request in its headers.

use actix_web::dev::ServiceRequest;
use actix_web::http::header::{HeaderMap, HeaderValue};
use actix_web::web::Data;
use actix_web::{HttpMessage as _, HttpRequest};
use futures_util::FutureExt as _;
use futures_util::future::LocalBoxFuture;

use super::problem::{forbidden, unauthenticated};
use super::request::{Identity, Permission};
use hyperfleet_auth::{Authentication, HeaderField, Need};
use hyperfleet_domain::tenancy::TenancyRules;
use hyperfleet_fleet::api::Access;
use hyperfleet_server_kit::http::{CallerHeaders, Problem, ProvenCaller, RequestLog};

/// Finds the caller and the tenant of a request, and stores both for [`super::request::Call`].
///
/// This comes before the body is read and before any row is: a caller without permission learns nothing of what the
/// request would have done.
///
/// # Errors
///
/// The caller is not authenticated; the headers do not say which tenant; a system identity asks for more than to read
/// and to report, or a tenant asks for something of fleet.
pub(super) async fn identify(
    request: &ServiceRequest,
    permission: Permission,
) -> Result<(), Problem> {
    authenticate(request, permission).await?;
    find_tenant(request, permission)
}

/// The same for fleet's API, if this program serves it.
pub(super) fn identify_for_fleet(
    request: &ServiceRequest,
    access: Access,
) -> LocalBoxFuture<'_, Result<(), Problem>> {
    identify(request, Permission::Fleet(access)).boxed_local()
}

/// The headers that carry the caller and the tenant.
pub(super) fn caller_headers(
    authentication: &Authentication,
    tenancy: &TenancyRules,
) -> CallerHeaders {
    let of_callers = match authentication {
        Authentication::Off => None,
        Authentication::On(authenticator) => Some(authenticator.headers()),
    };
    CallerHeaders::new(of_callers.into_iter().flatten().chain(tenancy.headers()))
}

async fn authenticate(request: &ServiceRequest, permission: Permission) -> Result<(), Problem> {
    let authentication = request.app_data::<Data<Authentication>>();
    let identity = match authentication.map(Data::get_ref) {
        None => return Err(Problem::internal("an application without authentication")),
        Some(Authentication::Off) => Identity::Anonymous,
        Some(Authentication::On(authenticator)) => {
            let headers = request.headers();
            let field =
                |name: &str| HeaderField::of(headers.get_all(name).map(HeaderValue::as_bytes));
            let caller = authenticator.authenticate(field, need(permission));
            let caller = caller.await.inspect_err(|refusal| {
                RequestLog::of(request).entry_mut().reason = Some(refusal.reason().to_owned());
            });
            let caller = caller.map_err(|refusal| unauthenticated(&refusal))?;
            caller.map_or(Identity::Unknown, Identity::Proven)
        }
    };
    // Fleet stores no names of callers: an anonymous one is left out.
    let is_nobody = matches!(
        (permission, &identity),
        (Permission::Fleet(_), Identity::Anonymous)
    );
    if let Some(name) = identity.name().filter(|_| !is_nobody) {
        RequestLog::of(request).entry_mut().caller = Some(name.to_owned());
    }
    let mut extensions = request.extensions_mut();
    if let Identity::Proven(name) = &identity {
        extensions.insert(ProvenCaller(name.clone()));
    }
    extensions.insert(identity);
    Ok(())
}

/// The headers of a caller whose answer may outlast its token.
pub(super) struct Credentials {
    headers: HeaderMap,
    authentication: Data<Authentication>,
}

impl Credentials {
    /// Those of an admitted request.
    pub(super) fn of(request: &HttpRequest) -> Option<Self> {
        Some(Self {
            headers: request.headers().clone(),
            authentication: request.app_data::<Data<Authentication>>()?.clone(),
        })
    }

    /// Checks again that the caller may read.
    ///
    /// # Errors
    ///
    /// The token has expired since, or its issuer has revoked the key.
    pub(super) async fn check(&self) -> Result<(), Problem> {
        if let Authentication::On(authenticator) = self.authentication.get_ref() {
            let field =
                |name: &str| HeaderField::of(self.headers.get_all(name).map(HeaderValue::as_bytes));
            let caller = authenticator.authenticate(field, Need::Proof).await;
            caller.map_err(|refusal| unauthenticated(&refusal))?;
        }
        Ok(())
    }
}

/// Callers are always authenticated. Callers that change something also need an identity.
fn need(permission: Permission) -> Need {
    match permission {
        Permission::Read | Permission::Fleet(Access::See) => Need::Proof,
        Permission::Report | Permission::Author | Permission::Fleet(Access::Change) => {
            Need::Identity
        }
    }
}

fn find_tenant(request: &ServiceRequest, permission: Permission) -> Result<(), Problem> {
    let rules = request
        .app_data::<Data<TenancyRules>>()
        .ok_or_else(|| Problem::internal("a service without rules of tenancy"))?;
    let headers = request.headers();
    let tenant = rules.resolve(|name| headers.get_all(name).map(HeaderValue::as_bytes));
    let permitted = tenant.and_then(|tenant| {
        match permission {
            Permission::Read | Permission::Report => {}
            Permission::Author => tenant.require_author()?,
            Permission::Fleet(_) => rules.require_system(&tenant)?,
        }
        Ok(tenant)
    });
    let tenant = permitted.map_err(|denied| forbidden(&denied))?;
    RequestLog::of(request).entry_mut().tenant = tenant.label();
    request.extensions_mut().insert(tenant);
    Ok(())
}
