//! What a request addresses: a list, or one resource in it.

use super::{Error, Service};
use hyperfleet_domain::tenancy::TenantScope;
use hyperfleet_domain::{Entity, ResourceId};
use hyperfleet_storage::{Db, ResourceScope};

/// A list of resources, as a path names it.
#[derive(Debug, Clone, Copy)]
pub enum Collection<'a> {
    /// Resources of every kind.
    All,
    /// Resources of one kind, whatever owns them.
    Kind(&'a Entity),
    /// Resources of one child kind that one resource owns.
    Owned {
        entity: &'a Entity,
        parent: &'a Entity,
        /// The owner's id as the path spells it: any text.
        parent_id: &'a str,
    },
}

/// One resource, as a path names it.
#[derive(Debug, Clone, Copy)]
pub struct ResourcePath<'a> {
    /// What the caller may see.
    pub tenants: &'a TenantScope,
    pub collection: Collection<'a>,
    /// Its id as the path spells it: any text.
    pub id: &'a str,
}

impl<'a> Collection<'a> {
    /// The kind of the list; `None` for a list of several kinds.
    pub fn entity(&self) -> Option<&'a Entity> {
        match self {
            Self::All => None,
            Self::Kind(entity) | Self::Owned { entity, .. } => Some(entity),
        }
    }
}

impl<'a> ResourcePath<'a> {
    /// Which rows to search; `None` if a text is not an id, which no row matches.
    pub(super) fn scope(&self) -> Option<ResourceScope<'a>> {
        let owner = match self.collection {
            Collection::Owned { parent_id, .. } => Some(ResourceId::parse(parent_id)?),
            Collection::All | Collection::Kind(_) => None,
        };
        Some(ResourceScope {
            tenants: self.tenants,
            kind: self.collection.entity().map(|e| e.kind.as_str()),
            owner,
            id: ResourceId::parse(self.id)?,
        })
    }

    pub(super) fn not_found(&self) -> Error {
        let kind = self.collection.entity().map_or("Resource", |e| &e.kind);
        Error::not_found(kind, self.id)
    }

    /// The error for a missing resource, or for its missing owner.
    pub(super) async fn missing(&self, service: &Service, db: &mut Db<'_>) -> Error {
        let owner = service
            .require_owner(self.tenants, self.collection, db)
            .await;
        owner.err().unwrap_or_else(|| self.not_found())
    }
}

impl Service {
    /// Checks that a list exists: only the lists of missing owners do not.
    pub async fn require_collection(
        &self,
        tenants: &TenantScope,
        collection: Collection<'_>,
    ) -> Result<(), Error> {
        let Collection::Owned { .. } = collection else {
            return Ok(());
        };
        let mut session = self.store.session().await?;
        self.require_owner(tenants, collection, &mut session.db())
            .await
    }

    /// The same as [`ResourcePath::missing`], in a session of its own.
    pub(super) async fn missing(&self, path: ResourcePath<'_>) -> Error {
        let owner = self.require_collection(path.tenants, path.collection).await;
        owner.err().unwrap_or_else(|| path.not_found())
    }

    /// Checks that the owner of a list exists.
    pub(super) async fn require_owner(
        &self,
        tenants: &TenantScope,
        collection: Collection<'_>,
        db: &mut Db<'_>,
    ) -> Result<(), Error> {
        let Collection::Owned {
            parent, parent_id, ..
        } = collection
        else {
            return Ok(());
        };
        let exists = match ResourceId::parse(parent_id) {
            Some(id) => db.has_resource(tenants, &parent.kind, id).await?,
            None => false,
        };
        if exists {
            Ok(())
        } else {
            Err(Error::not_found(&parent.kind, parent_id))
        }
    }
}
