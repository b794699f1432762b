//! Saves accepted reports with the conditions that follow from them, and records the change of each resource, if there is
//! one to record. This is the only statement that does so, for one report or several.
//!
//! A resource that another transaction holds is left out, and its report counts as not saved: no request waits for
//! another's lock. Of several reports on one resource, one is saved.

use uuid::Uuid;

use super::batching::{BatchItem, by_place, column};
use super::condition_columns::{ConditionColumns, SentConditions};
use super::measure::SqlOperation::{self, Update};
use super::measure::SqlTable::AdapterReports;
use super::{Db, Error};
use hyperfleet_domain::audit::ChangeOrigin;
use hyperfleet_domain::change::is_recorded;
use hyperfleet_domain::{Condition, JsonText, Report, ReportState, ResourceState};

/// An accepted report and the conditions that follow from it, to be saved unless the resource has changed. The answer
/// is true if it was saved.
pub(super) struct SaveReport {
    id: Uuid,
    revision: i64,
    condition_place: Option<String>,
    conditions: JsonText,
    computed: ConditionColumns,
    report: ReportState,
    reported_conditions: JsonText,
    data: JsonText,
    metadata: Option<JsonText>,
    /// Who changed the resource, if that is recorded.
    origin: Option<ChangeOrigin>,
}

impl SaveReport {
    pub(super) fn new(
        before: &ResourceState,
        conditions: &[Condition],
        report: &Report,
        origin: &ChangeOrigin,
    ) -> Self {
        let sent = SentConditions::of(&before.conditions, conditions);
        let is_recorded = is_recorded(&before.conditions, conditions);
        Self {
            id: before.id.as_uuid(),
            revision: before.revision,
            condition_place: sent.place,
            conditions: JsonText::of(&sent.value.0),
            computed: ConditionColumns::of(conditions),
            report: report.state.clone(),
            reported_conditions: JsonText::of(&report.state.conditions),
            data: JsonText::of(&report.data),
            metadata: report.metadata.as_ref().map(JsonText::of),
            origin: is_recorded.then(|| origin.clone()),
        }
    }
}

/// The statement. `$recorded` records changes: a part of a plan takes time even if nothing comes of it, and most reports
/// record nothing.
macro_rules! save_reports {
    ($db:ident, $reports:ident, $recorded:literal) => {
        sqlx::query_scalar!(
            r#"WITH locked AS (
                   SELECT w.* FROM unnest(
                       $1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::timestamptz[],
                       $7::timestamptz[], $8::bigint[], $9::text[], $10::int[], $11::timestamptz[],
                       $12::timestamptz[], $13::text[], $14::text[], $15::text[], $16::timestamptz[], $17::text[],
                       $18::text[])
                   WITH ORDINALITY w (
                       id, revision, condition_place, conditions, condition_states, reconciled_updated_at,
                       reconciled_transition_at, last_known_generation, adapter, observed_generation, created_at,
                       reported_at, reported_conditions, data, metadata, at, actor, request_id, place)
                   JOIN resources r ON r.id = w.id AND r.revision = w.revision
                   FOR NO KEY UPDATE OF r SKIP LOCKED
               ), changed AS (
                   UPDATE resources r
                   SET conditions = CASE WHEN w.condition_place IS NULL THEN w.conditions::jsonb
                                         ELSE jsonb_set(r.conditions, ARRAY[w.condition_place], w.conditions::jsonb) END,
                       condition_states = w.condition_states::text[], reconciled_updated_at = w.reconciled_updated_at,
                       reconciled_transition_at = w.reconciled_transition_at,
                       last_known_generation = w.last_known_generation,
                       computed_revision = r.revision + 1, revision = r.revision + 1
                   FROM locked w
                   WHERE r.id = w.id AND r.revision = w.revision
                   RETURNING r.kind, r.generation, r.revision AS saved_revision, r.conditions AS saved_conditions, w.*
"#
                + $recorded
                + r#"
               ), saved AS (
                   INSERT INTO adapter_reports (resource_id, adapter, observed_generation, created_at, reported_at,
                                                conditions, data, metadata)
                   SELECT c.id, c.adapter, c.observed_generation, c.created_at, c.reported_at,
                          c.reported_conditions::jsonb, c.data::jsonb, c.metadata::jsonb
                   FROM changed c
                   ON CONFLICT (resource_id, adapter) DO UPDATE
                   SET observed_generation = excluded.observed_generation, reported_at = excluded.reported_at,
                       conditions = excluded.conditions, data = excluded.data, metadata = excluded.metadata
               )
               SELECT place AS "place!" FROM changed"#,
            &column($reports, |r| r.id),
            &column($reports, |r| r.revision),
            &column($reports, |r| r.condition_place.as_deref()) as _,
            &column($reports, |r| r.conditions.as_str()) as _,
            &column($reports, |r| r.computed.states_literal()),
            &column($reports, |r| r.computed.reconciled_updated_at) as _,
            &column($reports, |r| r.computed.reconciled_transition_at) as _,
            &column($reports, |r| r.computed.last_known_generation) as _,
            &column($reports, |r| r.report.adapter.as_str()) as _,
            &column($reports, |r| r.report.observed_generation),
            &column($reports, |r| r.report.created_at),
            &column($reports, |r| r.report.reported_at),
            &column($reports, |r| r.reported_conditions.as_str()) as _,
            &column($reports, |r| r.data.as_str()) as _,
            &column($reports, |r| r.metadata.as_ref().map(JsonText::as_str)) as _,
            &column($reports, |r| Some(r.origin.as_ref()?.at)) as _,
            &column($reports, |r| Some(r.origin.as_ref()?.actor.as_str())) as _,
            &column($reports, |r| Some(r.origin.as_ref()?.request_id.as_str())) as _,
        )
        .fetch_all($db.connection())
        .await
    };
}

impl BatchItem for SaveReport {
    type Answer = bool;

    const OPERATION: SqlOperation = Update(AdapterReports);
    const DOING: &'static str = "save a report";

    fn bytes(&self) -> usize {
        let texts = [&self.conditions, &self.reported_conditions, &self.data];
        texts.iter().map(|text| text.as_str().len()).sum()
    }

    async fn answer(db: &mut Db<'_>, reports: &[Self]) -> Result<Vec<bool>, Error> {
        let result = if reports.iter().any(|report| report.origin.is_some()) {
            save_reports!(
                db,
                reports,
                "), recorded AS (
                     INSERT INTO changes (at, resource_id, revision, generation, kind, action, actor, request_id, cause,
                                          conditions)
                     SELECT c.at, c.id, c.saved_revision, c.generation, c.kind, 'modified', c.actor, c.request_id,
                            c.adapter, c.saved_conditions
                     FROM changed c WHERE c.at IS NOT NULL"
            )
        } else {
            save_reports!(db, reports, "")
        };
        let places = db.complete(result, Self::OPERATION, Self::DOING)?;
        let saved = by_place(reports.len(), places.into_iter().map(|place| (place, ())));
        Ok(saved.iter().map(Option::is_some).collect())
    }
}
