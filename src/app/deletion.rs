//! Delete and force-delete: a resource with its descendants, and finalizing owners that waited for them.
//!
//! ```text
//! DELETE ─▶ read ─▶ it has no dependents, and waits ───▶ one guarded statement, which other requests may share
//!                └▶ it has some, or is gone at once ───▶ a transaction
//! ```
//!
//! A transaction locks rows from the top: owners, the resource, then its descendants level by level. It reads them
//! once they are locked, and changes them in sets (`docs/decisions/0029-lock-order.md`).

use super::effects::{self, Effects};
use super::resources::require;
use super::{Collection, Error, ResourcePath, Service};
use crate::domain::audit::{Action, ChangeOrigin};
use crate::domain::lifecycle::{self, Family, LifecycleRefusal, Outcome};
use crate::domain::precondition::Preconditions;
use crate::domain::tenancy::TenantScope;
use crate::domain::{Resource, ResourceId, ResourceSnapshot, ResourceState};
use crate::storage::postgres::{Db, LockedRow, RowAccess, Tx, WholeResource};

/// The family of a deleted resource as it was, and what became of it.
pub(super) type DecidedFamily = (Family, Outcome);

struct LockedFamily {
    family: Family,
    /// The resource and its descendants.
    rows: Vec<LockedRow>,
    /// Whether any of the family references a resource, or is referenced.
    has_links: bool,
}

/// A resource whose deletion was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Deleted {
    /// As it is, or as it was when it was removed.
    pub resource: Resource,
    /// Whether it is gone.
    pub is_removed: bool,
}

/// Ids of removed resources that the log line of a force-delete names at most.
const LOGGED_IDS_MAX: usize = 100;

impl Service {
    /// Marks a resource as deleted, and removes everything that waits for nothing.
    pub async fn delete(
        &self,
        path: ResourcePath<'_>,
        conditions: &Preconditions,
        origin: &ChangeOrigin,
    ) -> Result<Deleted, Error> {
        let mut access = self.store.row_access().await?;
        let found = match path.scope() {
            Some(scope) => {
                let with_rules = self.registry.kinds_with_rules();
                access.find_deletable(scope, with_rules).await?
            }
            None => None,
        };
        let Some(found) = found else {
            drop(access);
            let mut session = self.store.session().await?;
            return Err(self.nothing_to_delete(path, &mut session.db()).await);
        };
        let WholeResource {
            resource,
            snapshot,
            has_dependents,
        } = found;
        require(conditions, &resource.state)?;
        // References to other resources need a statement of their own.
        let is_alone = has_dependents == Some(false) && resource.references.is_empty();
        if is_alone
            && let Some((state, effects)) =
                self.try_delete_alone(&mut access, snapshot, origin).await?
        {
            effects.emit();
            return Ok(Deleted {
                resource: Resource { state, ..resource },
                is_removed: false,
            });
        }
        drop(access);
        let mut found = Some(resource);
        self.in_turns(async |turn| {
            let mut tx = self.store.begin_sets(turn).await?;
            let result = self
                .delete_in(&mut tx, path, found.take(), conditions, origin)
                .await;
            effects::commit(tx, result.map(with_effects)).await
        })
        .await
    }

