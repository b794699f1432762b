//! The rows that statements may find. Both types exist so that no statement finds rows without a tenant scope
//! (`docs/decisions/0038-tenant-scope.md`).

use serde::Serialize;
use sqlx::types::Json;
use uuid::Uuid;

use crate::domain::tenancy::TenantScope;
use crate::domain::{ResourceId, Tenancy};

/// The rows that may be the named resource. A caller cannot tell a missing resource from one outside its tenant scope.
#[derive(Debug, Clone, Copy)]
pub struct ResourceScope<'a> {
    /// Applies to the owner too, if there is one.
    pub tenants: &'a TenantScope,
    /// Unset for any kind.
    pub kind: Option<&'a str>,
    /// Unset for any owner and none.
    pub owner: Option<ResourceId>,
    pub id: ResourceId,
}

impl<'a> ResourceScope<'a> {
    pub(super) fn owner_uuid(&self) -> Option<Uuid> {
        self.owner.map(ResourceId::as_uuid)
    }

    /// The tenancy that the resource must have, as a parameter of a statement.
    pub(super) fn tenancy(&self) -> Option<Json<&'a Tenancy>> {
        self.tenants.tenancy().map(Json)
    }
}

/// A [`ResourceScope`] that outlives its request, as a row of a statement.
#[derive(Serialize)]
pub(super) struct WantedResource {
    id: Uuid,
    kind: Option<String>,
    owner_id: Option<Uuid>,
    tenancy: Option<Tenancy>,
}

impl From<ResourceScope<'_>> for WantedResource {
    fn from(scope: ResourceScope<'_>) -> Self {
        Self {
            id: scope.id.as_uuid(),
            kind: scope.kind.map(ToOwned::to_owned),
            owner_id: scope.owner_uuid(),
            tenancy: scope.tenants.tenancy().cloned(),
        }
    }
}

/// A row of `resources` locked by this transaction. Only statements that lock make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockedRow(ResourceId);

impl LockedRow {
    pub(super) fn of(id: Uuid) -> Self {
        Self(id.into())
    }

    pub fn id(self) -> ResourceId {
        self.0
    }
}
