//! Delete and force-delete: a resource with everything below it, and what waited for it above.
//!
//! The rows are locked from the top: owners, the resource, then level by level what it owns.
//! They are read once they are locked, and changed in sets.

use super::effects::{self, Effects};
use super::{Address, Collection, Error, Service};
use crate::domain::audit::{Action, Origin};
use crate::domain::lifecycle::{self, Family, Outcome, Refusal};
use crate::domain::tenancy::TenantScope;
use crate::domain::{Resource, ResourceId, ResourceState};
use crate::storage::postgres::{Db, LockedRow, Tx};

/// Most ids of removed resources that the log line of a force-delete names.
const LOGGED_IDS_MAX: usize = 100;

impl Service {
    /// Asks for the deletion of a resource and finishes what can be finished at once. Gives the
    /// resource as it is, or as it was when it was removed.
    pub async fn delete(&self, address: Address<'_>, origin: &Origin) -> Result<Resource, Error> {
        let mut tx = self.store.begin_sets().await?;
        let result = self.delete_in(&mut tx, address, origin).await;
        effects::keep(tx, result).await
    }

    async fn delete_in(
        &self,
        tx: &mut Tx<'_>,
        address: Address<'_>,
        origin: &Origin,
    ) -> Result<(Resource, Effects), Error> {
        let Some((mut resource, family, locked)) = self.lock_family(tx, address).await? else {
            // Clients of the flat routes know another text.
            return Err(match address.collection {
                Collection::Kind(entity) => Error::NothingToDelete {
                    kind: entity.kind.clone(),
                },
                Collection::All | Collection::Owned { .. } => {
                    address.missing(self, &mut tx.db()).await
                }
            });
        };
        let referrers = tx.db().list_referrers(address.view, &locked).await?;
        let decided = lifecycle::delete(&family, &referrers, &self.registry, origin);
        let (state, outcome) = match decided {
            Ok(decided) => decided,
            Err(refusal) => {
                let root = &family.root.state;
                return Err(visible(refusal, root, address.view, &mut tx.db()).await?);
            }
        };
        tx.db().carry_out(&outcome, origin).await?;
        resource.state = state;
        Ok((resource, Effects::carried_out(states(&family), outcome)))
    }

    /// Removes a finalizing resource with everything below it, although adapters are not done.
    pub async fn force_delete(
        &self,
        address: Address<'_>,
        reason: &str,
        origin: &Origin,
    ) -> Result<(), Error> {
        let mut tx = self.store.begin_sets().await?;
        let decided = self.force_delete_in(&mut tx, address, reason, origin).await;
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
        Effects::carried_out(states(&family), outcome).emit();
        Ok(())
    }

    async fn force_delete_in(
        &self,
        tx: &mut Tx<'_>,
        address: Address<'_>,
        reason: &str,
        origin: &Origin,
    ) -> Result<(Family, Outcome), Error> {
        let Some((_, family, _)) = self.lock_family(tx, address).await? else {
            return Err(address.missing(self, &mut tx.db()).await);
        };
        let outcome = lifecycle::force_delete(&family, reason, &self.registry)?;
        tx.db().carry_out(&outcome, origin).await?;
        Ok((family, outcome))
    }

    /// The resource and its family, with the rows of the family from the resource down.
    async fn lock_family(
        &self,
        tx: &mut Tx<'_>,
        address: Address<'_>,
    ) -> Result<Option<(Resource, Family, Vec<LockedRow>)>, Error> {
        let Some(place) = address.place() else {
            return Ok(None);
        };
        let mut db = tx.db();
        let mut locked = db.lock_lineage(place).await?;
        let Some(resource) = db.find_resource(place).await? else {
            return Ok(None);
        };
        let above = locked.len().saturating_sub(1);
        // A kind that was taken out of the configuration may own whatever is there.
        let kind = &resource.state.kind;
        let is_known = self.registry.get(kind).is_some();
        let levels = if is_known {
            self.registry.levels_below(kind)
        } else {
            usize::MAX
        };
        let mut level = locked.split_off(above.min(locked.len()));
        locked.extend(&level);
        for _ in 0..levels {
            level = db.lock_children(&level).await?;
            if level.is_empty() {
                break;
            }
            locked.extend(&level);
        }
        let with_rules = self.registry.kinds_with_rules();
        let mut ancestors = db.list_snapshots(&locked, with_rules).await?;
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
        Ok(Some((resource, family, locked.split_off(above))))
    }
}

/// Writes one line for a force-delete, once its commit is known: the audit trail has an entry for each resource.
///
/// Without the database's answer to COMMIT the line says `committed=false`: the trail then tells whether it happened.
fn log_forced(
    root: &ResourceState,
    outcome: &Outcome,
    reason: &str,
    origin: &Origin,
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

/// The first of these ids, as many as a line of the log names.
fn first_ids(ids: &[ResourceId]) -> Option<String> {
    let first = ids.iter().take(LOGGED_IDS_MAX).map(ToString::to_string);
    (!ids.is_empty()).then(|| first.collect::<Vec<_>>().join(" "))
}

/// Everybody in a family as they were.
fn states(family: &Family) -> impl Iterator<Item = &ResourceState> {
    let everybody = family.ancestors.iter().chain(family.nodes());
    everybody.map(|snapshot| &snapshot.state)
}

/// A refusal that names only what the caller sees: what is below a resource may be another tenant's, and is
/// deleted with it all the same, but not named.
async fn visible(
    refusal: Refusal,
    root: &ResourceState,
    view: &TenantScope,
    db: &mut Db<'_>,
) -> Result<Error, Error> {
    let is_seen = refusal.id == root.id
        || *view == TenantScope::ALL
        || db.has_resource(view, &refusal.kind, refusal.id).await?;
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
