//! Create, read and patch one resource.

use std::sync::Arc;

use uuid::Uuid;

use super::command::{Applied, Author, CommandResult};
use super::effects::Effects;
use super::{Error, ResourcePath, Service, UNLOCKED_ATTEMPTS_MAX};
use hyperfleet_domain::audit::{Action, Change, ChangeOrigin};
use hyperfleet_domain::condition_rules::Failure;
use hyperfleet_domain::lifecycle::{self, Draft, LifecycleRefusal, Outcome, Patch, RefusalReason};
use hyperfleet_domain::patch::{RequestedParts, RequestedPatch};
use hyperfleet_domain::precondition::{PreconditionOutcome, Preconditions};
use hyperfleet_domain::reference::{self, ReferenceTarget};
use hyperfleet_domain::tenancy::TenantScope;
use hyperfleet_domain::{
    Entity, References, RequestedResource, Resource, ResourceId, ResourceState, StoredResource,
    Violations,
};
use hyperfleet_storage::{Created, ResourceScope, RowAccess, Tx};

/// A patch in progress.
pub(super) struct Patching<'a> {
    pub(super) path: ResourcePath<'a>,
    pub(super) scope: ResourceScope<'a>,
    pub(super) patch: &'a RequestedPatch,
    pub(super) conditions: &'a Preconditions,
    pub(super) origin: &'a ChangeOrigin,
}

/// A resource before and after an executed patch.
struct PatchedResource {
    before: Resource,
    /// With the rules that failed; unset if the patch changes nothing.
    after: Option<(Resource, Vec<Failure>)>,
}

/// A new resource whose row is not written yet.
pub(super) struct Creation<'a> {
    /// Shared with its answer: a copy of a spec has dozens of allocations.
    resource: Arc<Resource>,
    failures: Vec<Failure>,
    owner: Option<(&'a Entity, ResourceId)>,
    tenants: &'a TenantScope,
    origin: &'a ChangeOrigin,
}

impl Service {
    pub async fn get(&self, path: ResourcePath<'_>) -> Result<StoredResource, Error> {
        if let Some(scope) = path.scope()
            && let Some(resource) = self.store.find_resource(scope).await?
        {
            return Ok(resource);
        }
        Err(self.missing(path).await)
    }

    /// Creates a resource by one statement. Returns `None` if it has references, whose targets must be locked first, or
    /// if the row of its parent is held.
    pub(super) async fn attempt_create(
        &self,
        creation: &Creation<'_>,
    ) -> Result<Option<Applied>, Error> {
        if !creation.resource.references.is_empty() {
            return Ok(None);
        }
        match creation.insert(&mut self.store.row_access()).await? {
            Created::ParentBusy => Ok(None),
            created => creation.applied(created).map(Some),
        }
    }

