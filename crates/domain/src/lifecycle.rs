//! The life of a resource: created, changed, reported on, deleted, removed.
//!
//! ```text
//!            PATCH, reports          reports
//!              ┌───┐                 ┌───┐
//! POST ─▶ active ──┴── DELETE ─▶ finalizing ──┬─▶ gone   all adapters finalized, no children left
//!                                             └─▶ gone   force-delete
//! ```
//!
//! Every function takes the current state and returns the next one: the caller holds the locks and carries the result
//! out in one transaction. The removal of a child propagates upwards: a finalizing parent that waited for nothing else
//! is removed with its last child (`docs/concepts/deletion.md`).

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::audit::{Action, Change, ChangeOrigin};
use super::computed_conditions::Evidence;
use super::condition_rules::{Data, Facts, Failure};
use super::report::AVAILABLE;
use super::{
    Condition, ConditionStatus, DeletePolicy, Deletion, Entity, EntityRegistry, InvalidReport,
    Labels, References, Report, ReportOutcome, ReportState, Resource, ResourceId, ResourceName,
    ResourceSnapshot, ResourceState, Tenancy,
};

/// An operation that the state of a resource does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct LifecycleRefusal {
    pub kind: String,
    pub id: ResourceId,
    pub reason: RefusalReason,
}

/// Why the state of a resource does not allow an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusalReason {
    /// It is finalizing and can no longer be changed.
    MarkedForDeletion,
    /// It has active children of a kind that must be deleted first.
    ActiveChildren { child_kind: String },
    Referenced {
        name: String,
        /// The referring resources, in order.
        by: String,
    },
    /// It is active: only finalizing resources can be removed by force.
    NotFinalizing,
    /// Its generation has reached the largest number that clients can read.
    GenerationsExhausted,
}

impl LifecycleRefusal {
    fn of(state: &ResourceState, reason: RefusalReason) -> Self {
        Self {
            kind: state.kind.clone(),
            id: state.id,
            reason,
        }
    }
}

impl fmt::Display for LifecycleRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, id, reason } = self;
        match reason {
            RefusalReason::MarkedForDeletion => write!(f, "{kind} '{id}' is marked for deletion"),
            RefusalReason::ActiveChildren { child_kind } => {
                write!(
                    f,
                    "Cannot delete {kind} '{id}': active {child_kind}(s) exist"
                )
            }
            RefusalReason::Referenced { name, by } => write!(
                f,
                "cannot delete {kind} \"{name}\": referenced by {by} — remove the reference(s) before deleting"
            ),
            RefusalReason::NotFinalizing => write!(f, "{kind} '{id}' is not in Finalizing state"),
            RefusalReason::GenerationsExhausted => write!(
                f,
                "{kind} '{id}' has reached the last generation and can no longer be changed"
            ),
        }
    }
}

/// The checked parts of a new resource.
#[derive(Debug, Clone)]
pub struct Draft {
    pub id: ResourceId,
    pub name: ResourceName,
    pub owner: Option<ResourceId>,
    pub spec: Map<String, Value>,
    pub labels: Labels,
    pub references: References,
    pub tenancy: Tenancy,
}

/// Makes a new resource at generation 1. Kinds with required adapters start not reconciled. Also returns the rules
/// that failed.
pub fn create(entity: &Entity, draft: Draft, origin: &ChangeOrigin) -> (Resource, Vec<Failure>) {
    let mut resource = Resource {
        state: ResourceState {
            id: draft.id,
            kind: entity.kind.clone(),
            name: draft.name,
            owner: draft.owner,
            generation: 1,
            revision: 1,
            updated_at: origin.at,
            deletion: None,
            conditions: Vec::new(),
        },
        spec: draft.spec,
        labels: draft.labels,
        references: draft.references,
        tenancy: draft.tenancy,
        created_at: origin.at,
        created_by: origin.actor.clone(),
        updated_by: origin.actor.clone(),
    };
    if !entity.is_reconcilable() {
        return (resource, Vec::new());
    }
    let rules = entity.rules.as_ref();
    let facts = rules.map(|_| Facts::of(&resource, BTreeMap::new()));
    let evidence = Evidence {
        facts: facts.as_ref(),
        ..Evidence::of(Some(entity))
    };
    let failures = evidence.aggregate_and_derive(&mut resource.state);
    (resource, failures)
}

