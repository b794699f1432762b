//! The rows that statements may find. Both types exist so that no statement finds rows without a tenant scope
//! (`docs/decisions/0038-tenant-scope.md`).

use sqlx::types::Json;
use uuid::Uuid;

use hyperfleet_domain::tenancy::TenantScope;
use hyperfleet_domain::{ResourceId, Tenancy};

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

/// A [`ResourceScope`] that outlives its request.
pub(super) struct WantedResource {
    tenancy: Option<Json<Tenancy>>,
    kind: Option<String>,
    owner: Option<Uuid>,
    id: Uuid,
}

/// The parameters of a statement for several of them, one array for each column.
pub(super) struct WantedColumns<'a> {
    pub(super) ids: Vec<Uuid>,
    pub(super) kinds: Vec<Option<&'a str>>,
    pub(super) owners: Vec<Option<Uuid>>,
    pub(super) tenancies: Vec<Option<&'a Json<Tenancy>>>,
}

impl From<ResourceScope<'_>> for WantedResource {
    fn from(scope: ResourceScope<'_>) -> Self {
        Self {
            tenancy: scope.tenants.tenancy().cloned().map(Json),
            kind: scope.kind.map(ToOwned::to_owned),
            owner: scope.owner_uuid(),
            id: scope.id.as_uuid(),
        }
    }
}

impl<'a> WantedColumns<'a> {
    pub(super) fn of(wanted: impl Iterator<Item = &'a WantedResource> + Clone) -> Self {
        Self {
            ids: wanted.clone().map(|one| one.id).collect(),
            kinds: wanted.clone().map(|one| one.kind.as_deref()).collect(),
            owners: wanted.clone().map(|one| one.owner).collect(),
            tenancies: wanted.map(|one| one.tenancy.as_ref()).collect(),
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
