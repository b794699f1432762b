//! What every handler needs to know of its request.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpMessage, HttpRequest, web};

use crate::app::{Address, Collection, Service};
use crate::domain::audit::Origin;
use crate::domain::tenancy::{Tenant, TenantScope};
use crate::domain::{Entity, EntityRegistry};
use crate::wire::Params;
use hyperfleet_fleet::api::Access;
use hyperfleet_server_kit::clock::Clock;
use hyperfleet_server_kit::http::{Problem, RequestId};

/// Who is calling, where nobody has to prove it.
const ANONYMOUS: &str = "system@hyperfleet.local";

/// What is known of who is calling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Identity {
    /// Anybody: nobody has to prove it.
    Anonymous,
    /// It is proven.
    Proven(String),
    /// That they may call is proven, and not who they are.
    Unknown,
}

impl Identity {
    /// Its name, proven or not.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Anonymous => Some(ANONYMOUS),
            Self::Proven(name) => Some(name),
            Self::Unknown => None,
        }
    }
}

/// What a caller wants to do. Every operation says so ([`super::routes::Operation`]), and admission
/// decides by it: any caller may do anything to their tenant's, system identities may read and
/// report, until there is a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// To see something.
    Read,
    /// To say what was achieved.
    Report,
    /// To say what is wanted.
    Author,
    /// To see or change units and machines, which belong to no tenant.
    Fleet(Access),
}

/// Who is calling, and on whose behalf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    identity: Identity,
    tenant: Tenant,
}

impl FromRequest for Caller {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    /// Whom admission has left with the request.
    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let extensions = request.extensions();
        let identity = extensions.get::<Identity>().cloned();
        let found = identity.zip(extensions.get::<Tenant>().cloned());
        let found = found.ok_or_else(|| Problem::internal("a request that nobody admitted"));
        ready(found.map(|(identity, tenant)| Self { identity, tenant }))
    }
}

impl Caller {
    /// On whose behalf.
    pub(super) fn tenant(&self) -> &Tenant {
        &self.tenant
    }

    /// What the caller sees.
    pub(super) fn view(&self) -> &TenantScope {
        self.tenant.view()
    }

    /// The caller as the author of a change that happens now.
    ///
    /// # Errors
    ///
    /// Nobody knows who it is.
    pub(super) fn origin(&self, request: &HttpRequest, clock: &Clock) -> Result<Origin, Problem> {
        let actor = self
            .identity
            .name()
            .ok_or_else(|| Problem::internal("a change by nobody knows whom"))?;
        let id = request.extensions().get::<RequestId>().cloned();
        Ok(Origin {
            actor: actor.to_owned(),
            request_id: id.map_or_else(String::new, |id| id.0),
            at: clock.now(),
        })
    }
}

/// Which list a route is about; the route carries it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// `/resources`
    All,
    /// `/<plural>`
    Kind(String),
    /// `/<parent plural>/{parent_id}/<plural>`
    Owned {
        /// The child kind.
        kind: String,
        /// The parent's kind.
        parent: String,
    },
}

/// The path of a request, understood.
pub(super) struct Place<'a> {
    request: &'a HttpRequest,
    registry: &'a EntityRegistry,
}

impl<'a> Place<'a> {
    pub(super) fn new(request: &'a HttpRequest, service: &'a Service) -> Self {
        Self {
            request,
            registry: service.registry(),
        }
    }

    /// The list.
    pub(super) fn collection(&self) -> Result<Collection<'a>, Problem> {
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

    /// The one resource, as the caller sees it.
    pub(super) fn address(&self, caller: &'a Caller) -> Result<Address<'a>, Problem> {
        Ok(Address {
            view: caller.view(),
            collection: self.collection()?,
            id: self.segment("id"),
        })
    }

    fn entity(&self, kind: &str) -> Result<&'a Entity, Problem> {
        let entity = self.registry.get(kind);
        entity.ok_or_else(|| Problem::internal("a route of a kind that is not configured"))
    }

    fn segment(&self, name: &str) -> &'a str {
        self.request.match_info().get(name).unwrap_or_default()
    }
}

/// The query parameters of a request.
pub(super) fn params(request: &HttpRequest) -> Params {
    let pairs = web::Query::<Vec<(String, String)>>::from_query(request.query_string());
    Params::new(pairs.map(web::Query::into_inner).unwrap_or_default())
}
