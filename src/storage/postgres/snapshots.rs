//! What a decision reads of a resource: its state, the latest report of each adapter, whether it owns
//! anything and, for kinds with rules, what these look at.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use hyperfleet_expressions::TEXTS_BYTES_MAX;
use serde::Deserialize;
use serde_json::{Map, Value};
use sqlx::types::Json;
use uuid::Uuid;

use super::measure::SqlOperation::Query;
use super::measure::SqlTable::Resources;
use super::row::state_of;
use super::{Db, Error, LockedRow, ResourceScope, uuids};
use crate::domain::mapping::{Data, Facts};
use crate::domain::{
    Condition, Labels, ReportState, ReportedCondition, ResourceSnapshot, ResourceState, Tenancy,
};

/// The database counts up to this many times the bytes that rules count, because it prints JSON with
/// blanks and long numbers. Below its limit the rules decide.
const WRITTEN_OUT: usize = 4;

/// The columns of a resource that decisions look at, and one array per column of its reports.
struct SnapshotRow {
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

#[derive(Deserialize)]
struct FactsColumn {
    spec: Map<String, Value>,
    labels: Labels,
    tenancy: Tenancy,
    created_at: DateTime<Utc>,
    created_by: String,
    updated_by: String,
    /// By adapter; `None` where the data exceed what rules read.
    data: Option<BTreeMap<String, Option<Map<String, Value>>>>,
}

/// The statement that reads snapshots, of the resources that `$which` selects. Only decisions about
/// finalizing resources look at children. It asks something of each parameter of `$facts`, so that one without them
/// takes the same.
macro_rules! statement {
    ($facts:literal, $which:literal, $kinds_with_rules:expr, $($arg:tt)*) => {
        sqlx::query_as!(
            SnapshotRow,
            r#"SELECT r.id, r.kind, r.name, r.owner_id, r.generation, r.revision,
                      r.updated_at, r.deleted_at, r.deleted_by, r.conditions AS "conditions: _",
                      CASE WHEN r.deleted_at IS NULL THEN 0
                           ELSE (SELECT count(*) FROM (SELECT FROM resources c WHERE c.owner_id = r.id LIMIT 2) c)
                      END AS "children!",
                      e.adapters AS "report_adapters", e.generations AS "report_generations",
                      e.created AS "report_created", e.times AS "report_times",
                      e.conditions AS "report_conditions: _",
                      CASE WHEN r.kind = ANY($1) AND $2::int > 0 AND $3::bigint > 0 THEN "#
                + $facts
                + r#" END AS "facts: _"
               FROM resources r
               CROSS JOIN LATERAL (
                   SELECT array_agg(adapter) AS adapters, array_agg(observed_generation) AS generations,
                          array_agg(created_at) AS created, array_agg(reported_at) AS times,
                          array_agg(conditions) AS conditions
                   FROM adapter_reports WHERE resource_id = r.id
               ) e
               "#
                + $which,
            $kinds_with_rules,
            i32::try_from(Data::BYTES_MAX * WRITTEN_OUT).unwrap_or(i32::MAX),
            i64::try_from(TEXTS_BYTES_MAX * WRITTEN_OUT).unwrap_or(i64::MAX),
            $($arg)*
        )
    };
}

/// Reads snapshots by `$fetch`. Where no kind has rules, the statement does without their facts: a part of a plan costs
/// the database time even if it is never run (a seventh of the statement).
macro_rules! snapshots {
    ($fetch:ident, $db:expr, $which:literal, $kinds_with_rules:expr, $($arg:tt)*) => {
        if $kinds_with_rules.is_empty() {
            let statement = statement!("NULL::jsonb", $which, $kinds_with_rules, $($arg)*);
            statement.$fetch($db.repeatable_wire()).await
        } else {
            let statement = statement!(
                r#"jsonb_build_object(
                       'spec', r.spec, 'labels', r.labels, 'tenancy', r.tenancy, 'created_at', r.created_at,
                       'created_by', r.created_by, 'updated_by', r.updated_by, 'data', (
                           SELECT jsonb_object_agg(
                               adapter, CASE WHEN bytes <= $2 AND all_bytes <= $3 THEN data END)
                           FROM (SELECT *, sum(bytes) OVER () AS all_bytes FROM (
                               SELECT adapter, data, octet_length(data::text) AS bytes
                               FROM adapter_reports WHERE resource_id = r.id) one) a))"#,
                $which,
                $kinds_with_rules,
                $($arg)*
            );
            statement.$fetch($db.repeatable_wire()).await
        }
    };
}

impl Db<'_> {
    /// The snapshot of one resource, if it is there.
    pub async fn find_snapshot(
        &mut self,
        place: ResourceScope<'_>,
        kinds_with_rules: &[String],
    ) -> Result<Option<ResourceSnapshot>, Error> {
        let result = snapshots!(
            fetch_optional,
            self,
            "WHERE r.id = $4 AND ($5::text IS NULL OR r.kind = $5) AND ($6::uuid IS NULL OR r.owner_id = $6)
             AND ($7::jsonb IS NULL OR r.tenancy = $7 AND ($6::uuid IS NULL OR has_tenancy($6, $7)))",
            kinds_with_rules,
            place.id.as_uuid(),
            place.kind,
            place.owner_uuid(),
            place.tenancy() as _,
        );
        let row = self.done(result, Query(Resources), "find a resource and its reports")?;
        Ok(row.map(ResourceSnapshot::from))
    }

    /// The snapshots of locked resources, in the order in which they are given.
    pub async fn list_snapshots(
        &mut self,
        locked: &[LockedRow],
        kinds_with_rules: &[String],
    ) -> Result<Vec<ResourceSnapshot>, Error> {
        let result = snapshots!(
            fetch_all,
            self,
            "JOIN unnest($4::uuid[]) WITH ORDINALITY wanted (id, place) ON wanted.id = r.id ORDER BY wanted.place",
            kinds_with_rules,
            &uuids(locked.iter().map(|h| h.id())),
        );
        let rows = self.done(result, Query(Resources), "read locked resources")?;
        Ok(rows.into_iter().map(ResourceSnapshot::from).collect())
    }
}

impl From<SnapshotRow> for ResourceSnapshot {
    fn from(row: SnapshotRow) -> Self {
        let reports = row
            .report_adapters
            .unwrap_or_default()
            .into_iter()
            .zip(row.report_generations.unwrap_or_default())
            .zip(row.report_created.unwrap_or_default())
            .zip(row.report_times.unwrap_or_default())
            .zip(row.report_conditions.unwrap_or_default());
        Self {
            state: state_of!(row),
            reports: reports
                .map(
                    |((((adapter, observed_generation), created_at), reported_at), conditions)| {
                        ReportState {
                            adapter,
                            observed_generation,
                            created_at,
                            reported_at,
                            conditions: conditions.0,
                        }
                    },
                )
                .collect(),
            children: usize::try_from(row.children).unwrap_or(0),
            facts: row.facts.map(|facts| Box::new(facts.0.into())),
        }
    }
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
