//! Removes resources, and records that, with their audit entries. This is the only statement that does so.

use serde_json::Value;

use super::batching::column;
use super::measure::SqlOperation::Delete;
use super::measure::SqlTable::Resources;
use super::{Db, Error};
use crate::domain::audit::{Change, ChangeOrigin};
use crate::domain::{JsonText, ResourceId};

/// A resource to be removed. The transaction holds its lock.
pub(super) struct RemoveResource<'a> {
    pub(super) id: ResourceId,
    /// References that it has lost in this transaction.
    pub(super) dropped_links: Option<&'a [Value]>,
}

impl Db<'_> {
    /// Removes resources and adds `changes` of them to the audit trail, in their order, while the rows still have
    /// their tenancies. Reports and references are removed with their resource.
    pub(super) async fn remove_resources(
        &mut self,
        removed: &[RemoveResource<'_>],
        changes: &[&Change],
        origin: &ChangeOrigin,
    ) -> Result<(), Error> {
        let links = column(removed, |r| {
            r.dropped_links.map(|links| JsonText::of(&links))
        });
        let result = sqlx::query!(
            "WITH logged AS (
                 INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name,
                                            generation_before, generation_after, reason, tenancy)
                 SELECT $1, $2, $3, c.action, c.kind, c.id, c.name, c.before, c.after, c.reason, r.tenancy
                 FROM unnest($4::text[], $5::text[], $6::uuid[], $7::text[], $8::int[], $9::int[], $10::text[])
                      WITH ORDINALITY c (action, kind, id, name, before, after, reason, place)
                 JOIN resources r ON r.id = c.id
                 ORDER BY c.place
             ), recorded AS (
                 INSERT INTO changes (at, resource_id, kind, action, actor, request_id, revision, generation, updated_at,
                                      updated_by, deleted_at, deleted_by, created_at, created_by, name, owner_id, tenancy,
                                      spec, labels, links, conditions)
                 SELECT $1, r.id, r.kind, 'removed', $2, $3, r.revision, r.generation, r.updated_at, r.updated_by,
                        r.deleted_at, r.deleted_by, r.created_at, r.created_by, r.name, r.owner_id, r.tenancy, r.spec,
                        r.labels, coalesce(n.links::jsonb, links_of(r.id)), r.conditions
                 FROM unnest($11::uuid[], $12::text[]) n (id, links) JOIN resources r ON r.id = n.id
             ) DELETE FROM resources WHERE id = ANY($11)",
            origin.at,
            origin.actor,
            origin.request_id,
            &column(changes, |c| c.action.into_str()) as _,
            &column(changes, |c| c.kind.as_str()) as _,
            &column(changes, |c| c.id.as_uuid()),
            &column(changes, |c| c.name.as_str()) as _,
            &column(changes, |c| c.generation_before) as _,
            &column(changes, |c| c.generation_after) as _,
            &column(changes, |c| c.reason.as_deref()) as _,
            &column(removed, |r| r.id.as_uuid()),
            &column(&links, |links| links.as_ref().map(JsonText::as_str)) as _,
        )
        .execute(self.connection())
        .await;
        self.complete(result, Delete(Resources), "remove resources")?;
        Ok(())
    }
}
