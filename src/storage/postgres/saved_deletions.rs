//! Deletions that are saved together: as [`Db::save_deleted`], for several resources.

use super::batching::{BatchItem, by_place};
use super::condition_columns::{ConditionColumns, SentConditions};
use super::measure::SqlOperation::{self, Update};
use super::measure::SqlTable::Resources;
use super::saved_reports::column;
use super::{Db, Error};
use crate::domain::audit::{Change, ChangeOrigin};
use crate::domain::{Deletion, JsonText, ResourceState};

/// A resource that becomes finalizing, to be saved unless it has changed or has dependents. The answer is true if it
/// was saved.
pub(super) struct SaveDeleted {
    revision_before: i64,
    /// As it is to be. Its conditions are sent as `conditions`.
    state: ResourceState,
    condition_place: Option<String>,
    conditions: JsonText,
    computed: ConditionColumns,
    change: Change,
    origin: ChangeOrigin,
}

impl SaveDeleted {
    pub(super) fn new(
        before: &ResourceState,
        after: &ResourceState,
        change: &Change,
        origin: &ChangeOrigin,
    ) -> Self {
        let sent = SentConditions::of(&before.conditions, &after.conditions);
        Self {
            revision_before: before.revision,
            state: after.clone(),
            conditions: JsonText::of(&sent.value.0),
            condition_place: sent.place,
            computed: ConditionColumns::of(&after.conditions),
            change: change.clone(),
            origin: origin.clone(),
        }
    }

    fn deletion(&self) -> Option<&Deletion> {
        self.state.deletion.as_ref()
    }
}

impl BatchItem for SaveDeleted {
    type Answer = bool;

    const OPERATION: SqlOperation = Update(Resources);

    fn bytes(&self) -> usize {
        self.conditions.as_str().len()
    }

    /// Each row is locked before its dependents are searched, as by [`Db::save_deleted`].
    async fn answer(db: &mut Db<'_>, deletions: &[Self]) -> Result<Vec<bool>, Error> {
        let result = sqlx::query_scalar!(
            r#"WITH wanted AS (
                   SELECT * FROM unnest(
                       $1::uuid[], $2::bigint[], $3::int[], $4::timestamptz[], $5::timestamptz[], $6::text[],
                       $7::text[], $8::text[], $9::text[], $10::timestamptz[], $11::timestamptz[], $12::bigint[],
                       $13::timestamptz[], $14::text[], $15::text[], $16::text[], $17::int[])
                   WITH ORDINALITY w (
                       id, revision, generation, updated_at, deleted_at, deleted_by, condition_place, conditions,
                       condition_states, reconciled_updated_at, reconciled_transition_at, last_known_generation, at,
                       actor, request_id, action, generation_before, place)
               ), locked AS (
                   SELECT r.id, w.place FROM wanted w JOIN resources r ON r.id = w.id AND r.revision = w.revision
                   FOR UPDATE OF r SKIP LOCKED
               ), free AS MATERIALIZED (
                   SELECT place FROM locked WHERE NOT has_dependents(id)
               ), changed AS (
                   UPDATE resources r
                   SET generation = w.generation, updated_at = w.updated_at, deleted_at = w.deleted_at,
                       deleted_by = w.deleted_by,
                       conditions = CASE WHEN w.condition_place IS NULL THEN w.conditions::jsonb
                                         ELSE jsonb_set(r.conditions, ARRAY[w.condition_place], w.conditions::jsonb) END,
                       condition_states = w.condition_states::text[], reconciled_updated_at = w.reconciled_updated_at,
                       reconciled_transition_at = w.reconciled_transition_at,
                       last_known_generation = w.last_known_generation,
                       computed_revision = r.revision + 1, revision = r.revision + 1
                   FROM wanted w JOIN free f ON f.place = w.place
                   WHERE r.id = w.id
                   RETURNING r.id, r.kind, r.name, r.tenancy, w.place
               ), recorded AS (
                   INSERT INTO changes (at, resource_id, kind, action, generation_after, actor, request_id, revision,
                                        generation, updated_at, updated_by, deleted_at, deleted_by, conditions)
                   SELECT w.at, c.id, c.kind, 'modified', w.generation, w.actor, w.request_id, w.revision,
                          r.generation, r.updated_at, r.updated_by, r.deleted_at, r.deleted_by, r.conditions
                   FROM changed c JOIN wanted w ON w.place = c.place JOIN resources r ON r.id = c.id
               ), logged AS (
                   INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name,
                                              generation_before, generation_after, tenancy)
                   SELECT w.at, w.actor, w.request_id, w.action, c.kind, c.id, c.name, w.generation_before,
                          w.generation, c.tenancy
                   FROM changed c JOIN wanted w ON w.place = c.place
               )
               SELECT place AS "place!" FROM changed"#,
            &column(deletions, |d| d.state.id.as_uuid()),
            &column(deletions, |d| d.revision_before),
            &column(deletions, |d| d.state.generation),
            &column(deletions, |d| d.state.updated_at),
            &column(deletions, |d| Some(d.deletion()?.at)) as _,
            &column(deletions, |d| Some(d.deletion()?.by.as_str())) as _,
            &column(deletions, |d| d.condition_place.as_deref()) as _,
            &column(deletions, |d| d.conditions.as_str()) as _,
            &column(deletions, |d| d.computed.states_literal()),
            &column(deletions, |d| d.computed.reconciled_updated_at) as _,
            &column(deletions, |d| d.computed.reconciled_transition_at) as _,
            &column(deletions, |d| d.computed.last_known_generation) as _,
            &column(deletions, |d| d.origin.at),
            &column(deletions, |d| d.origin.actor.as_str()) as _,
            &column(deletions, |d| d.origin.request_id.as_str()) as _,
            &column(deletions, |d| d.change.action.into_str()) as _,
            &column(deletions, |d| d.change.generation_before) as _,
        )
        .fetch_all(db.connection())
        .await;
        let places = db.complete(result, Self::OPERATION, "save deleted resources")?;
        let saved = by_place(deletions.len(), places.into_iter().map(|place| (place, ())));
        Ok(saved.iter().map(Option::is_some).collect())
    }
}
