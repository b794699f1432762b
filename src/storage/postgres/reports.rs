//! Table `adapter_reports`: the latest report of each adapter.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use sqlx::types::Json;

use super::condition_columns::{ConditionColumns, SentConditions};
use super::measure::SqlOperation::{Query, Update};
use super::measure::SqlTable::AdapterReports;
use super::{Db, Error, ResourceScope};
use crate::domain::audit::ChangeOrigin;
use crate::domain::change::is_recorded;
use crate::domain::page::{Listing, PageRequest};
use crate::domain::{Condition, Metadata, Report, ReportState, ReportedCondition, ResourceState};

struct Row {
    adapter: String,
    observed_generation: i32,
    created_at: DateTime<Utc>,
    reported_at: DateTime<Utc>,
    conditions: Json<Vec<ReportedCondition>>,
    data: Json<Map<String, Value>>,
    metadata: Option<Json<Metadata>>,
}

impl From<Row> for Report {
    fn from(row: Row) -> Self {
        Self {
            state: ReportState {
                adapter: row.adapter,
                observed_generation: row.observed_generation,
                created_at: row.created_at,
                reported_at: row.reported_at,
                conditions: row.conditions.0,
            },
            data: row.data.0,
            metadata: row.metadata.map(|m| m.0),
        }
    }
}

/// The statement that saves an accepted report. `$recorded` is what the update returns, and what else is written with
/// it: a part of a plan takes time even if nothing comes of it, and most reports record nothing.
macro_rules! save_report {
    ($recorded:literal, $before:expr, $conditions:expr, $report:expr, $($arg:tt)*) => {{
        let sent = SentConditions::of(&$before.conditions, $conditions);
        let computed = ConditionColumns::of($conditions);
        sqlx::query!(
            "WITH locked AS (
                 SELECT FROM resources WHERE id = $1 AND revision = $2 FOR NO KEY UPDATE SKIP LOCKED
             ), changed AS (
                 UPDATE resources
                 SET conditions = CASE WHEN $15::text IS NULL THEN $3 ELSE jsonb_set(conditions, ARRAY[$15], $3) END,
                     condition_states = $11, reconciled_updated_at = $12,
                     reconciled_transition_at = $13, last_known_generation = $14,
                     computed_revision = revision + 1, revision = revision + 1
                 WHERE id = $1 AND revision = $2 AND EXISTS (SELECT FROM locked)
                 "
                + $recorded
                + "
             INSERT INTO adapter_reports (resource_id, adapter, observed_generation, created_at, reported_at,
                                          conditions, data, metadata)
             SELECT id, $4, $5, $6, $7, $8, $9, $10 FROM changed
             ON CONFLICT (resource_id, adapter) DO UPDATE
             SET observed_generation = excluded.observed_generation, reported_at = excluded.reported_at,
                 conditions = excluded.conditions, data = excluded.data, metadata = excluded.metadata",
            $before.id.as_uuid(),
            $before.revision,
            sent.value as _,
            $report.state.adapter,
            $report.state.observed_generation,
            $report.state.created_at,
            $report.state.reported_at,
            Json(&$report.state.conditions) as _,
            Json(&$report.data) as _,
            $report.metadata.as_ref().map(Json) as _,
            &computed.states,
            computed.reconciled_updated_at,
            computed.reconciled_transition_at,
            computed.last_known_generation,
            sent.place,
            $($arg)*
        )
    }};
}

impl Db<'_> {
    /// Saves an accepted report with the resulting conditions, unless the resource has changed since `before` or another
    /// transaction holds its row; true if saved. Also records the change of the resource, if there is one to record.
    pub async fn save_report(
        &mut self,
        before: &ResourceState,
        conditions: &[Condition],
        report: &Report,
        origin: &ChangeOrigin,
    ) -> Result<bool, Error> {
        let result = if is_recorded(&before.conditions, conditions) {
            // The row of the statement's start: the one that the update replaces, because of its revision.
            let statement = save_report!(
                "RETURNING id, kind, generation
                 ), recorded AS (
                     INSERT INTO changes (at, resource_id, kind, action, generation_after, actor, request_id, cause,
                                          revision, conditions)
                     SELECT $16, c.id, c.kind, 'modified', c.generation, $17, $18, $4, $2, r.conditions
                     FROM changed c JOIN resources r ON r.id = c.id
                 )",
                before,
                conditions,
                report,
                origin.at,
                origin.actor,
                origin.request_id
            );
            statement.execute(self.connection()).await
        } else {
            let statement = save_report!("RETURNING id )", before, conditions, report,);
            statement.execute(self.connection()).await
        };
        let done = self.complete(result, Update(AdapterReports), "save a report")?;
        Ok(done.rows_affected() == 1)
    }

    /// The stored report of one adapter on an existing resource.
    pub async fn find_report(
        &mut self,
        state: &ResourceState,
        adapter: &str,
    ) -> Result<Option<Report>, Error> {
        let result = sqlx::query_as!(
            Row,
            r#"SELECT adapter, observed_generation, created_at, reported_at, conditions AS "conditions: _",
                      data AS "data: _", metadata AS "metadata: _"
               FROM adapter_reports WHERE resource_id = $1 AND adapter = $2"#,
            state.id.as_uuid(),
            adapter,
        )
        .fetch_optional(self.connection())
        .await;
        let row = self.complete(result, Query(AdapterReports), "find a report")?;
        Ok(row.map(Report::from))
    }

    /// One page of a resource's reports, first reporters first. `None`: there is no such resource.
    pub async fn list_reports(
        &mut self,
        scope: ResourceScope<'_>,
        page: PageRequest,
    ) -> Result<Option<Listing<Report>>, Error> {
        let result = sqlx::query!(
            r#"SELECT (SELECT count(*) FROM adapter_reports WHERE resource_id = r.id) AS "total!",
                      e.adapter AS "adapter?", e.observed_generation AS "observed_generation?",
                      e.created_at AS "created_at?", e.reported_at AS "reported_at?",
                      e.conditions AS "conditions?: Json<Vec<ReportedCondition>>",
                      e.data AS "data?: Json<Map<String, Value>>", e.metadata AS "metadata?: Json<Metadata>"
               FROM resources r
               LEFT JOIN LATERAL (
                   SELECT * FROM adapter_reports WHERE resource_id = r.id
                   ORDER BY created_at, adapter LIMIT $4 OFFSET $5
               ) e ON true
               WHERE r.id = $1 AND ($2::text IS NULL OR r.kind = $2) AND ($3::uuid IS NULL OR r.owner_id = $3)
                 AND ($6::jsonb IS NULL OR r.tenancy = $6 AND ($3::uuid IS NULL OR has_tenancy($3, $6)))
               ORDER BY e.created_at, e.adapter"#,
            scope.id.as_uuid(),
            scope.kind,
            scope.owner_uuid(),
            i64::from(page.size),
            page.offset(),
            scope.tenancy() as _,
        )
        .fetch_all(self.repeatable_connection())
        .await;
        let rows = self.complete(
            result,
            Query(AdapterReports),
            "list the reports of a resource",
        )?;
        let Some(total) = rows.first().map(|row| row.total) else {
            return Ok(None);
        };
        let items = rows.into_iter().filter_map(|row| {
            Some(Report::from(Row {
                adapter: row.adapter?,
                observed_generation: row.observed_generation?,
                created_at: row.created_at?,
                reported_at: row.reported_at?,
                conditions: row.conditions?,
                data: row.data?,
                metadata: row.metadata,
            }))
        });
        Ok(Some(Listing {
            page,
            items: items.collect(),
            total,
            next: None,
        }))
    }
}
