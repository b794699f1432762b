//! New root resources and patches that are saved together: as [`Db::insert_resource`] and [`Db::save_patched`], for
//! several resources.
//!
//! A resource that another transaction holds is left out, and its patch counts as not saved: no request waits for
//! another's lock. Of several patches of one resource, one is saved.

use super::batching::{BatchItem, by_place};
use super::condition_columns::{ConditionColumns, SentConditions};
use super::measure::SqlOperation::{self, Create, Update};
use super::measure::SqlTable::Resources;
use super::saved_reports::column;
use super::{Db, Error};
use crate::domain::audit::{Action, ChangeOrigin};
use crate::domain::change::ReplacedParts;
use crate::domain::{JsonText, Resource, ResourceState};

/// What a patch and a new resource have in common.
struct Saved {
    /// As it is to be. Its conditions are sent as `conditions`.
    state: ResourceState,
    spec: JsonText,
    labels: JsonText,
    conditions: JsonText,
    computed: ConditionColumns,
    origin: ChangeOrigin,
}

/// A new resource without an owner and without references. The statement inserts all of them, or none.
pub(super) struct InsertRoot {
    saved: Saved,
    tenancy: JsonText,
}

/// A patch that replaces no references, to be saved unless the resource has changed. The answer is true if it was saved.
pub(super) struct SavePatched {
    saved: Saved,
    condition_place: Option<String>,
    revision_before: i64,
    generation_before: i32,
    replaced: ReplacedParts,
}

impl Saved {
    fn new(resource: &Resource, conditions: JsonText, origin: &ChangeOrigin) -> Self {
        Self {
            state: resource.state.clone(),
            spec: JsonText::of(&resource.spec),
            labels: JsonText::of(&resource.labels),
            conditions,
            computed: ConditionColumns::of(&resource.state.conditions),
            origin: origin.clone(),
        }
    }

    fn bytes(&self) -> usize {
        let texts = [&self.spec, &self.labels, &self.conditions];
        texts.iter().map(|text| text.as_str().len()).sum()
    }
}

impl InsertRoot {
    pub(super) fn new(resource: &Resource, origin: &ChangeOrigin) -> Self {
        let conditions = JsonText::of(&resource.state.conditions);
        Self {
            saved: Saved::new(resource, conditions, origin),
            tenancy: JsonText::of(&resource.tenancy),
        }
    }
}

impl SavePatched {
    pub(super) fn new(before: &Resource, after: &Resource, origin: &ChangeOrigin) -> Self {
        let sent = SentConditions::of(&before.state.conditions, &after.state.conditions);
        let conditions = JsonText::of(&sent.value.0);
        Self {
            saved: Saved::new(after, conditions, origin),
            condition_place: sent.place,
            revision_before: before.state.revision,
            generation_before: before.state.generation,
            replaced: ReplacedParts::of(before, after),
        }
    }
}

impl BatchItem for InsertRoot {
    type Answer = ();

    const OPERATION: SqlOperation = Create(Resources);

    fn bytes(&self) -> usize {
        self.saved.bytes()
    }

    async fn answer(db: &mut Db<'_>, new: &[Self]) -> Result<Vec<()>, Error> {
        let result = sqlx::query!(
            "WITH wanted AS (
                 SELECT * FROM unnest(
                     $1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::int[],
                     $9::timestamptz[], $10::text[], $11::text[], $13::text[], $14::timestamptz[], $15::timestamptz[],
                     $16::bigint[])
                 w (id, kind, name, spec, labels, tenancy, conditions, generation, at, actor, request_id,
                    condition_states, reconciled_updated_at, reconciled_transition_at, last_known_generation)
             ), made AS (
                 INSERT INTO resources (id, kind, name, spec, labels, tenancy, conditions, generation,
                                        created_at, created_by, updated_at, updated_by,
                                        condition_states, reconciled_updated_at, reconciled_transition_at,
                                        last_known_generation, computed_revision)
                 SELECT id, kind, name, spec::jsonb, labels::jsonb, tenancy::jsonb, conditions::jsonb, generation,
                        at, actor, at, actor, condition_states::text[], reconciled_updated_at,
                        reconciled_transition_at, last_known_generation, 1
                 FROM wanted
             ), recorded AS (
                 INSERT INTO changes (at, resource_id, kind, action, generation_after, actor, request_id)
                 SELECT at, id, kind, 'created', generation, actor, request_id FROM wanted
             )
             INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name, generation_after, tenancy)
             SELECT at, actor, request_id, $12, kind, id, name, generation, tenancy::jsonb FROM wanted",
            &column(new, |n| n.saved.state.id.as_uuid()),
            &column(new, |n| n.saved.state.kind.as_str()) as _,
            &column(new, |n| n.saved.state.name.as_str()) as _,
            &column(new, |n| n.saved.spec.as_str()) as _,
            &column(new, |n| n.saved.labels.as_str()) as _,
            &column(new, |n| n.tenancy.as_str()) as _,
            &column(new, |n| n.saved.conditions.as_str()) as _,
            &column(new, |n| n.saved.state.generation),
            &column(new, |n| n.saved.origin.at),
            &column(new, |n| n.saved.origin.actor.as_str()) as _,
            &column(new, |n| n.saved.origin.request_id.as_str()) as _,
            Action::Create.into_str(),
            &column(new, |n| n.saved.computed.states_literal()),
            &column(new, |n| n.saved.computed.reconciled_updated_at) as _,
            &column(new, |n| n.saved.computed.reconciled_transition_at) as _,
            &column(new, |n| n.saved.computed.last_known_generation) as _,
        )
        .execute(db.repeatable_connection())
        .await;
        db.complete(result, Self::OPERATION, "insert resources")?;
        Ok(column(new, |_| ()))
    }
}

