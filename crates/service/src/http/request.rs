//! The parts of a request that every handler reads: the caller, its tenant, and the list or resource of the path.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest, web};
use chrono::{DateTime, Utc};

use crate::app::{Collection, ResourcePath, Service};
use crate::wire::Params;
use hyperfleet_domain::Entity;
use hyperfleet_domain::audit::ChangeOrigin;
use hyperfleet_domain::tenancy::{Tenant, TenantScope};
use hyperfleet_fleet::api::Access;
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::http::{Problem, RequestId};

/// The caller's name where callers need no authentication.
const ANONYMOUS: &str = "system@hyperfleet.local";

/// What is known of the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Identity {
    /// Callers need no authentication.
    Anonymous,
    Proven(String),
    /// Authenticated, identity unknown.
    Unknown,
}

impl Identity {
    /// The name, authenticated or not.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Anonymous => Some(ANONYMOUS),
            Self::Proven(name) => Some(name),
            Self::Unknown => None,
        }
    }
}

/// What a caller may be permitted to do. Every operation names one ([`super::endpoints::Operation`]), and admission
/// decides by it: any caller may do anything to the resources of its tenant, system identities may read and report,
/// until there is a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permission {
    Read,
    /// To report the current state.
    Report,
    /// To change the desired state.
    Author,
    /// To read or change units and machines, which belong to no tenant.
    Fleet(Access),
}

/// The list that a route addresses; the route carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// `/resources`
    All,
    /// `/<plural>`
    Kind(String),
    /// `/<parent plural>/{parent_id}/<plural>`
    Owned { kind: String, parent: String },
}

/// An admitted request: its caller, its tenant, and the service that answers it.
pub(super) struct Call {
    pub(super) request: HttpRequest,
    pub(super) service: web::Data<Service>,
    clock: web::Data<Clock>,
    identity: Identity,
    pub(super) tenant: Tenant,
}

impl FromRequest for Call {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let admitted = || Problem::internal("a request that nobody admitted");
        ready(Self::of(request).ok_or_else(admitted))
    }
}

impl Call {
    /// Reads what admission has stored with the request.
    fn of(request: &HttpRequest) -> Option<Self> {
        let extensions = request.extensions();
        Some(Self {
            request: request.clone(),
            service: request.app_data::<web::Data<Service>>()?.clone(),
            clock: request.app_data::<web::Data<Clock>>()?.clone(),
            identity: extensions.get::<Identity>()?.clone(),
            tenant: extensions.get::<Tenant>()?.clone(),
        })
    }

    /// The service with a deadline for the request's work in the database. The time begins here: the body has a
    /// timeout of its own.
    pub(super) fn timed_service(&self) -> Service {
        self.service.for_request()
    }

    /// Which rows the caller may see.
    pub(super) fn tenants(&self) -> &TenantScope {
        self.tenant.tenants()
    }

    /// The caller as the author of a change that happens now.
    ///
    /// # Errors
    ///
    /// The identity is unknown.
    pub(super) fn origin(&self) -> Result<ChangeOrigin, Problem> {
        let actor = self.identity.name();
        let actor = actor
            .ok_or_else(|| Problem::internal("a change without the identity of its caller"))?;
        let id = self.request.extensions().get::<RequestId>().cloned();
        Ok(ChangeOrigin {
            actor: actor.to_owned(),
            request_id: id.map_or_else(String::new, |id| id.0),
            at: self.clock.now(),
        })
    }

    /// When the answer is computed.
    pub(super) fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }

    /// The list that the path names.
    pub(super) fn collection(&self) -> Result<Collection<'_>, Problem> {
        match self.request.app_data::<Route>() {
            Some(Route::All) => Ok(Collection::All),
            Some(Route::Kind(kind)) => Ok(Collection::Kind(self.entity(kind)?)),
            Some(Route::Owned { kind, parent }) => Ok(Collection::Owned {
                entity: self.entity(kind)?,
                parent: self.entity(parent)?,
                parent_id: self.segment("parent_id"),
            }),
            None => Err(Problem::internal("a route without its kind")),
        }
    }

    /// The resource that the path names, in the caller's view.
    pub(super) fn resource_path(&self) -> Result<ResourcePath<'_>, Problem> {
        Ok(ResourcePath {
            tenants: self.tenants(),
            collection: self.collection()?,
            id: self.segment("id"),
        })
    }

    fn entity(&self, kind: &str) -> Result<&Entity, Problem> {
        let entity = self.service.registry().get(kind);
        entity.ok_or_else(|| Problem::internal("a route of a kind that is not configured"))
    }

    /// A variable segment of the path.
    pub(super) fn segment(&self, name: &str) -> &str {
        self.request.match_info().get(name).unwrap_or_default()
    }

    /// The query parameters of a read.
    ///
    /// # Errors
    ///
    /// A parameter has several values.
    pub(super) fn params(&self) -> Result<Params, Problem> {
        Ok(decoded(self.request.query_string()).checked()?)
    }
}

/// The parameters of a query.
pub(super) fn decoded(query: &str) -> Params {
    let pairs = web::Query::<Vec<(String, String)>>::from_query(query);
    Params::new(pairs.map(web::Query::into_inner).unwrap_or_default())
}
