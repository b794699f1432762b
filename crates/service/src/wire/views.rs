//! Bodies of answers. Optional members are absent when empty, never `null` (`docs/decisions/0006-empty-members.md`).

pub(super) mod dry_run;
pub(super) mod explanation;
mod sparse;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::continuation::{Continuation, ListKey};
use super::fields::Fields;
use super::members::{AdapterCondition, AuditAction, ResourceCondition};
use explanation::ResourceExplanationView;
use hyperfleet_domain::audit::{AuditEntry, TrailPage};
use hyperfleet_domain::explain::ResourceExplanation;
use hyperfleet_domain::history::HistoryPage;
use hyperfleet_domain::moment;
use hyperfleet_domain::page::Listing;
use hyperfleet_domain::{
    EntityRegistry, JsonText, Metadata, PATHS_BASE, Report, ReportedCondition, ResourceId,
    StoredResource, Tenancy,
};
use sparse::SparseView;

/// Prefix of all paths of the API.
pub const BASE: &str = PATHS_BASE;

/// Makes answers; knows the kinds, whose paths are in them.
#[derive(Debug, Clone, Copy)]
pub struct Views<'a>(pub &'a EntityRegistry);

/// A resource of any kind. Members marked `required = false` are also always present. The document of the Go HyperFleet
/// API calls them optional, and clients' types are generated from it.
#[derive(Serialize, ToSchema)]
#[schema(description = "A resource: its desired state and its status.")]
pub(super) struct ResourceView<'a> {
    /// The caller that created it.
    #[schema(example = "system@hyperfleet.local")]
    created_by: &'a str,
    /// When it was created.
    #[serde(serialize_with = "moment::serialize")]
    created_time: DateTime<Utc>,
    /// The caller that requested its deletion; absent before.
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted_by: Option<&'a str>,
    /// Time of the first request to delete it; absent before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "moment::serialize_some")]
    deleted_time: Option<DateTime<Utc>>,
    /// Number of the desired state.
    #[schema(minimum = 1)]
    generation: i32,
    /// Its path, without the host.
    #[schema(required = false)]
    href: String,
    /// Identity: a UUID, version 7, in lower case.
    #[schema(required = false)]
    id: String,
    /// Its kind.
    kind: &'a str,
    /// Keys and values for grouping and search.
    #[schema(required = false, value_type = BTreeMap<String, String>)]
    labels: &'a JsonText,
    /// Unique among the active resources of its kind, for child kinds among those of one parent.
    name: &'a str,
    /// The resource that owns it; only child kinds have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    owner_references: Option<LinkView<'a>>,
    /// Links to resources that it does not own, by type of link; absent when there are none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    references: BTreeMap<&'a str, Vec<LinkView<'a>>>,
    /// The desired state.
    #[schema(value_type = BTreeMap<String, Value>)]
    spec: &'a JsonText,
    status: StatusView<'a>,
    /// The tenant that it belongs to, by dimension.
    #[schema(required = false, value_type = BTreeMap<String, String>)]
    tenancy: &'a Tenancy,
    /// The caller of the last change of the desired state.
    updated_by: &'a str,
    /// Time of the last change of the desired state.
    #[serde(serialize_with = "moment::serialize")]
    updated_time: DateTime<Utc>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ResourceStatus, description = "Status of a resource, computed from the reports of its adapters.")]
pub(super) struct StatusView<'a> {
    /// `Reconciled`, `LastKnownReconciled`, and one for each required adapter that has reported.
    #[schema(value_type = Vec<ResourceCondition>)]
    conditions: &'a JsonText,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ObjectReference, description = "A link to a resource. In requests, other members are ignored.")]
pub(super) struct LinkView<'a> {
    /// Its path. Ignored in requests.
    #[schema(required = false)]
    href: String,
    /// Its id. Required in requests.
    #[schema(required = false)]
    id: String,
    /// Its kind.
    kind: &'a str,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AdapterStatus, description = "The latest report of one adapter on one resource.")]
