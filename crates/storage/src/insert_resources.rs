//! Inserts resources, with the recorded change and the audit entry of each. This is the only statement that does so, for
//! one resource or several.

use std::collections::HashSet;

use uuid::Uuid;

use super::batching::{BatchItem, by_place, column};
use super::condition_columns::ConditionColumns;
use super::measure::SqlOperation::{self, Create, Query};
use super::measure::SqlTable::Resources;
use super::row::links;
use super::{Db, Error};
use hyperfleet_domain::audit::{Action, ChangeOrigin};
use hyperfleet_domain::tenancy::TenantScope;
use hyperfleet_domain::{JsonText, Resource, ResourceId, ResourceState};

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

/// A new resource. It is not inserted if its parent is missing (not seen), finalizing or held by another transaction.
/// The parent is locked, so that it cannot be deleted before this is committed. References are added separately.
///
/// The id must be a new one: a statement with an unknown result is sent again, and a row with that id is its own.
pub(super) struct InsertResource {
    state: ResourceState,
    spec: JsonText,
    labels: JsonText,
    tenancy: JsonText,
    conditions: JsonText,
    links: JsonText,
    computed: ConditionColumns,
    parent_kind: Option<String>,
    /// The tenancy that the parent must have; unset for any.
    parent_tenancy: Option<JsonText>,
    origin: ChangeOrigin,
    /// Whether an earlier statement may have inserted it.
    may_exist: bool,
}

struct InsertRow {
    place: i64,
    is_inserted: bool,
    is_parent_locked: bool,
    has_parent: bool,
}

impl InsertResource {
    pub(super) fn new(
        tenants: &TenantScope,
        resource: &Resource,
        parent_kind: Option<&str>,
        origin: &ChangeOrigin,
    ) -> Self {
        Self {
            state: resource.state.clone(),
            spec: JsonText::of(&resource.spec),
            labels: JsonText::of(&resource.labels),
            tenancy: JsonText::of(&resource.tenancy),
            conditions: JsonText::of(&resource.state.conditions),
            links: links(&resource.references),
            computed: ConditionColumns::of(&resource.state.conditions),
            parent_kind: parent_kind.map(ToOwned::to_owned),
            parent_tenancy: tenants.tenancy().map(JsonText::of),
            origin: origin.clone(),
            may_exist: false,
        }
    }
}

impl BatchItem for InsertResource {
    type Answer = Created;

    const OPERATION: SqlOperation = Create(Resources);
    const DOING: &'static str = "insert a resource";
    const IS_REPEATABLE: bool = true;

    fn bytes(&self) -> usize {
        let texts = [&self.spec, &self.labels, &self.conditions];
        texts.iter().map(|text| text.as_str().len()).sum()
    }

    fn repeated(self) -> Self {
        Self {
            may_exist: true,
            ..self
        }
    }

    async fn answer(db: &mut Db<'_>, items: &[Self]) -> Result<Vec<Created>, Error> {
        let inserted = insert(db, items).await;
        let are_inserted =
            |answers: &Vec<Created>| answers.iter().all(|created| *created == Created::Yes);
        let may_exist = db.link.is_repeated || items.iter().any(|item| item.may_exist);
        if !may_exist || inserted.as_ref().is_ok_and(are_inserted) {
            return inserted;
        }
        // The first statement may have succeeded although its answer was lost. No other request generates these ids.
        let found = db
            .existing(&column(items, |i| i.state.id.as_uuid()))
            .await?;
        let is_found = |item: &InsertResource| found.contains(&item.state.id);
        match inserted {
            Err(error) if !items.iter().all(is_found) => Err(error),
            Err(_) => Ok(column(items, |_| Created::Yes)),
            Ok(mut answers) => {
                for (answer, item) in answers.iter_mut().zip(items) {
                    if is_found(item) {
                        *answer = Created::Yes;
                    }
                }
                Ok(answers)
            }
        }
    }
}

