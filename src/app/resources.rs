//! Create, read and patch one resource.

use uuid::Uuid;

use super::effects::{self, Effects};
use super::{Error, ResourcePath, Service, UNLOCKED_ATTEMPTS_MAX};
use crate::domain::audit::ChangeOrigin;
use crate::domain::condition_rules::Failure;
use crate::domain::lifecycle::{self, Draft, LifecycleRefusal, Patch, RefusalReason};
use crate::domain::patch::{RequestedParts, RequestedPatch};
use crate::domain::precondition::{Preconditions, Verdict};
use crate::domain::reference::{self, ReferenceTarget};
use crate::domain::tenancy::{Tenant, TenantScope};
use crate::domain::{
    Entity, References, RequestedResource, Resource, ResourceId, ResourceState, StoredResource,
    Violations,
};
use crate::storage::postgres::{self, Created, ResourceScope, RowAccess, Tx};

/// A resource before and after a patch that is carried out.
pub(super) struct PatchedResource {
    pub(super) before: Resource,
    /// With the rules that failed; unset if the patch changes nothing.
    pub(super) after: Option<(Resource, Vec<Failure>)>,
}

/// A change with the preconditions of its request.
type Conditional<'a> = (&'a RequestedPatch, &'a Preconditions);

/// A new resource whose row is not written yet.
pub(super) struct Creation<'a> {
    pub(super) resource: Resource,
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

    /// Creates a resource of a root kind, or of a child kind below `parent`, on behalf of a tenant.
    ///
    /// Without references this is one statement, unless the parent's row is held; with references their targets are
    /// locked first.
    pub async fn create(
        &self,
        entity: &Entity,
        parent: Option<(&Entity, &str)>,
        new: RequestedResource,
        author: (&Tenant, &ChangeOrigin),
    ) -> Result<Resource, Error> {
        let creation = self.prepare(entity, parent, new, author).await?;
        let mut created = Created::ParentBusy;
        if creation.resource.references.is_empty() {
            let mut access = self.store.row_access().await?;
            created = creation.insert(&mut access).await?;
        }
        if created == Created::ParentBusy {
            created = self
                .in_turns(async |turn| {
                    let mut tx = self.store.begin_change(turn).await?;
                    let result = self.create_in(&mut tx, &creation).await;
                    tx.finish(result).await
                })
                .await?;
        }
        creation.effects(created)?.emit();
        Ok(creation.resource)
    }

    /// Checks what can be checked of a new resource before its row is written.
    pub(super) async fn prepare<'a>(
        &self,
        entity: &'a Entity,
        parent: Option<(&'a Entity, &str)>,
        new: RequestedResource,
        (tenant, origin): (&'a Tenant, &'a ChangeOrigin),
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
            // A parent that will not do is the greater fault.
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
            resource,
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
        let mut session = self.store.session().await?;
        let found = session.db().find_snapshot(scope, &[]).await?;
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
    ) -> Result<Created, Error> {
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
            return creation.insert(&mut RowAccess::Within(tx.db())).await;
        }
        let position = owner.map(|(parent, id)| (self.registry.depth(&parent.kind), id));
        let locked = self
            .lock_targets(tx, tenants, &resource.references, position)
            .await?;
        if let Err(violation) = reference::check_targets(&resource.references, &locked) {
            let Some((parent, id)) = *owner else {
                return Err(violation.into());
            };
            // A fault of the parent takes precedence.
            let parent = locked.iter().find(|t| t.id == id && t.kind == parent.kind);
            return match parent {
                None => Ok(Created::NoParent),
                Some(parent) if parent.is_deleting => Ok(Created::ParentFinalizing),
                Some(_) => Err(violation.into()),
            };
        }
        let created = creation.insert(&mut RowAccess::Within(tx.db())).await?;
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

    /// Changes the desired state of a resource, and returns it. Writes nothing if nothing differs.
    pub async fn patch(
        &self,
        path: ResourcePath<'_>,
        change: &RequestedPatch,
        conditions: &Preconditions,
        origin: &ChangeOrigin,
    ) -> Result<Resource, Error> {
        let Some(scope) = path.scope() else {
            return Err(self.missing(path).await);
        };
        if !change.touches_references() {
            for _ in 0..UNLOCKED_ATTEMPTS_MAX {
                let mut access = self.store.row_access().await?;
                if let Some(patched) = self
                    .try_patch(&mut access, path, scope, (change, conditions), origin)
                    .await?
                {
                    let (patched, effects) = patched.with_effects();
                    effects.emit();
                    return Ok(patched);
                }
            }
        }
        self.in_turns(async |turn| {
            let mut tx = self.store.begin_change(turn).await?;
            let result = self
                .patch_locked(&mut tx, path, scope, (change, conditions), origin)
                .await;
            effects::commit(tx, result.map(PatchedResource::with_effects)).await
        })
        .await
    }

    pub(super) async fn patch_locked(
        &self,
        tx: &mut Tx,
        path: ResourcePath<'_>,
        scope: ResourceScope<'_>,
        (change, conditions): Conditional<'_>,
        origin: &ChangeOrigin,
    ) -> Result<PatchedResource, Error> {
        let targets = if change.touches_references() {
            self.lock_with_targets(tx, path, scope, (change, conditions))
                .await?
        } else {
            tx.db().lock_resource(scope.tenants, scope.id).await?;
            Vec::new()
        };
        let mut access = RowAccess::Within(tx.db());
        let patched = self
            .try_patch(&mut access, path, scope, (change, conditions), origin)
            .await?;
        let patched = patched.ok_or_else(still_changing)?;
        if change.touches_references()
            && let Some((after, _)) = &patched.after
        {
            if !reference::are_protected(&patched.before.references, &after.references, &targets) {
                return Err(references_changed());
            }
            tx.db()
                .replace_references(scope.id, &after.references)
                .await?;
        }
        Ok(patched)
    }

    /// Locks a resource with the targets of the references that a patch gives it, and returns the targets.
    async fn lock_with_targets(
        &self,
        tx: &mut Tx,
        path: ResourcePath<'_>,
        scope: ResourceScope<'_>,
        (change, conditions): Conditional<'_>,
    ) -> Result<Vec<ReferenceTarget>, Error> {
        let Some(resource) = tx.db().find_resource(scope).await? else {
            return Err(path.missing(self, &mut tx.db()).await);
        };
        require(conditions, &resource.state)?;
        if resource.state.is_finalizing() {
            return Err(lifecycle::marked_for_deletion(&resource.state).into());
        }
        let kind = &resource.state.kind;
        let entity = self.entity(kind)?;
        let parts = change.parts(&resource, &self.registry)?;
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
    async fn try_patch(
        &self,
        access: &mut RowAccess<'_>,
        path: ResourcePath<'_>,
        scope: ResourceScope<'_>,
        (change, conditions): Conditional<'_>,
        origin: &ChangeOrigin,
    ) -> Result<Option<PatchedResource>, Error> {
        let with_rules = self.registry.kinds_with_rules();
        let Some(found) = access.find_whole(scope, with_rules).await? else {
            return Err(match access.db() {
                Some(mut db) => path.missing(self, &mut db).await,
                None => self.missing(path).await,
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
        let mut faults = Violations::default();
        if let Some((entity, spec)) = self.registry.get(kind).zip(change.spec.as_ref()) {
            entity.check_spec(spec, &mut faults);
        }
        if faults.is_empty() {
            Ok(())
        } else {
            Err(Error::Invalid(faults))
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
            postgres::Error::Duplicate { .. } => Error::NameTaken {
                kind: self.resource.state.kind.clone(),
            },
            other => other.into(),
        })
    }

    /// The effects of the creation, or why its row was not written.
    pub(super) fn effects(&self, created: Created) -> Result<Effects, Error> {
        let failures = self.failures(created)?.to_vec();
        Ok(Effects::created(&self.resource, failures))
    }

    /// The rules that failed, or why the row was not written.
    pub(super) fn failures(&self, created: Created) -> Result<&[Failure], Error> {
        match (created, self.owner) {
            (Created::Yes, _) => Ok(&self.failures),
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
    /// The resource as it is now, and the effects of the patch.
    pub(super) fn with_effects(self) -> (Resource, Effects) {
        match self.after {
            None => (self.before, Effects::default()),
            Some((after, failures)) => {
                let effects = Effects::patched(&self.before, &after, failures);
                (after, effects)
            }
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
        Verdict::Holds => Ok(()),
        Verdict::Failed => Err(Error::Precondition {
            kind: kind(),
            id,
            tag,
        }),
        Verdict::Known => Err(Error::ExcludedState {
            kind: kind(),
            id,
            tag,
        }),
    }
}

/// Between reading and locking the row, another request gave it references whose targets are not locked now. A new
/// attempt locks them.
fn references_changed() -> Error {
    Error::Contended(postgres::Error::Contended {
        doing: "lock the targets of references",
        source: "another request changed the references".into(),
    })
}

/// A locked row changed: only a writer that ignores the rules can do that.
pub(super) fn still_changing() -> Error {
    Error::Storage(postgres::Error::Corrupt {
        column: "revision",
        value: "changed under its lock".to_owned(),
    })
}
