//! Reads what a decision needs of a resource: its state, the latest report of each adapter, whether it has children
//! and, for kinds with rules, their input. Changes read the whole resource with it, in the same statement.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use hyperfleet_expressions::TEXTS_BYTES_MAX;
use serde::Deserialize;
use serde_json::{Map, Value};
use sqlx::types::Json;
use uuid::Uuid;

use super::batching::{BatchItem, by_place};
use super::measure::SqlOperation::{self, Query};
use super::measure::SqlTable::Resources;
use super::row::{Link, references, state_of};
use super::scope::{WantedColumns, WantedResource};
use super::surroundings::{ROWS_MAX, SurroundingsColumn};
use super::{Db, Error, LockedRow, ResourceScope, uuids};
use crate::domain::condition_rules::{Data, Facts};
use crate::domain::explain::{LEVELS_MAX, Surroundings};
use crate::domain::{
    Condition, Labels, ReportState, ReportedCondition, Resource, ResourceSnapshot, ResourceState,
    Tenancy,
};

/// The database counts up to this many times the bytes that rules count, because it prints JSON with blanks and long
/// numbers. Below its limit the rules decide.
const WRITTEN_OUT: usize = 4;

/// A resource with the snapshot of the same moment.
#[derive(Debug)]
pub struct WholeResource {
    pub resource: Resource,
    pub snapshot: ResourceSnapshot,
    /// Whether it has children or is the target of references. Unset if the statement does not check.
    pub has_dependents: Option<bool>,
}

/// A resource with the resources around it, of one moment.
#[derive(Debug)]
pub struct SurroundedResource {
    pub snapshot: ResourceSnapshot,
    pub created_at: DateTime<Utc>,
    pub surroundings: Surroundings,
}

#[derive(Debug)]
pub struct LockedSnapshots {
    /// In the order of the locked rows.
    pub snapshots: Vec<ResourceSnapshot>,
    /// Whether any of the resources has a reference, or is the target of one.
    pub has_links: bool,
}

/// A row with the columns of a resource that decisions read, one array per column of its reports, and more columns.
macro_rules! snapshot_row {
    ($name:ident { $($field:ident: $type:ty),* }) => {
        struct $name {
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
            $($field: $type),*
        }

        impl $name {
            fn snapshot(self) -> ResourceSnapshot {
                let reports = self
                    .report_adapters
                    .unwrap_or_default()
                    .into_iter()
                    .zip(self.report_generations.unwrap_or_default())
                    .zip(self.report_created.unwrap_or_default())
                    .zip(self.report_times.unwrap_or_default())
                    .zip(self.report_conditions.unwrap_or_default());
                ResourceSnapshot {
                    state: state_of!(self),
                    reports: reports.map(report_state).collect(),
                    children: usize::try_from(self.children).unwrap_or(0),
                    facts: self.facts.map(|facts| Box::new(facts.0.into())),
                }
            }
        }
    };
}

snapshot_row!(SnapshotRow {});
snapshot_row!(LockedSnapshotRow { has_links: bool });
snapshot_row!(WantedSnapshotRow { place: i64 });
snapshot_row!(SurroundedRow {
    created_at: DateTime<Utc>,
    surroundings: Json<SurroundingsColumn>
});
snapshot_row!(WholeRow {
    spec: Json<Map<String, Value>>,
    labels: Json<Labels>,
    tenancy: Json<Tenancy>,
    created_at: DateTime<Utc>,
    created_by: String,
    updated_by: String,
    links: Option<Json<Vec<Link>>>,
    has_dependents: Option<bool>,
    place: i64
});

#[derive(Deserialize)]
struct FactsColumn {
    spec: Map<String, Value>,
    labels: Labels,
    tenancy: Tenancy,
    created_at: DateTime<Utc>,
    created_by: String,
    updated_by: String,
    /// By adapter; `None` if the data exceed what rules read.
    data: Option<BTreeMap<String, Option<Map<String, Value>>>>,
}