async fn insert(db: &mut Db<'_>, items: &[InsertResource]) -> Result<Vec<Created>, Error> {
    let result = sqlx::query_as!(
        InsertRow,
        r#"WITH wanted AS MATERIALIZED (
               SELECT w.*, p.is_finalizing IS NOT NULL AS is_parent_locked,
                      w.owner_id IS NULL OR coalesce(NOT p.is_finalizing, false) AS is_insertable
               FROM (
                   SELECT id, ($2::uuid[])[place] AS owner_id, ($3::text[])[place] AS parent_kind,
                          ($4::text[])[place]::jsonb AS parent_tenancy, ($5::text[])[place] AS kind,
                          ($6::text[])[place] AS name, ($7::text[])[place]::jsonb AS spec,
                          ($8::text[])[place]::jsonb AS labels, ($9::text[])[place]::jsonb AS tenancy,
                          ($10::text[])[place]::jsonb AS conditions, ($11::int[])[place] AS generation,
                          ($12::timestamptz[])[place] AS at, ($13::text[])[place] AS actor,
                          ($14::text[])[place] AS request_id, ($15::text[])[place]::text[] AS condition_states,
                          ($16::timestamptz[])[place] AS reconciled_updated_at,
                          ($17::timestamptz[])[place] AS reconciled_transition_at,
                          ($18::bigint[])[place] AS last_known_generation, ($19::text[])[place]::jsonb AS links, place
                   FROM unnest($1::uuid[]) WITH ORDINALITY ids (id, place)
               ) w
               LEFT JOIN LATERAL (
                   SELECT r.deleted_at IS NOT NULL AS is_finalizing FROM resources r
                   WHERE r.id = w.owner_id AND r.kind = w.parent_kind
                     AND (w.parent_tenancy IS NULL OR r.tenancy = w.parent_tenancy)
                   FOR SHARE SKIP LOCKED
               ) p ON true
           ), inserted AS (
               INSERT INTO resources (id, owner_id, kind, name, spec, labels, tenancy, conditions, generation,
                                      created_at, created_by, updated_at, updated_by,
                                      condition_states, reconciled_updated_at, reconciled_transition_at,
                                      last_known_generation, computed_revision)
               SELECT id, owner_id, kind, name, spec, labels, tenancy, conditions, generation, at, actor, at, actor,
                      condition_states, reconciled_updated_at, reconciled_transition_at, last_known_generation, 1
               FROM wanted WHERE is_insertable
           ), recorded AS (
               INSERT INTO changes (at, resource_id, revision, generation, kind, action, actor, request_id, conditions,
                                    owner_id, created_at, updated_at, name, created_by, updated_by, tenancy, labels,
                                    links, spec)
               SELECT at, id, 1, generation, kind, 'created', actor, request_id, conditions, owner_id, at, at, name,
                      actor, actor, tenancy, labels, links, spec
               FROM wanted WHERE is_insertable
           ), logged AS (
               INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name, generation_after,
                                          tenancy)
               SELECT at, actor, request_id, $20, kind, id, name, generation, tenancy
               FROM wanted WHERE is_insertable
           )
           SELECT w.place AS "place!", w.is_insertable AS "is_inserted!", w.is_parent_locked AS "is_parent_locked!",
                  EXISTS (SELECT FROM resources r WHERE r.id = w.owner_id AND r.kind = w.parent_kind
                          AND (w.parent_tenancy IS NULL OR r.tenancy = w.parent_tenancy)) AS "has_parent!"
           FROM wanted w"#,
        &column(items, |i| i.state.id.as_uuid()),
        &column(items, |i| i.state.owner.map(ResourceId::as_uuid)) as _,
        &column(items, |i| i.parent_kind.as_deref()) as _,
        &column(items, |i| i.parent_tenancy.as_ref().map(JsonText::as_str)) as _,
        &column(items, |i| i.state.kind.as_str()) as _,
        &column(items, |i| i.state.name.as_str()) as _,
        &column(items, |i| i.spec.as_str()) as _,
        &column(items, |i| i.labels.as_str()) as _,
        &column(items, |i| i.tenancy.as_str()) as _,
        &column(items, |i| i.conditions.as_str()) as _,
        &column(items, |i| i.state.generation),
        &column(items, |i| i.origin.at),
        &column(items, |i| i.origin.actor.as_str()) as _,
        &column(items, |i| i.origin.request_id.as_str()) as _,
        &column(items, |i| i.computed.states_literal()),
        &column(items, |i| i.computed.reconciled_updated_at) as _,
        &column(items, |i| i.computed.reconciled_transition_at) as _,
        &column(items, |i| i.computed.last_known_generation) as _,
        &column(items, |i| i.links.as_str()) as _,
        Action::Create.into_str(),
    )
    .fetch_all(db.repeatable_connection())
    .await;
    let rows = db.complete(result, Create(Resources), InsertResource::DOING)?;
    let answers = by_place(items.len(), rows.into_iter().map(|row| (row.place, row)));
    Ok(answers
        .into_iter()
        .map(|row| row.map_or(Created::ParentBusy, Created::from))
        .collect())
}

impl From<InsertRow> for Created {
    fn from(row: InsertRow) -> Self {
        match (row.is_inserted, row.is_parent_locked, row.has_parent) {
            (true, ..) => Self::Yes,
            (false, true, _) => Self::ParentFinalizing,
            (false, false, true) => Self::ParentBusy,
            (false, false, false) => Self::NoParent,
        }
    }
}

impl Db<'_> {
    /// Those of these resources that exist.
    pub(super) async fn existing(&mut self, ids: &[Uuid]) -> Result<HashSet<ResourceId>, Error> {
        let result = sqlx::query_scalar!("SELECT id FROM resources WHERE id = ANY($1)", ids)
            .fetch_all(self.repeatable_connection())
            .await;
        let found = self.complete(result, Query(Resources), "look for inserted resources")?;
        Ok(found.into_iter().map(ResourceId::from).collect())
    }
}