    /// Checks what can be checked of a new resource before its row is written.
    pub(super) async fn prepare<'a>(
        &self,
        entity: &'a Entity,
        parent: Option<(&'a Entity, &str)>,
        new: RequestedResource,
        Author { tenant, origin }: Author<'a>,
    ) -> Result<Creation<'a>, Error> {
        let tenants = tenant.tenants();
        let owner = match parent {
            None => {
                self.require_root(entity)?;
                None
            }
            Some((parent, id)) => Some((
                parent,
                ResourceId::parse(id).ok_or_else(|| Error::not_found(&parent.kind, id))?,
            )),
        };
        let references = match reference::check(entity, &new.references) {
            Ok(references) => references,
            // An unsuitable parent takes precedence over violations of the body.
            Err(violation) => {
                self.check_parent(tenants, owner).await?;
                return Err(violation.into());
            }
        };
        let draft = Draft {
            id: Uuid::now_v7().into(),
            name: new.name,
            owner: owner.map(|(_, id)| id),
            spec: new.spec,
            labels: new.labels,
            references,
            tenancy: tenant.tenancy().clone(),
        };
        let (resource, failures) = lifecycle::create(entity, draft, origin);
        Ok(Creation {
            resource: Arc::new(resource),
            failures,
            owner,
            tenants,
            origin,
        })
    }

    /// Refuses a kind whose resources have a parent.
    pub(crate) fn require_root(&self, entity: &Entity) -> Result<(), Error> {
        let parent = entity.parent.as_deref().and_then(|p| self.registry.get(p));
        match parent {
            None => Ok(()),
            Some(parent) => Err(Error::ChildKind {
                kind: entity.kind.clone(),
                plural: entity.plural.clone(),
                parent_plural: parent.plural.clone(),
            }),
        }
    }

    async fn check_parent(
        &self,
        tenants: &TenantScope,
        owner: Option<(&Entity, ResourceId)>,
    ) -> Result<(), Error> {
        let Some((parent, id)) = owner else {
            return Ok(());
        };
        let scope = ResourceScope {
            tenants,
            kind: Some(&parent.kind),
            owner: None,
            id,
        };
        let mut rows = self.store.row_access();
        let found = rows.find_snapshot(scope, &[]).await?;
        match found {
            None => Err(Error::not_found(&parent.kind, &id.to_string())),
            Some(snapshot) if snapshot.state.is_finalizing() => {
                Err(lifecycle::marked_for_deletion(&snapshot.state).into())
            }
            Some(_) => Ok(()),
        }
    }

    /// Creates a resource in a transaction. Its parent and the targets of its references are locked first.
    pub(super) async fn create_in(
        &self,
        tx: &mut Tx,
        creation: &Creation<'_>,
    ) -> Result<Applied, Error> {
        let created = self.insert_in(tx, creation).await?;
        creation.applied(created)
    }

    async fn insert_in(&self, tx: &mut Tx, creation: &Creation<'_>) -> Result<Created, Error> {
        let Creation {
            resource,
            owner,
            tenants,
            ..
        } = creation;
        if resource.references.is_empty() {
            if let Some((_, id)) = owner {
                tx.db().lock_parent(tenants, *id).await?;
            }
            return creation.insert(&mut RowAccess::Transaction(tx.db())).await;
        }
        let position = owner.map(|(parent, id)| (self.registry.depth(&parent.kind), id));
        let locked = self
            .lock_targets(tx, tenants, &resource.references, position)
            .await?;
        if let Err(violation) = reference::check_targets(&resource.references, &locked) {
            let Some((parent, id)) = *owner else {
                return Err(violation.into());
            };
            // An error of the parent takes precedence.
            let parent = locked.iter().find(|t| t.id == id && t.kind == parent.kind);
            return match parent {
                None => Ok(Created::NoParent),
                Some(parent) if parent.is_deleting => Ok(Created::ParentFinalizing),
                Some(_) => Err(violation.into()),
            };
        }
        let created = creation
            .insert(&mut RowAccess::Transaction(tx.db()))
            .await?;
        if created == Created::Yes {
            tx.db()
                .replace_references(resource.state.id, &resource.references)
                .await?;
        }
        Ok(created)
    }

    /// Locks the targets of references, and one more resource with them, in the order of every lock: owners' kinds
    /// first, then by id. Returns those that exist.
    async fn lock_targets(
        &self,
        tx: &mut Tx,
        tenants: &TenantScope,
        references: &References,
        also: Option<(usize, ResourceId)>,
    ) -> Result<Vec<ReferenceTarget>, Error> {
        let links = references.values().flatten();
        let mut order: Vec<_> = links
            .map(|r| (self.registry.depth(&r.kind), r.id))
            .collect();
        order.extend(also);
        order.sort_unstable();
        order.dedup();
        let ids: Vec<_> = order.into_iter().map(|(_, id)| id).collect();
        Ok(tx.db().lock_targets(tenants, &ids).await?)
    }

    /// Changes the desired state of a resource by a read and a guarded statement. Returns `None` if the patch changes
    /// references, whose targets must be locked first, or if others change the resource all the time.
    pub(super) async fn attempt_patch(
        &self,
        patching: &Patching<'_>,
    ) -> Result<Option<Applied>, Error> {
        if patching.patch.touches_references() {
            return Ok(None);
        }
        for _ in 0..UNLOCKED_ATTEMPTS_MAX {
            let mut rows = self.store.row_access();
            if let Some(patched) = self.patch_row(&mut rows, patching).await? {
                return Ok(Some(patched.applied()));
            }
        }
        Ok(None)
    }

    /// Changes the desired state of a resource that is locked, with the targets of its new references.
    pub(super) async fn patch_in(
        &self,
        tx: &mut Tx,
        patching: &Patching<'_>,
    ) -> Result<Applied, Error> {
        let scope = patching.scope;
        let touches_references = patching.patch.touches_references();
        let targets = if touches_references {
            self.lock_with_targets(tx, patching).await?
        } else {
            tx.db().lock_resource(scope.tenants, scope.id).await?;
            Vec::new()
        };
        let mut rows = RowAccess::Transaction(tx.db());
        let patched = self.patch_row(&mut rows, patching).await?;
        let patched = patched.ok_or_else(still_changing)?;
        if touches_references && let Some((after, _)) = &patched.after {
            if !reference::are_protected(&patched.before.references, &after.references, &targets) {
                return Err(references_changed());
            }
            tx.db()
                .replace_references(scope.id, &after.references)
                .await?;
        }
        Ok(patched.applied())
    }

    /// Locks a resource with the targets of the references that a patch gives it, and returns the targets.
    async fn lock_with_targets(
        &self,
        tx: &mut Tx,
        patching: &Patching<'_>,
    ) -> Result<Vec<ReferenceTarget>, Error> {
        let (path, scope) = (patching.path, patching.scope);
        let mut access = RowAccess::Transaction(tx.db());
        let Some(found) = access.find_with_reports(scope, &[]).await? else {
            return Err(path.missing(self, &mut tx.db()).await);
        };
        let resource = found.resource;
        require(patching.conditions, &resource.state)?;
        if resource.state.is_finalizing() {
            return Err(lifecycle::marked_for_deletion(&resource.state).into());
        }
        let kind = &resource.state.kind;
        let entity = self.entity(kind)?;
        let parts = patching.patch.parts(&resource, &self.registry)?;
        let references = match &parts.references {
            Some(requested) => reference::check(entity, requested)?,
            None => References::new(),
        };
        let also = (self.registry.depth(kind), scope.id);
        let targets = self
            .lock_targets(tx, scope.tenants, &references, Some(also))
            .await?;
        reference::check_targets(&references, &targets)?;
        Ok(targets)
    }

    /// Returns `None` if the row changed between reading and saving it. References are replaced separately.
    async fn patch_row(
        &self,
        access: &mut RowAccess<'_>,
        patching: &Patching<'_>,
    ) -> Result<Option<PatchedResource>, Error> {
        let Patching {
            path,
            scope,
            patch: change,
            conditions,
            origin,
        } = *patching;
        let with_rules = self.registry.kinds_with_rules();
        let Some(found) = access.find_with_reports(scope, with_rules).await? else {
            return Err(match access {
                RowAccess::Transaction(db) => path.missing(self, db).await,
                RowAccess::Shared(_) => self.missing(path).await,
            });
        };
        let resource = found.resource;
        require(conditions, &resource.state)?;
        let kind = &resource.state.kind;
        let entity = self.registry.get(kind);
        if change.is_computed() && resource.state.is_finalizing() {
            return Err(lifecycle::marked_for_deletion(&resource.state).into());
        }
        let parts = change.parts(&resource, &self.registry)?;
        if scope.kind.is_none() || change.is_computed() {
            self.check_spec(kind, &parts)?;
        }
        let checked = self.checked(kind, &parts)?;
        let has_conditions = entity.is_some_and(|e| e.is_reconcilable() || e.rules.is_some());
        let snapshot = has_conditions.then_some(&found.snapshot);
        let after = lifecycle::patch(&resource, snapshot, entity, &checked, origin)?;
        let before = resource;
        if let Some((patched, _)) = &after
            && !access.save_patched(&before, patched, origin).await?
        {
            return Ok(None);
        }
        Ok(Some(PatchedResource { before, after }))
    }

    /// Checks a spec that could not be checked when the request was read: the path did not name the kind, or the spec
    /// is computed.
    fn check_spec(&self, kind: &str, change: &RequestedParts) -> Result<(), Error> {
        let mut violations = Violations::default();
        if let Some((entity, spec)) = self.registry.get(kind).zip(change.spec.as_ref()) {
            entity.check_spec(spec, &mut violations);
        }
        if violations.is_empty() {
            Ok(())
        } else {
            Err(Error::Invalid(violations))
        }
    }

    fn checked(&self, kind: &str, change: &RequestedParts) -> Result<Patch, Error> {
        let references = match &change.references {
            Some(requested) => Some(reference::check(self.entity(kind)?, requested)?),
            None => None,
        };
        Ok(Patch {
            spec: change.spec.clone(),
            labels: change.labels.clone(),
            references,
        })
    }
}

