//! A store in memory that carries out the decisions of the lifecycle: it finds families, applies outcomes, and decides
//! no rule by itself.

use std::collections::{BTreeMap, BTreeSet};

use super::given::{
    child_kind, id, kind, link, origin, registry, report, resource, saying_finalized,
};
use crate::aggregation::RECONCILED;
use crate::audit::ChangeOrigin;
use crate::entity_config::EntityConfig;
use crate::explain::{Descendant, Kin, SourceOfReference, Surroundings};
use crate::lifecycle::{self, Family, LifecycleRefusal, Outcome, Patch, Referrer};
use crate::reference::{self, ReferenceTarget, RequestedReference, RequestedReferences};
use crate::{
    ConditionStatus, EntityRegistry, References, Report, ReportOutcome, ReportState, Resource,
    ResourceId, ResourceSnapshot, ResourceState,
};

/// The kinds of the world, owners first, with what each owns and who works on it:
///
/// ```text
/// Cluster a,b ◀─ cascade ─ Pool a ◀─ cascade ─ Disk
///             ◀─ restrict ─ Key a
/// Channel ◀─ restrict ─ Version
///         ◀─ cascade ─ Stream ◀─ cascade ─ Build a
///                             ◀─ cascade ─ Page
/// ```
///
/// Clusters and pools may link to any cluster, channel or pool.
pub(super) const KINDS: [&str; 9] = [
    "Cluster", "Channel", "Pool", "Key", "Version", "Stream", "Disk", "Build", "Page",
];
/// Kinds that may be linked to.
pub(super) const TARGETS: [&str; 3] = ["Cluster", "Channel", "Pool"];
/// Kinds that may link.
pub(super) const SOURCES: [&str; 2] = ["Cluster", "Pool"];

/// One resource as a store keeps it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) resource: Resource,
    pub(super) reports: Vec<ReportState>,
}

/// All resources, and the time.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) registry: EntityRegistry,
    pub(super) rows: BTreeMap<ResourceId, Row>,
    pub(super) second: i64,
    created: u128,
}

/// The varying parts of a report.
#[derive(Debug, Clone)]
pub(super) struct Says {
    pub(super) adapter: &'static str,
    /// How far it is ahead of the generation of the resource.
    pub(super) ahead: i32,
    pub(super) seconds_ago: i64,
    pub(super) available: ConditionStatus,
    pub(super) finalized: Option<ConditionStatus>,
    pub(super) is_complete: bool,
}

/// The end of a request, and what it wrote.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ended {
    Created,
    Patched,
    Unchanged,
    Reported,
    Dropped,
    Deleted(Outcome),
    Completed(Outcome),
    Forced(Outcome),
    Refused(LifecycleRefusal),
    /// A rule of references or reports is broken.
    Invalid,
}

impl World {
    pub(super) fn new() -> Self {
        let linking = |config: EntityConfig| EntityConfig {
            references: TARGETS.map(|t| link(t, t, 0, 0)).into(),
            ..config
        };
        let kinds = [
            linking(kind("Cluster", &["a", "b"])),
            linking(child_kind("Pool", "Cluster", "cascade", &["a"])),
            child_kind("Disk", "Pool", "cascade", &[]),
            child_kind("Key", "Cluster", "restrict", &["a"]),
            kind("Channel", &[]),
            child_kind("Version", "Channel", "restrict", &[]),
            child_kind("Stream", "Channel", "cascade", &[]),
            child_kind("Build", "Stream", "cascade", &["a"]),
            child_kind("Page", "Stream", "cascade", &[]),
        ];
        Self {
            registry: registry(&kinds),
            rows: BTreeMap::new(),
            second: 0,
            created: 0,
        }
    }

    fn origin(&self) -> ChangeOrigin {
        origin(self.second)
    }

    pub(super) fn children(&self, owner: ResourceId) -> impl Iterator<Item = &Row> {
        let is_child = move |row: &&Row| row.resource.state.owner == Some(owner);
        self.rows.values().filter(is_child)
    }

    pub(super) fn snapshot(&self, id: ResourceId) -> ResourceSnapshot {
        let row = &self.rows[&id];
        let children = self.children(id).count();
        ResourceSnapshot {
            state: row.resource.state.clone(),
            reports: row.reports.clone(),
            children: children.min(2),
            facts: None,
        }
    }

    fn ancestors(&self, id: ResourceId) -> Vec<ResourceSnapshot> {
        let owner = |id: &ResourceId| self.rows[id].resource.state.owner;
        let owners = std::iter::successors(owner(&id), owner);
        owners.map(|id| self.snapshot(id)).collect()
    }

