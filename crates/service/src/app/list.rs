//! Lists of resources.

use super::{Collection, Error, Service};
use hyperfleet_domain::page::{Listing, Order, PageRequest};
use hyperfleet_domain::position::RowPosition;
use hyperfleet_domain::tenancy::TenantScope;
use hyperfleet_domain::tsl::Filter;
use hyperfleet_domain::{ListFilter, ResourceId, StoredResource, excerpt};
use hyperfleet_storage::ListQuery;

/// Page, order and filters of a list.
#[derive(Debug, Clone)]
pub struct ListRequest {
    pub page: PageRequest,
    /// Where the page begins, in place of its number.
    pub after: Option<RowPosition>,
    pub order: Order,
    /// Filters of the list, from [`Service::filters`].
    pub filters: Vec<ListFilter>,
    /// Whether specs are read: they are the largest part of most resources.
    pub has_specs: bool,
}

impl Service {
    /// Removes the filters that a list does not have.
    ///
    /// # Errors
    ///
    /// The kind is not configured, or declares no references of the type.
    pub fn filters(
        &self,
        collection: Collection<'_>,
        filters: Vec<ListFilter>,
    ) -> Result<Vec<ListFilter>, Error> {
        let applies = |filter: &ListFilter| match (filter, collection.entity()) {
            (ListFilter::Kind(kind), None) => self.entity(kind).map(|_| true),
            (ListFilter::Reference { ref_type, .. }, Some(entity)) => {
                let mut rules = entity.references.iter();
                let is_known = rules.any(|rule| rule.ref_type == *ref_type);
                is_known
                    .then_some(true)
                    .ok_or_else(|| Error::UnknownReference {
                        ref_type: excerpt(ref_type),
                        kind: entity.kind.clone(),
                    })
            }
            (ListFilter::Kind(_), Some(_)) | (ListFilter::Reference { .. }, None) => Ok(false),
            (ListFilter::Search(_) | ListFilter::IncludeDeleted(_), _) => Ok(true),
        };
        let mut selected = Vec::with_capacity(filters.len());
        for filter in filters {
            if applies(&filter)? {
                selected.push(filter);
            }
        }
        Ok(selected)
    }

    /// Returns one page of what a caller sees of a list.
    pub async fn list(
        &self,
        tenants: &TenantScope,
        collection: Collection<'_>,
        request: ListRequest,
    ) -> Result<Listing<StoredResource>, Error> {
        let query = self.query(tenants, collection, request)?;
        let mut session = if query.may_be_slow() {
            self.store.slow_session().await?
        } else {
            self.store.session().await?
        };
        let listing = session.db().list_resources(&query).await?;
        self.finalizing_lists.record(&query.filters);
        if listing.total == 0 {
            self.require_owner(tenants, collection, &mut session.db())
                .await?;
        }
        Ok(listing)
    }

    /// The owner of the resources of a list, if its path names one.
    pub(super) fn owner(collection: Collection<'_>) -> Result<Option<ResourceId>, Error> {
        match collection {
            Collection::All | Collection::Kind(_) => Ok(None),
            Collection::Owned {
                parent, parent_id, ..
            } => {
                let owner = ResourceId::parse(parent_id);
                Ok(Some(owner.ok_or_else(|| {
                    Error::not_found(&parent.kind, parent_id)
                })?))
            }
        }
    }

    /// The filters of a list: the request's, the kind, and whether it includes finalizing resources.
    pub(super) fn conditions(
        &self,
        collection: Collection<'_>,
        mut filters: Vec<ListFilter>,
    ) -> Vec<ListFilter> {
        if let Some(entity) = collection.entity() {
            filters.insert(0, ListFilter::Kind(entity.kind.clone()));
        }
        let search = filters.iter().find_map(|filter| match filter {
            ListFilter::Search(search) => Some(search),
            _ => None,
        });
        let mut decides = filters.iter();
        if !decides.any(|filter| matches!(filter, ListFilter::IncludeDeleted(_))) {
            let asks = search.is_some_and(Filter::mentions_deletion);
            filters.push(ListFilter::IncludeDeleted(
                asks || self.lists_include_deleted,
            ));
        }
        filters
    }

    pub(super) fn query<'a>(
        &'a self,
        tenants: &'a TenantScope,
        collection: Collection<'_>,
        request: ListRequest,
    ) -> Result<ListQuery<'a>, Error> {
        Ok(ListQuery {
            owner: Self::owner(collection)?,
            tenants,
            registry: &self.registry,
            filters: self.conditions(collection, request.filters),
            order: request.order,
            page: request.page,
            after: request.after,
            has_specs: request.has_specs,
        })
    }
}
