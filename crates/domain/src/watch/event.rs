//! What a watcher receives of a change.

use std::sync::OnceLock;

use strum::{IntoStaticStr, VariantNames};

use crate::change::ChangePosition;
use crate::tenancy::TenantScope;
use crate::tsl::Filter;
use crate::{EntityRegistry, ListFilter, Resource, ResourceId, StoredResource};

/// The resources that a watcher sees: the items of the list with the same parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchFilter {
    /// What the caller may see.
    pub tenants: TenantScope,
    /// The owner of the resources; unset for any owner or none.
    pub owner: Option<ResourceId>,
    pub filters: Vec<ListFilter>,
}

/// What a change did to the watched list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantNames)]
#[strum(const_into_str, serialize_all = "UPPERCASE")]
pub enum WatchEventKind {
    /// The resource is in the list now: it is new, or matches from now on.
    Added,
    Modified,
    /// The resource left the list: it was removed, or no longer matches. The event has its last state in the list.
    Deleted,
}

/// A state of a resource. Parsed once, and only while searches judge it.
#[derive(Debug)]
pub struct ResourceImage {
    pub stored: StoredResource,
    parsed: OnceLock<Option<Box<Resource>>>,
}

/// A change, as watchers judge it.
#[derive(Debug)]
pub struct WatchedChange {
    pub position: ChangePosition,
    /// Unset if the resource is new.
    pub before: Option<ResourceImage>,
    /// Unset if the resource was removed.
    pub after: Option<ResourceImage>,
}

impl From<StoredResource> for ResourceImage {
    fn from(stored: StoredResource) -> Self {
        Self {
            stored,
            parsed: OnceLock::new(),
        }
    }
}

impl ResourceImage {
    /// `None` for a value that the service cannot have stored.
    fn parsed(&self) -> Option<&Resource> {
        let parsed = self
            .parsed
            .get_or_init(|| self.stored.parse().map(Box::new));
        parsed.as_deref()
    }
}

impl WatchFilter {
    /// The kind of the watched resources; unset for all.
    pub fn kind(&self) -> Option<&str> {
        self.filters.iter().find_map(|filter| match filter {
            ListFilter::Kind(kind) => Some(kind.as_str()),
            _ => None,
        })
    }

    /// Whether the list shows a resource in this state. `kinds` define URLs, which searches may ask for.
    pub fn shows(&self, image: &ResourceImage, kinds: &EntityRegistry) -> bool {
        let resource = &image.stored;
        let is_seen = self
            .tenants
            .tenancy()
            .is_none_or(|tenancy| !tenancy.is_empty() && *tenancy == resource.tenancy);
        is_seen
            && self.owner.is_none_or(|owner| resource.owner == Some(owner))
            && self.filters.iter().all(|filter| match filter {
                ListFilter::Kind(kind) => *kind == resource.kind,
                ListFilter::IncludeDeleted(included) => *included || resource.deletion.is_none(),
                ListFilter::Reference { ref_type, target } => {
                    let links = resource.references.get(ref_type);
                    links.is_some_and(|links| links.iter().any(|link| Some(link.id) == *target))
                }
                ListFilter::Search(search) => is_found(search, image, kinds),
            })
    }

    /// What the change did to the watched list, and the state to show; `None` if it concerns no resource in it.
    pub fn event<'c>(
        &self,
        change: &'c WatchedChange,
        kinds: &EntityRegistry,
    ) -> Option<(WatchEventKind, &'c ResourceImage)> {
        let visible = |image: &'c Option<ResourceImage>| {
            image.as_ref().filter(|image| self.shows(image, kinds))
        };
        match (visible(&change.before), visible(&change.after)) {
            (None, None) => None,
            (None, Some(after)) => Some((WatchEventKind::Added, after)),
            (Some(_), Some(after)) => Some((WatchEventKind::Modified, after)),
            (Some(before), None) => Some((WatchEventKind::Deleted, before)),
        }
    }
}

