//! What a request is about: a list, or one resource in it.

use super::{Error, Service};
use crate::domain::tenancy::TenantScope;
use crate::domain::{Entity, ResourceId};
use crate::storage::postgres::{Db, ResourceScope};

/// A list of resources, as a path names it.
#[derive(Debug, Clone, Copy)]
pub enum Collection<'a> {
    /// Of every kind.
    All,
    /// Of one kind, whoever owns them.
    Kind(&'a Entity),
    /// Of one child kind, owned by one resource.
    Owned {
        /// The child kind.
        entity: &'a Entity,
        /// The owner's kind.
        parent: &'a Entity,
        /// The owner's id, as it stands in the path.
        parent_id: &'a str,
    },
}

/// One resource, as a path names it.
#[derive(Debug, Clone, Copy)]
pub struct ResourcePath<'a> {
    /// As who sees it.
    pub tenants: &'a TenantScope,
    /// The list that it is in.
    pub collection: Collection<'a>,
    /// Its id, as it stands in the path: any text.
    pub id: &'a str,
}

impl<'a> Collection<'a> {
    /// The kind of what is in it; `None` if there are several.
    pub fn entity(&self) -> Option<&'a Entity> {
        match self {
            Self::All => None,
            Self::Kind(entity) | Self::Owned { entity, .. } => Some(entity),
        }
    }
}

impl<'a> ResourcePath<'a> {
    /// Where to look; `None` if the texts are no ids, so that nothing can be there.
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

    /// The error that nothing is there.
    pub(super) fn not_found(&self) -> Error {
        let kind = self.collection.entity().map_or("Resource", |e| &e.kind);
        Error::not_found(kind, self.id)
    }

    /// The error that nothing is there, or that not even its owner is.
    pub(super) async fn missing(&self, service: &Service, db: &mut Db<'_>) -> Error {
        let owner = service
            .require_owner(self.tenants, self.collection, db)
            .await;
        owner.err().unwrap_or_else(|| self.not_found())
    }
}

impl Service {
    /// Checks that a list is there: it is, unless it is that of a missing owner.
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

    /// The same as [`ResourcePath::missing`], where no session is open.
    pub(super) async fn missing(&self, path: ResourcePath<'_>) -> Error {
        let owner = self.require_collection(path.tenants, path.collection).await;
        owner.err().unwrap_or_else(|| path.not_found())
    }

    /// Checks that the owner of a list is there.
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
        let is_there = match ResourceId::parse(parent_id) {
            Some(id) => db.has_resource(tenants, &parent.kind, id).await?,
            None => false,
        };
        if is_there {
            Ok(())
        } else {
            Err(Error::not_found(&parent.kind, parent_id))
        }
    }
}
