//! Table `audit_entries`: the trail of changes.

use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{FromRow, Row as _};
use uuid::Uuid;

use super::condition_columns::ConditionColumns;
use super::family::DroppedLinks;
use super::measure::SqlOperation::{Delete, Update};
use super::measure::SqlTable::Resources;
use super::{Db, Error, uuids};
use crate::domain::audit::{
    AuditEntry, Change, ChangeOrigin, SettledTrail, TrailEntry, TrailPosition,
};
use crate::domain::{ResourceId, ResourceState, Tenancy};

impl FromRow<'_, PgRow> for AuditEntry {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        let action: &str = row.try_get("action")?;
        let action = action
            .parse()
            .map_err(|_| sqlx::Error::decode(format!("a stored action is impossible: {action}")))?;
        let tenancy: Json<Tenancy> = row.try_get("tenancy")?;
        Ok(Self {
            sequence: row.try_get("sequence")?,
            origin: ChangeOrigin {
                actor: row.try_get("actor")?,
                request_id: row.try_get("request_id")?,
                at: row.try_get("at")?,
            },
            change: Change {
                action,
                kind: row.try_get("kind")?,
                id: row.try_get::<Uuid, _>("resource_id")?.into(),
                name: row.try_get("name")?,
                generation_before: row.try_get("generation_before")?,
                generation_after: row.try_get("generation_after")?,
                reason: row.try_get("reason")?,
            },
            tenancy: tenancy.0,
        })
    }
}

impl FromRow<'_, PgRow> for TrailPosition {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            era: row.try_get("era")?,
            commit_order: row.try_get("commit_order")?,
            sequence: row.try_get("sequence")?,
        })
    }
}

impl FromRow<'_, PgRow> for TrailEntry {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            position: TrailPosition::from_row(row)?,
            entry: AuditEntry::from_row(row)?,
        })
    }
}

impl FromRow<'_, PgRow> for SettledTrail {
    fn from_row(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            era: row.try_get("current_era")?,
            transaction: row.try_get("open_transaction")?,
            last: position_of(row, "last")?,
        })
    }
}

/// A position in columns whose names begin with `prefix`; `None` if they are null.
pub(super) fn position_of(row: &PgRow, prefix: &str) -> Result<Option<TrailPosition>, sqlx::Error> {
    let number = |name: &str| row.try_get::<Option<i64>, _>(&*format!("{prefix}_{name}"));
    let numbers = (number("era")?, number("commit_order")?, number("sequence")?);
    let (Some(era), Some(commit_order), Some(sequence)) = numbers else {
        return Ok(None);
    };
    Ok(Some(TrailPosition {
        era,
        commit_order,
        sequence,
    }))
}

/// A statement that adds `$changes` of one request to the trail, with the tenancies of the resources; `$before` and
/// `$after` surround it. The resources must still exist when it begins.
macro_rules! audited {
    ($before:literal, $after:literal, $changes:expr, $origin:expr, $($arg:tt)*) => {{
        let changes: &[Change] = $changes;
        let actions: Vec<_> = changes.iter().map(|c| c.action.into_str().to_owned()).collect();
        let kinds: Vec<_> = changes.iter().map(|c| c.kind.clone()).collect();
        let ids: Vec<Uuid> = changes.iter().map(|c| c.id.as_uuid()).collect();
        let names: Vec<_> = changes.iter().map(|c| c.name.clone()).collect();
        let before: Vec<_> = changes.iter().map(|c| c.generation_before).collect();
        let after: Vec<_> = changes.iter().map(|c| c.generation_after).collect();
        let reasons: Vec<_> = changes.iter().map(|c| c.reason.clone()).collect();
        sqlx::query!(
            $before
                + "INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name,
                                      generation_before, generation_after, reason, tenancy)
                   SELECT $1, $2, $3, c.action, c.kind, c.id, c.name, c.before, c.after, c.reason, r.tenancy
                   FROM unnest($4::text[], $5::text[], $6::uuid[], $7::text[], $8::int[], $9::int[], $10::text[])
                        WITH ORDINALITY c (action, kind, id, name, before, after, reason, place)
                   LEFT JOIN resources r ON r.id = c.id
                   ORDER BY c.place"
                + $after,
            $origin.at,
            $origin.actor,
            $origin.request_id,
            &actions,
            &kinds,
            &ids,
            &names,
            &before as _,
            &after as _,
            &reasons as _,
            $($arg)*
        )
    }};
}

