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
/// record nothing. Both forms take the same parameters.
macro_rules! save_reports {
    ($db:ident, $reports:ident, $recorded:literal) => {
        sqlx::query_scalar!(
            r#"WITH locked AS (
                   SELECT ids.id, ids.place
                   FROM unnest($1::uuid[]) WITH ORDINALITY ids (id, place)
                   JOIN resources r ON r.id = ids.id AND r.revision = ($2::bigint[])[ids.place]
                   FOR NO KEY UPDATE OF r SKIP LOCKED
               ), changed AS (
                   UPDATE resources r
                   SET conditions = CASE WHEN ($3::text[])[place] IS NULL THEN ($4::text[])[place]::jsonb
                                         ELSE jsonb_set(r.conditions, ARRAY[($3::text[])[place]],
                                                        ($4::text[])[place]::jsonb) END,
                       condition_states = ($5::text[])[place]::text[],
                       reconciled_updated_at = ($6::timestamptz[])[place],
                       reconciled_transition_at = ($7::timestamptz[])[place],
                       last_known_generation = ($8::bigint[])[place],
                       computed_revision = r.revision + 1, revision = r.revision + 1
                   FROM locked w
                   WHERE r.id = w.id AND r.revision = ($2::bigint[])[place]
                   RETURNING r.id, r.kind, r.generation, r.revision, r.conditions, w.place
"#
                + $recorded
                + r#"
               ), saved AS (
                   INSERT INTO adapter_reports (resource_id, adapter, observed_generation, created_at, reported_at,
                                                conditions, data, metadata)
                   SELECT id, ($9::text[])[place], ($10::int[])[place], ($11::timestamptz[])[place],
                          ($12::timestamptz[])[place], ($13::text[])[place]::jsonb, ($14::text[])[place]::jsonb,
                          ($15::text[])[place]::jsonb
                   FROM changed
                   ON CONFLICT (resource_id, adapter) DO UPDATE
                   SET observed_generation = excluded.observed_generation, reported_at = excluded.reported_at,
                       conditions = excluded.conditions, data = excluded.data, metadata = excluded.metadata
               )
               SELECT place AS "place!" FROM changed
               WHERE $16::timestamptz[] IS NOT NULL AND $17::text[] IS NOT NULL AND $18::text[] IS NOT NULL"#,
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
                     SELECT ($16::timestamptz[])[place], id, revision, generation, kind, 'modified',
                            ($17::text[])[place], ($18::text[])[place], ($9::text[])[place], conditions
                     FROM changed WHERE ($16::timestamptz[])[place] IS NOT NULL"
            )
        } else {
            save_reports!(db, reports, "")
        };
        let places = db.complete(result, Self::OPERATION, Self::DOING)?;
        let saved = by_place(reports.len(), places.into_iter().map(|place| (place, ())));
        Ok(saved.iter().map(Option::is_some).collect())
    }
}
