//! Delete and force-delete: a resource with its descendants, and finalizing owners that waited for them.
//!
//! ```text
//! DELETE ─▶ read ─▶ it has no dependents, and waits ───▶ one guarded statement, which other requests may share
//!                └▶ it has some, or is gone at once ───▶ a transaction
//! ```
//!
//! A transaction locks rows from the top: owners, the resource, then its descendants level by level. It reads them
//! once they are locked, and changes them in sets (`docs/decisions/0029-lock-order.md`).

use super::command::{Applied, CommandResult, Deleted};
use super::effects::{Effects, ForceDeleteLog};
use super::resources::require;
use super::{Collection, Error, ResourcePath, Service};
use hyperfleet_domain::audit::ChangeOrigin;
use hyperfleet_domain::lifecycle::{self, Family, LifecycleRefusal};
use hyperfleet_domain::precondition::Preconditions;
use hyperfleet_domain::tenancy::TenantScope;
use hyperfleet_domain::{Resource, ResourceSnapshot, ResourceState};
use hyperfleet_storage::{Db, LockedRow, ResourceWithReports, RowAccess, Tx};

/// A deletion in progress.
pub(super) struct Deletion<'a> {
    pub(super) path: ResourcePath<'a>,
    pub(super) conditions: &'a Preconditions,
    pub(super) origin: &'a ChangeOrigin,
    /// The resource as it was before it was locked, if it was read.
    pub(super) found: Option<Resource>,
}

/// A force-delete in progress.
pub(super) struct ForcedDeletion<'a> {
    pub(super) path: ResourcePath<'a>,
    pub(super) reason: &'a str,
    pub(super) conditions: &'a Preconditions,
    pub(super) origin: &'a ChangeOrigin,
}

struct LockedFamily {
    family: Family,
    /// The resource and its descendants.
    rows: Vec<LockedRow>,
    /// Whether any of the family references a resource, or is referenced.
    has_links: bool,
}

impl Service {
    /// Deletes a resource that has no dependents and waits for something. Returns `None` otherwise.
    pub(super) async fn attempt_delete(
        &self,
        deletion: &mut Deletion<'_>,
    ) -> Result<Option<Applied>, Error> {
        let Deletion {
            path,
            conditions,
            origin,
            ..
        } = *deletion;
        let mut rows = self.store.row_access();
        let found = match path.scope() {
            Some(scope) => {
                let with_rules = self.registry.kinds_with_rules();
                rows.find_deletable(scope, with_rules).await?
            }
            None => None,
        };
        let Some(found) = found else {
            let mut session = self.store.session().await?;
            return Err(self.nothing_to_delete(path, &mut session.db()).await);
        };
        let ResourceWithReports {
            resource,
            snapshot,
            has_dependents,
        } = found;
        require(conditions, &resource.state)?;
        // References to other resources need a statement of their own.
        if !has_dependents && resource.references.is_empty() {
            let attempted = self.attempt_delete_leaf(&mut rows, snapshot, &resource, origin);
            if let Some(applied) = attempted.await? {
                return Ok(Some(applied));
            }
        }
        deletion.found = Some(resource);
        Ok(None)
    }

    /// Deletes a resource without dependents and references that becomes finalizing, or already is. Returns `None` if
    /// it would be removed immediately, or has changed since it was read.
    async fn attempt_delete_leaf(
        &self,
        rows: &mut RowAccess<'_>,
        root: ResourceSnapshot,
        resource: &Resource,
        origin: &ChangeOrigin,
    ) -> Result<Option<Applied>, Error> {
        let family = Family {
            ancestors: Vec::new(),
            root,
            descendants: Vec::new(),
        };
        let (state, outcome) = lifecycle::delete(&family, &[], &self.registry, origin)?;
        let before = &family.root.state;
        let is_done = match (&outcome.saved[..], &outcome.changes[..]) {
            ([], []) => true,
            ([after], [change]) if outcome.removed.is_empty() => {
                rows.save_deleted(before, after, change, origin).await?
            }
            _ => false,
        };
        let resource = Resource {
            state,
            ..resource.clone()
        };
        Ok(is_done.then(|| Applied {
            result: CommandResult::Deleted(Deleted {
                resource,
                is_removed: false,
            }),
            before: vec![family.root.state],
            outcome,
            more: Effects::default(),
        }))
    }

    /// The error for a missing resource. The flat routes have a text of their own, which clients know.
    async fn nothing_to_delete(&self, path: ResourcePath<'_>, db: &mut Db<'_>) -> Error {
        match path.collection {
            Collection::Kind(entity) => Error::NothingToDelete {
                kind: entity.kind.clone(),
            },
            Collection::All | Collection::Owned { .. } => path.missing(self, db).await,
        }
    }

