//! Table `adapter_reports`: the latest report of each adapter.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use sqlx::types::Json;

use super::measure::SqlOperation::Query;
use super::measure::SqlTable::AdapterReports;
use super::{Db, Error, ResourceScope};
use hyperfleet_domain::page::{Listing, PageRequest};
use hyperfleet_domain::{Metadata, Report, ReportState, ReportedCondition, ResourceState};

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

impl Db<'_> {
    /// The stored report of one adapter on an existing resource.
    pub(super) async fn find_report(
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
        .fetch_optional(self.repeatable_connection())
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
