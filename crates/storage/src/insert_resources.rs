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
        r#"WITH wanted AS (
               SELECT * FROM unnest(
                   $1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[],
                   $9::text[], $10::text[], $11::int[], $12::timestamptz[], $13::text[], $14::text[], $15::text[],
                   $16::timestamptz[], $17::timestamptz[], $18::bigint[], $19::text[])
               WITH ORDINALITY w (
                   id, owner_id, parent_kind, parent_tenancy, kind, name, spec, labels, tenancy, conditions, generation,
                   at, actor, request_id, condition_states, reconciled_updated_at, reconciled_transition_at,
                   last_known_generation, links, place)
           ), parent AS (
               SELECT w.place, r.deleted_at IS NOT NULL AS is_finalizing
               FROM wanted w JOIN resources r ON r.id = w.owner_id
               WHERE r.kind = w.parent_kind AND (w.parent_tenancy IS NULL OR r.tenancy = w.parent_tenancy::jsonb)
               FOR SHARE OF r SKIP LOCKED
           ), inserted AS (
               INSERT INTO resources (id, owner_id, kind, name, spec, labels, tenancy, conditions, generation,
                                      created_at, created_by, updated_at, updated_by,
                                      condition_states, reconciled_updated_at, reconciled_transition_at,
                                      last_known_generation, computed_revision)
               SELECT w.id, w.owner_id, w.kind, w.name, w.spec::jsonb, w.labels::jsonb, w.tenancy::jsonb,
                      w.conditions::jsonb, w.generation, w.at, w.actor, w.at, w.actor, w.condition_states::text[],
                      w.reconciled_updated_at, w.reconciled_transition_at, w.last_known_generation, 1
               FROM wanted w LEFT JOIN parent p ON p.place = w.place
               WHERE w.owner_id IS NULL OR NOT p.is_finalizing
               RETURNING *
           ), recorded AS (
               INSERT INTO changes (at, resource_id, revision, generation, kind, action, actor, request_id, conditions,
                                    owner_id, created_at, updated_at, name, created_by, updated_by, tenancy, labels,
                                    links, spec)
               SELECT w.at, i.id, i.revision, i.generation, i.kind, 'created', w.actor, w.request_id, i.conditions,
                      i.owner_id, i.created_at, i.updated_at, i.name, i.created_by, i.updated_by, i.tenancy, i.labels,
                      w.links::jsonb, i.spec
               FROM inserted i JOIN wanted w ON w.id = i.id
           ), logged AS (
               INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name, generation_after,
                                          tenancy)
               SELECT w.at, w.actor, w.request_id, $20, w.kind, w.id, w.name, w.generation, w.tenancy::jsonb
               FROM inserted i JOIN wanted w ON w.id = i.id
           )
           SELECT w.place AS "place!", i.id IS NOT NULL AS "is_inserted!", p.place IS NOT NULL AS "is_parent_locked!",
                  EXISTS (SELECT FROM resources r WHERE r.id = w.owner_id AND r.kind = w.parent_kind
                          AND (w.parent_tenancy IS NULL OR r.tenancy = w.parent_tenancy::jsonb)) AS "has_parent!"
           FROM wanted w LEFT JOIN inserted i ON i.id = w.id LEFT JOIN parent p ON p.place = w.place"#,
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
