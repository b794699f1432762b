//! Table `resources`: one row at a time.

use sqlx::types::Json;

use super::measure::SqlOperation::{Create, Query, Update};
use super::measure::SqlTable::{AdapterReports, Resources};
use super::row::{ResourceRow, StandingRow};
use super::{Db, Error, Place};
use crate::domain::audit::{Action, Origin};
use crate::domain::tenancy::View;
use crate::domain::{Condition, Resource, ResourceId, ResourceState, Standing};

/// What became of a new row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// It is there.
    Yes,
    /// Its parent is not.
    NoParent,
    /// Its parent is finalizing.
    ParentFinalizing,
}

impl Db<'_> {
    /// One resource, if it is there.
    pub async fn find_resource(&mut self, place: Place<'_>) -> Result<Option<Resource>, Error> {
        let result = sqlx::query_as!(
            ResourceRow,
            r#"SELECT id, kind, name, owner_id, generation, revision,
                      created_at, created_by, updated_at, updated_by, deleted_at, deleted_by,
                      spec AS "spec: _", labels AS "labels: _", tenancy AS "tenancy: _",
                      conditions AS "conditions: _",
                      (SELECT jsonb_agg(jsonb_build_object('type', ref_type, 'kind', target_kind, 'id', target_id))
                       FROM resource_references WHERE source_id = r.id) AS "links: _"
               FROM resources r
               WHERE id = $1 AND ($2::text IS NULL OR kind = $2) AND ($3::uuid IS NULL OR owner_id = $3)
                 AND ($4::jsonb IS NULL OR tenancy = $4 AND ($3::uuid IS NULL OR has_tenancy($3, $4)))"#,
            place.id.as_uuid(),
            place.kind,
            place.owner_uuid(),
            place.tenancy() as _,
        )
        .fetch_optional(self.wire())
        .await;
        let row = self.done(result, Query(Resources), "find a resource")?;
        Ok(row.map(Resource::from))
    }

    /// Whether there is such a resource.
    pub async fn has_resource(
        &mut self,
        view: &View,
        kind: &str,
        id: ResourceId,
    ) -> Result<bool, Error> {
        let result = sqlx::query_scalar!(
            r#"SELECT EXISTS (SELECT FROM resources WHERE id = $1 AND kind = $2
                              AND ($3::jsonb IS NULL OR tenancy = $3)) AS "exists!""#,
            id.as_uuid(),
            kind,
            view.tenancy().map(Json) as _,
        )
        .fetch_one(self.wire())
        .await;
        self.done(result, Query(Resources), "look for a resource")
    }

    /// One resource's life and reports, if it is there. With the facts that rules need, if it may be
    /// of a kind in `with_rules`.
    pub async fn find_standing(
        &mut self,
        place: Place<'_>,
        with_rules: &[String],
    ) -> Result<Option<Standing>, Error> {
        if !with_rules.is_empty() {
            let ids = [place.id.as_uuid()];
            let found = self.standings_with_facts(&ids, Some(place), with_rules);
            return Ok(found.await?.pop());
        }
        let result = sqlx::query_as!(
            StandingRow,
            r#"SELECT r.id, r.kind, r.name, r.owner_id, r.generation, r.revision,
                      r.updated_at, r.deleted_at, r.deleted_by, r.conditions AS "conditions: _",
                      CASE WHEN r.deleted_at IS NULL THEN 0
                           ELSE (SELECT count(*) FROM (SELECT FROM resources c WHERE c.owner_id = r.id LIMIT 2) c)
                      END AS "children!",
                      e.adapters AS "report_adapters", e.generations AS "report_generations",
                      e.created AS "report_created", e.times AS "report_times",
                      e.conditions AS "report_conditions: _"
               FROM resources r
               CROSS JOIN LATERAL (
                   SELECT array_agg(adapter) AS adapters, array_agg(observed_generation) AS generations,
                          array_agg(created_at) AS created, array_agg(reported_at) AS times,
                          array_agg(conditions) AS conditions
                   FROM adapter_reports WHERE resource_id = r.id
               ) e
               WHERE r.id = $1 AND ($2::text IS NULL OR r.kind = $2) AND ($3::uuid IS NULL OR r.owner_id = $3)
                 AND ($4::jsonb IS NULL OR r.tenancy = $4 AND ($3::uuid IS NULL OR has_tenancy($3, $4)))"#,
            place.id.as_uuid(),
            place.kind,
            place.owner_uuid(),
            place.tenancy() as _,
        )
        .fetch_optional(self.wire())
        .await;
        let row = self.done(result, Query(Resources), "find a resource and its reports")?;
        Ok(row.map(Standing::from))
    }

    /// Adds a resource and its audit entry, unless its parent is missing (not seen) or finalizing.
    /// The parent is held, so that it cannot be deleted before this is committed. Links are added
    /// apart.
    pub async fn insert_resource(
        &mut self,
        view: &View,
        resource: &Resource,
        parent_kind: Option<&str>,
        origin: &Origin,
    ) -> Result<Created, Error> {
        let state = &resource.state;
        let result = sqlx::query!(
            r#"WITH parent AS (
                   SELECT deleted_at IS NOT NULL AS is_finalizing FROM resources
                   WHERE id = $2 AND kind = $3 AND ($15::jsonb IS NULL OR tenancy = $15) FOR SHARE
               ), made AS (
                   INSERT INTO resources (id, owner_id, kind, name, spec, labels, tenancy, conditions, generation,
                                          created_at, created_by, updated_at, updated_by)
                   SELECT $1, $2, $4, $5, $6, $7, $8, $9, $10, $11, $12, $11, $12
                   WHERE $2 IS NULL OR EXISTS (SELECT FROM parent WHERE NOT is_finalizing)
                   RETURNING id
               ), logged AS (
                   INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name, generation_after,
                                      tenancy)
                   SELECT $11, $12, $13, $14, $4, id, $5, $10, $8 FROM made
               )
               SELECT EXISTS (SELECT FROM made) AS "is_made!", EXISTS (SELECT FROM parent) AS "has_parent!""#,
            state.id.as_uuid(),
            state.owner.map(ResourceId::as_uuid),
            parent_kind,
            state.kind,
            state.name.as_str(),
            Json(&resource.spec) as _,
            Json(&resource.labels) as _,
            Json(&resource.tenancy) as _,
            Json(&state.conditions) as _,
            state.generation,
            origin.at,
            origin.actor,
            origin.request_id,
            Action::Create.as_str(),
            view.tenancy().map(Json) as _,
        )
        .fetch_one(self.wire())
        .await;
        let row = self.done(result, Create(Resources), "insert a resource")?;
        Ok(match (row.is_made, row.has_parent) {
            (true, _) => Created::Yes,
            (false, true) => Created::ParentFinalizing,
            (false, false) => Created::NoParent,
        })
    }

    /// Saves what a patch changed, with its audit entry, unless the row has moved on from
    /// `before`; true if saved. Links are replaced apart.
    pub async fn save_patched(
        &mut self,
        before: &Resource,
        after: &Resource,
        origin: &Origin,
    ) -> Result<bool, Error> {
        let state = &after.state;
        let result = sqlx::query!(
            r#"WITH changed AS (
                   UPDATE resources
                   SET spec = $3, labels = $4, conditions = $5, generation = $6,
                       updated_at = $12, updated_by = $8, revision = revision + 1
                   WHERE id = $1 AND revision = $2
                   RETURNING id, kind, name, tenancy
               ), logged AS (
                   INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name,
                                      generation_before, generation_after, tenancy)
                   SELECT $7, $8, $9, $10, kind, id, name, $11, $6, tenancy FROM changed
               )
               SELECT EXISTS (SELECT FROM changed) AS "is_changed!""#,
            state.id.as_uuid(),
            before.state.revision,
            Json(&after.spec) as _,
            Json(&after.labels) as _,
            Json(&state.conditions) as _,
            state.generation,
            origin.at,
            origin.actor,
            origin.request_id,
            Action::Patch.as_str(),
            before.state.generation,
            state.updated_at,
        )
        .fetch_one(self.wire())
        .await;
        let row = self.done(result, Update(Resources), "save a patched resource")?;
        Ok(row.is_changed)
    }

    /// Saves an accepted report with the conditions that follow from it, unless the resource has
    /// moved on from `before`; true if saved.
    pub async fn save_report(
        &mut self,
        before: &ResourceState,
        conditions: &[Condition],
        report: &super::NewReport<'_>,
    ) -> Result<bool, Error> {
        let result = sqlx::query!(
            "WITH changed AS (
                 UPDATE resources SET conditions = $3, revision = revision + 1
                 WHERE id = $1 AND revision = $2
                 RETURNING id
             )
             INSERT INTO adapter_reports (resource_id, adapter, observed_generation, created_at, reported_at,
                                          conditions, data, metadata)
             SELECT id, $4, $5, $6, $7, $8, $9, $10 FROM changed
             ON CONFLICT (resource_id, adapter) DO UPDATE
             SET observed_generation = excluded.observed_generation, reported_at = excluded.reported_at,
                 conditions = excluded.conditions, data = excluded.data, metadata = excluded.metadata",
            before.id.as_uuid(),
            before.revision,
            Json(conditions) as _,
            report.state.adapter,
            report.state.observed_generation,
            report.state.created_at,
            report.state.reported_at,
            Json(&report.state.conditions) as _,
            Json(report.data) as _,
            report.metadata.map(Json) as _,
        )
        .execute(self.wire())
        .await;
        let done = self.done(result, Update(AdapterReports), "save a report")?;
        Ok(done.rows_affected() == 1)
    }

    /// Holds one row if it is seen, so that nobody else changes it before the transaction ends.
    pub async fn lock_resource(&mut self, view: &View, id: ResourceId) -> Result<(), Error> {
        let result = sqlx::query!(
            "SELECT FROM resources WHERE id = $1 AND ($2::jsonb IS NULL OR tenancy = $2) FOR NO KEY UPDATE",
            id.as_uuid(),
            view.tenancy().map(Json) as _,
        )
        .execute(self.wire())
        .await;
        self.done(result, Query(Resources), "lock a resource")?;
        Ok(())
    }
}