impl Creation<'_> {
    async fn insert(&self, access: &mut RowAccess<'_>) -> Result<Created, Error> {
        let parent_kind = self.owner.map(|(parent, _)| parent.kind.as_str());
        let created = access
            .insert_resource(self.tenants, &self.resource, parent_kind, self.origin)
            .await;
        created.map_err(|error| match error {
            hyperfleet_storage::Error::Duplicate { .. } => Error::NameTaken {
                kind: self.resource.state.kind.clone(),
            },
            other => other.into(),
        })
    }

    /// The created resource, or why its row was not written.
    fn applied(&self, created: Created) -> Result<Applied, Error> {
        match (created, self.owner) {
            (Created::Yes, _) => {
                let state = &self.resource.state;
                let outcome = Outcome {
                    saved: vec![state.clone()],
                    changes: vec![Change::of(Action::Create, None, state)],
                    failures: self.failures.clone(),
                    ..Outcome::default()
                };
                Ok(Applied {
                    result: CommandResult::Created(Arc::clone(&self.resource)),
                    before: Vec::new(),
                    outcome,
                    more: Effects::default(),
                })
            }
            (Created::NoParent, Some((parent, id))) => {
                Err(Error::not_found(&parent.kind, &id.to_string()))
            }
            (Created::ParentFinalizing, Some((parent, id))) => Err(finalizing(parent, id)),
            (Created::ParentBusy, Some(_)) => Err(still_changing()),
            (_, None) => unreachable!("a root has no parent to miss"),
        }
    }
}