impl Db<'_> {
    /// Saves these states of resources, records the changes, and adds the changes of one request to the trail.
    pub(super) async fn save_audited(
        &mut self,
        states: &[ResourceState],
        changes: &[Change],
        dropped: &DroppedLinks,
        origin: &ChangeOrigin,
    ) -> Result<(), Error> {
        let ids: Vec<Uuid> = states.iter().map(|s| s.id.as_uuid()).collect();
        let generations: Vec<_> = states.iter().map(|s| s.generation).collect();
        let updated: Vec<_> = states.iter().map(|s| s.updated_at).collect();
        let deletions = || states.iter().map(|s| s.deletion.as_ref());
        let deleted_at: Vec<_> = deletions().map(|d| d.map(|d| d.at)).collect();
        let deleted_by: Vec<_> = deletions().map(|d| d.map(|d| d.by.clone())).collect();
        let conditions: Vec<_> = states.iter().map(|s| Json(&s.conditions)).collect();
        let computed = states.iter().map(|s| ConditionColumns::of(&s.conditions));
        let computed: Vec<_> = computed.collect();
        let condition_states: Vec<_> = computed
            .iter()
            .map(ConditionColumns::states_literal)
            .collect();
        let checked_at: Vec<_> = computed.iter().map(|c| c.reconciled_updated_at).collect();
        let moved_at: Vec<_> = computed
            .iter()
            .map(|c| c.reconciled_transition_at)
            .collect();
        let known: Vec<_> = computed.iter().map(|c| c.last_known_generation).collect();
        let links: Vec<_> = states.iter().map(|s| dropped.of(s.id)).collect();
        let statement = audited!(
            "WITH saved AS (
                 UPDATE resources r
                 SET generation = n.generation, updated_at = n.updated_at, deleted_at = n.deleted_at,
                     deleted_by = n.deleted_by, conditions = n.conditions, condition_states = n.states::text[],
                     reconciled_updated_at = n.reconciled_updated_at,
                     reconciled_transition_at = n.reconciled_transition_at,
                     last_known_generation = n.last_known_generation,
                     computed_revision = r.revision + 1, revision = r.revision + 1
                 FROM unnest($11::uuid[], $12::int[], $13::timestamptz[], $14::timestamptz[], $15::text[], $16::jsonb[],
                             $17::text[], $18::timestamptz[], $19::timestamptz[], $20::bigint[], $21::jsonb[])
                      n (id, generation, updated_at, deleted_at, deleted_by, conditions,
                         states, reconciled_updated_at, reconciled_transition_at, last_known_generation, links)
                 WHERE r.id = n.id
                 RETURNING r.id, r.kind, r.generation, n.links
             ), recorded AS (
                 INSERT INTO changes (at, resource_id, kind, action, generation_after, actor, request_id, revision,
                                      generation, updated_at, updated_by, deleted_at, deleted_by, links, conditions)
                 SELECT $1, s.id, s.kind, 'modified', s.generation, $2, $3, o.revision, o.generation, o.updated_at,
                        o.updated_by, o.deleted_at, o.deleted_by, s.links, o.conditions
                 FROM saved s JOIN resources o ON o.id = s.id
             ) ",
            "",
            changes,
            origin,
            &ids,
            &generations,
            &updated,
            &deleted_at as _,
            &deleted_by as _,
            &conditions as _,
            &condition_states,
            &checked_at as _,
            &moved_at as _,
            &known as _,
            &links as _,
        );
        let result = statement.execute(self.connection()).await;
        self.complete(result, Update(Resources), "save the states of resources")?;
        Ok(())
    }

    /// Removes resources, records that, and adds the changes of one request to the trail. Their reports and references are removed
    /// with them.
    pub(super) async fn remove_audited(
        &mut self,
        removed: &[ResourceId],
        changes: &[Change],
        dropped: &DroppedLinks,
        origin: &ChangeOrigin,
    ) -> Result<(), Error> {
        let links: Vec<_> = removed.iter().map(|id| dropped.of(*id)).collect();
        let removed = uuids(removed.iter().copied());
        let statement = audited!(
            "WITH logged AS (",
            "), recorded AS (
                 INSERT INTO changes (at, resource_id, kind, action, actor, request_id, revision, generation, updated_at,
                                      updated_by, deleted_at, deleted_by, created_at, created_by, name, owner_id, tenancy,
                                      spec, labels, links, conditions)
                 SELECT $1, r.id, r.kind, 'removed', $2, $3, r.revision, r.generation, r.updated_at, r.updated_by,
                        r.deleted_at, r.deleted_by, r.created_at, r.created_by, r.name, r.owner_id, r.tenancy, r.spec,
                        r.labels, coalesce(n.links, links_of(r.id)), r.conditions
                 FROM unnest($11::uuid[], $12::jsonb[]) n (id, links) JOIN resources r ON r.id = n.id
             ) DELETE FROM resources WHERE id = ANY($11)",
            changes,
            origin,
            &removed,
            &links as _,
        );
        let result = statement.execute(self.connection()).await;
        self.complete(result, Delete(Resources), "remove resources")?;
        Ok(())
    }
}