impl BatchItem for SavePatched {
    type Answer = bool;

    const OPERATION: SqlOperation = Update(Resources);

    fn bytes(&self) -> usize {
        self.saved.bytes()
    }

    async fn answer(db: &mut Db<'_>, patches: &[Self]) -> Result<Vec<bool>, Error> {
        let result = sqlx::query_scalar!(
            r#"WITH wanted AS (
                   SELECT * FROM unnest(
                       $1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::int[], $8::int[],
                       $9::timestamptz[], $10::timestamptz[], $11::text[], $12::text[], $14::text[],
                       $15::timestamptz[], $16::timestamptz[], $17::bigint[], $18::bool[], $19::bool[], $20::bool[])
                   WITH ORDINALITY w (
                       id, revision, spec, labels, condition_place, conditions, generation_before, generation,
                       updated_at, at, actor, request_id, condition_states, reconciled_updated_at,
                       reconciled_transition_at, last_known_generation, is_spec_new, are_labels_new,
                       are_conditions_new, place)
               ), locked AS (
                   SELECT w.place FROM wanted w JOIN resources r ON r.id = w.id AND r.revision = w.revision
                   FOR NO KEY UPDATE OF r SKIP LOCKED
               ), changed AS (
                   UPDATE resources r
                   SET spec = w.spec::jsonb, labels = w.labels::jsonb, generation = w.generation,
                       conditions = CASE WHEN w.condition_place IS NULL THEN w.conditions::jsonb
                                         ELSE jsonb_set(r.conditions, ARRAY[w.condition_place], w.conditions::jsonb) END,
                       updated_at = w.updated_at, updated_by = w.actor, condition_states = w.condition_states::text[],
                       reconciled_updated_at = w.reconciled_updated_at,
                       reconciled_transition_at = w.reconciled_transition_at,
                       last_known_generation = w.last_known_generation,
                       computed_revision = r.revision + 1, revision = r.revision + 1
                   FROM wanted w JOIN locked l ON l.place = w.place
                   WHERE r.id = w.id AND r.revision = w.revision
                   RETURNING r.id, r.kind, r.name, r.tenancy, w.place
               ), recorded AS (
                   INSERT INTO changes (at, resource_id, kind, action, generation_after, actor, request_id, revision,
                                        generation, updated_at, updated_by, deleted_at, deleted_by,
                                        spec, labels, conditions)
                   SELECT w.at, c.id, c.kind, 'modified', w.generation, w.actor, w.request_id, w.revision,
                          r.generation, r.updated_at, r.updated_by, r.deleted_at, r.deleted_by,
                          CASE WHEN w.is_spec_new THEN r.spec END, CASE WHEN w.are_labels_new THEN r.labels END,
                          CASE WHEN w.are_conditions_new THEN r.conditions END
                   FROM changed c JOIN wanted w ON w.place = c.place JOIN resources r ON r.id = c.id
               ), logged AS (
                   INSERT INTO audit_entries (at, actor, request_id, action, kind, resource_id, name,
                                      generation_before, generation_after, tenancy)
                   SELECT w.at, w.actor, w.request_id, $13, c.kind, c.id, c.name, w.generation_before, w.generation,
                          c.tenancy
                   FROM changed c JOIN wanted w ON w.place = c.place
               )
               SELECT place AS "place!" FROM changed"#,
            &column(patches, |p| p.saved.state.id.as_uuid()),
            &column(patches, |p| p.revision_before),
            &column(patches, |p| p.saved.spec.as_str()) as _,
            &column(patches, |p| p.saved.labels.as_str()) as _,
            &column(patches, |p| p.condition_place.as_deref()) as _,
            &column(patches, |p| p.saved.conditions.as_str()) as _,
            &column(patches, |p| p.generation_before),
            &column(patches, |p| p.saved.state.generation),
            &column(patches, |p| p.saved.state.updated_at),
            &column(patches, |p| p.saved.origin.at),
            &column(patches, |p| p.saved.origin.actor.as_str()) as _,
            &column(patches, |p| p.saved.origin.request_id.as_str()) as _,
            Action::Patch.into_str(),
            &column(patches, |p| p.saved.computed.states_literal()),
            &column(patches, |p| p.saved.computed.reconciled_updated_at) as _,
            &column(patches, |p| p.saved.computed.reconciled_transition_at) as _,
            &column(patches, |p| p.saved.computed.last_known_generation) as _,
            &column(patches, |p| p.replaced.spec),
            &column(patches, |p| p.replaced.labels),
            &column(patches, |p| p.replaced.conditions),
        )
        .fetch_all(db.connection())
        .await;
        let places = db.complete(result, Self::OPERATION, "save patched resources")?;
        let saved = by_place(patches.len(), places.into_iter().map(|place| (place, ())));
        Ok(saved.iter().map(Option::is_some).collect())
    }
}
