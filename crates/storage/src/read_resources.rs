//! Reads resources for changes, deletions and explanations: the state, the latest report of each adapter, and the parts
//! that a caller asks for, all of one moment. This is the only statement that does so, for one resource or several, in three
//! forms that differ in their parts.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use hyperfleet_expressions::TEXTS_BYTES_MAX;
use serde_json::{Map, Value};
use sqlx::types::Json;
use uuid::Uuid;

use super::batching::{BatchItem, by_place, column};
use super::measure::SqlOperation::{self, Query};
use super::measure::SqlTable::Resources;
use super::row::{Link, deletion, references};
use super::scope::{WantedColumns, WantedResource};
use super::surroundings::{ROWS_MAX, SurroundingsColumn};
use super::{Db, Error, LockedRow, ResourceScope};
use hyperfleet_domain::condition_rules::{Data, Facts};
use hyperfleet_domain::explain::{LEVELS_MAX, Surroundings};
use hyperfleet_domain::tenancy::TenantScope;
use hyperfleet_domain::{
    Condition, Labels, ReportState, ReportedCondition, Resource, ResourceName, ResourceSnapshot,
    ResourceState, Tenancy,
};

/// The database counts up to this many times the bytes that rules count, because it prints JSON with blanks and long
/// numbers. Below its limit the rules decide.
const PRINTED_FACTOR: usize = 4;

/// A resource with the snapshot of the same moment.
#[derive(Debug)]
pub struct ResourceWithReports {
    pub resource: Resource,
    pub snapshot: ResourceSnapshot,
    /// Whether it has children or is the target of references. `false` unless it was read for a deletion.
    pub has_dependents: bool,
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

/// What is read beside the state and the reports.
#[derive(Debug, Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a part that is read or not"
)]
struct Parts {
    /// Spec, labels, references and everything else that makes a [`Resource`].
    resource: bool,
    dependents: bool,
    has_links: bool,
    surroundings: bool,
}

/// A resource to read.
pub(super) struct ReadResource {
    wanted: WantedResource,
    parts: Parts,
    /// The kinds with rules of the program; empty for a request that runs no rules.
    kinds_with_rules: Vec<String>,
}

impl ReadResource {
    fn new(scope: ResourceScope<'_>, parts: Parts, kinds_with_rules: &[String]) -> Self {
        Self {
            wanted: scope.into(),
            parts,
            kinds_with_rules: kinds_with_rules.to_vec(),
        }
    }

    /// With the state and the reports only.
    pub(super) fn snapshot(scope: ResourceScope<'_>, kinds_with_rules: &[String]) -> Self {
        Self::new(scope, Parts::default(), kinds_with_rules)
    }

    pub(super) fn resource(scope: ResourceScope<'_>, kinds_with_rules: &[String]) -> Self {
        let resource = true;
        let parts = Parts {
            resource,
            ..Parts::default()
        };
        Self::new(scope, parts, kinds_with_rules)
    }

    /// With whether it has dependents.
    pub(super) fn deletable(scope: ResourceScope<'_>, kinds_with_rules: &[String]) -> Self {
        let parts = Parts {
            resource: true,
            dependents: true,
            ..Parts::default()
        };
        Self::new(scope, parts, kinds_with_rules)
    }

    /// With its descendants, and the active resources that reference any of the family from outside, up to the limits
    /// of explanations.
    fn surrounded(scope: ResourceScope<'_>, kinds_with_rules: &[String]) -> Self {
        let surroundings = true;
        let parts = Parts {
            surroundings,
            ..Parts::default()
        };
        Self::new(scope, parts, kinds_with_rules)
    }

    fn locked(row: LockedRow, kinds_with_rules: &[String]) -> Self {
        let has_links = true;
        let parts = Parts {
            has_links,
            ..Parts::default()
        };
        let scope = ResourceScope {
            tenants: &TenantScope::ALL,
            kind: None,
            owner: None,
            id: row.id(),
        };
        Self::new(scope, parts, kinds_with_rules)
    }
}

/// The data of one report; null if it is more than rules read.
type ReportData = Option<Json<Map<String, Value>>>;

