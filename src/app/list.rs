//! Lists of resources.

use super::{Collection, Error, Service};
use crate::domain::page::{Listing, Order, Page};
use crate::domain::position::Position;
use crate::domain::tenancy::TenantScope;
use crate::domain::tsl::Property;
use crate::domain::{Resource, ResourceId, shown};
use crate::storage::postgres::{ListQuery, ReferenceFilter, Scope, Search};

/// What of a list is wanted.
#[derive(Debug, Clone)]
pub struct ListRequest {
    /// Which part.
    pub page: Page,
    /// Where it begins, instead of where the page's number says.
    pub after: Option<Position>,
    /// How sorted.
    pub order: Order,
    /// Whether finalizing resources are listed; unset for what the search implies, or else the
    /// service is set to.
    pub includes_deleted: Option<bool>,
    /// Only those that match.
    pub search: Option<Search>,
    /// Only those with such a link.
    pub reference: Option<ReferenceFilter>,
}

impl Service {
    /// The filter of a list by a link to a resource; none for lists of every kind.
    ///
    /// # Errors
    ///
    /// Resources of the kind have no such links.
    pub fn reference_filter(
        &self,
        collection: Collection<'_>,
        ref_type: &str,
        target: &str,
    ) -> Result<Option<ReferenceFilter>, Error> {
        let Some(entity) = collection.entity() else {
            return Ok(None);
        };
        if !entity.references.iter().any(|r| r.ref_type == ref_type) {
            return Err(Error::UnknownReference {
                ref_type: shown(ref_type),
                kind: entity.kind.clone(),
            });
        }
        Ok(Some(ReferenceFilter {
            ref_type: ref_type.to_owned(),
            target: ResourceId::parse(target),
        }))
    }

    /// One page of what is seen of a list.
    pub async fn list(
        &self,
        view: &TenantScope,
        collection: Collection<'_>,
        request: ListRequest,
    ) -> Result<Listing<Resource>, Error> {
        let scope = match collection {
            Collection::All => Scope::All,
            Collection::Kind(entity) => Scope::Kind(&entity.kind),
            Collection::Owned {
                entity,
                parent,
                parent_id,
            } => match ResourceId::parse(parent_id) {
                Some(owner) => Scope::Owned {
                    kind: &entity.kind,
                    owner,
                },
                None => return Err(Error::not_found(&parent.kind, parent_id)),
            },
        };
        let mut session = self.store.session().await?;
        // Whoever asks about the time of deletion wants to see what has one (decision H3).
        let search = request.search.as_ref();
        let asks_for_deleted = search.is_some_and(|s| s.filter.mentions(Property::DeletedTime));
        let query = ListQuery {
            scope,
            view,
            includes_deleted: request
                .includes_deleted
                .unwrap_or(asks_for_deleted || self.lists_include_deleted),
            search: request.search,
            reference: request.reference,
            order: request.order,
            page: request.page,
            after: request.after,
        };
        let listing = session.db().list_resources(&query).await?;
        if listing.total == 0 {
            self.require_owner(view, collection, &mut session.db())
                .await?;
        }
        Ok(listing)
    }
}
