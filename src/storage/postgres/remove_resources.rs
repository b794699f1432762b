//! Removes resources, and records that, with their audit entries. This is the only statement that does so.

use serde::Serialize;
use uuid::Uuid;

use super::batching::rows;
use super::measure::SqlOperation::Delete;
use super::measure::SqlTable::Resources;
use super::{Db, Error, uuids};
use crate::domain::ResourceId;
use crate::domain::audit::{Change, ChangeOrigin};

/// An audit entry, as a row of the statement.
#[derive(Serialize)]
struct Entry<'a> {
    action: &'static str,
    kind: &'a str,
    id: Uuid,
    name: &'a str,
    before: Option<i32>,
    after: Option<i32>,
    reason: Option<&'a str>,
}

impl<'a> Entry<'a> {
    fn of(change: &'a Change) -> Self {
        Self {
            action: change.action.into_str(),
            kind: &change.kind,
            id: change.id.as_uuid(),
            name: &change.name,
            before: change.generation_before,
            after: change.generation_after,
            reason: change.reason.as_deref(),
        }
    }
}

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
        let entries: Vec<_> = changes.iter().map(|change| Entry::of(change)).collect();
        let result = sqlx::query!(
            "WITH logged AS (
                 INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name,
                                            generation_before, generation_after, reason, tenancy)
                 SELECT $1, $2, $3, c.action, c.kind, c.id, c.name, c.before, c.after, c.reason, r.tenancy
                 FROM unnest($4::json[]) WITH ORDINALITY j (item, place)
                 CROSS JOIN LATERAL json_to_record(j.item) AS c (
                     action text, kind text, id uuid, name text, before int, after int, reason text)
                 JOIN resources r ON r.id = c.id
                 ORDER BY j.place
             ), recorded AS (
                 INSERT INTO changes (at, resource_id, revision, generation, kind, action, actor, request_id)
                 SELECT $1, r.id, r.revision, r.generation, r.kind, 'removed', $2, $3
                 FROM resources r WHERE r.id = ANY($5)
             ) DELETE FROM resources WHERE id = ANY($5)",
            origin.at,
            origin.actor,
            origin.request_id,
            rows(&entries) as _,
            &uuids(removed.iter().copied()),
        )
        .execute(self.connection())
        .await;
        self.complete(result, Delete(Resources), "remove resources")?;
        Ok(())
    }
}
