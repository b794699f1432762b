//! What rules need of resources beside their standing. Read for kinds with rules only: the statements
//! for all others stay as they are.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};
use sqlx::types::Json;
use uuid::Uuid;

use super::measure::SqlOperation::Query;
use super::measure::SqlTable::Resources;
use super::row::StandingRow;
use super::{Db, Error, Place};
use crate::domain::mapping::{Data, Facts, TEXTS_BYTES_MAX};
use crate::domain::{Condition, Labels, ReportedCondition, Standing, Tenancy};

/// The columns of [`StandingRow`], and the facts of kinds with rules.
struct Row {
    id: Uuid,
    kind: String,
    name: String,
    owner_id: Option<Uuid>,
    generation: i32,
    revision: i64,
    updated_at: DateTime<Utc>,
    deleted_at: Option<DateTime<Utc>>,
    deleted_by: Option<String>,
    conditions: Json<Vec<Condition>>,
    children: i64,
    report_adapters: Option<Vec<String>>,
    report_generations: Option<Vec<i32>>,
    report_created: Option<Vec<DateTime<Utc>>>,
    report_times: Option<Vec<DateTime<Utc>>>,
    report_conditions: Option<Vec<Json<Vec<ReportedCondition>>>>,
    facts: Option<Json<FactsColumn>>,
}

/// How much more the database may count than rules do, which decide: it writes the same data with
/// blanks between, and numbers out.
const WRITTEN_OUT: usize = 4;

#[derive(Deserialize)]
struct FactsColumn {
    spec: Map<String, Value>,
    labels: Labels,
    tenancy: Tenancy,
    created_at: DateTime<Utc>,
    created_by: String,
    updated_by: String,
    /// By adapter; none where there is more than rules look at.
    data: Option<BTreeMap<String, Option<Map<String, Value>>>>,
}

impl From<FactsColumn> for Facts {
    fn from(column: FactsColumn) -> Self {
        let data = column.data.unwrap_or_default().into_iter();
        let data = data.map(|(adapter, data)| (adapter, data.map_or(Data::TooLarge, Data::of)));
        Self {
            spec: column.spec,
            labels: column.labels,
            tenancy: column.tenancy,
            created_at: column.created_at,
            created_by: column.created_by,
            updated_by: column.updated_by,
            data: data.collect(),
        }
    }
}

impl From<Row> for Standing {
    fn from(row: Row) -> Self {
        let facts = row.facts.map(|facts| Box::new(facts.0.into()));
        let standing = Self::from(StandingRow {
            id: row.id,
            kind: row.kind,
            name: row.name,
            owner_id: row.owner_id,
            generation: row.generation,
            revision: row.revision,
            updated_at: row.updated_at,
            deleted_at: row.deleted_at,
            deleted_by: row.deleted_by,
            conditions: row.conditions,
            children: row.children,
            report_adapters: row.report_adapters,
            report_generations: row.report_generations,
            report_created: row.report_created,
            report_times: row.report_times,
            report_conditions: row.report_conditions,
        });
        Self { facts, ..standing }
    }
}

impl Db<'_> {
    /// The life and reports of resources, in the order in which they are asked for, with the facts
    /// of those whose kind is one of `with_rules`. Ids that are not of locked rows need a place to be
    /// looked for.
    pub(super) async fn standings_with_facts(
        &mut self,
        ids: &[Uuid],
        place: Option<Place<'_>>,
        with_rules: &[String],
    ) -> Result<Vec<Standing>, Error> {
        let result = sqlx::query_as!(
            Row,
            r#"SELECT r.id, r.kind, r.name, r.owner_id, r.generation, r.revision,
                      r.updated_at, r.deleted_at, r.deleted_by, r.conditions AS "conditions: _",
                      (SELECT count(*) FROM (SELECT FROM resources c WHERE c.owner_id = r.id LIMIT 2) c) AS "children!",
                      e.adapters AS "report_adapters", e.generations AS "report_generations",
                      e.created AS "report_created", e.times AS "report_times",
                      e.conditions AS "report_conditions: _",
                      CASE WHEN r.kind = ANY($4) THEN jsonb_build_object(
                          'spec', r.spec, 'labels', r.labels, 'tenancy', r.tenancy, 'created_at', r.created_at,
                          'created_by', r.created_by, 'updated_by', r.updated_by, 'data', e.data
                      ) END AS "facts: _"
               FROM unnest($1::uuid[]) WITH ORDINALITY wanted (id, place)
               JOIN resources r ON r.id = wanted.id
               CROSS JOIN LATERAL (
                   SELECT array_agg(adapter) AS adapters, array_agg(observed_generation) AS generations,
                          array_agg(created_at) AS created, array_agg(reported_at) AS times,
                          array_agg(conditions) AS conditions,
                          jsonb_object_agg(adapter, CASE WHEN bytes <= $5 AND all_bytes <= $6 THEN data END) AS data
                   FROM (SELECT *, sum(bytes) OVER () AS all_bytes FROM (
                       SELECT *, CASE WHEN r.kind = ANY($4) THEN octet_length(data::text) END AS bytes
                       FROM adapter_reports WHERE resource_id = r.id) one) a
               ) e
               WHERE ($2::text IS NULL OR r.kind = $2) AND ($3::uuid IS NULL OR r.owner_id = $3)
                 AND ($7::jsonb IS NULL OR r.tenancy = $7 AND ($3::uuid IS NULL OR has_tenancy($3, $7)))
               ORDER BY wanted.place"#,
            ids,
            place.and_then(|p| p.kind),
            place.and_then(|p| p.owner_uuid()),
            with_rules,
            i32::try_from(Data::BYTES_MAX * WRITTEN_OUT).unwrap_or(i32::MAX),
            i64::try_from(TEXTS_BYTES_MAX * WRITTEN_OUT).unwrap_or(i64::MAX),
            place.and_then(|p| p.tenancy()) as _,
        )
        .fetch_all(self.wire())
        .await;
        let rows = self.done(
            result,
            Query(Resources),
            "read resources and what rules need",
        )?;
        Ok(rows.into_iter().map(Standing::from).collect())
    }
}
