//! Table `resources`: one row at a time. A statement that changes a row also records the change: the part of it that reads
//! the table again sees the row as it was before.
//!
//! **Such a statement waits for no resource.** It counts as a writer of `changes` from its begin on, and watchers are shown
//! nothing behind a writer that has not ended. A row that another transaction holds counts as changed: its request locks
//! the row first, in a transaction, and then writes. A new resource may wait for an equal name or a total: who holds these
//! is a writer, too.

use std::collections::HashSet;

use sqlx::types::Json;

use super::condition_columns::{ConditionColumns, SentConditions};
use super::measure::SqlOperation::{Create, Query, Update};
use super::measure::SqlTable::Resources;
use super::row::ResourceRow;
use super::{Db, Error, ResourceScope, uuids};
use crate::domain::audit::{Action, Change, ChangeOrigin};
use crate::domain::change::ReplacedParts;
use crate::domain::tenancy::TenantScope;
use crate::domain::{Resource, ResourceId, ResourceState};

/// The result of inserting a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    Yes,
    /// The parent does not exist, or is not seen.
    NoParent,
    ParentFinalizing,
    /// Another transaction holds the parent's row. Nothing was written.
    ParentBusy,
}

impl Db<'_> {
    /// One resource, if it exists.
    pub async fn find_resource(
        &mut self,
        scope: ResourceScope<'_>,
    ) -> Result<Option<Resource>, Error> {
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
            scope.id.as_uuid(),
            scope.kind,
            scope.owner_uuid(),
            scope.tenancy() as _,
        )
        .fetch_optional(self.repeatable_connection())
        .await;
        let row = self.complete(result, Query(Resources), "find a resource")?;
        Ok(row.map(Resource::from))
    }

    pub async fn has_resource(
        &mut self,
        tenants: &TenantScope,
        kind: &str,
        id: ResourceId,
    ) -> Result<bool, Error> {
        let result = sqlx::query_scalar!(
            r#"SELECT EXISTS (SELECT FROM resources WHERE id = $1 AND kind = $2
                              AND ($3::jsonb IS NULL OR tenancy = $3)) AS "exists!""#,
            id.as_uuid(),
            kind,
            tenants.tenancy().map(Json) as _,
        )
        .fetch_one(self.repeatable_connection())
        .await;
        self.complete(result, Query(Resources), "look for a resource")
    }

    /// Which of these resources a tenant sees, including those that this transaction has removed: `origin` is the
    /// origin of its changes.
    pub async fn list_seen(
        &mut self,
        tenants: &TenantScope,
        ids: &[ResourceId],
        origin: &ChangeOrigin,
    ) -> Result<HashSet<ResourceId>, Error> {
        let result = sqlx::query_scalar!(
            r#"SELECT id AS "id!" FROM resources
               WHERE id = ANY($1) AND ($2::jsonb IS NULL OR tenancy = $2)
               UNION
               SELECT resource_id FROM audit_entries
               WHERE resource_id = ANY($1) AND ($2::jsonb IS NULL OR tenancy = $2) AND request_id = $3 AND at = $4"#,
            &uuids(ids.iter().copied()),
            tenants.tenancy().map(Json) as _,
            origin.request_id,
            origin.at,
        )
        .fetch_all(self.connection())
        .await;
        let ids = self.complete(result, Query(Resources), "look for seen resources")?;
        Ok(ids.into_iter().map(ResourceId::from).collect())
    }

    /// Adds a resource and its audit entry, unless its parent is missing (not seen), finalizing or held by another
    /// transaction. The parent is locked, so that it cannot be deleted before this is committed. References are added
    /// separately. The id must be
    /// a new one: a statement with an unknown result is sent again, and a row with that id is its own.
    pub async fn insert_resource(
        &mut self,
        tenants: &TenantScope,
        resource: &Resource,
        parent_kind: Option<&str>,
        origin: &ChangeOrigin,
    ) -> Result<Created, Error> {
        let result = if resource.state.owner.is_some() {
            self.insert_child(tenants, resource, parent_kind, origin)
                .await
        } else {
            self.insert_root(resource, origin).await
        };
        let is_repeated = self.link.is_repeated;
        let created = self.complete(result, Create(Resources), "insert a resource");
        if is_repeated && !matches!(created, Ok(Created::Yes)) {
            // The first statement may have been carried out without an answer. No other request makes this id.
            let state = &resource.state;
            let is_there = self.has_resource(tenants, &state.kind, state.id).await?;
            if is_there {
                return Ok(Created::Yes);
            }
        }
        created
    }

    /// There is no parent to lock.
    async fn insert_root(
        &mut self,
        resource: &Resource,
        origin: &ChangeOrigin,
    ) -> Result<Created, sqlx::Error> {
        let state = &resource.state;
        let computed = ConditionColumns::of(&state.conditions);
        let result = sqlx::query!(
            "WITH made AS (
                 INSERT INTO resources (id, kind, name, spec, labels, tenancy, conditions, generation,
                                        created_at, created_by, updated_at, updated_by,
                                        condition_states, reconciled_updated_at, reconciled_transition_at,
                                        last_known_generation, computed_revision)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $9, $10, $13, $14, $15, $16, 1)
             ), recorded AS (
                 INSERT INTO changes (at, resource_id, kind, action, generation_after, actor, request_id)
                 VALUES ($9, $1, $2, 'created', $8, $10, $11)
             )
             INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name, generation_after, tenancy)
             VALUES ($9, $10, $11, $12, $2, $1, $3, $8, $6)",
            state.id.as_uuid(),
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
            Action::Create.into_str(),
            &computed.states,
            computed.reconciled_updated_at,
            computed.reconciled_transition_at,
            computed.last_known_generation,
        )
        .execute(self.repeatable_connection())
        .await;
        result.map(|_| Created::Yes)
    }

    async fn insert_child(
        &mut self,
        tenants: &TenantScope,
        resource: &Resource,
        parent_kind: Option<&str>,
        origin: &ChangeOrigin,
    ) -> Result<Created, sqlx::Error> {
        let state = &resource.state;
        let computed = ConditionColumns::of(&state.conditions);
        let result = sqlx::query!(
            r#"WITH parent AS (
                   SELECT deleted_at IS NOT NULL AS is_finalizing FROM resources
                   WHERE id = $2 AND kind = $3 AND ($15::jsonb IS NULL OR tenancy = $15) FOR SHARE SKIP LOCKED
               ), made AS (
                   INSERT INTO resources (id, owner_id, kind, name, spec, labels, tenancy, conditions, generation,
                                          created_at, created_by, updated_at, updated_by,
                                          condition_states, reconciled_updated_at, reconciled_transition_at,
                                          last_known_generation, computed_revision)
                   SELECT $1, $2, $4, $5, $6, $7, $8, $9, $10, $11, $12, $11, $12, $16, $17, $18, $19, 1
                   WHERE EXISTS (SELECT FROM parent WHERE NOT is_finalizing)
                   RETURNING id
               ), logged AS (
                   INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name, generation_after,
                                      tenancy)
                   SELECT $11, $12, $13, $14, $4, id, $5, $10, $8 FROM made
               ), recorded AS (
                   INSERT INTO changes (at, resource_id, kind, action, generation_after, actor, request_id)
                   SELECT $11, id, $4, 'created', $10, $12, $13 FROM made
               )
               SELECT EXISTS (SELECT FROM made) AS "is_made!", EXISTS (SELECT FROM parent) AS "is_locked!",
                      EXISTS (SELECT FROM resources WHERE id = $2 AND kind = $3 AND ($15::jsonb IS NULL OR tenancy = $15))
                          AS "has_parent!""#,
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
            Action::Create.into_str(),
            tenants.tenancy().map(Json) as _,
            &computed.states,
            computed.reconciled_updated_at,
            computed.reconciled_transition_at,
            computed.last_known_generation,
        )
        .fetch_one(self.repeatable_connection())
        .await;
        result.map(|row| match (row.is_made, row.is_locked, row.has_parent) {
            (true, ..) => Created::Yes,
            (false, true, _) => Created::ParentFinalizing,
            (false, false, true) => Created::ParentBusy,
            (false, false, false) => Created::NoParent,
        })
    }

    /// Saves a patch with its audit entry and its change, unless the row has changed since `before` or another
    /// transaction holds it; true if saved. References are replaced separately.
    pub async fn save_patched(
        &mut self,
        before: &Resource,
        after: &Resource,
        origin: &ChangeOrigin,
    ) -> Result<bool, Error> {
        let state = &after.state;
        let replaced = ReplacedParts::of(before, after);
        let sent = SentConditions::of(&before.state.conditions, &state.conditions);
        let computed = ConditionColumns::of(&state.conditions);
        let result = sqlx::query!(
            "WITH locked AS (
                 SELECT FROM resources WHERE id = $1 AND revision = $2 FOR NO KEY UPDATE SKIP LOCKED
             ), changed AS (
                 UPDATE resources
                 SET spec = $3, labels = $4, generation = $6,
                     conditions = CASE WHEN $17::text IS NULL THEN $5 ELSE jsonb_set(conditions, ARRAY[$17], $5) END,
                     updated_at = $12, updated_by = $8, condition_states = $13, reconciled_updated_at = $14,
                     reconciled_transition_at = $15, last_known_generation = $16,
                     computed_revision = revision + 1, revision = revision + 1
                 WHERE id = $1 AND revision = $2 AND EXISTS (SELECT FROM locked)
                 RETURNING id, kind, name, tenancy
             ), recorded AS (
                 INSERT INTO changes (at, resource_id, kind, action, generation_after, actor, request_id, revision,
                                      generation, updated_at, updated_by, deleted_at, deleted_by,
                                      spec, labels, links, conditions)
                 SELECT $7, c.id, c.kind, 'modified', $6, $8, $9, $2,
                        r.generation, r.updated_at, r.updated_by, r.deleted_at, r.deleted_by,
                        CASE WHEN $18 THEN r.spec END, CASE WHEN $19 THEN r.labels END,
                        CASE WHEN $20 THEN links_of(c.id) END, CASE WHEN $21 THEN r.conditions END
                 FROM changed c JOIN resources r ON r.id = c.id
             )
             INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name,
                                generation_before, generation_after, tenancy)
             SELECT $7, $8, $9, $10, kind, id, name, $11, $6, tenancy FROM changed",
            state.id.as_uuid(),
            before.state.revision,
            Json(&after.spec) as _,
            Json(&after.labels) as _,
            sent.value as _,
            state.generation,
            origin.at,
            origin.actor,
            origin.request_id,
            Action::Patch.into_str(),
            before.state.generation,
            state.updated_at,
            &computed.states,
            computed.reconciled_updated_at,
            computed.reconciled_transition_at,
            computed.last_known_generation,
            sent.place,
            replaced.spec,
            replaced.labels,
            replaced.references,
            replaced.conditions,
        )
        .execute(self.connection())
        .await;
        let done = self.complete(result, Update(Resources), "save a patched resource")?;
        Ok(done.rows_affected() == 1)
    }

    /// Saves that a resource is finalizing, with its audit entry, unless the row has changed since `before`, another
    /// transaction holds it, or the resource has dependents; true if saved.
    ///
    /// The row is locked before dependents are searched: `has_dependents` sees everything that was committed until
    /// then, and every transaction that creates a child or a reference locks this row first.
    pub async fn save_deleted(
        &mut self,
        before: &ResourceState,
        after: &ResourceState,
        change: &Change,
        origin: &ChangeOrigin,
    ) -> Result<bool, Error> {
        let deletion = after.deletion.as_ref();
        let sent = SentConditions::of(&before.conditions, &after.conditions);
        let computed = ConditionColumns::of(&after.conditions);
        let result = sqlx::query!(
            "WITH locked AS (
                 SELECT id FROM resources WHERE id = $1 AND revision = $2 FOR UPDATE SKIP LOCKED
             ), changed AS (
                 UPDATE resources
                 SET generation = $3, updated_at = $4, deleted_at = $5, deleted_by = $6,
                     conditions = CASE WHEN $17::text IS NULL THEN $7 ELSE jsonb_set(conditions, ARRAY[$17], $7) END,
                     condition_states = $13, reconciled_updated_at = $14, reconciled_transition_at = $15,
                     last_known_generation = $16, computed_revision = revision + 1, revision = revision + 1
                 WHERE id = $1 AND EXISTS (SELECT FROM locked l WHERE NOT has_dependents(l.id))
                 RETURNING id, kind, name, tenancy
             ), recorded AS (
                 INSERT INTO changes (at, resource_id, kind, action, generation_after, actor, request_id, revision,
                                      generation, updated_at, updated_by, deleted_at, deleted_by, conditions)
                 SELECT $8, c.id, c.kind, 'modified', $3, $9, $10, $2,
                        r.generation, r.updated_at, r.updated_by, r.deleted_at, r.deleted_by, r.conditions
                 FROM changed c JOIN resources r ON r.id = c.id
             )
             INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name,
                                generation_before, generation_after, tenancy)
             SELECT $8, $9, $10, $11, kind, id, name, $12, $3, tenancy FROM changed",
            before.id.as_uuid(),
            before.revision,
            after.generation,
            after.updated_at,
            deletion.map(|d| d.at),
            deletion.map(|d| d.by.as_str()),
            sent.value as _,
            origin.at,
            origin.actor,
            origin.request_id,
            change.action.into_str(),
            change.generation_before,
            &computed.states,
            computed.reconciled_updated_at,
            computed.reconciled_transition_at,
            computed.last_known_generation,
            sent.place,
        )
        .execute(self.connection())
        .await;
        let done = self.complete(result, Update(Resources), "save a deleted resource")?;
        Ok(done.rows_affected() == 1)
    }

    /// Locks a parent, if the caller sees it, until the transaction ends: children can be created, and it cannot be
    /// changed.
    pub async fn lock_parent(
        &mut self,
        tenants: &TenantScope,
        id: ResourceId,
    ) -> Result<(), Error> {
        let result = sqlx::query!(
            "SELECT FROM resources WHERE id = $1 AND ($2::jsonb IS NULL OR tenancy = $2) FOR SHARE",
            id.as_uuid(),
            tenants.tenancy().map(Json) as _,
        )
        .execute(self.connection())
        .await;
        self.complete(result, Query(Resources), "lock a parent")?;
        Ok(())
    }

    /// Locks one row, if the caller sees it, until the transaction ends.
    pub async fn lock_resource(
        &mut self,
        tenants: &TenantScope,
        id: ResourceId,
    ) -> Result<(), Error> {
        let result = sqlx::query!(
            "SELECT FROM resources WHERE id = $1 AND ($2::jsonb IS NULL OR tenancy = $2) FOR NO KEY UPDATE",
            id.as_uuid(),
            tenants.tenancy().map(Json) as _,
        )
        .execute(self.connection())
        .await;
        self.complete(result, Query(Resources), "lock a resource")?;
        Ok(())
    }
}