    /// Deletes a resource with its descendants.
    pub(super) async fn delete_in(
        &self,
        tx: &mut Tx,
        deletion: &mut Deletion<'_>,
    ) -> Result<Applied, Error> {
        let Deletion {
            path,
            conditions,
            origin,
            ..
        } = *deletion;
        let found = deletion.found.take();
        let Some(locked) = self.lock_family(tx, path).await? else {
            return Err(self.nothing_to_delete(path, &mut tx.db()).await);
        };
        let LockedFamily {
            family,
            rows,
            has_links,
        } = locked;
        let root = &family.root.state;
        require(conditions, root)?;
        let found = found.filter(|found| found.state.revision == root.revision);
        let mut resource = match (found, path.scope()) {
            (Some(found), _) => found,
            (None, Some(scope)) => {
                let mut access = RowAccess::Transaction(tx.db());
                let now = access.find_with_reports(scope, &[]).await?;
                now.ok_or_else(|| path.not_found())?.resource
            }
            (None, None) => return Err(path.not_found()),
        };
        let mut db = tx.db();
        let referrers = if has_links {
            db.list_referrers(path.tenants, &rows).await?
        } else {
            Vec::new()
        };
        let decided = lifecycle::delete(&family, &referrers, &self.registry, origin);
        let (state, outcome) = match decided {
            Ok(decided) => decided,
            Err(refusal) => {
                return Err(visible(refusal, root, path.tenants, &mut db).await?);
            }
        };
        db.carry_out(&outcome, has_links, origin).await?;
        let is_removed = outcome.removed.contains(&state.id);
        resource.state = state;
        Ok(Applied {
            result: CommandResult::Deleted(Deleted {
                resource,
                is_removed,
            }),
            before: states(family),
            outcome,
            more: Effects::default(),
        })
    }

    /// Removes a finalizing resource with its descendants although adapters are not done.
    pub(super) async fn force_delete_in(
        &self,
        tx: &mut Tx,
        forced: &ForcedDeletion<'_>,
    ) -> Result<Applied, Error> {
        let ForcedDeletion {
            path,
            reason,
            conditions,
            origin,
        } = *forced;
        let Some(locked) = self.lock_family(tx, path).await? else {
            return Err(path.missing(self, &mut tx.db()).await);
        };
        let family = locked.family;
        require(conditions, &family.root.state)?;
        let outcome = lifecycle::force_delete(&family, reason, &self.registry)?;
        tx.db()
            .carry_out(&outcome, locked.has_links, origin)
            .await?;
        let log = ForceDeleteLog::of(&family.root.state, &outcome, reason, origin);
        Ok(Applied {
            result: CommandResult::ForceDeleted,
            before: states(family),
            outcome,
            more: Effects::force_deleted(log),
        })
    }

    /// Locks the rows of a resource and its descendants.
    async fn lock_family(
        &self,
        tx: &mut Tx,
        path: ResourcePath<'_>,
    ) -> Result<Option<LockedFamily>, Error> {
        let Some(scope) = path.scope() else {
            return Ok(None);
        };
        let mut db = tx.db();
        let Some(lineage) = db.lock_lineage(scope).await? else {
            return Ok(None);
        };
        let mut rows = lineage.rows;
        let above = rows.len().saturating_sub(1);
        // A kind that is no longer configured may own resources of any kind.
        let levels = match self.registry.get(&lineage.kind) {
            Some(entity) => self.registry.levels_below(&entity.kind),
            None => usize::MAX,
        };
        let mut level = rows.split_off(above);
        rows.extend(&level);
        for _ in 0..levels {
            level = db.lock_children(&level).await?;
            if level.is_empty() {
                break;
            }
            rows.extend(&level);
        }
        let with_rules = self.registry.kinds_with_rules();
        let locked = db.list_snapshots(&rows, with_rules).await?;
        let mut ancestors = locked.snapshots;
        let descendants = ancestors.split_off((above + 1).min(ancestors.len()));
        let Some(root) = ancestors.pop() else {
            return Ok(None);
        };
        ancestors.reverse();
        let family = Family {
            ancestors,
            root,
            descendants,
        };
        Ok(Some(LockedFamily {
            family,
            rows: rows.split_off(above),
            has_links: locked.has_links,
        }))
    }
}

/// The resources of a family before the change.
fn states(family: Family) -> Vec<ResourceState> {
    let Family {
        ancestors,
        root,
        descendants,
    } = family;
    let all = ancestors.into_iter().chain([root]).chain(descendants);
    all.map(|snapshot| snapshot.state).collect()
}

/// Limits a refusal to what the caller sees: descendants may belong to another tenant, and are deleted all the same,
/// but not named.
async fn visible(
    refusal: LifecycleRefusal,
    root: &ResourceState,
    tenants: &TenantScope,
    db: &mut Db<'_>,
) -> Result<Error, Error> {
    let is_seen = refusal.id == root.id
        || *tenants == TenantScope::ALL
        || db.has_resource(tenants, &refusal.kind, refusal.id).await?;
    Ok(if is_seen {
        refusal.into()
    } else {
        Error::HeldBack {
            kind: root.kind.clone(),
            id: root.id,
        }
    })
}