/// A row of the statement. What was not asked for is null.
pub(super) struct FoundResource {
    place: i64,
    id: Uuid,
    kind: String,
    name: String,
    owner_id: Option<Uuid>,
    generation: i32,
    revision: i64,
    created_at: DateTime<Utc>,
    created_by: String,
    updated_at: DateTime<Utc>,
    updated_by: String,
    deleted_at: Option<DateTime<Utc>>,
    deleted_by: Option<String>,
    conditions: Json<Vec<Condition>>,
    children: i64,
    report_adapters: Option<Vec<String>>,
    report_generations: Option<Vec<i32>>,
    report_created: Option<Vec<DateTime<Utc>>>,
    report_times: Option<Vec<DateTime<Utc>>>,
    report_conditions: Option<Vec<Json<Vec<ReportedCondition>>>>,
    /// For kinds with rules. Null if there is more than rules read.
    report_data: Option<Vec<ReportData>>,
    spec: Option<Json<Map<String, Value>>>,
    labels: Option<Json<Labels>>,
    tenancy: Option<Json<Tenancy>>,
    links: Option<Json<Vec<Link>>>,
    has_dependents: Option<bool>,
    has_links: Option<bool>,
    surroundings: Option<Json<SurroundingsColumn>>,
}

/// The statement, with `$parts` beside the state and the reports, and `$data` of the reports. A part of a plan takes time even
/// if nothing comes of it: with all of them, a report would read for half as long again. Each form takes the same parameters.
macro_rules! read_resources {
    ($db:ident, $items:ident, $wanted:ident, $kinds_with_rules:ident, $parts:literal, $data:literal) => {
        // Only decisions about finalizing resources need the number of children.
        sqlx::query_as!(
            FoundResource,
            r#"SELECT w.place AS "place!", r.id, r.kind, r.name, r.owner_id, r.generation, r.revision,
                      r.created_at, r.created_by, r.updated_at, r.updated_by, r.deleted_at, r.deleted_by,
                      r.conditions AS "conditions: _",
                      CASE WHEN r.deleted_at IS NULL THEN 0 ELSE count_children(r.id) END AS "children!",
                      e.adapters AS "report_adapters", e.generations AS "report_generations",
                      e.created AS "report_created", e.times AS "report_times",
                      e.conditions AS "report_conditions: _", "#
                + $parts
                + r#"
               FROM (
                   SELECT id, ($5::text[])[place] AS kind, ($6::uuid[])[place] AS owner_id,
                          ($7::jsonb[])[place] AS tenancy, ($8::bool[])[place] AS resource,
                          ($9::bool[])[place] AS dependents, ($10::bool[])[place] AS has_links,
                          ($11::bool[])[place] AS surroundings, place
                   FROM unnest($4::uuid[]) WITH ORDINALITY ids (id, place)
               ) w
               JOIN resources r ON r.id = w.id
               CROSS JOIN LATERAL (
                   SELECT array_agg(adapter) AS adapters, array_agg(observed_generation) AS generations,
                          array_agg(created_at) AS created, array_agg(reported_at) AS times,
                          array_agg(conditions) AS conditions"#
                + $data
                + r#"
                   FROM adapter_reports WHERE resource_id = r.id
               ) e
               WHERE (w.kind IS NULL OR r.kind = w.kind)
                 AND (w.owner_id IS NULL OR r.owner_id = w.owner_id)
                 AND (w.tenancy IS NULL OR r.tenancy = w.tenancy
                      AND (w.owner_id IS NULL OR has_tenancy(w.owner_id, w.tenancy)))
                 AND $1::text[] IS NOT NULL AND $2::int > 0 AND $3::bigint > 0 AND $12::int > 0 AND $13::bigint > 0"#,
            $kinds_with_rules,
            i32::try_from(Data::BYTES_MAX * PRINTED_FACTOR).unwrap_or(i32::MAX),
            i64::try_from(TEXTS_BYTES_MAX * PRINTED_FACTOR).unwrap_or(i64::MAX),
            &$wanted.ids,
            &$wanted.kinds as _,
            &$wanted.owners as _,
            &$wanted.tenancies as _,
            &column($items, |item| item.parts.resource),
            &column($items, |item| item.parts.dependents),
            &column($items, |item| item.parts.has_links),
            &column($items, |item| item.parts.surroundings),
            i32::try_from(LEVELS_MAX).unwrap_or(i32::MAX),
            i64::try_from(ROWS_MAX).unwrap_or(i64::MAX),
        )
        .fetch_all($db.repeatable_connection())
        .await
    };
}

impl BatchItem for ReadResource {
    type Answer = Option<FoundResource>;

    const OPERATION: SqlOperation = Query(Resources);
    const DOING: &'static str = "read a resource";
    const IS_REPEATABLE: bool = true;

