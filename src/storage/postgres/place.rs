//! Where statements look for rows. Both types are there so that no statement that finds rows can forget
//! to ask who is looking.

use sqlx::types::Json;
use uuid::Uuid;

use crate::domain::tenancy::View;
use crate::domain::{ResourceId, Tenancy};

/// Where one resource may be. It is there if all of this is so; nobody can tell what is missing from
/// what is not seen.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// As who sees it. Where an owner is given, it must be seen as well.
    pub view: &'a View,
    /// Of which kind; unset for any.
    pub kind: Option<&'a str>,
    /// Owned by which resource; unset for any and none.
    pub owner: Option<ResourceId>,
    /// Under which id.
    pub id: ResourceId,
}

impl<'a> Place<'a> {
    pub(super) fn owner_uuid(&self) -> Option<Uuid> {
        self.owner.map(ResourceId::as_uuid)
    }

    /// The tenancy that it must have, for a parameter of a statement.
    pub(super) fn tenancy(&self) -> Option<Json<&'a Tenancy>> {
        self.view.tenancy().map(Json)
    }
}

/// A row that this transaction found and locked. Made by the statements that do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held(ResourceId);

impl Held {
    pub(super) fn of(id: Uuid) -> Self {
        Self(id.into())
    }

    /// Which one.
    #[must_use]
    pub fn id(self) -> ResourceId {
        self.0
    }
}
