//! Reads what resources were, and what happened to them.

use chrono::{DateTime, Utc};

use super::{Collection, Error, ListRequest, ResourcePath, Service};
use hyperfleet_domain::history::{
    Generation, HistoryPage, PastError, PastMoment, REMOVAL_ENTRIES_MAX, Timeline, TimelineEvent,
    Tombstone, first_time, generations,
};
use hyperfleet_domain::page::{Listing, PageRequest};
use hyperfleet_domain::tenancy::TenantScope;
use hyperfleet_domain::{Constraint, ListFilter, StoredResource, Violation};
use hyperfleet_storage::ResourceScope;

/// Events that a page counts from its first one on. An exact number would need every change.
const EVENTS_COUNTED_MAX: usize = 1_000;
/// Changes that one statement reads.
const CHANGES_READ: u16 = 500;

impl Service {
    /// Returns an earlier state of a resource, which may be removed by now.
    pub async fn past(
        &self,
        path: ResourcePath<'_>,
        moment: PastMoment,
    ) -> Result<StoredResource, Error> {
        let record = match path.scope() {
            Some(scope) => {
                let mut session = self.store.session().await?;
                session.db().find_past(scope, moment).await?
            }
            None => None,
        };
        let Some(record) = record else {
            return Err(self.missing(path).await);
        };
        record
            .resolve(moment)
            .map_err(|error| past_error(error, path, moment))
    }

    /// Returns a removed resource; `None` if it is not removed, or its removal is no longer stored.
    pub async fn tombstone(&self, path: ResourcePath<'_>) -> Result<Option<Tombstone>, Error> {
        let Some(scope) = path.scope() else {
            return Ok(None);
        };
        let mut session = self.store.session().await?;
        Ok(session.db().find_tombstone(scope).await?)
    }

    /// Returns one page of the generations of a resource, newest first.
    pub async fn generations(
        &self,
        path: ResourcePath<'_>,
        page: PageRequest,
    ) -> Result<HistoryPage<Generation>, Error> {
        let recorded = match path.scope() {
            Some(scope) => {
                let mut session = self.store.slow_session().await?;
                session.db().list_generations(scope, page).await?
            }
            None => None,
        };
        let Some(recorded) = recorded else {
            return Err(self.missing(path).await);
        };
        Ok(HistoryPage {
            listing: Listing {
                page,
                items: generations(&recorded.generations, page.size as usize),
                total: recorded.total,
                next: None,
            },
            is_complete: recorded.is_complete,
        })
    }

    /// Returns one page of the events of a resource, newest first.
    pub async fn timeline(
        &self,
        path: ResourcePath<'_>,
        page: PageRequest,
    ) -> Result<HistoryPage<TimelineEvent>, Error> {
        let counted = usize::try_from(page.offset()).unwrap_or(usize::MAX);
        let counted = counted.saturating_add(EVENTS_COUNTED_MAX);
        let read = match path.scope() {
            Some(scope) => self.read_timeline(scope, counted).await?,
            None => None,
        };
        let Some((mut events, is_complete)) = read else {
            return Err(self.missing(path).await);
        };
        events.truncate(counted);
        let total = events.len().try_into().unwrap_or(i64::MAX);
        let before = counted - EVENTS_COUNTED_MAX;
        let items = events.into_iter().skip(before).take(page.size as usize);
        Ok(HistoryPage {
            listing: Listing {
                page,
                items: items.collect(),
                total,
                next: None,
            },
            is_complete,
        })
    }

    /// The newest events of a resource, so many at least if there are, and whether its history is complete.
    async fn read_timeline(
        &self,
        scope: ResourceScope<'_>,
        count: usize,
    ) -> Result<Option<(Vec<TimelineEvent>, bool)>, Error> {
        let mut session = self.store.slow_session().await?;
        let mut db = session.db();
        let (mut timeline, mut before) = (Timeline::default(), None);
        let is_complete = loop {
            let read = db.list_recorded(scope, before, CHANGES_READ).await?;
            let Some(read) = read else {
                return Ok(None);
            };
            let is_last = read.changes.len() < usize::from(CHANGES_READ);
            before = read.changes.last().map(|last| last.position);
            for change in read.changes {
                timeline.push(change);
            }
            if is_last || timeline.has(count) {
                break read.is_complete;
            }
        };
        let entries = if timeline.needs_audit(is_complete) {
            let wanted = if is_complete {
                REMOVAL_ENTRIES_MAX
            } else {
                count.try_into().unwrap_or(i64::MAX)
            };
            db.list_entries_of(scope.id, wanted).await?
        } else {
            Vec::new()
        };
        Ok(Some((timeline.finish(&entries, is_complete), is_complete)))
    }

    /// Returns one page of what a caller saw of a list at a moment.
    ///
    /// # Errors
    ///
    /// Changes since the moment are no longer stored; or the request searches, which needs present states.
    pub async fn list_at(
        &self,
        tenants: &TenantScope,
        collection: Collection<'_>,
        request: ListRequest,
        at: DateTime<Utc>,
    ) -> Result<Listing<StoredResource>, Error> {
        let mut filters = request.filters.iter();
        if filters.any(|filter| matches!(filter, ListFilter::Search(_))) {
            let message =
                "cannot be combined with at: only the present state of resources can be searched";
            return Err(Violation::new("search", Constraint::Format, message).into());
        }
        let query = self.query(tenants, collection, request)?;
        let mut session = self.store.slow_session().await?;
        let past = session.db().list_past(&query, at).await?;
        if let Some(since) = first_time(at, past.stored_since) {
            return Err(Error::BeforeHistory { since });
        }
        drop(session);
        if let (
            Collection::Owned {
                parent, parent_id, ..
            },
            0,
        ) = (collection, past.listing.total)
        {
            let owner = ResourcePath {
                tenants,
                collection: Collection::Kind(parent),
                id: parent_id,
            };
            self.past(owner, PastMoment::At(at)).await?;
        }
        Ok(past.listing)
    }
}

fn past_error(error: PastError, path: ResourcePath<'_>, moment: PastMoment) -> Error {
    let kind = || {
        let entity = path.collection.entity();
        entity.map_or("Resource", |e| &e.kind).to_owned()
    };
    match (error, moment) {
        (PastError::TimeNotStored { since }, _) => Error::BeforeHistory { since },
        (PastError::NoSuchGeneration { latest }, PastMoment::Generation(generation)) => {
            Error::NoSuchGeneration {
                kind: kind(),
                generation,
                latest,
            }
        }
        (PastError::GenerationNotStored, PastMoment::Generation(generation)) => {
            Error::GenerationNotStored {
                kind: kind(),
                generation,
            }
        }
        _ => path.not_found(),
    }
}