/// The statement that reads snapshots with `$more` columns, of the resources that `$which` selects. Only decisions
/// about finalizing resources need children. It uses each parameter of `$facts`, so that one without them takes the
/// same parameters.
macro_rules! statement {
    ($row:ident, $facts:literal, [$($more:literal)*], $which:literal, $kinds_with_rules:expr, $($arg:tt)*) => {
        sqlx::query_as!(
            $row,
            r#"SELECT r.id, r.kind, r.name, r.owner_id, r.generation, r.revision,
                      r.updated_at, r.deleted_at, r.deleted_by, r.conditions AS "conditions: _",
                      CASE WHEN r.deleted_at IS NULL THEN 0 ELSE count_children(r.id) END AS "children!",
                      e.adapters AS "report_adapters", e.generations AS "report_generations",
                      e.created AS "report_created", e.times AS "report_times",
                      e.conditions AS "report_conditions: _",
                      CASE WHEN r.kind = ANY($1) AND $2::int > 0 AND $3::bigint > 0 THEN "#
                + $facts
                + r#" END AS "facts: _""#
                $(+ $more)*
                + r#"
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

/// Reads snapshots by `$fetch`. If no kind has rules, the statement does without their facts: a part of a plan costs
/// the database time even if it is never run (a seventh of the statement).
macro_rules! snapshots {
    ($fetch:ident, $row:ident, $db:expr, $more:tt, $which:literal, $kinds_with_rules:expr, $($arg:tt)*) => {
        if $kinds_with_rules.is_empty() {
            let statement = statement!($row, "NULL::jsonb", $more, $which, $kinds_with_rules, $($arg)*);
            statement.$fetch($db.repeatable_connection()).await
        } else {
            let statement = statement!(
                $row,
                r#"jsonb_build_object(
                       'spec', r.spec, 'labels', r.labels, 'tenancy', r.tenancy, 'created_at', r.created_at,
                       'created_by', r.created_by, 'updated_by', r.updated_by, 'data', (
                           SELECT jsonb_object_agg(
                               adapter, CASE WHEN bytes <= $2 AND all_bytes <= $3 THEN data END)
                           FROM (SELECT *, sum(bytes) OVER () AS all_bytes FROM (
                               SELECT adapter, data, octet_length(data::text) AS bytes
                               FROM adapter_reports WHERE resource_id = r.id) one) a))"#,
                $more,
                $which,
                $kinds_with_rules,
                $($arg)*
            );
            statement.$fetch($db.repeatable_connection()).await
        }
    };
}

/// The snapshot of one resource of a [`ResourceScope`], with `$more` columns, which may use further parameters from `$8`.
macro_rules! snapshot_in {
    ($row:ident, $db:expr, $more:tt, $scope:expr, $kinds_with_rules:expr $(, $arg:expr)*) => {
        snapshots!(
            fetch_optional,
            $row,
            $db,
            $more,
            "WHERE r.id = $4 AND ($5::text IS NULL OR r.kind = $5) AND ($6::uuid IS NULL OR r.owner_id = $6)
             AND ($7::jsonb IS NULL OR r.tenancy = $7 AND ($6::uuid IS NULL OR has_tenancy($6, $7)))",
            $kinds_with_rules,
            $scope.id.as_uuid(),
            $scope.kind,
            $scope.owner_uuid(),
            $scope.tenancy() as _,
            $($arg),*
        )
    };
}

/// The snapshots of the resources of [`WantedColumns`], with `$more` columns.
macro_rules! wanted_snapshots {
    ($row:ident, $db:expr, $more:tt, $wanted:expr, $kinds_with_rules:expr) => {
        snapshots!(
            fetch_all,
            $row,
            $db,
            $more,
            "JOIN unnest($4::uuid[], $5::text[], $6::uuid[], $7::jsonb[])
                  WITH ORDINALITY wanted (id, kind, owner_id, tenancy, place) ON wanted.id = r.id
             WHERE (wanted.kind IS NULL OR r.kind = wanted.kind)
               AND (wanted.owner_id IS NULL OR r.owner_id = wanted.owner_id)
               AND (wanted.tenancy IS NULL OR r.tenancy = wanted.tenancy
                    AND (wanted.owner_id IS NULL OR has_tenancy(wanted.owner_id, wanted.tenancy)))",
            $kinds_with_rules,
            &$wanted.ids,
            &$wanted.kinds as _,
            &$wanted.owners as _,
            &$wanted.tenancies as _,
        )
    };
}

/// Whole resources by `$which` macro, `$dependents`, and `$place`.
macro_rules! whole {
    ($which:ident, $dependents:literal, $place:literal, $db:expr, $scope:expr, $kinds_with_rules:expr) => {
        $which!(
            WholeRow,
            $db,
            [
                r#", r.spec AS "spec: _", r.labels AS "labels: _", r.tenancy AS "tenancy: _",
                   r.created_at, r.created_by, r.updated_by,
                   (SELECT jsonb_agg(jsonb_build_object('type', ref_type, 'kind', target_kind, 'id', target_id))
                    FROM resource_references WHERE source_id = r.id) AS "links: _", "#
                $dependents
                r#" AS "has_dependents?", "#
                $place
                r#" AS "place!""#
            ],
            $scope,
            $kinds_with_rules
        )
    };
}

/// Which resource to read for a report.
pub(super) struct FindSnapshot {
    pub(super) wanted: WantedResource,
    /// The same for every request of a program.
    pub(super) kinds_with_rules: Vec<String>,
}

/// Which whole resource to read for a change.
pub(super) struct FindWhole(pub(super) FindSnapshot);

/// Which whole resource to read for a deletion, with whether it has dependents.
pub(super) struct FindDeletable(pub(super) FindSnapshot);

impl BatchItem for FindSnapshot {
    type Answer = Option<ResourceSnapshot>;

    const OPERATION: SqlOperation = Query(Resources);

    async fn answer(db: &mut Db<'_>, items: &[Self]) -> Result<Vec<Self::Answer>, Error> {
        let wanted = WantedColumns::of(items.iter().map(|item| &item.wanted));
        let kinds_with_rules = kinds_with_rules(items.first());
        let result = wanted_snapshots!(
            WantedSnapshotRow,
            db,
            [r#", wanted.place AS "place!""#],
            wanted,
            kinds_with_rules
        );
        let rows = db.complete(result, Self::OPERATION, "find resources and their reports")?;
        let found = rows.into_iter().map(|row| (row.place, row.snapshot()));
        Ok(by_place(items.len(), found))
    }
}

/// An item for whole resources, with `$dependents`.
macro_rules! whole_question {
    ($item:ident, $dependents:literal, $doing:literal) => {
        impl BatchItem for $item {
            type Answer = Option<WholeResource>;

            const OPERATION: SqlOperation = Query(Resources);

            async fn answer(db: &mut Db<'_>, items: &[Self]) -> Result<Vec<Self::Answer>, Error> {
                let wanted = WantedColumns::of(items.iter().map(|item| &item.0.wanted));
                let kinds_with_rules = kinds_with_rules(items.first().map(|item| &item.0));
                let result = whole!(
                    wanted_snapshots,
                    $dependents,
                    "wanted.place",
                    db,
                    wanted,
                    kinds_with_rules
                );
                let rows = db.complete(result, Self::OPERATION, $doing)?;
                let found = rows.into_iter().map(|row| (row.place, row.into()));
                Ok(by_place(items.len(), found))
            }
        }
    };
}

whole_question!(FindWhole, "NULL::boolean", "find resources to change");
whole_question!(
    FindDeletable,
    "has_dependents(r.id)",
    "find resources to delete"
);

fn kinds_with_rules(first: Option<&FindSnapshot>) -> &[String] {
    first.map_or(&[], |item| &item.kinds_with_rules)
}

impl Db<'_> {
    /// The snapshot of one resource, if it exists.
    pub async fn find_snapshot(
        &mut self,
        scope: ResourceScope<'_>,
        kinds_with_rules: &[String],
    ) -> Result<Option<ResourceSnapshot>, Error> {
        let result = snapshot_in!(SnapshotRow, self, [], scope, kinds_with_rules);
        let row = self.complete(result, Query(Resources), "find a resource and its reports")?;
        Ok(row.map(SnapshotRow::snapshot))
    }

    /// One whole resource with its snapshot, if it exists, without checking for dependents.
    pub async fn find_whole(
        &mut self,
        scope: ResourceScope<'_>,
        kinds_with_rules: &[String],
    ) -> Result<Option<WholeResource>, Error> {
        let result = whole!(
            snapshot_in,
            "NULL::boolean",
            "1::bigint",
            self,
            scope,
            kinds_with_rules
        );
        let row = self.complete(result, Query(Resources), "find a resource to change")?;
        Ok(row.map(WholeResource::from))
    }

    /// The snapshot of one resource, if it exists, with its descendants, and the active resources that reference any of
    /// the family from outside, up to the limits of explanations.
    pub async fn find_surrounded(
        &mut self,
        scope: ResourceScope<'_>,
        kinds_with_rules: &[String],
    ) -> Result<Option<SurroundedResource>, Error> {
        let result = snapshot_in!(
            SurroundedRow,
            self,
            [r#", r.created_at,
                   (SELECT to_jsonb(s) FROM surroundings(r.id, $7, $8, $9) s) AS "surroundings!: _""#],
            scope,
            kinds_with_rules,
            i32::try_from(LEVELS_MAX).unwrap_or(i32::MAX),
            i64::try_from(ROWS_MAX).unwrap_or(i64::MAX)
        );
        let row = self.complete(result, Query(Resources), "find a resource to explain")?;
        Ok(row.map(SurroundedResource::from))
    }

    /// One whole resource with its snapshot, if it exists, and whether it has dependents.
    pub async fn find_deletable(
        &mut self,
        scope: ResourceScope<'_>,
        kinds_with_rules: &[String],
    ) -> Result<Option<WholeResource>, Error> {
        let result = whole!(
            snapshot_in,
            "has_dependents(r.id)",
            "1::bigint",
            self,
            scope,
            kinds_with_rules
        );
        let row = self.complete(result, Query(Resources), "find a resource to delete")?;
        Ok(row.map(WholeResource::from))
    }

    /// The snapshots of locked resources, in the given order.
    pub async fn list_snapshots(
        &mut self,
        locked: &[LockedRow],
        kinds_with_rules: &[String],
    ) -> Result<LockedSnapshots, Error> {
        let result = snapshots!(
            fetch_all,
            LockedSnapshotRow,
            self,
            [
                r#", (EXISTS (SELECT FROM resource_references l WHERE l.source_id = r.id)
                      OR EXISTS (SELECT FROM resource_references l WHERE l.target_id = r.id)) AS "has_links!""#
            ],
            // A change that has its rows has had its turn. For what it needs from now on, such as a slot of a kept total, it
            // waits as in the lane: others hold that for a moment, and it would begin again.
            "JOIN unnest($4::uuid[]) WITH ORDINALITY wanted (id, place) ON wanted.id = r.id
             CROSS JOIN (SELECT set_config('lock_timeout', '4s', true) OFFSET 0) longer ORDER BY wanted.place",
            kinds_with_rules,
            &uuids(locked.iter().map(|h| h.id())),
        );
        let rows = self.complete(result, Query(Resources), "read locked resources")?;
        Ok(LockedSnapshots {
            has_links: rows.iter().any(|row| row.has_links),
            snapshots: rows.into_iter().map(LockedSnapshotRow::snapshot).collect(),
        })
    }
}

impl From<SurroundedRow> for SurroundedResource {
    fn from(mut row: SurroundedRow) -> Self {
        let surroundings = std::mem::take(&mut row.surroundings.0);
        Self {
            created_at: row.created_at,
            surroundings: surroundings.into(),
            snapshot: row.snapshot(),
        }
    }
}

impl From<WholeRow> for WholeResource {
    fn from(mut row: WholeRow) -> Self {
        let spec = std::mem::take(&mut row.spec.0);
        let labels = std::mem::take(&mut row.labels.0);
        let tenancy = std::mem::take(&mut row.tenancy.0);
        let links = row.links.take().map_or_else(Vec::new, |links| links.0);
        let created_by = std::mem::take(&mut row.created_by);
        let updated_by = std::mem::take(&mut row.updated_by);
        let (created_at, has_dependents) = (row.created_at, row.has_dependents);
        let snapshot = row.snapshot();
        let resource = Resource {
            state: snapshot.state.clone(),
            spec,
            labels,
            references: references(links),
            tenancy,
            created_at,
            created_by,
            updated_by,
        };
        Self {
            resource,
            snapshot,
            has_dependents,
        }
    }
}

/// One report from the arrays of its columns.
type ReportColumns = (
    (((String, i32), DateTime<Utc>), DateTime<Utc>),
    Json<Vec<ReportedCondition>>,
);

fn report_state(columns: ReportColumns) -> ReportState {
    let ((((adapter, observed_generation), created_at), reported_at), conditions) = columns;
    ReportState {
        adapter,
        observed_generation,
        created_at,
        reported_at,
        conditions: conditions.0,
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