    fn family(&self, root: ResourceId) -> Family {
        let mut below = vec![root];
        let mut next = 0;
        while next < below.len() {
            let owned = self.children(below[next]).map(|row| row.resource.state.id);
            below.extend(owned.collect::<Vec<_>>());
            next += 1;
        }
        Family {
            ancestors: self.ancestors(root),
            root: self.snapshot(root),
            descendants: below[1..].iter().map(|&id| self.snapshot(id)).collect(),
        }
    }

    /// The input of an explanation around a resource, as a caller who sees everything gets it.
    pub(super) fn surroundings(&self, root: ResourceId) -> Surroundings {
        let mut members = vec![(root, 0)];
        let mut next = 0;
        while next < members.len() {
            let (owner, level) = members[next];
            let children = self.children(owner).map(|row| row.resource.state.id);
            members.extend(children.map(|id| (id, level + 1)).collect::<Vec<_>>());
            next += 1;
        }
        let is_member = |id: ResourceId| members.iter().any(|(member, _)| *member == id);
        let descendants = members[1..].iter().map(|&(id, level)| {
            let state = &self.rows[&id].resource.state;
            let mut conditions = state.conditions.iter();
            Descendant {
                kin: kin(state),
                level,
                updated_at: state.updated_at,
                deleted_at: state.deletion.as_ref().map(|d| d.at),
                reconciled: conditions.find(|c| c.kind == RECONCILED).cloned(),
                is_seen: true,
            }
        });
        let sources = self.rows.values().map(|row| &row.resource);
        let sources = sources.filter(|s| !s.state.is_finalizing() && !is_member(s.state.id));
        let links = sources.flat_map(|source| {
            let types = source.references.iter();
            let links = types.flat_map(|(t, links)| links.iter().map(move |link| (t, link.id)));
            links.map(move |(ref_type, target)| SourceOfReference {
                kin: kin(&source.state),
                ref_type: ref_type.clone(),
                target,
                is_inside: false,
                is_seen: true,
            })
        });
        Surroundings {
            descendants: descendants.collect(),
            referrers: links.filter(|link| is_member(link.target)).collect(),
        }
    }

    fn referrers(&self, family: &Family) -> Vec<Referrer> {
        let targets: Vec<_> = family.nodes().map(|n| n.state.id).collect();
        let active = self.rows.values().map(|row| &row.resource);
        let active = active.filter(|r| !r.state.is_finalizing());
        let links = active.flat_map(|source| {
            let links = source.references.values().flatten();
            links.map(move |link| (link.id, source))
        });
        links
            .filter(|(target, _)| targets.contains(target))
            .map(|(target, source)| Referrer {
                target,
                kind: source.state.kind.clone(),
                name: source.state.name.as_str().to_owned(),
                id: source.state.id,
                is_seen: true,
            })
            .collect()
    }

    /// Links of a kind to `targets`, checked as a request would be.
    fn links(&self, kind: &str, targets: &[ResourceId]) -> Option<References> {
        let mut requested = RequestedReferences::new();
        for id in targets {
            let kind = self.rows.get(id)?.resource.state.kind.clone();
            let reference = RequestedReference {
                id: id.to_string(),
                kind: kind.clone(),
            };
            requested.entry(kind).or_default().push(reference);
        }
        let links = reference::check(self.registry.get(kind)?, &requested).ok()?;
        let linked: BTreeSet<_> = links.values().flatten().map(|r| r.id).collect();
        let found = linked.into_iter().map(|id| {
            let state = &self.rows[&id].resource.state;
            ReferenceTarget {
                id,
                kind: state.kind.clone(),
                is_deleting: state.is_finalizing(),
            }
        });
        let found: Vec<_> = found.collect();
        reference::check_targets(&links, &found).ok()?;
        Some(links)
    }

    pub(super) fn create(
        &mut self,
        kind: &str,
        owner: Option<ResourceId>,
        targets: &[ResourceId],
    ) -> Ended {
        if let Some(owner) = owner.map(|id| &self.rows[&id].resource.state)
            && owner.is_finalizing()
        {
            return Ended::Refused(lifecycle::marked_for_deletion(owner));
        }
        let Some(references) = self.links(kind, targets) else {
            return Ended::Invalid;
        };
        self.created += 1;
        let mut resource = resource(&self.registry, kind, self.created, None);
        resource.state.owner = owner;
        resource.references = references;
        let row = Row {
            resource,
            reports: Vec::new(),
        };
        self.rows.insert(id(self.created), row);
        Ended::Created
    }