pub(super) struct ReportView<'a> {
    /// The adapter that reports.
    #[schema(example = "validation")]
    adapter: &'a str,
    /// Its conditions, in its own order.
    #[schema(value_type = Vec<AdapterCondition>)]
    conditions: &'a [ReportedCondition],
    /// `observed_time` of its first report.
    #[serde(serialize_with = "moment::serialize")]
    created_time: DateTime<Utc>,
    /// Data for other adapters.
    #[schema(required = false, value_type = BTreeMap<String, Value>)]
    data: &'a Map<String, Value>,
    /// `observed_time` of this report.
    #[serde(serialize_with = "moment::serialize")]
    last_report_time: DateTime<Utc>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    metadata: Option<&'a Metadata>,
    /// The generation that the adapter read.
    observed_generation: i32,
}

#[derive(Serialize, ToSchema)]
#[schema(as = AuditEntry, description = "One change of one resource.")]
pub(super) struct EntryView<'a> {
    /// The kind of change.
    #[schema(value_type = AuditAction)]
    action: &'a str,
    /// The caller that made it.
    actor: &'a str,
    /// The generation after the change. Absent if the resource was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_after: Option<i32>,
    /// The generation before the change. Absent if the resource is new.
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_before: Option<i32>,
    /// Kind of the resource.
    kind: &'a str,
    /// Its name.
    name: &'a str,
    /// The reason of a force-delete.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    /// Id of the request that made it.
    request_id: &'a str,
    /// Id of the resource.
    resource_id: &'a str,
    /// Number of the change. Later changes of a resource have higher numbers.
    sequence: i64,
    /// The tenant that the resource belongs to, by dimension.
    #[schema(value_type = BTreeMap<String, String>)]
    tenancy: &'a Tenancy,
    /// When the service began to work on the request. Not the order of changes.
    #[serde(serialize_with = "moment::serialize")]
    time: DateTime<Utc>,
}

/// The envelope of every list. The older document does not require `kind`.
#[derive(Serialize, ToSchema)]
#[schema(description = "One page of a list.")]
pub(super) struct ListView<T> {
    /// Whether the history is complete, back to the creation of the resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    complete: Option<bool>,
    /// Start of the next page, for the parameter `continue`. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    r#continue: Option<String>,
    /// The items of the page.
    items: T,
    /// Kind of the items, followed by `List`.
    #[schema(required = false)]
    kind: String,
    /// Number of the page.
    #[schema(value_type = i32, minimum = 1)]
    page: u32,
    /// Of the audit trail: the value of `after` for the next entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<String>,
    /// Of the audit trail: the position up to which every entry is sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    sealed: Option<String>,
    /// Number of items on the page.
    #[schema(value_type = i32, minimum = 0)]
    size: usize,
    /// Number of items on all pages.
    #[schema(value_type = i32, minimum = 0)]
    total: i64,
}

/// The items of a page, each dropped once it is written, so that a page of large ones is not in memory twice. They can
/// be written only once.
struct Items<T, F> {
    items: Cell<Vec<T>>,
    view: F,
}

impl<T, V: Serialize, F: Fn(T) -> V> Serialize for Items<T, F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.items.take().into_iter().map(&self.view))
    }
}

/// A resource with everything that its view needs: all of its members, or the selected ones.
struct ResourceItem<'a> {
    views: Views<'a>,
    resource: StoredResource,
    fields: Option<Rc<Fields>>,
}

impl Serialize for ResourceItem<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self {
            views, resource, ..
        } = self;
        match &self.fields {
            None => views.resource(resource).serialize(serializer),
            Some(fields) => views.sparse(resource, fields).serialize(serializer),
        }
    }
}

/// A page with `items`, the views of the listing's items.
fn list<T, I>(kind: &str, listing: &Listing<T>, items: I) -> ListView<I> {
    ListView {
        complete: None,
        r#continue: None,
        items,
        kind: format!("{kind}List"),
        page: listing.page.number,
        position: None,
        sealed: None,
        size: listing.items.len(),
        total: listing.total,
    }
}

/// A page of the history of one resource.
pub(super) fn history<'a, T, V>(
    kind: &str,
    page: &'a HistoryPage<T>,
    view: impl Fn(&'a T) -> V,
) -> ListView<Vec<V>> {
    let items = page.listing.items.iter().map(view).collect();
    ListView {
        complete: Some(page.is_complete),
        ..list(kind, &page.listing, items)
    }
}