    /// Deletes a resource without dependents and references that becomes finalizing, or already is. Returns `None` if
    /// it would be removed at once, or was changed since it was read.
    async fn try_delete_alone(
        &self,
        access: &mut RowAccess<'_>,
        root: ResourceSnapshot,
        origin: &ChangeOrigin,
    ) -> Result<Option<(ResourceState, Effects)>, Error> {
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
                access.save_deleted(before, after, change, origin).await?
            }
            _ => false,
        };
        Ok(is_done.then(|| (state, Effects::effects_of([before], outcome))))
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

    /// `found` is the resource as it was before it was locked, if it was read.
    pub(super) async fn delete_in(
        &self,
        tx: &mut Tx,
        path: ResourcePath<'_>,
        found: Option<Resource>,
        conditions: &Preconditions,
        origin: &ChangeOrigin,
    ) -> Result<(Deleted, DecidedFamily), Error> {
        let Some(locked) = self.lock_family(tx, path).await? else {
            return Err(self.nothing_to_delete(path, &mut tx.db()).await);
        };
        let mut db = tx.db();
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
                let now = db.find_resource(scope).await?;
                now.ok_or_else(|| path.not_found())?
            }
            (None, None) => return Err(path.not_found()),
        };
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
        let deleted = Deleted {
            resource,
            is_removed,
        };
        Ok((deleted, (family, outcome)))
    }

    /// Removes a finalizing resource with its descendants although adapters are not done.
    pub async fn force_delete(
        &self,
        path: ResourcePath<'_>,
        reason: &str,
        conditions: &Preconditions,
        origin: &ChangeOrigin,
    ) -> Result<(), Error> {
        self.in_turns(async |turn| {
            let mut tx = self.store.begin_sets(turn).await?;
            let decided = self
                .force_delete_in(&mut tx, path, reason, conditions, origin)
                .await;
            self.finish_forced(tx, decided, reason, origin).await
        })
        .await
    }

    /// Ends the transaction of a force-delete, logs it and emits its effects.
    pub(super) async fn finish_forced(
        &self,
        tx: Tx,
        decided: Result<DecidedFamily, Error>,
        reason: &str,
        origin: &ChangeOrigin,
    ) -> Result<(), Error> {
        let (family, outcome) = match decided {
            Ok(decided) => decided,
            Err(error) => return tx.finish(Err(error)).await,
        };
        let committed = tx.finish(Ok::<_, Error>(())).await;
        log_forced(
            &family.root.state,
            &outcome,
            reason,
            origin,
            committed.is_ok(),
        );
        committed?;
        Effects::effects_of(states(&family), outcome).emit();
        Ok(())
    }

    pub(super) async fn force_delete_in(
        &self,
        tx: &mut Tx,
        path: ResourcePath<'_>,
        reason: &str,
        conditions: &Preconditions,
        origin: &ChangeOrigin,
    ) -> Result<DecidedFamily, Error> {
        let Some(locked) = self.lock_family(tx, path).await? else {
            return Err(path.missing(self, &mut tx.db()).await);
        };
        require(conditions, &locked.family.root.state)?;
        let outcome = lifecycle::force_delete(&locked.family, reason, &self.registry)?;
        tx.db()
            .carry_out(&outcome, locked.has_links, origin)
            .await?;
        Ok((locked.family, outcome))
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

/// Logs a force-delete in one line, once its commit is known: the audit trail has an entry for each resource.
///
/// If the database did not answer the COMMIT, the line says `committed=false`; the trail then has the truth.
fn log_forced(
    root: &ResourceState,
    outcome: &Outcome,
    reason: &str,
    origin: &ChangeOrigin,
    is_committed: bool,
) {
    let removed_by = |action| {
        let changes = outcome.changes.iter().filter(move |c| c.action == action);
        changes.map(|c| c.id).filter(|id| *id != root.id)
    };
    let children: Vec<_> = removed_by(Action::ForceDelete).collect();
    let owners: Vec<_> = removed_by(Action::HardDelete).collect();
    tracing::info!(
        resource_kind = root.kind,
        resource_id = %root.id,
        caller = origin.actor,
        reason,
        action = Action::ForceDelete.into_str(),
        children = children.len(),
        child_resource_ids = first_ids(&children),
        owner_resource_ids = first_ids(&owners),
        committed = is_committed,
        "Force-deleting resource"
    );
}

/// The first ids, as many as a log line names.
fn first_ids(ids: &[ResourceId]) -> Option<String> {
    let first = ids.iter().take(LOGGED_IDS_MAX).map(ToString::to_string);
    (!ids.is_empty()).then(|| first.collect::<Vec<_>>().join(" "))
}

/// A carried out deletion with its effects.
pub(super) fn with_effects<T>((changed, (family, outcome)): (T, DecidedFamily)) -> (T, Effects) {
    (changed, Effects::effects_of(states(&family), outcome))
}

/// The resources of a family before the change.
pub(super) fn states(family: &Family) -> impl Iterator<Item = &ResourceState> {
    let everybody = family.ancestors.iter().chain(family.nodes());
    everybody.map(|snapshot| &snapshot.state)
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

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_line_names_the_first_ids_and_no_more() {
        let ids: Vec<ResourceId> = (0..150).map(|n| Uuid::from_u128(n).into()).collect();
        assert_eq!(first_ids(&[]), None);
        assert_eq!(first_ids(&ids[..2]), Some(format!("{} {}", ids[0], ids[1])));
        let named = first_ids(&ids).unwrap();
        assert_eq!(named.split(' ').count(), LOGGED_IDS_MAX);
    }
}