/// A requested change; unset parts stay as they are, set ones are replaced entirely.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Patch {
    pub spec: Option<Map<String, Value>>,
    pub labels: Option<Labels>,
    /// Sending references counts as a change, even if they are the same.
    pub references: Option<References>,
}

/// Changes the desired state of an active resource. `snapshot` is unset for a kind without required adapters and
/// rules.
///
/// `None` means that nothing differs: nothing is to be written. Otherwise the generation is one higher, whatever the
/// number of changed parts. Also returns the rules that failed.
pub fn patch(
    resource: &Resource,
    snapshot: Option<&ResourceSnapshot>,
    entity: Option<&Entity>,
    patch: &Patch,
    origin: &ChangeOrigin,
) -> Result<Option<(Resource, Vec<Failure>)>, LifecycleRefusal> {
    let state = &resource.state;
    if state.is_finalizing() {
        return Err(marked_for_deletion(state));
    }
    let differs = patch.spec.as_ref().is_some_and(|s| *s != resource.spec)
        || patch.labels.as_ref().is_some_and(|l| *l != resource.labels)
        || patch.references.is_some();
    if !differs {
        return Ok(None);
    }
    let mut changed = resource.clone();
    changed.state.generation = next_generation(state)?;
    changed.state.revision += 1;
    changed.state.updated_at = next_moment(state, origin);
    changed.updated_by = origin.actor.clone();
    if let Some(spec) = &patch.spec {
        changed.spec = spec.clone();
    }
    if let Some(labels) = &patch.labels {
        changed.labels = labels.clone();
    }
    if let Some(references) = &patch.references {
        changed.references = references.clone();
    }
    let data = snapshot.and_then(|s| Some(s.facts.as_ref()?.data.clone()));
    let facts = data.map(|data| Facts::of(&changed, data));
    let evidence = Evidence {
        reports: snapshot.map_or(&[], |s| &s.reports),
        facts: facts.as_ref(),
        ..Evidence::of(entity)
    };
    let failures = if evidence.required.is_empty() {
        evidence.derive(&mut changed.state, &resource.state.conditions)
    } else {
        evidence.aggregate_and_derive(&mut changed.state)
    };
    Ok(Some((changed, failures)))
}

/// The refusal of any change to a finalizing resource.
pub fn marked_for_deletion(state: &ResourceState) -> LifecycleRefusal {
    LifecycleRefusal::of(state, RefusalReason::MarkedForDeletion)
}

/// The effect of an incoming report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportDecision {
    pub outcome: ReportOutcome,
    /// The resource's conditions from now on, if the report is accepted.
    pub conditions: Vec<Condition>,
    /// Whether it completes a deletion: the resource must be removed instead, by [`remove`].
    pub completes: bool,
    /// The rules that failed. The report is accepted all the same.
    pub failures: Vec<Failure>,
}

/// Decides about a report. An accepted report takes over the times of the adapter's stored one.
pub fn report(
    snapshot: &ResourceSnapshot,
    entity: Option<&Entity>,
    report: &mut Report,
) -> ReportDecision {
    let (state, reports) = (&snapshot.state, &snapshot.reports);
    let existing = reports.iter().find(|r| r.adapter == report.state.adapter);
    let mut outcome = report.state.judge(state.generation, existing);
    let is_unfinalized = existing.is_some_and(|existing| !existing.is_finalized());
    let finalizes = state.deletion.is_some() && report.state.is_finalized() && is_unfinalized;
    if outcome == ReportOutcome::SameTime && finalizes {
        // The deletion waits for this report, and an adapter that is done sends no later one.
        outcome = ReportOutcome::Accepted;
    }
    let mut decision = ReportDecision {
        outcome,
        conditions: Vec::new(),
        completes: false,
        failures: Vec::new(),
    };
    match decision.outcome {
        ReportOutcome::Discarded(_) | ReportOutcome::Rejected(_) => {}
        ReportOutcome::Repeated | ReportOutcome::SameTime => {
            let required = Evidence::of(entity).required;
            let is_done = is_done(state, required, reports, snapshot.children);
            decision.completes = report.state.is_finalized() && is_done;
        }
        ReportOutcome::Accepted if existing.is_none() && reports.len() >= Report::ADAPTERS_MAX => {
            decision.outcome = ReportOutcome::Rejected(InvalidReport::TooManyAdapters);
        }
        ReportOutcome::Accepted => {
            report.state.follow(existing);
            decision.accept(snapshot, entity, report);
        }
    }
    decision
}

