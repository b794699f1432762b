//! Table `audit`: the trail of changes.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{Db, Error};
use crate::domain::ResourceId;
use crate::domain::audit::{Action, Change, Entry, Filter, Origin};
use crate::domain::page::{Listing, Page};

impl Db<'_> {
    /// Adds what one request changed.
    pub(super) async fn insert_audit(
        &mut self,
        changes: &[Change],
        origin: &Origin,
    ) -> Result<(), Error> {
        let actions: Vec<_> = changes
            .iter()
            .map(|c| c.action.as_str().to_owned())
            .collect();
        let kinds: Vec<_> = changes.iter().map(|c| c.kind.clone()).collect();
        let ids: Vec<Uuid> = changes.iter().map(|c| c.id.as_uuid()).collect();
        let names: Vec<_> = changes.iter().map(|c| c.name.clone()).collect();
        let before: Vec<_> = changes.iter().map(|c| c.generation_before).collect();
        let after: Vec<_> = changes.iter().map(|c| c.generation_after).collect();
        let reasons: Vec<_> = changes.iter().map(|c| c.reason.clone()).collect();
        let result = sqlx::query!(
            "INSERT INTO audit (at, actor, request_id, action, kind, resource_id, name,
                                generation_before, generation_after, reason)
             SELECT $1, $2, $3, * FROM unnest($4::text[], $5::text[], $6::uuid[], $7::text[],
                                              $8::int[], $9::int[], $10::text[])",
            origin.at,
            origin.actor,
            origin.request_id,
            &actions,
            &kinds,
            &ids,
            &names,
            &before as _,
            &after as _,
            &reasons as _,
        )
        .execute(self.wire())
        .await;
        self.done(result, "write the audit trail")?;
        Ok(())
    }

    /// One page of the trail, newest first.
    pub async fn list_audit(
        &mut self,
        filter: &Filter,
        page: Page,
    ) -> Result<Listing<Entry>, Error> {
        let result = sqlx::query!(
            r#"WITH matching AS (
                   SELECT * FROM audit
                   WHERE ($1::uuid IS NULL OR resource_id = $1) AND ($2::text IS NULL OR kind = $2)
                     AND ($3::text IS NULL OR actor = $3) AND ($4::text IS NULL OR action = $4)
                     AND ($5::timestamptz IS NULL OR at >= $5) AND ($6::timestamptz IS NULL OR at < $6)
               )
               SELECT total.count AS "total!", e.sequence AS "sequence?", e.at AS "at?", e.actor AS "actor?",
                      e.request_id AS "request_id?", e.action AS "action?", e.kind AS "kind?",
                      e.resource_id AS "resource_id?", e.name AS "name?",
                      e.generation_before, e.generation_after, e.reason
               FROM (SELECT count(*) FROM matching) total
               LEFT JOIN LATERAL (
                   SELECT * FROM matching ORDER BY sequence DESC LIMIT $7 OFFSET $8
               ) e ON true
               ORDER BY e.sequence DESC"#,
            filter.resource_id.map(ResourceId::as_uuid),
            filter.kind.as_deref(),
            filter.actor.as_deref(),
            filter.action.map(Action::as_str),
            filter.since,
            filter.until,
            i64::from(page.size),
            page.offset(),
        )
        .fetch_all(self.wire())
        .await;
        let rows = self.done(result, "list the audit trail")?;
        let total = rows.first().map_or(0, |row| row.total);
        let mut items = Vec::with_capacity(rows.len());
        for row in rows {
            let (Some(sequence), Some(at), Some(actor), Some(request_id)) =
                (row.sequence, row.at, row.actor, row.request_id)
            else {
                continue; // no entry on this page
            };
            let action = row.action.unwrap_or_default();
            items.push(Entry {
                sequence,
                origin: Origin {
                    actor,
                    request_id,
                    at,
                },
                change: Change {
                    action: Action::parse(&action).ok_or_else(|| Error::Corrupt {
                        column: "action",
                        value: action.clone(),
                    })?,
                    kind: row.kind.unwrap_or_default(),
                    id: row.resource_id.unwrap_or_default().into(),
                    name: row.name.unwrap_or_default(),
                    generation_before: row.generation_before,
                    generation_after: row.generation_after,
                    reason: row.reason,
                },
            });
        }
        Ok(Listing { page, items, total })
    }

    /// Removes entries older than `before`, at most `count_max` of them; gives how many. Must run
    /// in a transaction: the right to remove ends with it.
    pub async fn delete_audit_before(
        &mut self,
        before: DateTime<Utc>,
        count_max: i64,
    ) -> Result<u64, Error> {
        let result = sqlx::query!("SELECT set_config('hyperfleet.audit_retention', 'on', true)")
            .fetch_one(self.wire())
            .await;
        self.done(result, "open the audit trail for retention")?;
        let result = sqlx::query!(
            "DELETE FROM audit WHERE sequence IN (SELECT sequence FROM audit WHERE at < $1 ORDER BY at LIMIT $2)",
            before,
            count_max,
        )
        .execute(self.wire())
        .await;
        let done = self.done(result, "remove expired audit entries")?;
        Ok(done.rows_affected())
    }
}