    pub(super) fn patch(
        &mut self,
        id: ResourceId,
        spec: Option<u8>,
        targets: Option<&[ResourceId]>,
    ) -> Ended {
        let resource = &self.rows[&id].resource;
        let kind = &resource.state.kind;
        let references = match targets.map(|targets| self.links(kind, targets)) {
            Some(None) => return Ended::Invalid,
            Some(links) => links,
            None => None,
        };
        let spec = spec.map(|n| [("n".to_owned(), n.into())].into_iter().collect());
        let patch = Patch {
            spec,
            references,
            ..Patch::default()
        };
        let (snapshot, entity) = (self.snapshot(id), self.registry.get(kind));
        match lifecycle::patch(resource, Some(&snapshot), entity, &patch, &self.origin()) {
            Err(refusal) => Ended::Refused(refusal),
            Ok(None) => Ended::Unchanged,
            Ok(Some((changed, _))) => {
                self.rows.get_mut(&id).expect("it is there").resource = changed;
                Ended::Patched
            }
        }
    }

    pub(super) fn report(&mut self, id: ResourceId, says: &Says) -> Ended {
        let snapshot = self.snapshot(id);
        let mut report = self.incoming(&snapshot, says);
        let entity = self.registry.get(&snapshot.state.kind);
        let decision = lifecycle::report(&snapshot, entity, &mut report);
        match decision.outcome {
            ReportOutcome::Rejected(_) => return Ended::Invalid,
            ReportOutcome::Discarded(_) => return Ended::Dropped,
            ReportOutcome::Repeated | ReportOutcome::SameTime => {}
            ReportOutcome::Accepted => {
                let report = report.state;
                let row = self.rows.get_mut(&id).expect("it is there");
                row.reports.retain(|r| r.adapter != report.adapter);
                row.reports.push(report);
                row.resource.state.conditions = decision.conditions;
            }
        }
        if !decision.completes {
            return Ended::Reported;
        }
        let ancestors = self.ancestors(id);
        let outcome = lifecycle::remove(&self.snapshot(id), &ancestors, &self.registry);
        self.carry_out(&outcome);
        Ended::Completed(outcome)
    }

    fn incoming(&self, snapshot: &ResourceSnapshot, says: &Says) -> Report {
        let generation = snapshot.state.generation + says.ahead;
        let second = self.second - says.seconds_ago;
        let mut report = report(says.adapter, generation, second, says.available);
        if let Some(status) = says.finalized {
            report = saying_finalized(report, status);
        }
        if !says.is_complete {
            report.state.conditions.remove(1);
        }
        report
    }

    pub(super) fn delete(&mut self, id: ResourceId) -> Ended {
        let family = self.family(id);
        let referrers = self.referrers(&family);
        match lifecycle::delete(&family, &referrers, &self.registry, &self.origin()) {
            Err(refusal) => Ended::Refused(refusal),
            Ok((state, outcome)) => {
                let is_saved = outcome.saved.contains(&state);
                let is_unchanged = outcome.removed.is_empty() && state == family.root.state;
                let is_gone = outcome.removed.contains(&id);
                assert!(
                    is_saved || is_gone || is_unchanged,
                    "the returned state is the stored one"
                );
                self.carry_out(&outcome);
                Ended::Deleted(outcome)
            }
        }
    }

    pub(super) fn force_delete(&mut self, id: ResourceId) -> Ended {
        let family = self.family(id);
        match lifecycle::force_delete(&family, "stuck", &self.registry) {
            Err(refusal) => Ended::Refused(refusal),
            Ok(outcome) => {
                self.carry_out(&outcome);
                Ended::Forced(outcome)
            }
        }
    }

    /// Writes an outcome as a database with foreign keys would: an owner cannot be removed before its children, nor a
    /// target before its active referrers.
    fn carry_out(&mut self, outcome: &Outcome) {
        for state in &outcome.saved {
            let row = self.rows.get_mut(&state.id).expect("what is saved exists");
            row.resource.state = state.clone();
        }
        for id in &outcome.released {
            let row = self.rows.get_mut(id).expect("what is released exists");
            row.resource.references.clear();
        }
        for &id in &outcome.removed {
            assert_eq!(self.children(id).count(), 0, "{id} has children left");
            let links = self.rows.values().flat_map(|row| &row.resource.references);
            let is_linked = links.flat_map(|(_, links)| links).any(|link| link.id == id);
            assert!(!is_linked, "{id} is linked to");
            assert!(self.rows.remove(&id).is_some(), "{id} is removed twice");
        }
    }

    /// An observation that is always the newest.
    pub(super) fn finalize(&mut self, id: ResourceId, adapter: &'static str) -> Ended {
        self.second += 1;
        let says = Says {
            adapter,
            ahead: 0,
            seconds_ago: 0,
            available: ConditionStatus::False,
            finalized: Some(ConditionStatus::True),
            is_complete: true,
        };
        self.report(id, &says)
    }
}

fn kin(state: &ResourceState) -> Kin {
    Kin {
        kind: state.kind.clone(),
        name: state.name.as_str().to_owned(),
        id: state.id,
        owner: state.owner,
    }
}