impl ReportDecision {
    fn accept(&mut self, snapshot: &ResourceSnapshot, entity: Option<&Entity>, report: &Report) {
        let mut reports = snapshot.reports.clone();
        reports.retain(|r| r.adapter != report.state.adapter);
        reports.push(report.state.clone());
        let mut state = snapshot.state.clone();
        let mut evidence = Evidence {
            reports: &reports,
            has_children: snapshot.children > 0,
            ..Evidence::of(entity)
        };
        let is_done = is_done(&state, evidence.required, &reports, snapshot.children);
        self.completes = report.state.is_finalized() && is_done;
        // A removed resource derives no conditions.
        evidence.rules = evidence.rules.filter(|_| !self.completes);
        let facts = snapshot
            .facts
            .as_deref()
            .filter(|_| evidence.rules.is_some());
        let facts = facts.map(|facts| {
            let mut facts = facts.clone();
            let data = Data::of(report.data.clone());
            facts.data.insert(report.state.adapter.clone(), data);
            facts
        });
        evidence.facts = facts.as_ref();
        self.failures = if report.state.status_of(AVAILABLE) == Some(ConditionStatus::Unknown) {
            evidence.derive(&mut state, &snapshot.state.conditions)
        } else {
            evidence.aggregate_and_derive(&mut state)
        };
        self.conditions = state.conditions;
    }
}

/// A resource with its owners and its descendants, all locked.
#[derive(Debug, Clone, PartialEq)]
pub struct Family {
    /// The owner, its owner and so on.
    pub ancestors: Vec<ResourceSnapshot>,
    pub root: ResourceSnapshot,
    /// All descendants, owners before their children.
    pub descendants: Vec<ResourceSnapshot>,
}

impl Family {
    /// The resource and its descendants, owners first.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = &ResourceSnapshot> {
        std::iter::once(&self.root).chain(&self.descendants)
    }
}

/// An active resource that references another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Referrer {
    pub target: ResourceId,
    pub kind: String,
    pub name: String,
    pub id: ResourceId,
    /// Whether the caller sees it: an unseen one is not named.
    pub is_seen: bool,
}

/// What is to be written, in one transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows to bring to this state.
    pub saved: Vec<ResourceState>,
    /// Rows to remove, children before parents.
    pub removed: Vec<ResourceId>,
    /// Rows that became finalizing. Their references are dropped immediately, so that the targets can be deleted.
    pub released: Vec<ResourceId>,
    /// The entries of the audit trail.
    pub changes: Vec<Change>,
    /// The rules that failed; they stop nothing.
    pub failures: Vec<Failure>,
}