impl<'a> Views<'a> {
    pub fn resource(self, resource: &'a StoredResource) -> impl Serialize + 'a {
        let deletion = resource.deletion.as_ref();
        ResourceView {
            created_by: &resource.created_by,
            created_time: resource.created_at,
            deleted_by: deletion.map(|d| d.by.as_str()),
            deleted_time: deletion.map(|d| d.at),
            generation: resource.generation,
            href: self.href(resource),
            id: resource.id.to_string(),
            kind: &resource.kind,
            labels: &resource.labels,
            name: &resource.name,
            owner_references: self.owner(resource),
            references: self.references(resource),
            spec: &resource.spec,
            status: StatusView {
                conditions: &resource.conditions,
            },
            tenancy: &resource.tenancy,
            updated_by: &resource.updated_by,
            updated_time: resource.updated_at,
        }
    }

    /// Some members of a resource.
    pub fn sparse(self, resource: &'a StoredResource, fields: &'a Fields) -> impl Serialize + 'a {
        SparseView {
            views: self,
            resource,
            fields,
        }
    }

    /// A page of resources of one kind or of all kinds, with selected members if there are `fields`.
    pub fn resources(
        self,
        kind: Option<&str>,
        listing: Listing<StoredResource>,
        key: &ListKey,
        fields: Option<Fields>,
    ) -> impl Serialize + use<'a> {
        let fields = fields.map(Rc::new);
        let items = Items {
            items: Cell::default(),
            view: move |resource| ResourceItem {
                views: self,
                resource,
                fields: fields.clone(),
            },
        };
        let mut list = list(kind.unwrap_or("Resource"), &listing, items);
        let page = list.page;
        let next = listing.next;
        let next = next.map(|position| Continuation { page, position });
        list.r#continue = next.map(|next| next.encode(key));
        list.items.items.set(listing.items);
        list
    }

    pub fn report(report: &'a Report) -> impl Serialize + 'a {
        let state = &report.state;
        ReportView {
            adapter: &state.adapter,
            conditions: &state.conditions,
            created_time: state.created_at,
            data: &report.data,
            last_report_time: state.reported_at,
            metadata: report.metadata.as_ref(),
            observed_generation: state.observed_generation,
        }
    }

    /// A page of reports.
    pub fn reports(listing: &'a Listing<Report>) -> impl Serialize + 'a {
        let reports: Vec<_> = listing.items.iter().map(Self::report).collect();
        list("AdapterStatus", listing, reports)
    }

    fn entry(entry: &'a AuditEntry) -> impl Serialize + 'a {
        EntryView {
            action: &entry.action,
            actor: &entry.actor,
            generation_after: entry.generation_after,
            generation_before: entry.generation_before,
            kind: &entry.kind,
            name: &entry.name,
            reason: entry.reason.as_deref(),
            request_id: &entry.request_id,
            resource_id: &entry.resource_id,
            sequence: entry.sequence,
            tenancy: &entry.tenancy,
            time: entry.at,
        }
    }

    /// A page of the audit trail.
    pub fn audit(trail: &'a TrailPage) -> impl Serialize + 'a {
        let entries: Vec<_> = trail.listing.items.iter().map(Self::entry).collect();
        ListView {
            position: Some(trail.position.to_string()),
            sealed: Some(trail.sealed.to_string()),
            ..list("Audit", &trail.listing, entries)
        }
    }

    /// What a resource waits for.
    pub fn explanation(self, explanation: &'a ResourceExplanation) -> impl Serialize + 'a {
        ResourceExplanationView::new(self, explanation)
    }

    fn href(self, resource: &StoredResource) -> String {
        self.0.href(&resource.kind, resource.id, resource.owner)
    }

    fn owner(self, resource: &'a StoredResource) -> Option<LinkView<'a>> {
        let kind = self.parent_kind(&resource.kind)?;
        let id = resource.owner?;
        Some(self.link(kind, id))
    }

    pub(super) fn references(
        self,
        resource: &'a StoredResource,
    ) -> BTreeMap<&'a str, Vec<LinkView<'a>>> {
        let links = resource.references.iter();
        links
            .map(|(ref_type, targets)| {
                let targets = targets.iter().map(|t| self.link(&t.kind, t.id));
                (ref_type.as_str(), targets.collect())
            })
            .collect()
    }

    fn link(self, kind: &'a str, id: ResourceId) -> LinkView<'a> {
        LinkView {
            href: self.0.flat_href(kind, id),
            id: id.to_string(),
            kind,
        }
    }

    fn parent_kind(self, kind: &str) -> Option<&'a str> {
        self.0.get(kind)?.parent.as_deref()
    }
}