    async fn answer(db: &mut Db<'_>, items: &[Self]) -> Result<Vec<Self::Answer>, Error> {
        let wanted = WantedColumns::of(items.iter().map(|item| &item.wanted));
        // Each item takes what it asked for: others may have asked for less.
        let kinds_with_rules = items.iter().map(|item| item.kinds_with_rules.as_slice());
        let kinds_with_rules = kinds_with_rules.max_by_key(|kinds| kinds.len());
        let kinds_with_rules = kinds_with_rules.unwrap_or_default();
        let wants = |part: fn(&Parts) -> bool| items.iter().any(|item| part(&item.parts));
        let result = if !kinds_with_rules.is_empty()
            || wants(|parts| parts.has_links || parts.surroundings)
        {
            read_resources!(
                db,
                items,
                wanted,
                kinds_with_rules,
                r#"CASE WHEN e.data_bytes <= $3::bigint THEN e.data END AS "report_data: _",
                   CASE WHEN w.resource OR r.kind = ANY($1::text[]) THEN r.spec END AS "spec: _",
                   CASE WHEN w.resource OR r.kind = ANY($1::text[]) THEN r.labels END AS "labels: _",
                   CASE WHEN w.resource OR r.kind = ANY($1::text[]) THEN r.tenancy END AS "tenancy: _",
                   CASE WHEN w.resource THEN (
                       SELECT jsonb_agg(jsonb_build_object('type', ref_type, 'kind', target_kind, 'id', target_id))
                       FROM resource_references WHERE source_id = r.id) END AS "links: _",
                   CASE WHEN w.dependents THEN has_dependents(r.id) END AS has_dependents,
                   CASE WHEN w.has_links THEN
                       EXISTS (SELECT FROM resource_references l WHERE l.source_id = r.id)
                       OR EXISTS (SELECT FROM resource_references l WHERE l.target_id = r.id) END AS has_links,
                   CASE WHEN w.surroundings THEN (
                       SELECT to_jsonb(s) FROM surroundings(r.id, w.tenancy, $12::int, $13::bigint) s)
                       END AS "surroundings: _""#,
                r#", array_agg(CASE WHEN r.kind = ANY($1::text[]) AND octet_length(data::text) <= $2::int THEN data END) AS data,
                   sum(CASE WHEN r.kind = ANY($1::text[]) THEN octet_length(data::text) END) AS data_bytes"#
            )
        } else if wants(|parts| parts.resource || parts.dependents) {
            read_resources!(
                db,
                items,
                wanted,
                kinds_with_rules,
                r#"NULL::jsonb[] AS "report_data: _",
                   CASE WHEN w.resource THEN r.spec END AS "spec: _",
                   CASE WHEN w.resource THEN r.labels END AS "labels: _",
                   CASE WHEN w.resource THEN r.tenancy END AS "tenancy: _",
                   CASE WHEN w.resource THEN (
                       SELECT jsonb_agg(jsonb_build_object('type', ref_type, 'kind', target_kind, 'id', target_id))
                       FROM resource_references WHERE source_id = r.id) END AS "links: _",
                   CASE WHEN w.dependents THEN has_dependents(r.id) END AS has_dependents,
                   NULL::boolean AS has_links, NULL::jsonb AS "surroundings: _""#,
                ""
            )
        } else {
            read_resources!(
                db,
                items,
                wanted,
                kinds_with_rules,
                r#"NULL::jsonb[] AS "report_data: _", NULL::jsonb AS "spec: _", NULL::jsonb AS "labels: _",
                   NULL::jsonb AS "tenancy: _", NULL::jsonb AS "links: _", NULL::boolean AS has_dependents,
                   NULL::boolean AS has_links, NULL::jsonb AS "surroundings: _""#,
                ""
            )
        };
        let rows = db.complete(result, Self::OPERATION, Self::DOING)?;
        Ok(by_place(
            items.len(),
            rows.into_iter().map(|row| (row.place, row)),
        ))
    }
}