/// Deletes a resource and, by the policies of the kinds, its descendants.
///
/// Resources that wait for nothing are removed immediately. The others become finalizing. A resource that is finalizing
/// already keeps its generation, time and author, and is removed if it is done. Returns the resource as it is (or was,
/// when removed) and what to write.
///
/// # Errors
///
/// Active children of a `restrict` kind, or active referrers from outside the family, anywhere in it: nothing is
/// deleted then.
pub fn delete(
    family: &Family,
    referrers: &[Referrer],
    registry: &EntityRegistry,
    origin: &ChangeOrigin,
) -> Result<(ResourceState, Outcome), LifecycleRefusal> {
    let children = children_of(family);
    let referrers = outsiders(family, referrers);
    for node in family.nodes() {
        refuse_restricting_children(node, &children, registry)?;
    }
    let mut outcome = Outcome::default();
    let mut marked = Vec::with_capacity(1 + family.descendants.len());
    for node in family.nodes() {
        marked.push(outcome.mark(node, &children, &referrers, origin)?);
    }
    // Children come before their owner, which needs the number of removed ones.
    let mut lost: HashMap<ResourceId, usize> = HashMap::new();
    let mut finish = |node: &ResourceSnapshot, mut snapshot: ResourceSnapshot| {
        let lost_here = lost.get(&snapshot.state.id).copied().unwrap_or(0);
        snapshot.children -= lost_here;
        let must_save = lost_here > 0 || !node.state.is_finalizing();
        let is_gone = outcome.remove_or_save(&mut snapshot, registry, must_save);
        if let (true, Some(owner)) = (is_gone, snapshot.state.owner) {
            *lost.entry(owner).or_default() += 1;
        }
        (snapshot.state, is_gone)
    };
    for (node, snapshot) in family.descendants.iter().zip(marked.drain(1..)).rev() {
        finish(node, snapshot);
    }
    let (state, is_gone) = finish(&family.root, marked.remove(0));
    if is_gone {
        outcome.propagate_removal(&family.ancestors, registry);
    }
    Ok((state, outcome))
}

/// Removes a resource whose deletion is complete, and every owner that was only waiting for it. `snapshot` has the
/// report that completes it.
pub fn remove(
    snapshot: &ResourceSnapshot,
    ancestors: &[ResourceSnapshot],
    registry: &EntityRegistry,
) -> Outcome {
    let mut outcome = Outcome::default();
    outcome.remove(&snapshot.state, Action::HardDelete, None);
    outcome.propagate_removal(ancestors, registry);
    outcome
}

/// Removes a finalizing resource and all its descendants, whatever their state.
pub fn force_delete(
    family: &Family,
    reason: &str,
    registry: &EntityRegistry,
) -> Result<Outcome, LifecycleRefusal> {
    let root = &family.root.state;
    if !root.is_finalizing() {
        return Err(LifecycleRefusal::of(root, RefusalReason::NotFinalizing));
    }
    let mut outcome = Outcome::default();
    for node in family.nodes().rev() {
        outcome.remove(&node.state, Action::ForceDelete, Some(reason));
    }
    outcome.propagate_removal(&family.ancestors, registry);
    Ok(outcome)
}

impl Outcome {
    /// Makes an active resource finalizing; a finalizing one stays as it is.
    fn mark(
        &mut self,
        node: &ResourceSnapshot,
        children: &Children<'_>,
        referrers: &[&Referrer],
        origin: &ChangeOrigin,
    ) -> Result<ResourceSnapshot, LifecycleRefusal> {
        let mut state = node.state.clone();
        if !state.is_finalizing() {
            refuse_referrers(&state, referrers)?;
            let before = state.generation;
            state.generation = next_generation(&state)?;
            state.updated_at = next_moment(&state, origin);
            state.deletion = Some(Deletion {
                at: state.updated_at,
                by: origin.actor.clone(),
            });
            self.released.push(state.id);
            let change = Change::of(Action::Delete, Some(before), &state);
            self.changes.push(change);
        }
        Ok(ResourceSnapshot {
            children: children.get(&state.id).map_or(0, Vec::len),
            reports: node.reports.clone(),
            facts: node.facts.clone(),
            state,
        })
    }

    /// Removes a resource that is done, or updates its conditions; true if it is removed.
    fn remove_or_save(
        &mut self,
        snapshot: &mut ResourceSnapshot,
        registry: &EntityRegistry,
        must_save: bool,
    ) -> bool {
        let ResourceSnapshot {
            state,
            reports,
            children,
            facts,
        } = snapshot;
        let evidence = Evidence {
            reports,
            has_children: *children > 0,
            facts: facts.as_deref(),
            ..Evidence::of(registry.get(&state.kind))
        };
        if is_done(state, evidence.required, reports, *children) {
            self.remove(state, Action::HardDelete, None);
            return true;
        }
        if must_save {
            self.failures.extend(evidence.aggregate_and_derive(state));
            state.revision += 1;
            self.saved.push(state.clone());
        }
        false
    }

