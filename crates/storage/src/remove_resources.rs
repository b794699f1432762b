//! Removes resources, and records that, with their audit entries. This is the only statement that does so.

use super::batching::column;
use super::measure::SqlOperation::Delete;
use super::measure::SqlTable::Resources;
use super::{Db, Error, uuids};
use hyperfleet_domain::ResourceId;
use hyperfleet_domain::audit::{Change, ChangeOrigin};

impl Db<'_> {
    /// Removes resources and adds `changes` of them to the audit trail, in their order, while the rows still have
    /// their tenancies. Reports and references are removed with their resource.
    /// The transaction holds their locks.
    pub(super) async fn remove_resources(
        &mut self,
        removed: &[ResourceId],
        changes: &[&Change],
        origin: &ChangeOrigin,
    ) -> Result<(), Error> {
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
                 INSERT INTO changes (at, resource_id, revision, generation, kind, action, actor, request_id)
                 SELECT $1, r.id, r.revision, r.generation, r.kind, 'removed', $2, $3
                 FROM resources r WHERE r.id = ANY($11)
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
            &uuids(removed.iter().copied()),
        )
        .execute(self.connection())
        .await;
        self.complete(result, Delete(Resources), "remove resources")?;
        Ok(())
    }
}