impl PatchedResource {
    fn applied(self) -> Applied {
        let mut outcome = Outcome::default();
        let before = vec![self.before.state.clone()];
        let patched = match self.after {
            None => self.before,
            Some((after, failures)) => {
                let generation = Some(self.before.state.generation);
                outcome.saved.push(after.state.clone());
                let change = Change::of(Action::Patch, generation, &after.state);
                outcome.changes.push(change);
                outcome.failures = failures;
                after
            }
        };
        Applied {
            result: CommandResult::Patched(patched),
            before,
            outcome,
            more: Effects::default(),
        }
    }
}

fn finalizing(parent: &Entity, id: ResourceId) -> Error {
    let kind = parent.kind.clone();
    let reason = RefusalReason::MarkedForDeletion;
    LifecycleRefusal { kind, id, reason }.into()
}

/// Checks the preconditions of a change. The row must be locked, or saved only if it has not moved on.
pub(super) fn require(conditions: &Preconditions, state: &ResourceState) -> Result<(), Error> {
    let (kind, id, tag) = (|| state.kind.clone(), state.id, state.tag());
    match conditions.check(tag) {
        PreconditionOutcome::Holds => Ok(()),
        PreconditionOutcome::Failed => Err(Error::Precondition {
            kind: kind(),
            id,
            tag,
        }),
        PreconditionOutcome::NotModified => Err(Error::ExcludedState {
            kind: kind(),
            id,
            tag,
        }),
    }
}

/// Between reading and locking the row, another request gave it references whose targets are not locked now. A new
/// attempt locks them.
fn references_changed() -> Error {
    Error::Contended(hyperfleet_storage::Error::Contended {
        doing: "lock the targets of references",
        source: "another request changed the references".into(),
    })
}

/// A locked row changed: only a writer that ignores the rules can do that.
pub(super) fn still_changing() -> Error {
    Error::Storage(hyperfleet_storage::Error::Corrupt {
        column: "revision",
        value: "changed under its lock".to_owned(),
    })
}