impl Db<'_> {
    /// One resource with the resources around it, if it exists.
    pub async fn find_surrounded(
        &mut self,
        scope: ResourceScope<'_>,
        kinds_with_rules: &[String],
    ) -> Result<Option<SurroundedResource>, Error> {
        let item = ReadResource::surrounded(scope, kinds_with_rules);
        let found = self.run(item).await?;
        Ok(found.map(|row| row.surrounded(kinds_with_rules)))
    }

    /// The snapshots of locked resources, in the order of `ids`.
    pub async fn list_snapshots(
        &mut self,
        locked: &[LockedRow],
        kinds_with_rules: &[String],
    ) -> Result<LockedSnapshots, Error> {
        let items = column(locked, |row| ReadResource::locked(*row, kinds_with_rules));
        let rows = ReadResource::answer(self, &items).await?;
        let rows: Vec<_> = rows.into_iter().flatten().collect();
        Ok(LockedSnapshots {
            has_links: rows.iter().any(|row| row.has_links == Some(true)),
            snapshots: rows
                .into_iter()
                .map(|row| row.snapshot(kinds_with_rules))
                .collect(),
        })
    }
}

impl FoundResource {
    pub(super) fn snapshot(mut self, kinds_with_rules: &[String]) -> ResourceSnapshot {
        self.take_snapshot(kinds_with_rules)
    }

    pub(super) fn with_reports(mut self, kinds_with_rules: &[String]) -> ResourceWithReports {
        let snapshot = self.take_snapshot(kinds_with_rules);
        let resource = Resource {
            state: snapshot.state.clone(),
            spec: self.spec.map(|spec| spec.0).unwrap_or_default(),
            labels: self.labels.map(|labels| labels.0).unwrap_or_default(),
            references: references(self.links.map(|links| links.0).unwrap_or_default()),
            tenancy: self.tenancy.map(|tenancy| tenancy.0).unwrap_or_default(),
            created_at: self.created_at,
            created_by: self.created_by,
            updated_by: self.updated_by,
        };
        ResourceWithReports {
            resource,
            snapshot,
            has_dependents: self.has_dependents == Some(true),
        }
    }

    fn surrounded(mut self, kinds_with_rules: &[String]) -> SurroundedResource {
        let surroundings = self.surroundings.take().map(|column| column.0);
        SurroundedResource {
            created_at: self.created_at,
            surroundings: surroundings.unwrap_or_default().into(),
            snapshot: self.snapshot(kinds_with_rules),
        }
    }

    fn take_snapshot(&mut self, kinds_with_rules: &[String]) -> ResourceSnapshot {
        let facts = kinds_with_rules.contains(&self.kind);
        let facts = facts.then(|| Box::new(self.facts()));
        ResourceSnapshot {
            reports: self.take_reports(),
            children: usize::try_from(self.children).unwrap_or(0),
            facts,
            state: ResourceState {
                id: self.id.into(),
                kind: std::mem::take(&mut self.kind),
                name: ResourceName::stored(std::mem::take(&mut self.name)),
                owner: self.owner_id.map(Into::into),
                generation: self.generation,
                revision: self.revision,
                updated_at: self.updated_at,
                deletion: deletion(self.deleted_at, self.deleted_by.take()),
                conditions: std::mem::take(&mut self.conditions.0),
            },
        }
    }

    /// Takes the columns of the reports, an array for each.
    fn take_reports(&mut self) -> Vec<ReportState> {
        let adapters = self.report_adapters.take().unwrap_or_default();
        let mut generations = self.report_generations.iter().flatten();
        let mut created = self.report_created.iter().flatten();
        let mut times = self.report_times.iter().flatten();
        let conditions = self.report_conditions.take().unwrap_or_default();
        let reports = adapters.into_iter().zip(conditions);
        let reports = reports.map_while(|(adapter, conditions)| {
            Some(ReportState {
                adapter,
                observed_generation: *generations.next()?,
                created_at: *created.next()?,
                reported_at: *times.next()?,
                conditions: conditions.0,
            })
        });
        reports.collect()
    }

    /// What rules read.
    fn facts(&mut self) -> Facts {
        let adapters = self.report_adapters.iter().flatten().cloned();
        let data: BTreeMap<_, _> = match self.report_data.take() {
            None => adapters.map(|adapter| (adapter, Data::TooLarge)).collect(),
            Some(data) => adapters
                .zip(data)
                .map(|(adapter, data)| (adapter, data.map_or(Data::TooLarge, |d| Data::of(d.0))))
                .collect(),
        };
        Facts {
            spec: self.spec.clone().map(|spec| spec.0).unwrap_or_default(),
            labels: self
                .labels
                .clone()
                .map(|labels| labels.0)
                .unwrap_or_default(),
            tenancy: self
                .tenancy
                .clone()
                .map(|tenancy| tenancy.0)
                .unwrap_or_default(),
            created_at: self.created_at,
            created_by: self.created_by.clone(),
            updated_by: self.updated_by.clone(),
            data,
        }
    }
}