fn is_found(search: &Filter, image: &ResourceImage, kinds: &EntityRegistry) -> bool {
    let parsed = image.parsed();
    parsed.is_some_and(|resource| search.matches(resource, kinds))
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use uuid::Uuid;

    use super::*;
    use crate::entity_config::{built_in, registry};
    use crate::{Deletion, JsonText, Reference, tsl};

    fn id(number: u128) -> ResourceId {
        Uuid::from_u128(number).into()
    }

    fn stored() -> StoredResource {
        let at = DateTime::UNIX_EPOCH;
        StoredResource {
            id: id(1),
            kind: "Cluster".to_owned(),
            name: "a".to_owned(),
            owner: None,
            generation: 1,
            revision: 1,
            created_at: at,
            created_by: "x".to_owned(),
            updated_at: at,
            updated_by: "x".to_owned(),
            deletion: None,
            references: [].into(),
            spec: JsonText::of(&serde_json::json!({})),
            labels: JsonText::of(&serde_json::json!({})),
            tenancy: [].into(),
            conditions: JsonText::of(&serde_json::json!([])),
        }
    }

    fn labelled(value: &str) -> StoredResource {
        StoredResource {
            labels: JsonText::of(&serde_json::json!({"shard": value})),
            ..stored()
        }
    }

    fn finalizing() -> StoredResource {
        let deletion = Deletion {
            at: DateTime::UNIX_EPOCH,
            by: "x".to_owned(),
        };
        StoredResource {
            deletion: Some(deletion),
            ..stored()
        }
    }

    fn watch(filters: Vec<ListFilter>) -> WatchFilter {
        WatchFilter {
            tenants: TenantScope::ALL,
            owner: None,
            filters,
        }
    }

    fn event(
        filter: &WatchFilter,
        before: Option<StoredResource>,
        after: Option<StoredResource>,
    ) -> Option<(WatchEventKind, StoredResource)> {
        let kinds = registry(&built_in()).unwrap();
        let change = WatchedChange {
            position: ChangePosition { era: 0, number: 1 },
            before: before.map(Into::into),
            after: after.map(Into::into),
        };
        let (kind, image) = filter.event(&change, &kinds)?;
        Some((kind, image.stored.clone()))
    }

    #[test]
    fn a_change_is_an_event_of_the_lists_that_it_changes() {
        use WatchEventKind::{Added, Deleted, Modified};
        let search = || {
            watch(vec![ListFilter::Search(
                tsl::parse("labels.shard = '1'").unwrap(),
            )])
        };
        let active = || watch(vec![ListFilter::IncludeDeleted(false)]);
        let every = || watch(vec![ListFilter::IncludeDeleted(true)]);
        let one = || Some(labelled("1"));
        let two = || Some(labelled("2"));
        for (filter, before, after, expected) in [
            (every(), None, Some(stored()), Some((Added, stored()))),
            (
                every(),
                Some(stored()),
                Some(finalizing()),
                Some((Modified, finalizing())),
            ),
            (
                every(),
                Some(finalizing()),
                None,
                Some((Deleted, finalizing())),
            ),
            (
                active(),
                Some(stored()),
                Some(finalizing()),
                Some((Deleted, stored())),
            ),
            (active(), Some(finalizing()), None, None),
            (search(), two(), one(), Some((Added, labelled("1")))),
            (search(), one(), two(), Some((Deleted, labelled("1")))),
            (search(), two(), two(), None),
            (search(), one(), None, Some((Deleted, labelled("1")))),
            (search(), None, two(), None),
            (
                watch(vec![ListFilter::Kind("NodePool".to_owned())]),
                None,
                one(),
                None,
            ),
            (
                watch(vec![ListFilter::Kind("Cluster".to_owned())]),
                None,
                one(),
                Some((Added, labelled("1"))),
            ),
        ] {
            let found = event(&filter, before, after);
            assert_eq!(found, expected, "{filter:?}");
        }
    }

    #[test]
    fn owners_and_references_are_those_of_the_state() {
        let owned = StoredResource {
            owner: Some(id(7)),
            ..stored()
        };
        let of = |owner| WatchFilter {
            owner: Some(owner),
            ..watch(vec![])
        };
        assert!(event(&of(id(7)), None, Some(owned.clone())).is_some());
        assert!(event(&of(id(8)), None, Some(owned)).is_none());
        let target = Reference {
            kind: "Cluster".to_owned(),
            id: id(9),
        };
        let linked = StoredResource {
            references: [("peer".to_owned(), vec![target])].into(),
            ..stored()
        };
        for (ref_type, target, is_included) in [
            ("peer", Some(id(9)), true),
            ("peer", Some(id(8)), false),
            ("peer", None, false),
            ("other", Some(id(9)), false),
        ] {
            let ref_type = ref_type.to_owned();
            let filter = watch(vec![ListFilter::Reference { ref_type, target }]);
            let found = event(&filter, Some(stored()), Some(linked.clone()));
            assert_eq!(found.is_some(), is_included, "{filter:?}");
        }
    }
}