    /// One child of the first ancestor was removed: removes or saves this ancestor, then its owner if it was removed.
    fn propagate_removal(&mut self, ancestors: &[ResourceSnapshot], registry: &EntityRegistry) {
        for ancestor in ancestors {
            if !ancestor.state.is_finalizing() {
                return;
            }
            let mut ancestor = ancestor.clone();
            ancestor.children = ancestor.children.saturating_sub(1);
            // Saved even without a visible change: a concurrent report that was judged with the child must notice its
            // removal.
            if !self.remove_or_save(&mut ancestor, registry, true) {
                return;
            }
        }
    }

    fn remove(&mut self, state: &ResourceState, action: Action, reason: Option<&str>) {
        self.removed.push(state.id);
        self.changes.push(Change::removal(action, state, reason));
    }
}

/// Whether a finalizing resource waits for nothing: it has no children, and every required adapter reports
/// `Finalized=True` at the current generation. The raw condition counts, whatever `Available` is.
fn is_done(
    state: &ResourceState,
    required: &[String],
    reports: &[ReportState],
    children: usize,
) -> bool {
    let is_finalized = |adapter: &String| {
        reports.iter().any(|r| {
            r.adapter == *adapter && r.observed_generation == state.generation && r.is_finalized()
        })
    };
    state.is_finalizing() && children == 0 && required.iter().all(is_finalized)
}

fn next_generation(state: &ResourceState) -> Result<i32, LifecycleRefusal> {
    let exhausted = || LifecycleRefusal::of(state, RefusalReason::GenerationsExhausted);
    state.generation.checked_add(1).ok_or_else(exhausted)
}

/// The time of a change: now, but not before the last change. Clocks are set back, and differ between the instances of
/// a service; the audit trail has the time of each of them.
fn next_moment(state: &ResourceState, origin: &ChangeOrigin) -> DateTime<Utc> {
    origin.at.max(state.updated_at)
}

/// The children of each resource of a family.
type Children<'a> = HashMap<ResourceId, Vec<&'a ResourceState>>;

fn children_of(family: &Family) -> Children<'_> {
    let mut children = Children::new();
    for node in &family.descendants {
        if let Some(owner) = node.state.owner {
            children.entry(owner).or_default().push(&node.state);
        }
    }
    children
}

fn refuse_restricting_children(
    node: &ResourceSnapshot,
    children: &Children<'_>,
    registry: &EntityRegistry,
) -> Result<(), LifecycleRefusal> {
    let ResourceState { id, kind, .. } = &node.state;
    let owned = children.get(id).map_or(&[][..], Vec::as_slice);
    let restricting = registry
        .children_of(kind)
        .filter(|child| child.on_parent_delete == DeletePolicy::Restrict)
        .find(|child| {
            owned
                .iter()
                .any(|c| c.kind == child.kind && !c.is_finalizing())
        });
    match restricting {
        None => Ok(()),
        Some(child) => {
            let child_kind = child.kind.clone();
            let reason = RefusalReason::ActiveChildren { child_kind };
            Err(LifecycleRefusal::of(&node.state, reason))
        }
    }
}

/// The referrers from outside a family. References from inside do not prevent its deletion: they are deleted with it.
fn outsiders<'a>(family: &Family, referrers: &'a [Referrer]) -> Vec<&'a Referrer> {
    let inside: HashSet<_> = family.nodes().map(|n| n.state.id).collect();
    let mut outside: Vec<_> = referrers
        .iter()
        .filter(|r| !inside.contains(&r.id))
        .collect();
    outside.sort();
    outside.dedup();
    outside
}

fn refuse_referrers(
    state: &ResourceState,
    referrers: &[&Referrer],
) -> Result<(), LifecycleRefusal> {
    let of_it = || referrers.iter().filter(|r| r.target == state.id);
    let seen = of_it().filter(|r| r.is_seen);
    let mut by: Vec<_> = seen.map(|r| format!("{} \"{}\"", r.kind, r.name)).collect();
    if of_it().any(|r| !r.is_seen) {
        by.push("resources of other tenants".to_owned());
    }
    if by.is_empty() {
        return Ok(());
    }
    let reason = RefusalReason::Referenced {
        name: state.name.as_str().to_owned(),
        by: by.join(", "),
    };
    Err(LifecycleRefusal::of(state, reason))
}
